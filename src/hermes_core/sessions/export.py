"""Sessions as plain data, with the names that people know (``design.md`` section 15).

A row of a session is one object with its ``messages``; an unknown number is ``null``. Times are UTC milliseconds.
Each message names the entrance, the sender and the key that its turn came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.messages import Attachment, Message, ToolCall
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Session
    from hermes_hookspecs.turns import Turn

__all__ = ["export_lineage", "export_session", "export_sessions"]


def export_session(store: StoreReader, session: Session, lineage: Lineage, principal: Principal) -> dict[str, object]:
    """Return one segment with its rows."""
    rows = store.messages(lineage.id, principal, session_id=session.id)
    turns = {turn.id: turn for turn in store.turns(lineage.id, principal)}
    return {**_session(session, lineage), "messages": [_message(row, turns) for row in rows]}


def export_lineage(store: StoreReader, lineage: Lineage, principal: Principal) -> dict[str, object]:
    """Return a lineage: its tip's fields, ``segments`` oldest first, and the rows of all of them in order."""
    segments = store.segments(lineage.id, principal)
    turns = {turn.id: turn for turn in store.turns(lineage.id, principal)}
    rows = store.messages(lineage.id, principal)
    tip = next((segment for segment in segments if segment.id == lineage.tip), segments[-1])
    return {
        **_session(tip, lineage),
        "segments": [_session(segment, lineage) for segment in segments],
        "lineage_session_ids": [segment.id for segment in segments],
        "messages": [_message(row, turns) for row in rows],
    }


def export_sessions(store: StoreReader, principal: Principal, *, source: str | None) -> Iterator[dict[str, object]]:
    """Yield every lineage, oldest first, archived and empty ones too; each is read when it is its turn."""
    from hermes_hookspecs.sessions import SessionFilter

    everything = store.summaries(principal, where=SessionFilter(source=source, archived=None), limit=None)
    for summary in sorted(everything, key=lambda one: (one.started_at, one.lineage_id)):
        lineage = store.lineage(summary.lineage_id, principal)
        if lineage is not None:
            yield export_lineage(store, lineage, principal)


def _session(session: Session, lineage: Lineage) -> dict[str, object]:
    return {
        "session_id": session.id,
        "lineage_id": lineage.id,
        "source": session.source,
        "account_id": session.account_id,
        "user_id": session.user_id,
        "title": lineage.title,
        "model": session.model,
        "model_config": session.model_config,
        "system_prompt": session.system_prompt,
        "parent_session_id": session.parent_session_id,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "end_reason": session.end_reason,
        "last_activity": lineage.last_activity,
        "message_count": session.message_count,
        "tool_call_count": session.tool_call_count,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cache_read_tokens": session.cache_read_tokens,
        "cache_write_tokens": session.cache_write_tokens,
        "estimated_cost_usd": session.estimated_cost_usd,
        "pinned": lineage.pinned,
        "archived": lineage.archived,
    }


def _message(row: Message, turns: Mapping[TurnId, Turn]) -> dict[str, object]:
    turn = turns.get(row.turn_id) if row.turn_id is not None else None
    return {
        "id": row.id,
        "session_id": row.session_id,
        "role": row.role,
        "content": row.content,
        "sent": row.sent,
        "tool_calls": [_call(call) for call in row.tool_calls],
        "tool_call_id": row.tool_call_id,
        "tool_name": row.tool_name,
        "timestamp": row.timestamp,
        "token_count": row.token_count,
        "finish_reason": row.finish_reason,
        "reasoning": row.reasoning,
        "kind": row.kind,
        "attachments": [_attachment(one) for one in row.attachments],
        "turn_id": row.turn_id,
        "entrance": None if turn is None else str(turn.entrance),
        "session_key": None if turn is None else turn.session_key,
        "user_id": None if turn is None else turn.user_id,
    }


def _call(call: ToolCall) -> dict[str, object]:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "effect": call.effect,
        "in_order": call.in_order,
    }


def _attachment(one: Attachment) -> dict[str, object]:
    return {
        "kind": one.kind,
        "name": one.name,
        "media_type": one.media_type,
        "size": one.size,
        "sha256": one.sha256,
        "text": one.text,
    }
