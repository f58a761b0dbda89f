from __future__ import annotations

import importlib
import marshal
import os
import stat
from typing import TYPE_CHECKING

import pytest

from hermes_core.plugins import cache, find_candidates

if TYPE_CHECKING:
    from pathlib import Path

LONG_AGO_NS = 1_700_000_000_000_000_000


def _settle(folder: Path, time_ns: int = LONG_AGO_NS) -> None:
    """Make everything in ``folder`` look as if it had been installed long ago."""
    for path in (*folder.rglob("*"), folder):
        os.utime(path, ns=(time_ns, time_ns))


class Scans:
    """Counts the real scans that go through."""

    def __init__(self) -> None:
        self.count = 0
        self.discover = cache.discover

    def __call__(self, path):
        self.count += 1
        return self.discover(path)


@pytest.fixture
def scans(monkeypatch) -> Scans:
    counted = Scans()
    monkeypatch.setattr(cache, "discover", counted)
    return counted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache"


def _names(folder: Path | None, site) -> list[str]:
    return [candidate.name for candidate in find_candidates(folder, site.path)]


def _file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_the_second_look_up_scans_nothing_and_finds_the_same(site, scans, folder) -> None:
    site.add("one", None)
    site.add("two", None, group="hermes.plugins.v2")
    _settle(site.folder)

    first = find_candidates(folder, site.path)
    second = find_candidates(folder, site.path)

    assert first == second
    assert [candidate.name for candidate in second] == ["one", "two"]
    assert scans.count == 1


def test_the_cache_is_the_users_alone(site, folder) -> None:
    site.add("one", None)
    _settle(site.folder)

    _names(folder, site)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(_file(folder).stat().st_mode) == 0o600


def test_an_installed_plugin_is_seen_at_once(site, scans, folder) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)

    site.add("two", None)

    assert _names(folder, site) == ["one", "two"]
    assert scans.count == 2


def test_a_removed_plugin_is_gone_at_once(site, folder) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)

    info = site.folder / "x_one-1.0.dist-info"
    for file in info.iterdir():
        file.unlink()
    info.rmdir()

    assert _names(folder, site) == []


def test_a_changed_entry_point_file_makes_the_cache_stale(site, folder) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)
    file = site.folder / "x_one-1.0.dist-info" / "entry_points.txt"

    file.write_text("[hermes.plugins.v1]\nrenamed = a:B\n", encoding="utf-8")
    importlib.invalidate_caches()

    assert _names(folder, site) == ["renamed"]


def test_a_folder_without_distributions_may_change_without_a_scan(site, scans, folder, tmp_path) -> None:
    site.add("one", None)
    _settle(site.folder)
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    path = [*site.path, str(scripts)]
    find_candidates(folder, path)

    (scripts / "notes.txt").write_text("x", encoding="utf-8")
    os.utime(scripts, ns=(LONG_AGO_NS, LONG_AGO_NS))
    find_candidates(folder, path)
    assert scans.count == 1

    (scripts / "y-1.0.dist-info").mkdir()
    os.utime(scripts, ns=(LONG_AGO_NS + 1, LONG_AGO_NS + 1))
    find_candidates(folder, path)
    assert scans.count == 2


def test_another_path_is_another_scan(site, scans, folder, tmp_path) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)

    find_candidates(folder, [*site.path, str(tmp_path / "missing")])

    assert scans.count == 2


def test_what_was_installed_a_moment_ago_is_not_cached(site, scans, folder) -> None:
    # Within one tick of the file system's clock a second installation would not change the folder's time.
    site.add("one", None)

    _names(folder, site)
    _names(folder, site)

    assert scans.count == 2
    assert not folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:-3],
        lambda raw: raw.replace(b"hermes.plugins.v1", b"hermes.plugins.v9"),
        lambda raw: os.urandom(len(raw)),
        lambda raw: cache._head(payload := marshal.dumps(("other", "shape"))) + payload,
        lambda raw: cache._head(b"\xff\xff") + b"\xff\xff",
    ],
    ids=["empty", "cut", "one byte", "noise", "another shape", "no marshal"],
)
def test_a_damaged_cache_is_rebuilt_silently(site, scans, folder, damage) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)
    file = _file(folder)
    sound = file.read_bytes()
    file.write_bytes(damage(sound))

    assert _names(folder, site) == ["one"]

    assert scans.count == 2
    assert file.read_bytes() == sound


def test_a_cache_of_another_user_is_neither_read_nor_replaced(site, scans, folder, monkeypatch) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)
    before = _file(folder).stat()
    monkeypatch.setattr(os, "geteuid", lambda: before.st_uid + 1)

    assert _names(folder, site) == ["one"]

    assert scans.count == 2
    assert _file(folder).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o644])
def test_a_cache_that_others_can_reach_is_not_trusted(site, scans, folder, mode) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)
    _file(folder).chmod(mode)

    _names(folder, site)

    assert scans.count == 2
    assert stat.S_IMODE(_file(folder).stat().st_mode) == 0o600


def test_a_link_in_place_of_the_cache_is_not_followed(site, scans, folder, tmp_path) -> None:
    site.add("one", None)
    _settle(site.folder)
    _names(folder, site)
    file = _file(folder)
    elsewhere = file.rename(tmp_path / "elsewhere")
    file.symlink_to(elsewhere)

    _names(folder, site)

    assert scans.count == 2


@pytest.mark.parametrize("blocked", ["home", "home/cache"])
def test_a_home_that_cannot_be_written_means_no_cache_and_no_error(site, scans, tmp_path, blocked) -> None:
    # A file in the way stops root, too, which a mode would not.
    site.add("one", None)
    _settle(site.folder)
    way = tmp_path / blocked
    way.parent.mkdir(exist_ok=True)
    way.write_text("", encoding="utf-8")
    folder = tmp_path / "home" / "cache"

    assert _names(folder, site) == ["one"]
    assert _names(folder, site) == ["one"]

    assert scans.count == 2


def test_a_full_disk_leaves_nothing_behind(site, folder, monkeypatch) -> None:
    site.add("one", None)
    _settle(site.folder)

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert _names(folder, site) == ["one"]
    assert list(folder.iterdir()) == []


def test_without_a_folder_every_look_up_is_a_scan(site, scans) -> None:
    site.add("one", None)

    assert _names(None, site) == ["one"]
    assert _names(None, site) == ["one"]
    assert scans.count == 2
