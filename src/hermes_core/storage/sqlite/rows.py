"""Values of the contract that stand in one cell: JSON where a value has parts, short text elsewhere.

What is decoded often and never changes (sources, owners) is remembered, since the values are frozen.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import StoreDamaged
from hermes_hookspecs.principal import Owner
from hermes_hookspecs.source import Entrance, SessionSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.messages import Attachment, ToolCall
    from hermes_hookspecs.turns import LeaseHolder

    OpenCall = tuple[str, str]

__all__ = [
    "attachments_text",
    "calls_text",
    "holder_text",
    "ids_text",
    "open_calls_text",
    "read_attachments",
    "read_calls",
    "read_holder",
    "read_ids",
    "read_json",
    "read_open_calls",
    "read_owner",
    "read_source",
    "read_strings",
    "source_text",
    "strings_text",
]


def _json_text(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_json(text: str) -> object:
    """The value of a JSON cell.

    :raises StoreDamaged: it is not JSON.
    """
    import json

    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise StoreDamaged(f"a cell of the store should be JSON and is not: {error}") from error
    return found


def _told(value: object) -> dict[str, object]:
    """Fields of an attrs value that are not at their defaults."""
    fields = getattr(type(value), "__attrs_attrs__", ())
    told = {field.name: getattr(value, field.name) for field in fields}
    return {field.name: told[field.name] for field in fields if told[field.name] != field.default}


def _damaged(what: str, error: Exception) -> StoreDamaged:
    return StoreDamaged(f"a cell of the store should hold {what} and does not: {error}")


@lru_cache(maxsize=256)
def source_text(source: SessionSource) -> str:
    """The cell of a source; equal sources give equal text."""
    return _json_text(_told(source))


@lru_cache(maxsize=1024)
def read_source(text: str) -> SessionSource:
    """The source of a cell."""
    found = read_json(text)
    try:
        return SessionSource(**found)  # type: ignore[arg-type]  # checked by the except below
    except TypeError as error:
        raise _damaged("a source", error) from error


@lru_cache(maxsize=1024)
def read_owner(text: str) -> Owner:
    """The owner of a cell written by ``str(owner)``."""
    parts = text.split("\x1f", 4)
    if len(parts) != 5:
        raise StoreDamaged(f"a cell of the store should hold an owner and has {len(parts)} of 5 parts")
    return Owner(*parts)


def holder_text(holder: LeaseHolder) -> str:
    """The cell of a process; equal holders give equal text."""
    entrance = holder.entrance
    told = _told(holder)
    return _json_text(told | {"entrance": [entrance.platform, entrance.account_id, entrance.terminal]})


def read_holder(text: str) -> LeaseHolder:
    """The process of a cell."""
    from hermes_hookspecs.turns import LeaseHolder

    found = read_json(text)
    try:
        if isinstance(found, dict):
            return LeaseHolder(**found | {"entrance": Entrance(*found["entrance"])})
        raise TypeError("it is not an object")
    except (TypeError, KeyError) as error:
        raise _damaged("a process", error) from error


def attachments_text(attachments: tuple[Attachment, ...]) -> str | None:
    """The cell of attachments, ``None`` for none."""
    return _json_text([_told(each) for each in attachments]) if attachments else None


def read_attachments(text: str | None) -> tuple[Attachment, ...]:
    """The attachments of a cell."""
    if text is None:
        return ()
    from hermes_hookspecs.messages import Attachment

    try:
        return tuple(Attachment(**each) for each in _items(read_json(text)))  # type: ignore[arg-type]  # see except
    except TypeError as error:
        raise _damaged("attachments", error) from error


def calls_text(calls: tuple[ToolCall, ...]) -> str | None:
    """The cell of tool calls, ``None`` for none. Every field is written: the column is read by people, too."""
    if not calls:
        return None
    return _json_text([{"id": c.id, "name": c.name, "arguments": c.arguments, "effect": c.effect} for c in calls])


def read_calls(text: str | None) -> tuple[ToolCall, ...]:
    """The tool calls of a cell."""
    if text is None:
        return ()
    from hermes_hookspecs.messages import ToolCall

    try:
        return tuple(ToolCall(**each) for each in _items(read_json(text)))  # type: ignore[arg-type]  # see except
    except TypeError as error:
        raise _damaged("tool calls", error) from error


def _items(found: object) -> list[dict[str, object]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TypeError("it is not a list of objects")
    return found


def open_calls_text(calls: Iterable[OpenCall]) -> str | None:
    """The cell of calls without a result, ``None`` when all are answered."""
    pairs = [list(call) for call in calls]
    return _json_text(pairs) if pairs else None


def read_open_calls(text: str | None) -> tuple[OpenCall, ...]:
    """Id and tool of each call without a result, in the order of the calls."""
    if text is None:
        return ()
    found = read_json(text)
    if not isinstance(found, list):
        raise StoreDamaged("a cell of the store should hold open calls and does not")
    return tuple((str(call_id), str(name)) for call_id, name in found)


def strings_text(strings: tuple[str, ...]) -> str | None:
    """The cell of some strings, ``None`` for none."""
    return _json_text(list(strings)) if strings else None


def read_strings(text: str | None) -> tuple[str, ...]:
    """The strings of a cell."""
    if text is None:
        return ()
    found = read_json(text)
    if not isinstance(found, list):
        raise StoreDamaged("a cell of the store should hold a list and does not")
    return tuple(str(each) for each in found)


def ids_text(ids: Iterable[int]) -> str:
    """The cell of some integer ids: decimal, joined by blanks."""
    return " ".join(map(str, ids))


def read_ids(text: str) -> tuple[InboxId, ...]:
    """The ids of a cell."""
    from hermes_hookspecs.ids import InboxId

    return tuple(InboxId(int(word)) for word in text.split())
