"""A copy of the database while others write to it.

The copy is of the one moment in which it begins: the reading connection stays in one transaction, so that what others
commit meanwhile neither gets into it nor makes it begin anew. Writers do not wait for it; only the log cannot start
over until it is done.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite import forks
from hermes_core.storage.sqlite.connection import connect, disconnect, translate
from hermes_core.storage.sqlite.soundness import damage
from hermes_hookspecs.errors import StorageError, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.storage.sqlite.connection import Connection

__all__ = ["PARTIAL", "copy_database"]

PARTIAL = ".partial"
"""Ends the name of a copy that is not complete; its process id stands before."""
STEP_PAGES = 256
"""Pages copied between two looks at the caller: 1 MiB, a few milliseconds."""


def copy_database(
    source: str, target: Path, *, busy_timeout_s: float, progress: Callable[[int, int], None] | None = None
) -> int:
    """Write a sound copy of the database ``source`` to the new file ``target``, mode 0600; return its size in bytes.

    The copy has another name until it is complete, checked and on disk. Blocks for as long as it takes.

    :param progress: told pages done and pages in all, after each step; what it raises ends the copy.
    :raises StorageError: the target is there or belongs to the database, or the copy failed; nothing is left of it.
    """
    target = target.absolute()
    _check_target(source, target)
    partial = target.with_name(f"{target.name}.{os.getpid()}{PARTIAL}")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except FileExistsError as error:
        raise StorageError(f"{partial} is in the way: another copy to {target} is being made") from error
    except OSError as error:
        raise StorageError(f"{target} cannot be made ({error.strerror})") from error
    try:
        _copy(source, str(partial), busy_timeout_s, progress)
        _check_copy(str(partial))
        _sync(partial)
        size = partial.stat().st_size
        _publish(partial, target)
    except OSError as error:
        raise StorageError(f"the copy {target} failed ({error.strerror}); nothing is left of it") from error
    except apsw.Error as error:
        raise translate(error, f"the copy {target} failed, nothing is left of it") from error
    finally:
        for name in (partial, *(partial.with_name(f"{partial.name}{end}") for end in ("-wal", "-shm", "-journal"))):
            with suppress(OSError):
                name.unlink()
    return size


def _check_target(source: str, target: Path) -> None:
    if os.path.lexists(target):
        raise StorageError(f"{target} is there already; a copy replaces nothing, choose another name")
    if f"{os.path.realpath(target.parent)}/{target.name}".startswith(f"{source}-"):
        raise StorageError(f"{target} would be taken for a part of the store; choose another name")
    if not target.parent.is_dir():
        raise StorageError(f"there is no folder {target.parent}; make it, or choose another place")


def _copy(source: str, partial: str, patience_s: float, progress: Callable[[int, int], None] | None) -> None:
    reading = connect(source, busy_timeout_s=patience_s, query_only=True)
    try:
        with reading.inside:
            # Holds the moment; SQLite begins the read with the first row that is asked for.
            reading.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
        writing = connect(partial, busy_timeout_s=patience_s)
        try:
            with writing.inside:
                # Nobody else knows the file, and one that is not whole is thrown away: it is synced once, at the end.
                writing.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").fetchall()
            _step_through(reading, writing, progress)
        finally:
            disconnect(writing, checkpoint=False)
    finally:
        disconnect(reading, checkpoint=False)


def _step_through(reading: Connection, writing: Connection, progress: Callable[[int, int], None] | None) -> None:
    with forks.moving, reading.inside, writing.inside:
        backup = writing.backup("main", reading, "main")
    try:
        while not backup.done:
            with reading.inside, writing.inside:
                backup.step(STEP_PAGES)
            if progress is not None:
                progress(backup.page_count - backup.remaining, backup.page_count)
    finally:
        with reading.inside, writing.inside:
            backup.close(force=True)


def _check_copy(partial: str) -> None:
    """Look through the whole copy, without a log or any other file beside it.

    :raises StoreDamaged: it is not sound, as the original is not.
    """
    escaped = partial.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    with forks.moving:
        connection = apsw.Connection(
            f"file:{escaped}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
    try:
        found = damage(connection)
    finally:
        connection.close()
    if found:
        raise StoreDamaged(f"the copy is not sound ({found[0]}), so the store is not; nothing is left of the copy")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _publish(partial: Path, target: Path) -> None:
    """Give the copy its name, unless somebody has taken that meanwhile; then the name is on disk, too."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise StorageError(f"{target} was made by somebody else meanwhile; choose another name") from None
    except OSError:
        # No hard links here (some file systems of memory cards and Windows): a rename would replace what is there.
        if os.path.lexists(target):
            raise StorageError(f"{target} was made by somebody else meanwhile; choose another name") from None
        partial.rename(target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
