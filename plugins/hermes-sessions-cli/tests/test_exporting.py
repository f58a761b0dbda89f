"""``hermes sessions export``."""

from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_cli.exporting import file_name
from hermes_hookspecs.source import SessionSource

HOSTILE = '\x1b[2J \x00 \x9b \u202e \u2028 周报 👩‍💻 \r\n tab\t " \\ end'
IDS = [
    "../../x",
    "/etc/x",
    "C:\\x",
    "a/b",
    "a_b",
    "a:b",
    "周报",
    "周抱",
    "x" * 300,
    "x" * 301,
    "con",
    ".",
    "",
    "A",
    "a",
]


def chat(name, platform="feishu"):
    return SessionSource(platform=platform, chat_id=f"oc_{name}", user_id="ou_ming")


@pytest.fixture
def two(say):
    return [say(HOSTILE, "one", source=chat("a")).entry, say("hello", "two", source=chat("b", "slack")).entry]


def test_every_id_has_one_bounded_file_name_inside_the_folder():
    names = [file_name(each) for each in IDS]

    assert len({name.lower() for name in names}) == len(IDS)
    for name in names:
        assert os.path.basename(name) == name
        assert len(name.encode()) <= 100
        assert name.endswith(".jsonl")
        assert not name.startswith((".", "con."))


def test_the_ids_that_we_make_are_their_own_names():
    assert file_name("20260901_120000_0123abcd") == "20260901_120000_0123abcd.jsonl"


@given(st.text(alphabet="aA/\\.~_:周\ud800", max_size=8), st.text(alphabet="aA/\\.~_:周\ud800", max_size=8))
def test_different_ids_never_share_a_file_name(one, two):
    if one != two:
        assert file_name(one).lower() != file_name(two).lower()


def test_stdout_gets_one_conversation_a_line_with_everything_kept(hermes, two):
    for target in ([], ["-"]):
        ran = hermes("sessions", "export", *target)

        records = [json.loads(line) for line in ran.out.splitlines()]
        assert ran.err == ""
        assert {record["session_id"] for record in records} == {entry.session_id for entry in two}
        assert records[0]["messages"][0]["content"] == HOSTILE


def test_a_platform_or_a_session_narrows_the_export(hermes, two, app):
    app.rename_session(two[0].lineage_id, "plan")

    (slack,) = hermes("sessions", "export", "--source", "slack").out.splitlines()
    (plan,) = hermes("sessions", "export", "--session-id", "plan").out.splitlines()

    assert json.loads(slack)["session_id"] == two[1].session_id
    assert json.loads(plan)["title"] == "plan"
    ran = hermes("sessions", "export", "--session-id", "plan", "--source", "slack")
    assert (ran.status, ran.out) == (1, "")


def test_a_file_is_private_complete_utf_8_and_has_no_leftovers(hermes, two, tmp_path):
    target = tmp_path / "out" / "all.jsonl"
    target.parent.mkdir()
    target.write_text("old")

    ran = hermes("sessions", "export", str(target))

    assert (ran.status, ran.out, ran.err) == (0, "", "2 conversations exported\n")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len([json.loads(line) for line in target.read_bytes().decode("utf-8").splitlines()]) == 2
    assert os.listdir(target.parent) == ["all.jsonl"]


def test_a_link_stays_a_link(hermes, two, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real.jsonl")

    hermes("sessions", "export", str(link))

    assert link.is_symlink()
    assert (tmp_path / "real.jsonl").read_text().count("\n") == 2


def test_a_folder_gets_a_file_for_each(hermes, two, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()

    ran = hermes("sessions", "export", str(folder))

    assert ran.err == "2 conversations exported\n"
    assert sorted(os.listdir(folder)) == sorted(f"{entry.session_id}.jsonl" for entry in two)
    record = json.loads((folder / f"{two[0].session_id}.jsonl").read_text())
    assert record["messages"][0]["content"] == HOSTILE


def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(hermes, two, tmp_path, app, monkeypatch):
    target = tmp_path / "all.jsonl"
    target.write_text("old")

    def failing(*_, **__):
        yield {"session_id": "x"}
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(app, "export_sessions", failing)

    ran = hermes("sessions", "export", str(target))

    assert ran.status == 74
    assert ran.err == f"hermes: No space left on device: {target}\n"
    assert target.read_text() == "old"
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


def test_a_missing_folder_is_one_line(hermes, two, tmp_path):
    target = tmp_path / "no" / "all.jsonl"

    ran = hermes("sessions", "export", str(target))

    assert (ran.status, ran.err) == (74, f"hermes: No such file or directory: {target}\n")


def test_a_device_is_written_to_not_replaced(hermes, two):
    assert hermes("sessions", "export", os.devnull).status == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_empty_store_exports_nothing(hermes):
    ran = hermes("sessions", "export")

    assert (ran.status, ran.out) == (0, "")


# ------------------------------------------------------------------ what is never written over


def files_in(folder):
    """Return what files there are; read they are not, since closing one drops the locks of this process on it."""
    return {path: (path.lstat().st_ino, path.lstat().st_size) for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("suffix", ["", "-wal", "-gate-next", "-anything"])
@pytest.mark.parametrize("by", ["name", "link", "hard link", "detour"])
def test_the_store_and_what_stands_beside_it_are_never_written_over(hermes, two, app, tmp_path, suffix, by):
    kept = app.store.location + suffix
    target = tmp_path / "out.jsonl"
    if by == "link":
        target.symlink_to(kept)
    elif by == "hard link":
        if not os.path.exists(kept):
            open(kept, "x").close()
        os.link(kept, target)
    else:
        target = kept if by == "name" else tmp_path / "home" / ".." / "home" / os.path.basename(kept)
    before = files_in(tmp_path)

    ran = hermes("sessions", "export", str(target))

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"hermes: {target} ")
    assert ran.err.count("\n") == 1
    assert files_in(tmp_path) == before
    assert hermes("sessions", "export").out.count("\n") == 2


@pytest.mark.parametrize("place", ["config.toml", "profiles/x/config.toml", "cache/plugins.bin", "cache/new", "cache"])
def test_settings_and_cache_are_never_written_over(hermes, two, tmp_path, place):
    target = tmp_path / "home" / place
    (tmp_path / "home" / "cache").mkdir(exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    before = files_in(tmp_path / "home")

    ran = hermes("sessions", "export", str(target))

    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert files_in(tmp_path / "home") == before


@pytest.mark.parametrize("name", ["other.db", "other.db-wal", "other.db-gate-next"])
def test_no_other_database_is_written_over(hermes, two, tmp_path, name):
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    before = files_in(tmp_path)

    ran = hermes("sessions", "export", str(tmp_path / name))

    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert files_in(tmp_path) == before


def test_a_database_that_has_the_name_of_a_file_in_the_folder_stays(hermes, two, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    kept = folder / f"{two[0].session_id}.jsonl"
    kept.write_bytes(b"SQLite format 3\0")

    ran = hermes("sessions", "export", str(folder))

    assert (ran.status, kept.read_bytes()) == (2, b"SQLite format 3\0")


@pytest.mark.parametrize("name", ["state.db.jsonl", "a-b.jsonl", "-", "config.toml"])
def test_an_ordinary_file_is_written_and_written_again(hermes, two, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)

    first, second = (hermes("sessions", "export", name) for _ in range(2))

    assert (first.status, second.status) == (0, 0)
