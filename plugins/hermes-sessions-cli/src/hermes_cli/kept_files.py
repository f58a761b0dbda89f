"""Files that no command may write over: the store and what stands beside it, the settings, the cache, any database."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hermes_cli.parser import usage_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes_hookspecs.ports.app import App

__all__ = ["refuse_kept_files"]

_SQLITE_MAGIC = b"SQLite format 3\0"
_SETTINGS = "config.toml"


def refuse_kept_files(target: str, app: App) -> None:
    """Let ``target`` pass where writing it destroys nothing of ours; links of both kinds are followed.

    :param target: the file or folder that is to be written; it need not exist.
    :raises ConfigError: it is one of the files that are kept; exit status 2.
    """
    why = _why_kept(os.path.realpath(target), app)
    if why:
        raise usage_error(f"{target} {why}; export to another place")


def _why_kept(path: str, app: App) -> str:
    """Return what ``path`` is, as the end of a sentence; ``""`` for a file that may be written."""
    home = os.path.realpath(app.home)
    cache = os.path.join(home, "cache")
    if _is_inside(path, cache) or _is_any(path, _entries(cache)):
        return "is in the cache"
    if os.path.isdir(path):
        return ""
    name = os.path.basename(path)
    settings = (os.path.join(home, _SETTINGS), os.path.join(home, "profiles", app.profile, _SETTINGS))
    if _is_any(path, settings) or (name.casefold() == _SETTINGS and _is_inside(path, home)):
        return "holds the settings"
    store = app.store.location
    if not os.path.isabs(store):  # no file
        return _why_database(path, ())
    store = os.path.realpath(store)
    beside, base = os.path.split(store)
    begin = f"{base}-".casefold()
    companions = [each for each in _entries(beside) if os.path.basename(each).casefold().startswith(begin)]
    if _is_any(path, (store,)):
        return "is the store itself"
    if _is_any(path, companions) or (name.casefold().startswith(begin) and _is_any(os.path.dirname(path), (beside,))):
        return "belongs to the store"
    return _why_database(path, (store, *companions))


def _why_database(path: str, ours: Sequence[str]) -> str:
    """Say the same of any other database, for example another profile's: its ``-wal`` is as dear as its own file.

    :param ours: files that this process has open; closing a second descriptor would drop its locks on them.
    """

    def is_database(place: str) -> bool:
        return _is_any(place, ours) or _begins_as_database(place)

    if is_database(path):
        return "is a database"
    folder, name = os.path.split(path)
    dashes = (place for place, each in enumerate(name) if each == "-")
    return "belongs to a database" if any(is_database(os.path.join(folder, name[:place])) for place in dashes) else ""


def _is_any(path: str, others: Iterable[str]) -> bool:
    """Return whether ``path`` is one of the others, by name or as the same file on the disk."""
    for other in others:
        if path == other:
            return True
        try:
            if os.path.samefile(path, other):
                return True
        except (OSError, ValueError):
            continue  # one of the two is not there
    return False


def _is_inside(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or below it; case counts where it counts for the disk."""
    while not _is_any(path, (folder,)):
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _entries(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names)


def _begins_as_database(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except (OSError, ValueError):
        return False
