"""What a model answers, put together from the pieces in which it comes.

Endpoints agree on the large, not on the small: pieces without choices, without content, with ``null`` everywhere;
calls without an index, all with one index, with one id, or with their name in every piece; arguments as an object;
content as a list of parts; usage in every piece, in one without choices, or never. All of that is taken.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.toolbox import AskedCall
from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_hookspecs.errors import HermesError

__all__ = ["MOST_TOKENS", "Reply"]

MOST_TOKENS = 10**12
"""Of one request."""


@attrs.define
class _Call:
    index: object
    id: str = ""
    name: str = ""
    arguments: list[str] = attrs.field(factory=list)


class Reply:
    """One answer of a model, as far as it has come."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.model: str | None = None
        """As the endpoint names it."""
        self.fault: HermesError | None = None
        """Why the answer ends in the middle; ``None`` where it is whole."""
        self.dropped = False
        """Whether it was paid for and is of no use."""
        self.shown = False
        """Whether any of its text was given away: then it cannot be asked for again."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._usage: Mapping[object, object] | None = None
        self._half = ""

    # --- what it says

    @property
    def tells_usage(self) -> bool:
        """Whether the endpoint said what it used."""
        return self._usage is not None

    @property
    def text(self) -> str:
        """The text so far."""
        return _whole("".join(self._text))

    @property
    def reasoning(self) -> str | None:
        """What the model thought before it spoke, where the endpoint tells; ``None`` for nothing."""
        return _whole("".join(self._reasoning)) or None

    @property
    def calls(self) -> tuple[AskedCall, ...]:
        """The calls, in order, each as it was written."""
        return tuple(
            AskedCall(id=call.id, name=call.name, arguments=_whole("".join(call.arguments))) for call in self._calls
        )

    @property
    def is_empty(self) -> bool:
        """Whether it neither says nor asks for anything."""
        return not self._calls and not self.text.strip()

    def usage(self, asked: str) -> Usage:
        """Return what it used; a number that the endpoint did not tell is ``None``.

        ``input_tokens`` is the whole prompt; what was read from the cache is a part of it.

        :param asked: model that was asked, where the endpoint does not name it.
        """
        told = self._usage or {}
        details = _table(told.get("prompt_tokens_details"))
        read = _first(
            details.get("cached_tokens"), told.get("prompt_cache_hit_tokens"), told.get("cache_read_input_tokens")
        )
        written = _first(details.get("cache_write_tokens"), told.get("cache_creation_input_tokens"))
        return Usage(
            model=asked or self.model,
            input_tokens=_first(told.get("prompt_tokens"), told.get("input_tokens")),
            output_tokens=_first(told.get("completion_tokens"), told.get("output_tokens")),
            cache_read_tokens=read,
            cache_write_tokens=written,
        )

    # --- how it comes

    def take(self, piece: Mapping[str, object]) -> str:
        """Take in one piece, or a whole answer; return the text in it that can be shown."""
        usage = piece.get("usage")
        if isinstance(usage, dict) and usage:
            self._usage = usage
        model = piece.get("model")
        if isinstance(model, str) and model:
            self.model = model
        shown = ""
        choices = piece.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (None, 0):
                shown += self._take_choice(choice)
        return shown

    def rest(self) -> str:
        """Return what could not be shown before the end was known: half of a character."""
        half, self._half = self._half, ""
        return _whole(half)

    def _take_choice(self, choice: Mapping[object, object]) -> str:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        said = choice.get("delta")
        said = _table(said if isinstance(said, dict) else choice.get("message"))
        thought = _first_text(said.get("reasoning_content"), said.get("reasoning"))
        if thought:
            self._reasoning.append(thought)
        text = self._content(said.get("content")) + _first_text(said.get("refusal"))
        calls = said.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._take_call(call)
        return self._shown(text)

    def _content(self, content: object) -> str:
        """Return the text of a content, which may be a list of parts; what is thought there goes to the reasoning."""
        if isinstance(content, str):
            return content
        text = ""
        for part in content if isinstance(content, list) else ():
            kind, words = _table(part).get("type"), _table(part).get("text")
            if kind == "text" and isinstance(words, str):
                text += words
            elif kind == "thinking":
                self._reasoning.append(self._content(_table(part).get("thinking")))
        return text

    def _shown(self, text: str) -> str:
        """Return a text without half a character at its end: some endpoints cut an emoji in two."""
        if not text:
            return ""
        self._text.append(text)
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return _whole(text[: len(text) - len(self._half)])

    def _take_call(self, piece: Mapping[object, object]) -> None:
        function = _table(piece.get("function"))
        call = self._call_of(piece.get("index"), _first_text(piece.get("id")), _first_text(function.get("name")))
        name = _first_text(function.get("name"))
        if name and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif isinstance(arguments, dict):
            call.arguments.append(json.dumps(arguments, ensure_ascii=False))

    def _call_of(self, index: object, call_id: str, name: str) -> _Call:
        """Return the call that a piece belongs to.

        That is the newest one with its index, unless the piece begins another: it has another id, or it has a name
        and no index. A piece without an index goes on with the newest call.
        """
        newest = self._calls[-1] if self._calls else None
        same = newest if index is None else next((one for one in reversed(self._calls) if one.index == index), None)
        begins = same is None or bool(call_id and same.id and call_id != same.id) or bool(index is None and name)
        if begins or same is None:
            self._calls.append(_Call(index, call_id))
            return self._calls[-1]
        same.id = same.id or call_id
        return same


def _table(value: object) -> Mapping[object, object]:
    return value if isinstance(value, dict) else {}


def _first(*values: object) -> int | None:
    """Return the first that is a number of something; one that no endpoint can mean is unknown, and fails no turn."""
    return next(
        (one for one in values if isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= MOST_TOKENS), None
    )


def _first_text(*values: object) -> str:
    return next((one for one in values if isinstance(one, str) and one), "")


def _whole(text: str) -> str:
    """Return a text in which halves of a character are joined, and what stays half is replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
