"""Where copies of a store lie, and how they are called."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hermes_hookspecs.ports.services import AttachmentCopier

__all__ = [
    "attachments_of",
    "backup_folder",
    "copy_attachments",
    "forget_leftovers",
    "leftovers",
    "new_backup",
    "newest_backup",
]

UNTOUCHED_S = 3600
"""A copy that is not complete and has not grown for so long is made by nobody any more."""


def backup_folder(folder: Path) -> Path:
    """Return the folder of the copies of a profile."""
    return folder / "backups"


def new_backup(folder: Path, now: int) -> Path:
    """Return a name for a copy made at ``now`` (UTC milliseconds) that nobody has; makes the folder, mode 0700.

    Names sort by time: ``state-20260901T120307Z.db``, a second one of the same second has ``-2`` before its end.

    :raises OSError: the folder cannot be made.
    """
    place = backup_folder(folder)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now // 1000))
    path, number = place / f"state-{stamp}.db", 1
    while os.path.lexists(path):
        number += 1
        path = place / f"state-{stamp}-{number}.db"
    return path


def attachments_of(copy: Path) -> Path:
    """Return where the attachments of a copy lie: where they belong to a database that is opened by its path."""
    return copy.with_name(f"{copy.name}.d") / "attachments"


def copy_attachments(files: AttachmentCopier, copy: Path) -> int:
    """Copy the attachments to their place beside the copy of a store that was made before; return how many.

    Made behind it: so whatever a row of the copy names is there, unless it was erased meanwhile.

    :raises StorageError: they could not be copied; nothing half done is left.
    """
    place = attachments_of(copy)
    partial = place.with_name(f"{place.name}.partial")
    try:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        count = files.copy_to(str(partial))
        if count:
            partial.rename(place)
    except OSError as error:
        raise StorageError(f"{place} could not be written: {error.strerror or type(error).__name__}") from error
    finally:
        _remove(partial)
        with suppress(OSError):
            place.parent.rmdir()  # only an empty one goes
    return count


def newest_backup(folder: Path) -> Path | None:
    """Return the copy that was made last, ``None`` where there is none."""
    try:
        found = [path for path in backup_folder(folder).iterdir() if path.name.startswith("state-")]
        whole = [(path.stat().st_mtime_ns, path) for path in found if path.suffix == ".db"]
    except OSError:
        return None
    return max(whole)[1] if whole else None


def leftovers(folder: Path, now: int) -> Sequence[Path]:
    """Return copies whose maker died before they were complete, sorted."""
    try:
        place = backup_folder(folder)
        # SQLite may have had files of its own beside it
        found = sorted((*place.glob("*.partial*"), *place.glob("*.d/*.partial")))
        return [path for path in found if now / 1000 - path.stat().st_mtime > UNTOUCHED_S]
    except OSError:
        return []


def forget_leftovers(folder: Path, now: int) -> Sequence[Path]:
    """Remove what :func:`leftovers` returns; return what is gone."""
    gone = []
    for path in leftovers(folder, now):
        with suppress(OSError):
            _remove(path)
            gone.append(path)
    return gone


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; nothing where nothing is."""
    if path.is_dir() and not path.is_symlink():
        from shutil import rmtree

        rmtree(path)
    else:
        path.unlink(missing_ok=True)
