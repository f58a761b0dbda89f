"""The pieces of an answer, read line by line: server-sent events, lines of JSON, or one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PieceReader"]

_DONE = "[DONE]"


class PieceReader:
    """Makes pieces of lines. What is said about the kind of the body is not believed; its first line is.

    Comments (``: OPENROUTER PROCESSING``), other fields of an event and blank lines are passed over.
    """

    def __init__(self) -> None:
        self.done = False
        """Whether the endpoint said that this was all."""
        self.is_document = False
        """Whether the body is JSON and no event stream, and has come to its end."""
        self._pending = ""
        self._damaged = False
        self._is_json = False
        self._begun = False
        self._other: list[str] = []

    def take(self, line: str) -> Sequence[Mapping[str, object]]:
        """Return the pieces that a line completes."""
        stripped = line.strip()
        if not self._begun and stripped:
            self._begun = True
            self._is_json = stripped[0] in "{["
        if self._is_json:
            return self._take_json(line)
        if not stripped.startswith("data:"):
            if not stripped:
                self._damaged = self._damaged or bool(self._pending)
                self._pending = ""
            elif not stripped.startswith((":", "event:", "id:", "retry:")):
                self._other.append(stripped)
            return ()
        data = stripped[5:].strip()
        if data == _DONE:
            self.done = True
            return ()
        if not self._pending and not data.startswith(("{", "[")):
            return ()  # a sign of life
        return self._complete(data)

    @property
    def is_broken(self) -> bool:
        """Whether a piece was begun and not ended, or was no JSON."""
        return self._damaged or bool(self._pending.strip())

    @property
    def other(self) -> str:
        """What stood there and was no piece: a page, say."""
        return "\n".join(self._other[:200])

    def _take_json(self, line: str) -> Sequence[Mapping[str, object]]:
        pieces = self._complete(line)
        self.is_document = bool(pieces) or (self.is_document and not self.is_broken)
        return pieces

    def _complete(self, data: str) -> Sequence[Mapping[str, object]]:
        """Return the piece that ``data`` is, or completes; an event may be spread over several lines."""
        text = f"{self._pending}\n{data}" if self._pending else data
        if not text.rstrip().endswith(("}", "]")):
            self._pending = text
            return ()
        try:
            piece: object = json.loads(text)
        except (ValueError, RecursionError):
            self._pending = text
            return ()
        self._pending = ""
        pieces = piece if isinstance(piece, list) else [piece]
        return [one for one in pieces if isinstance(one, dict)]
