# Every command passes here, and pathlib alone costs more than the whole look-up.
"""The scan of :func:`~hermes_core.plugins.candidates.discover`, kept on disk so that quick commands stay quick.

A file holds the candidates and what they depend on: interpreter, folders of the path with their times, and the times
of the entry point files that named a plugin. It is read with :mod:`marshal`, which needs no import but must not see
bytes of a stranger; so the file must be ours alone, and carries a checksum. Whatever is wrong with it, the answer is
a new scan, never an error.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from typing import TYPE_CHECKING, Final
from zlib import crc32

from hermes_core.plugins.candidates import Candidate, discover
from hermes_hookspecs.version import ENTRY_POINT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    # folder, time in ns (-1: not there), whether it holds distributions
    _Folder = tuple[str, int, bool]
    # folders in the order of the path, (entry point file, time in ns)
    _Basis = tuple[tuple[_Folder, ...], tuple[tuple[str, int], ...]]

__all__ = ["find_candidates"]

_MAGIC: Final = b"hermes-plugins-1"
_MAX_BYTES: Final = 4 * 1024 * 1024
_SETTLED_NS: Final = 2_000_000_000
_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")


def find_candidates(folder: str | os.PathLike[str] | None, path: Sequence[str] | None = None) -> tuple[Candidate, ...]:
    """Return what :func:`~hermes_core.plugins.candidates.discover` returns, from the cache where that still holds.

    :param folder: the cache folder of the home, made (0700) when needed; ``None`` works without a cache.
    :param path: folders to look in, in order; ``None`` for ``sys.path``.
    """
    # The empty entry is the current folder, which is another one tomorrow.
    folders = [os.path.abspath(entry) for entry in (sys.path if path is None else path)]
    if folder is None:
        return discover(folders)
    file = os.path.join(folder, f"plugins-{crc32(repr(_interpreter()).encode()):08x}.bin")
    cached = _read(file, folders)
    if cached is not None:
        return cached
    # Times first, scan second: what changes in between makes the cache stale, not wrong.
    basis = _basis(folders)
    found = discover(folders)
    if _is_settled(basis):
        _write(file, marshal.dumps((_interpreter(), basis, tuple(map(tuple, found)))))
    return found


def _interpreter() -> tuple[str, str]:
    return sys.version, sys.executable


def _basis(folders: Sequence[str]) -> _Basis:
    watched: list[tuple[str, int]] = []
    rows: list[_Folder] = []
    for folder in folders:
        time = _time(folder)
        names = tuple(_metadata_names(folder))
        rows.append((folder, time, bool(names) or os.path.isfile(folder)))
        for name in names:
            file = os.path.join(folder, name, "entry_points.txt")
            if _names_a_plugin(file):
                watched.append((file, _time(file)))
    return tuple(rows), tuple(watched)


def _is_settled(basis: _Basis) -> bool:
    """Return whether every time that counts is old enough to change when its file does.

    A file system's clock ticks in steps of up to two seconds: a plugin installed in the tick of the scan would leave
    the time as it was, and stay unseen for ever.
    """
    from time import time_ns

    limit = time_ns() - _SETTLED_NS
    folders, watched = basis
    return all(time < limit for _, time, holds in folders if holds) and all(time < limit for _, time in watched)


def _holds(basis: _Basis, folders: Sequence[str]) -> bool:
    """Return whether nothing that the scan depended on has changed."""
    rows, watched = basis
    if [row[0] for row in rows] != folders:
        return False
    for folder, time, holds_distributions in rows:
        if _time(folder) == time:
            continue
        # Folders of scripts and checkouts change all day; they matter only once they hold a distribution.
        if holds_distributions or any(_metadata_names(folder)) or os.path.isfile(folder):
            return False
    return all(_time(file) == time for file, time in watched)


def _time(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return -1


def _metadata_names(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except (OSError, ValueError):
        return
    yield from (name for name in names if name.endswith(_METADATA_SUFFIXES))


def _names_a_plugin(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return ENTRY_POINT_PREFIX.encode() in opened.read()
    except OSError:
        return False


def _read(file: str, folders: Sequence[str]) -> tuple[Candidate, ...] | None:
    """Return the cached candidates, ``None`` when there are none, they are not ours, damaged or stale."""
    flags = os.O_RDONLY
    for flag in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        descriptor = os.open(file, flags)
    except (OSError, ValueError):
        return None
    try:
        if not _is_ours(os.fstat(descriptor)):
            return None
        raw = os.read(descriptor, _MAX_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    head, payload = raw[: len(_MAGIC) + 4], raw[len(_MAGIC) + 4 :]
    if head != _head(payload):
        return None
    try:
        interpreter, basis, rows = marshal.loads(payload)  # noqa: S302 - ours by owner, mode and checksum
        if interpreter != _interpreter() or not _holds(basis, folders):
            return None
        return tuple(Candidate(*row) for row in rows)
    except (ValueError, TypeError, EOFError):
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Return whether this user alone can have written a file. Windows keeps that in lists that ``stat`` cannot see."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)


def _head(payload: bytes) -> bytes:
    return _MAGIC + crc32(payload).to_bytes(4, "big")


def _write(file: str, payload: bytes) -> None:
    """Replace ``file`` in one step; a home that cannot be written, or is somebody else's, stays without a cache."""
    folder = os.path.dirname(file)
    temporary = f"{file}.{os.getpid()}.tmp"
    try:
        if not os.path.isdir(os.path.dirname(folder)):
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700)
        if hasattr(os, "geteuid") and os.stat(folder).st_uid != os.geteuid():
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
    except (OSError, ValueError):
        return
    try:
        with open(descriptor, "wb") as opened:
            opened.write(_head(payload) + payload)
        os.replace(temporary, file)
    except OSError:
        # A full disk, say; a leftover would make the next O_EXCL of this pid fail.
        from contextlib import suppress

        with suppress(OSError):
            os.unlink(temporary)
