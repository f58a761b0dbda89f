"""Files that an answer brings to a terminal: put into a folder of the profile, where a person can open them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.files import file_line, file_name

if TYPE_CHECKING:
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.app import App, TurnResult

__all__ = ["Received", "received"]

_FOLDER = "files"
_MOST_NAMES = 1000


@attrs.frozen(kw_only=True)
class Received:
    """One file, and where it is; ``""`` where it could not be put anywhere, and then ``why``."""

    file: Attachment
    path: str
    why: str = ""

    @property
    def line(self) -> str:
        """Return the line that tells of it."""
        return f"file: {self.path}" if self.path else f"file: {file_line(self.file, self.why)}"


def received(result: TurnResult, app: App) -> tuple[Received, ...]:
    """Put the files of an answer into ``files/<session id>/`` of the profile, mode 0600, in order. Blocks.

    A file that is there already with the same bytes stays; another one of its name gets a number.
    """
    if not result.files:
        return ()
    home = os.path.abspath(app.home)
    profile = home if app.profile == "default" else os.path.join(home, "profiles", app.profile)
    folder = os.path.join(profile, _FOLDER, result.turn.session_id)
    return tuple(_put(file, folder, app) for file in result.files)


def _put(file: Attachment, folder: str, app: App) -> Received:
    try:
        data = None if file.sha256 is None else app.attachments.get(file.sha256)
    except StorageError:
        return Received(file=file, path="", why="it cannot be read now")
    if data is None:
        return Received(file=file, path="", why="it is not kept any more")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return Received(file=file, path=_written(folder, file_name(file.name), data))
    except OSError as error:
        return Received(file=file, path="", why=f"it could not be written: {error.strerror or type(error).__name__}")


def _written(folder: str, name: str, data: bytes) -> str:
    """Write bytes under a name that nothing else has; return the path.

    :raises OSError: that did not work.
    """
    stem, dot, suffix = name.rpartition(".")
    for number in range(1, _MOST_NAMES):
        numbered = name if number == 1 else f"{stem} ({number}).{suffix}" if dot else f"{name} ({number})"
        path = os.path.join(folder, numbered)
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            if _holds(path, data):
                return path
            continue
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        return path
    raise FileExistsError(17, f"there are {_MOST_NAMES} files of that name", os.path.join(folder, name))


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False
