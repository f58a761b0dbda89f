"""Bytes of attachments in a folder of the profile, named by their content.

::

    attachments/
      lock                        taken by whoever adds, refers or removes, in any process
      ab/abcdef…/bytes            the content, mode 0600, written aside, synced and renamed into place
      ab/abcdef…/by-0123…         one a lineage that refers to it; holds the lineage's id

Rows go first, files after: an erase removes the lineage's rows in one transaction of the store and calls
:meth:`AttachmentFolder.drop` then. Whatever a kill leaves in between is found by :meth:`AttachmentFolder.sweep`. A name
in this folder is a hash, never anything that came from outside.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from hashlib import sha256 as _sha256
from logging import getLogger
from threading import RLock
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.errors import AttachmentRefused, StorageError, StoreFull
from hermes_hookspecs.ids import LineageId

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; one process there is serialised by its own lock
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_hookspecs.ports.services import AttachmentReader

__all__ = ["MOST_BYTES", "AttachmentFolder", "TurnFiles"]

_log = getLogger(__name__)

MOST_BYTES: Final = 32 * 1024 * 1024
"""Most bytes of one attachment."""

_BYTES: Final = "bytes"
_BY: Final = "by-"
_PART: Final = "part-"
_HASH_LENGTH: Final = 64
_MOST_READ: Final = 1024**3
"""Most bytes that are read of one content: what was kept is read whatever the limit is by now."""
_HEX: Final = frozenset("0123456789abcdef")


class AttachmentFolder:
    """Keeps bytes in a folder (:class:`~hermes_hookspecs.ports.services.AttachmentStore`).

    Thread-safe, and safe beside other processes with the same folder. Nothing is made before the first byte is kept.

    :param folder: absolute; its parent exists by the time something is kept. most_bytes: of one attachment.
    """

    def __init__(self, folder: str, *, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._lock = RLock()

    def put(self, data: bytes, *, lineage_id: LineageId | None = None) -> str:
        """Store bytes and return their hash once they are durable."""
        if len(data) > self._most_bytes:
            raise AttachmentRefused(f"an attachment of {len(data)} bytes was not taken; the most is {self._most_bytes}")
        name = _sha256(data).hexdigest()
        with self._writing(), _told(f"attachment {name[:16]}"):
            place = self._place(name)
            os.makedirs(place, mode=0o700, exist_ok=True)
            if not self._is_whole(place, len(data)):
                self._write(place, data)
            os.utime(os.path.join(place, _BYTES))  # as young as its newest use: a sweep leaves it alone for a while
            if lineage_id is not None:
                self._refer(place, lineage_id)
        return name

    def keep(self, sha256s: Iterable[str], lineage_id: LineageId) -> None:
        """Let a lineage refer to what is there."""
        names = [name for name in sha256s if _is_hash(name) and os.path.exists(os.path.join(self._place(name), _BYTES))]
        if not names:
            return
        with self._writing(), _told("a reference to an attachment"):
            for name in names:
                place = self._place(name)
                if os.path.exists(os.path.join(place, _BYTES)):
                    self._refer(place, lineage_id)

    def get(self, sha256: str) -> bytes | None:
        """Return the bytes, ``None`` when they are gone or are not what their name says."""
        if not _is_hash(sha256):
            return None
        try:
            with open(os.path.join(self._place(sha256), _BYTES), "rb") as file:
                data = file.read(_MOST_READ + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise StorageError(f"attachment {sha256[:16]} could not be read: {why}") from error
        return data if _sha256(data).hexdigest() == sha256 else None

    def drop(self, lineage_id: LineageId) -> int:
        """Let go of what a lineage referred to; return how many contents went."""
        if not os.path.isdir(self.folder):
            return 0
        marker, gone = _marker(lineage_id), 0
        with self._writing(), _told("an attachment that is to go"):
            for place in self._places():
                path = os.path.join(place, marker)
                if os.path.exists(path):
                    os.unlink(path)
                    gone += self._remove_unreferred(place)
        return gone

    def sweep(self, lives: Callable[[LineageId], bool], *, older_than_s: float) -> int:
        """Remove what nobody refers to and what was left half written; return how many contents went."""
        if not os.path.isdir(self.folder):
            return 0
        known: dict[LineageId, bool] = {}
        gone = 0
        for place in self._places():
            # One content at a time: whoever wants to keep something waits for no whole sweep.
            with self._writing(), _told("an attachment that is to go"):
                gone += self._sweep_one(place, lives, known, older_than_s)
        return gone

    def copy_to(self, folder: str) -> int:
        """Copy everything into a folder that is not there yet; return how many contents."""
        copied = 0
        for place in self._places():
            with _told(f"the copy of an attachment in {folder}"):
                copied += _copy_place(place, os.path.join(folder, os.path.relpath(place, self.folder)))
        if copied:
            _sync_folder(folder)
        return copied

    # --- one content

    def _sweep_one(
        self, place: str, lives: Callable[[LineageId], bool], known: dict[LineageId, bool], older_than_s: float
    ) -> int:
        for name in _names(place):
            path = os.path.join(place, name)
            if _age_s(path) < older_than_s:
                continue
            if name.startswith(_PART):
                os.unlink(path)
            elif name.startswith(_BY):
                lineage_id = _lineage_of(path)
                if lineage_id not in known:
                    known[lineage_id] = lives(lineage_id)
                if not known[lineage_id]:
                    os.unlink(path)
        content = os.path.join(place, _BYTES)
        if os.path.exists(content) and _age_s(content) < older_than_s:
            return 0
        return self._remove_unreferred(place)

    def _remove_unreferred(self, place: str) -> int:
        """Remove a content that no lineage refers to; return how many went."""
        if any(name.startswith((_BY, _PART)) for name in _names(place)):
            return 0
        content = os.path.join(place, _BYTES)
        there = os.path.exists(content)
        if there:
            os.unlink(content)
        with suppress(OSError):
            os.rmdir(place)
            os.rmdir(os.path.dirname(place))
        return int(there)

    def _is_whole(self, place: str, size: int) -> bool:
        try:
            stored = os.stat(os.path.join(place, _BYTES)).st_size
            return stored == size and self.get(os.path.basename(place)) is not None
        except (OSError, StorageError):
            return False

    def _write(self, place: str, data: bytes) -> None:
        part = os.path.join(place, f"{_PART}{os.getpid()}")
        descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, os.path.join(place, _BYTES))
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
        for folder in (place, os.path.dirname(place), self.folder):
            _sync_folder(folder)

    def _refer(self, place: str, lineage_id: LineageId) -> None:
        path = os.path.join(place, _marker(lineage_id))
        if os.path.exists(path):
            return
        part = os.path.join(place, f"{_PART}by-{os.getpid()}")
        with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(lineage_id)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _sync_folder(place)

    # --- the folder

    def _place(self, name: str) -> str:
        return os.path.join(self.folder, name[:2], name)

    def _places(self) -> Iterator[str]:
        for first in sorted(_names(self.folder)):
            if len(first) == 2 and _HEX.issuperset(first):
                for name in sorted(_names(os.path.join(self.folder, first))):
                    if _is_hash(name):
                        yield self._place(name)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be the only one of all processes who changes the folder."""
        with self._lock, _told("the lock of the attachments"):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            descriptor = os.open(os.path.join(self.folder, "lock"), os.O_CREAT | os.O_RDWR, 0o600)
            try:
                if fcntl is not None:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)


class TurnFiles:
    """The attachments that a window names, and no others (:class:`~hermes_hookspecs.ports.services.AttachmentReader`).

    :param names: hashes that may be read.
    """

    def __init__(self, store: AttachmentReader | None, names: Iterable[str]) -> None:
        self._store = store
        self._names = frozenset(names)

    def get(self, sha256: str) -> bytes | None:
        """Return the bytes, ``None`` when they are gone, cannot be read or are not of this conversation's context."""
        if self._store is None or sha256 not in self._names:
            return None
        try:
            return self._store.get(sha256)
        except StorageError as error:
            _log.warning("an agent goes without a file: %s", error)
            return None


def _copy_place(place: str, target: str) -> int:
    """Copy one content and its references; return 0 for one that has gone meanwhile."""
    from shutil import copyfile

    names = [name for name in _names(place) if name == _BYTES or name.startswith(_BY)]
    if _BYTES not in names:
        return 0
    os.makedirs(target, mode=0o700, exist_ok=True)
    for name in names:
        path = os.path.join(target, name)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            copyfile(os.path.join(place, name), path)
        except FileNotFoundError:
            os.unlink(path)
            continue
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    _sync_folder(target)
    return int(os.path.exists(os.path.join(target, _BYTES)))


def _is_hash(name: str) -> bool:
    return len(name) == _HASH_LENGTH and _HEX.issuperset(name)


def _marker(lineage_id: LineageId) -> str:
    return f"{_BY}{_sha256(lineage_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _lineage_of(path: str) -> LineageId:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return LineageId(file.read(1000))
    except OSError:
        return LineageId("")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _age_s(path: str) -> float:
    """Return seconds since the file was written, by the file system's own clock as far as this machine's is it."""
    from time import time

    try:
        return time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def _sync_folder(folder: str) -> None:
    with suppress(OSError):  # a file system that cannot sync a folder has no need to
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Raise what the file system says as an error of the storage."""
    from errno import EDQUOT, ENOSPC

    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in (ENOSPC, EDQUOT) else StorageError
        raise kind(f"{what} could not be written: {error.strerror or type(error).__name__}") from error
