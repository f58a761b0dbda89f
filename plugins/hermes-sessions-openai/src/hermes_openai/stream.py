"""The pieces of an answer, read line by line: server-sent events, lines of JSON, or one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PieceReader"]

_DONE = "[DONE]"
_SHORT = 4096
_MOST_OTHER = 200
_DECODER = json.JSONDecoder()


class PieceReader:
    """Makes pieces of lines. What is said about the kind of the body is not believed; its first line is.

    Comments (``: OPENROUTER PROCESSING``), other fields of an event and blank lines are passed over.
    """

    def __init__(self) -> None:
        self.done = False
        """Whether the endpoint said that this was all."""
        self.is_document = False
        """Whether the body is JSON and no event stream, and has come to its end."""
        self._pending: list[str] = []
        self._size = 0
        self._next_try = 0
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
            return self._noted(self._complete(line))
        if not stripped.startswith("data:"):
            if not stripped:
                return self._end_of_event()
            if len(self._other) < _MOST_OTHER and not stripped.startswith((":", "event:", "id:", "retry:")):
                self._other.append(stripped)
            return ()
        data = stripped[5:].strip()
        if data == _DONE:
            self.done = True
            return ()
        if not self._pending and not data.startswith(("{", "[")):
            return ()  # a sign of life
        return self._complete(data)

    def end(self) -> Sequence[Mapping[str, object]]:
        """Return what the end of the body completes; to be called behind its last line."""
        return self._noted(self._decoded()) if self._is_json else self._decoded()

    @property
    def is_broken(self) -> bool:
        """Whether a piece was begun and not ended, or was no JSON."""
        return self._damaged or any(line.strip() for line in self._pending)

    @property
    def other(self) -> str:
        """What stood there and was no piece: a page, say."""
        return "\n".join(self._other)

    def _noted(self, pieces: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
        self.is_document = bool(pieces) or (self.is_document and not self.is_broken)
        return pieces

    def _end_of_event(self) -> Sequence[Mapping[str, object]]:
        pieces = self._decoded()
        self._damaged = self._damaged or bool(self._pending)
        self._keep("")
        return pieces

    def _complete(self, data: str) -> Sequence[Mapping[str, object]]:
        """Return the pieces that ``data`` is, or completes; an event may be spread over several lines.

        What is long is looked at as often as it has grown by a quarter: reading it takes the longer the more there is.
        """
        self._pending.append(data)
        self._size += len(data) + 1
        if self._size < self._next_try or not data.rstrip().endswith(("}", "]")):
            return ()
        return self._decoded()

    def _decoded(self) -> Sequence[Mapping[str, object]]:
        """Return the pieces that what is pending begins with; the rest stays pending."""
        text = "\n".join(self._pending).strip()
        pieces: list[Mapping[str, object]] = []
        while text:
            try:
                piece, end = _DECODER.raw_decode(text)
            except (ValueError, RecursionError):
                break
            pieces += [one for one in (piece if isinstance(piece, list) else [piece]) if isinstance(one, dict)]
            text = text[end:].lstrip()
        self._keep(text)
        return pieces

    def _keep(self, text: str) -> None:
        self._pending = [text] if text else []
        self._size = len(text)
        self._next_try = 0 if self._size < _SHORT else self._size * 5 // 4
