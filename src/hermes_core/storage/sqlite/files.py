"""The look at a place and a file before the first byte is written: whatever is unfit is refused untouched."""

from __future__ import annotations

import errno
import os
import sys
import time

import apsw

from hermes_core.storage.sqlite import forks
from hermes_core.storage.sqlite.connection import number
from hermes_hookspecs.errors import StoreDamaged, StoreRefused

__all__ = [
    "MINIMUM_SQLITE",
    "WAY_OUT",
    "Glance",
    "absolute",
    "check_emptied",
    "check_file_system",
    "check_sqlite",
    "create",
    "glance",
    "inspect",
    "prepare_folder",
    "refuse_strangers",
    "side_file_refused",
]

MINIMUM_SQLITE = (3, 46, 0)
WAY_OUT = "nothing was changed. Restore a backup, or move the file away to begin anew"

LOOKS = 4
BETWEEN_LOOKS_S = 0.02

# File systems without shared memory or with locks that do not reach everybody: WAL loses rows there.
UNFIT_FILE_SYSTEMS = {
    **dict.fromkeys(("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "ceph", "9pnet"), "a network"),
    **dict.fromkeys(("glusterfs", "lustre", "gpfs", "beegfs", "ocfs2", "davfs", "fuse.sshfs"), "a network"),
    **dict.fromkeys(("fuse.rclone", "fuse.s3fs", "fuse.glusterfs", "fuse.davfs2", "fuse.ceph"), "a network"),
    **dict.fromkeys(("9p", "virtiofs", "drvfs", "vboxsf", "prl_fs", "vmhgfs"), "a cross-VM"),
    **dict.fromkeys(("fuse.vmhgfs-fuse", "fuse.grpcfuse", "fuse.osxfs", "fakeowner"), "a cross-VM"),
}


class Glance:
    """What a database file says about itself, read without changing a byte.

    :ivar application_id: whose file it is; 0 when it does not say.
    :ivar user_version: its schema version.
    :ivar tables: names of its tables, sorted.
    """

    __slots__ = ("application_id", "tables", "user_version")

    def __init__(self, application_id: int, user_version: int, tables: tuple[str, ...]) -> None:
        self.application_id = application_id
        self.user_version = user_version
        self.tables = tables


def check_sqlite(version: str) -> None:
    """Refuse a SQLite library that is too old.

    :param version: such as ``3.54.1``.
    :raises StoreRefused: naming what is needed.
    """
    if tuple(int(part) for part in version.split(".")[:3]) < MINIMUM_SQLITE:
        needed = ".".join(str(part) for part in MINIMUM_SQLITE)
        raise StoreRefused(f"SQLite {version} is too old, {needed} is needed; upgrade the package apsw")


def check_file_system(path: str, mounts: str | None = None) -> None:
    """Refuse a place where SQLite's write-ahead log is not safe.

    :param path: absolute and resolved; what does not exist yet counts as part of its nearest folder.
    :param mounts: the text of ``/proc/mounts``; ``None`` reads it. Without such a table only UNC paths are refused.
    :raises StoreRefused: naming the file system and the way out.
    """
    kind = ""
    if path.startswith("\\\\"):
        kind = "smb"
        where = "a network"
    else:
        kind = _file_system(path, _read_mounts() if mounts is None else mounts)
        where = UNFIT_FILE_SYSTEMS.get(kind, "")
    if where:
        raise StoreRefused(
            f"{path} is on {where} file system ({kind}), where SQLite's write-ahead log loses data; "
            "put it on a local disk with --home or HERMES_SESSIONS_HOME"
        )


def _read_mounts() -> str:
    try:
        with open("/proc/mounts", encoding="utf-8", errors="surrogateescape") as table:
            return table.read()
    except OSError:
        return ""


def _file_system(path: str, mounts: str) -> str:
    """Type of the file system at the longest mount point above the path; of equal ones the last covers the others."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = words[1]
        for escape, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            point = point.replace(escape, char)
        covers = path == point or path.startswith(point.rstrip("/") + "/")
        if covers and len(point) >= best:
            best, kind = len(point), words[2]
    return kind


def prepare_folder(path: str) -> None:
    """Make the folder of a database file (0700) if it is missing, and see that files can be made in it.

    :param path: the database file.
    :raises StoreRefused: naming the folder and what the system says.
    """
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreRefused(
            f"the folder {folder} cannot be made ({error.strerror}); choose another with --home"
        ) from error
    if os.path.isdir(path):
        raise StoreRefused(f"{path} is a folder, not a database file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreRefused(f"the folder {folder} cannot be written by this user; choose another with --home")
    if os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
        raise StoreRefused(f"{path} cannot be read and written by this user; choose another with --home")


def side_file_refused(error: OSError) -> StoreRefused:
    """The error for one of our lock files that cannot be opened, with the way out."""
    if error.errno == errno.ELOOP:
        return StoreRefused(f"{error.filename} is a symbolic link; a lock file has to be a file of its own, remove it")
    if error.errno == errno.EISDIR:
        return StoreRefused(f"{error.filename} is a folder, not a lock file; remove it")
    return StoreRefused(
        f"{error.filename} cannot be opened ({error.strerror}); make it writable, or choose another place with --home"
    )


def check_emptied(path: str, *, was_made: bool) -> bool:
    """Whether the file may be made anew; only under the gate, where nobody else is making it.

    :param was_made: whether a whole database has stood here.
    :returns: true when there is no file, false when there is one: empty because nobody came further, or not empty.
    :raises StoreDamaged: it has lost all it had, or its log still has rows.
    """
    size = _size(path)
    log = _size(f"{path}-wal")
    if not size and log:
        lost = "is missing" if size is None else "is empty"
        raise StoreDamaged(
            f"{path} {lost}, and its log {path}-wal is not; nothing was changed. "
            "Restore a backup of both, or move the log away to begin anew"
        )
    if size == 0 and was_made:
        raise StoreDamaged(
            f"{path} is empty, and was not before; nothing was changed. Restore a backup, or remove it to begin anew"
        )
    return size is None


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def create(path: str) -> None:
    """Make an empty file with mode 0600, unless there is one. Only under the gate, before anybody opens it.

    :raises StoreRefused: the folder does not let us.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreRefused(f"{path} cannot be made ({error.strerror}); choose another place with --home") from error


def inspect(path: str, *, application_id: int, newest: int) -> Glance | None:
    """A glance at a file that is ours or still empty; ``None`` when it is missing or empty.

    Somebody may be writing while we look without a lock, so a file is refused only when it looks wrong again and again.

    :raises StoreRefused: see :func:`glance` and :func:`refuse_strangers`.
    :raises StoreDamaged: see :func:`glance`.
    """
    for attempt in range(LOOKS):
        try:
            found = glance(path)
            if found is not None:
                refuse_strangers(path, found, application_id=application_id, newest=newest)
        except (StoreRefused, StoreDamaged):
            if attempt == LOOKS - 1:
                raise
            time.sleep(BETWEEN_LOOKS_S)
        else:
            return found
    raise AssertionError("the last look answers or raises")


def glance(path: str) -> Glance | None:
    """What the file says about itself; ``None`` when it is missing or empty.

    Goes through SQLite, because a plain open and close would drop the locks of this process. Without a -wal the file is
    opened as immutable: no lock, no side file. With one it is read-only, so that nobody's log is checkpointed.

    :raises StoreRefused: it is not a database, or cannot be read.
    :raises StoreDamaged: it is a database, but what it says about itself is broken.
    """
    try:
        if not os.stat(path).st_size:
            return None
    except FileNotFoundError:
        return None
    try:
        pending = os.stat(f"{path}-wal").st_size > 0
    except FileNotFoundError:
        pending = False
    if pending:
        # The -shm of a log may be gone (a copied file); SQLite then cannot say anything without making one, and
        # the main file has to speak for itself.
        try:
            return _ask(path, "mode=ro&readonly_shm=1")
        except apsw.CantOpenError:
            pass
        except apsw.Error as error:
            raise _unreadable(path, error) from error
    try:
        return _ask(path, "immutable=1")
    except apsw.Error as error:
        raise _unreadable(path, error) from error


def _ask(path: str, parameters: str) -> Glance:
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with forks.moving:
        connection = apsw.Connection(f"file:{escaped}?{parameters}", flags=flags)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.set_busy_timeout(2000)
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
            return Glance(
                number(connection, "PRAGMA application_id"),
                number(connection, "PRAGMA user_version"),
                tuple(str(row[0]) for row in names),
            )
        finally:
            connection.close()


def _unreadable(path: str, error: apsw.Error) -> StoreRefused | StoreDamaged:
    if isinstance(error, apsw.CorruptError):
        return StoreDamaged(f"{path} is damaged ({error}); {WAY_OUT}")
    if isinstance(error, apsw.NotADBError):
        return StoreRefused(f"{path} is not an SQLite database; it was not touched. Choose another file with --db")
    if isinstance(error, apsw.BusyError):
        return StoreRefused(f"{path} is locked by another program and does not say whose it is; it was not touched")
    return StoreRefused(f"{path} cannot be read ({error}); it was not touched")


def refuse_strangers(path: str, found: Glance, *, application_id: int, newest: int) -> None:
    """Let only our own files pass, and those that are still empty.

    :param newest: the schema version of this program.
    :raises StoreRefused: somebody else's file, or one of a newer program; the message says what to do.
    """
    if found.application_id == application_id:
        if found.user_version > newest:
            raise StoreRefused(
                f"{path} was made by a newer version (schema {found.user_version}, this program knows {newest}); "
                "it was not touched. Upgrade hermes-sessions-core"
            )
        return
    if found.application_id == 0 and found.user_version == 0 and not found.tables:
        return
    if {"sessions", "messages"} <= set(found.tables):
        raise StoreRefused(
            f"{path} looks like the state.db of the original Hermes; it was not touched. "
            "`hermes sessions import` reads it"
        )
    shown = ", ".join(found.tables[:4]) or f"application id {found.application_id:#x}"
    raise StoreRefused(
        f"{path} is the database of another program ({shown}); it was not touched. Choose another file with --db"
    )


def absolute(path: str | os.PathLike[str]) -> str:
    """The path with all links resolved, so that everybody means the same side files.

    :raises StoreRefused: SQLite cannot have such a name.
    """
    text = os.fspath(path)
    try:
        resolved = os.path.realpath(text)
        resolved.encode(sys.getfilesystemencoding())
        resolved.encode("utf-8")
    except ValueError as error:
        raise StoreRefused(f"{text!r} cannot be the name of a database file: {error}") from error
    if text == ":memory:" or not text:
        raise StoreRefused(f'{text!r} is not a file; for a store in memory set storage.backend = "memory"')
    return resolved
