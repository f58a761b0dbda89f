"""Files that go out beside an answer: as an agent hands them over, and as an adapter is given them.

Nothing here reads a path. What is handed over are bytes that the agent, or a tool of it, has already: a text that names
a file of this machine makes nobody send it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final
from unicodedata import category

import attrs

if TYPE_CHECKING:
    from mimetypes import MimeTypes

    from hermes_hookspecs.messages import Attachment

__all__ = [
    "LONGEST_NAME",
    "FileResult",
    "OutgoingFile",
    "file_line",
    "file_name",
    "kind_of",
    "media_type_of",
    "size_text",
]

LONGEST_NAME: Final = 100
"""Most characters of a file's name; in UTF-8 it has at most 240 bytes, as file systems take it with a number more."""

_ANYTHING: Final = "application/octet-stream"
_KINDS: Final = ("image", "audio", "video")
_LONGEST_SHOWN: Final = 50
_MOST_NAME_BYTES: Final = 240
_LONGEST_SUFFIX: Final = 20
_UNSAFE: Final = frozenset('/\\:*?"<>|')


def file_name(name: str) -> str:
    """Return a name under which a file can be shown and kept anywhere: what stands behind the last slash of it.

    Nothing in it leads elsewhere, hides the file or its suffix, or controls a terminal; ``file`` where nothing is left.
    """
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    shown = "".join("_" if char in _UNSAFE or _is_control(char) else char for char in last)
    kept = shown.strip().lstrip(".").strip()
    if len(kept) <= LONGEST_NAME and len(kept.encode()) <= _MOST_NAME_BYTES:
        return kept or "file"
    head, dot, suffix = kept.rpartition(".")
    if not dot or len(suffix) > _LONGEST_SUFFIX:
        return _beginning(kept, LONGEST_NAME, _MOST_NAME_BYTES)
    end = f".{suffix}"
    return _beginning(head, LONGEST_NAME - len(end), _MOST_NAME_BYTES - len(end.encode())) + end


def media_type_of(name: str) -> str:
    """Return the media type that a name's suffix stands for, the same on every machine."""
    return _types().guess_type(name)[0] or _ANYTHING


def kind_of(media_type: str) -> str:
    """Return ``image``, ``audio``, ``video`` or ``document``, as :class:`~hermes_hookspecs.messages.Attachment` has."""
    first = media_type.partition("/")[0].lower()
    return first if first in _KINDS else "document"


def file_line(file: Attachment, why: str = "") -> str:
    """Return the line that stands for a file where it cannot be sent: its name, its size, and why."""
    named = file.name or file.kind
    if len(named) > _LONGEST_SHOWN:
        named = f"{named[:_LONGEST_SHOWN]}…"
    size = "" if file.size is None else f", {size_text(file.size)}"
    return f"[{named}{size}{': ' if why else ''}{why}]"


def size_text(size: int) -> str:
    """Return a number of bytes for people: ``12 kB``."""
    if size < 1000:
        return f"{size} byte{'' if size == 1 else 's'}"
    if size < 1_000_000:
        return f"{size / 1000:.0f} kB"
    return f"{size / 1_000_000:.1f} MB"


@attrs.frozen(kw_only=True)
class OutgoingFile:
    """A file on its way to a person.

    Attributes:
        name: with its suffix; made safe by :func:`file_name`. data: its bytes.
        media_type: ``image/png``; of the name's suffix where none is given.
    """

    name: str = attrs.field(converter=file_name)
    data: bytes = attrs.field(repr=False)
    media_type: str = attrs.field(default=attrs.Factory(lambda self: media_type_of(self.name), takes_self=True))

    @property
    def size(self) -> int:
        """Return how many bytes it has."""
        return len(self.data)

    @property
    def kind(self) -> str:
        """Return ``image``, ``audio``, ``video`` or ``document``."""
        return kind_of(self.media_type)


@attrs.frozen(kw_only=True)
class FileResult:
    """What a tool returns that hands files to the person beside its text for the model.

    Attributes:
        text: for the model; where it is empty, that says which files were handed over.
    """

    files: tuple[OutgoingFile, ...]
    text: str = ""


def _beginning(text: str, most: int, most_bytes: int) -> str:
    """Return as much of a text as has so many characters and bytes."""
    return text[:most].encode()[:most_bytes].decode(errors="ignore").rstrip()


def _is_control(char: str) -> bool:
    """Return whether a character is none that is seen: controls, direction marks, halves of pairs, line ends."""
    return category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


@lru_cache(maxsize=1)
def _types() -> MimeTypes:
    from mimetypes import MimeTypes

    return MimeTypes()
