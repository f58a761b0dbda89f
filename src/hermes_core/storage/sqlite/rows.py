"""Values of the contract that stand in one cell: JSON where a value has parts, short text elsewhere.

What is decoded often and never changes (sources, owners) is remembered, since the values are frozen. A cell whose
bytes are damaged is read as a stand-in, with a warning in the log: one bad cell must not take the list, the export or
the turn of everybody else along.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import StoreDamaged
from hermes_hookspecs.principal import Owner, room_of
from hermes_hookspecs.source import Entrance, SessionSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import ControlOutcome
    from hermes_hookspecs.messages import Attachment, ToolCall
    from hermes_hookspecs.turns import LeaseHolder

    OpenCall = tuple[str, str]

__all__ = [
    "attachments_text",
    "calls_text",
    "entrance_text",
    "file_text",
    "holder_text",
    "ids_text",
    "open_calls_text",
    "outcome_text",
    "process_text",
    "read_attachments",
    "read_calls",
    "read_entrance",
    "read_file",
    "read_holder",
    "read_ids",
    "read_json",
    "read_open_calls",
    "read_outcome",
    "read_owner",
    "read_source",
    "read_strings",
    "room_text",
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


DAMAGED = "damaged"
"""Platform, kind or host of a stand-in; no owner, entrance or process is called so."""


def _warn(what: str, error: Exception) -> None:
    """Say in the log that a cell does not hold what it should; its text may be private and is left out."""
    from logging import getLogger

    getLogger(__name__).warning("a cell of the store should hold %s and does not (%s)", what, type(error).__name__)


@lru_cache(maxsize=256)
def source_text(source: SessionSource) -> str:
    """The cell of a source; equal sources give equal text."""
    return _json_text(_told(source))


@lru_cache(maxsize=1024)
def read_source(text: str) -> SessionSource:
    """The source of a cell; of a damaged one a source of the platform :data:`DAMAGED` that names nobody."""
    try:
        return SessionSource(**read_json(text))  # type: ignore[arg-type]  # checked by the except below
    except (TypeError, StoreDamaged) as error:
        _warn("a source", error)
        return SessionSource(platform=DAMAGED)


@lru_cache(maxsize=1024)
def read_owner(text: str) -> Owner:
    """The owner of a cell written by ``str(owner)``; of a damaged one an owner that nobody is."""
    try:
        return Owner.parse(text)
    except ValueError as error:
        _warn("an owner", error)
        return Owner(DAMAGED, "", "", "", "", text)


def room_text(source: SessionSource) -> str | None:
    """The cell of the room that a source speaks in; empty in private."""
    room = room_of(source)
    return None if room is None else str(room)


@lru_cache(maxsize=64)
def holder_text(holder: LeaseHolder) -> str:
    """The cell of a process; equal holders give equal text."""
    entrance = holder.entrance
    told = _told(holder)
    return _json_text(told | {"entrance": [entrance.platform, entrance.account_id, entrance.terminal]})


def read_holder(text: str) -> LeaseHolder:
    """The process of a cell; of a damaged one a process elsewhere, which gives no sign of life."""
    from hermes_hookspecs.turns import LeaseHolder

    try:
        found = read_json(text)
        if isinstance(found, dict):
            return LeaseHolder(**found | {"entrance": Entrance(*found["entrance"])})
        raise TypeError("it is not an object")
    except (TypeError, KeyError, StoreDamaged) as error:
        _warn("a process", error)
        nowhere = Entrance(DAMAGED)
        return LeaseHolder(host=DAMAGED, boot_id=DAMAGED, pid_namespace="", pid=0, started="0", entrance=nowhere)


def process_text(holder: LeaseHolder) -> str:
    """The cell of a process alone: the same, whatever it serves and whatever began its turn."""
    return _json_text([holder.host, holder.boot_id, holder.pid_namespace, holder.pid, holder.started])


def entrance_text(entrance: Entrance) -> str:
    """The cell of an entrance; equal entrances give equal text."""
    return _json_text([entrance.platform, entrance.account_id, entrance.terminal])


def read_entrance(text: str) -> Entrance:
    """The entrance of a cell; of a damaged one an entrance that nobody has."""
    try:
        found = read_json(text)
        if not isinstance(found, list) or not all(each is None or isinstance(each, str) for each in found):
            raise TypeError("it is not a list of texts")
        return Entrance(*found)
    except (TypeError, StoreDamaged) as error:
        _warn("an entrance", error)
        return Entrance(DAMAGED)


def outcome_text(outcome: ControlOutcome) -> str:
    """The cell of what the effect of a control row did; whether it is told again is no part of it."""
    told = _told(outcome)
    told.pop("repeated", None)
    return _json_text(told)


def read_outcome(text: str | None) -> ControlOutcome | None:
    """The outcome of a cell; of a damaged one an outcome that says nothing."""
    if text is None:
        return None
    from hermes_hookspecs.inbox import ControlOutcome

    try:
        return ControlOutcome(**read_json(text))  # type: ignore[arg-type]  # see except
    except (TypeError, StoreDamaged) as error:
        _warn("the outcome of a command", error)
        return ControlOutcome()


def attachments_text(attachments: tuple[Attachment, ...]) -> str | None:
    """The cell of attachments, ``None`` for none."""
    return _json_text([_told(each) for each in attachments]) if attachments else None


def read_attachments(text: str | None) -> tuple[Attachment, ...]:
    """The attachments of a cell, none of a damaged one."""
    if text is None:
        return ()
    from hermes_hookspecs.messages import Attachment

    try:
        return tuple(Attachment(**each) for each in _items(read_json(text)))  # type: ignore[arg-type]  # see except
    except (TypeError, StoreDamaged) as error:
        _warn("attachments", error)
        return ()


def file_text(file: Attachment | None) -> str | None:
    """The cell of the file that a part is, ``None`` where it is a text."""
    return None if file is None else _json_text(_told(file))


def read_file(text: str | None) -> Attachment | None:
    """The file of a cell; of a damaged one none: the part is its text then."""
    if text is None:
        return None
    from hermes_hookspecs.messages import Attachment

    try:
        return Attachment(**read_json(text))  # type: ignore[arg-type]  # see except
    except (TypeError, StoreDamaged) as error:
        _warn("a file", error)
        return None


def calls_text(calls: tuple[ToolCall, ...]) -> str | None:
    """The cell of tool calls, ``None`` for none. Every field is written: the column is read by people, too."""
    if not calls:
        return None
    return _json_text(
        [
            {"id": c.id, "name": c.name, "arguments": c.arguments, "effect": c.effect, "in_order": c.in_order}
            for c in calls
        ]
    )


def read_calls(text: str | None) -> tuple[ToolCall, ...]:
    """The tool calls of a cell, none of a damaged one."""
    if text is None:
        return ()
    from hermes_hookspecs.messages import ToolCall

    try:
        return tuple(ToolCall(**each) for each in _items(read_json(text)))  # type: ignore[arg-type]  # see except
    except (TypeError, StoreDamaged) as error:
        _warn("tool calls", error)
        return ()


def _items(found: object) -> list[dict[str, object]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TypeError("it is not a list of objects")
    return found


def open_calls_text(calls: Iterable[OpenCall]) -> str | None:
    """The cell of calls without a result, ``None`` when all are answered."""
    pairs = [list(call) for call in calls]
    return _json_text(pairs) if pairs else None


def read_open_calls(text: str | None) -> tuple[OpenCall, ...]:
    """Id and tool of each call without a result, in the order of the calls; none of a damaged cell."""
    if text is None:
        return ()
    try:
        found = read_json(text)
        return tuple((str(call_id), str(name)) for call_id, name in found)  # type: ignore[attr-defined]  # see except
    except (TypeError, ValueError, StoreDamaged) as error:
        _warn("open calls", error)
        return ()


def strings_text(strings: tuple[str, ...]) -> str | None:
    """The cell of some strings, ``None`` for none."""
    return _json_text(list(strings)) if strings else None


def read_strings(text: str | None) -> tuple[str, ...]:
    """The strings of a cell, none of a damaged one."""
    if text is None:
        return ()
    try:
        found = read_json(text)
        if not isinstance(found, list):
            raise TypeError("it is not a list")
        return tuple(str(each) for each in found)
    except (TypeError, StoreDamaged) as error:
        _warn("a list", error)
        return ()


def ids_text(ids: Iterable[int]) -> str:
    """The cell of some integer ids: decimal, joined by blanks."""
    return " ".join(map(str, ids))


def read_ids(text: str) -> tuple[InboxId, ...]:
    """The ids of a cell, without the words that are none."""
    from hermes_hookspecs.ids import InboxId

    words = text.split()
    ids = tuple(InboxId(int(word)) for word in words if word.isascii() and word.isdigit())
    if len(ids) != len(words):
        _warn("ids", ValueError())
    return ids
