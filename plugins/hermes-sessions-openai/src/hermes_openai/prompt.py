"""Rows as an endpoint is sent them: a pure function, row by row, so that equal rows are equal bytes.

Nothing here looks at the clock, at settings that may change between two turns of a session (except
``reasoning_field``), or at more than one row. A row that stood in a prompt stands in the next one, unchanged.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from hermes_hookspecs.messages import ASSISTANT, TOOL
from hermes_openai.media import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.ports.agent import Tool

__all__ = ["assistant_message", "result_message", "user_message", "wire_messages", "wire_tools"]

_HALF = re.compile("[\ud800-\udfff]")
_NO_NAME = re.compile("[^a-zA-Z0-9_-]")
_NAME_CHARACTERS = 64


def wire_messages(
    rows: Iterable[Message], *, reasoning_field: str = "", media: Mapping[int, Sequence[Wire]] | None = None
) -> list[Wire]:
    """Return the messages of a window, in order.

    An assistant row that says nothing and asks for nothing is left out: no endpoint takes it.

    :param media: place of a row → what is sent behind its text: this turn's attachments, as they are.
    """
    sent: list[Wire] = []
    for place, row in enumerate(rows):
        if row.role == ASSISTANT:
            if row.content.strip() or row.tool_calls:
                sent.append(assistant_message(row.content, row.tool_calls, row.reasoning, reasoning_field))
        elif row.role == TOOL:
            sent.append(result_message(row.tool_call_id or "", row.content))
        elif media and media.get(place):
            text: Wire = {"type": "text", "text": _sendable(row.content)}
            sent.append({"role": row.role, "content": [text, *media[place]]})
        else:
            sent.append({"role": row.role, "content": _sendable(row.content)})
    return sent


def assistant_message(content: str, calls: Sequence[ToolCall], reasoning: str | None, reasoning_field: str) -> Wire:
    """Return what the model said and asked for; blank text is none, since some endpoints take no blank text."""
    message: Wire = {"role": "assistant", "content": _sendable(content) if content.strip() else None}
    if reasoning and reasoning_field:
        message[reasoning_field] = _sendable(reasoning)
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _name(call.name), "arguments": _legal(_sendable(call.arguments))},
            }
            for call in calls
        ]
    return message


def result_message(call_id: str, content: str) -> Wire:
    """Return the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": _sendable(content)}


def user_message(text: str) -> Wire:
    """Return what a person said."""
    return {"role": "user", "content": _sendable(text)}


def wire_tools(tools: Iterable[Tool]) -> list[Wire]:
    """Return the tools in the order of their names, each with its schema as it stands."""
    return [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description, "parameters": dict(one.parameters)},
        }
        for one in sorted(tools, key=lambda one: one.name)
    ]


def _sendable(text: str) -> str:
    """Return a text with each half of a surrogate pair replaced, as every store does: no UTF-8 holds it."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _name(name: str) -> str:
    """Return the name of a call as endpoints take it.

    Models ask for `functions.look` or `look up!`, and a prompt that tells of it is refused from then on.
    """
    return _NO_NAME.sub("_", name)[:_NAME_CHARACTERS] or "unnamed"


def _legal(arguments: str) -> str:
    """Return arguments as they were written if they are a JSON object, else an object that holds what was written.

    Several servers parse the arguments of earlier calls and answer nothing any more once one of them is broken.
    """
    try:
        read: object = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return arguments
    return json.dumps({"unreadable": arguments}, ensure_ascii=False) if arguments.strip() else "{}"


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
