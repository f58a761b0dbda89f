"""What a model would be sent now, told to people: parts, tokens, what was left out, what repair changed and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.context.tokens import estimate_tokens
from hermes_core.context.window import make_window
from hermes_hookspecs.context import LeftOut, WindowPart, WindowReport
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import MessageId
from hermes_hookspecs.messages import KIND_ATTACHMENTS, KIND_NOTE, KIND_SUMMARY, SYSTEM
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_hookspecs.ids import SessionId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import Session

__all__ = ["read_report", "tokens_of", "window_report"]

_SYSTEM_TEXT, _SUMMARY, _KEPT, _OWN, _ATTACHED = "system text", "summary", "kept", "conversation", "attachments"
_BEFORE: Final = "before the part that is kept; the summary stands for them"
_TOO_LONG: Final = "even the last ones were too long for the model; the summary holds their beginnings and ends"
_PARTS: Final = (_SYSTEM_TEXT, _SUMMARY, _KEPT, _OWN, _ATTACHED)


def read_report(
    store: StoreReader, session_id: SessionId, *, count: Callable[[str], int] = estimate_tokens
) -> WindowReport:
    """Return what a turn of this session would be sent, before its new message. Blocks; reads the whole context.

    :raises SessionNotFound: no such session.
    """
    everybody = operator()
    session = store.session(session_id, everybody)
    if session is None:
        raise SessionNotFound(session_id)
    after = None if session.kept_from is None else MessageId(session.kept_from - 1)
    rows = store.messages(session.lineage_id, everybody, after=after, hidden=True)
    lineage = store.lineage(session.lineage_id, everybody)
    shown = sum(not row.hidden for row in rows)
    return window_report(session, rows, earlier=0 if lineage is None else lineage.message_count - shown, count=count)


def window_report(
    session: Session, rows: Sequence[Message], *, earlier: int = 0, count: Callable[[str], int] = estimate_tokens
) -> WindowReport:
    """Return what these rows become. Pure.

    :param rows: of the session's context, hidden ones too, oldest first. earlier: rows before them that are not sent.
    :param count: estimates the tokens of a text.
    """
    window = make_window(session, rows)
    first = window.rows[0] if window.rows else None
    is_whole = first is not None and first.kind == KIND_SUMMARY and first.id == session.kept_from
    left_out = (
        (_TOO_LONG if is_whole else _BEFORE, earlier),
        ("taken back by undo", sum(row.hidden for row in rows)),
        ("for people only", sum(row.kind == KIND_NOTE and not row.hidden for row in rows)),
        ("summaries of other segments", _strange_summaries(session, rows)),
    )
    costs = [(_part_of(row, session), tokens_of(row, count)) for row in window.messages]
    return WindowReport(
        session_id=session.id,
        messages=window.messages,
        parts=tuple(_parts(costs)),
        left_out=tuple(LeftOut(reason=reason, messages=number) for reason, number in left_out if number > 0),
        repairs=window.repairs,
        tokens=sum(tokens for _, tokens in costs),
    )


def tokens_of(row: Message, count: Callable[[str], int]) -> int:
    """Return the estimated tokens of a message, its calls included."""
    return count(row.content) + sum(count(call.name) + count(call.arguments) for call in row.tool_calls)


def _parts(costs: Iterable[tuple[str, int]]) -> Iterable[WindowPart]:
    found = list(costs)
    for name in _PARTS:
        of_part = [tokens for part, tokens in found if part == name]
        if of_part:
            yield WindowPart(name=name, messages=len(of_part), tokens=sum(of_part))


def _part_of(row: Message, session: Session) -> str:
    if row.role == SYSTEM and row.turn_id is None and row.content == session.system_prompt:
        return _SYSTEM_TEXT
    if row.kind == KIND_SUMMARY:
        return _SUMMARY
    if row.kind == KIND_ATTACHMENTS:
        return _ATTACHED
    return _OWN if row.session_id == session.id else _KEPT


def _strange_summaries(session: Session, rows: Iterable[Message]) -> int:
    return sum(row.kind == KIND_SUMMARY and row.session_id != session.id and not row.hidden for row in rows)
