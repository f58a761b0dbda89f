"""What a turn says about the calls of its tools: for the audit, and to plugins that listen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.audit import CALL_OUTCOMES, FAILED, MOST_ARGUMENTS, MOST_RESULT, AuditEntry
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import ApprovalId, MessageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Turn

__all__ = ["CallLedger"]


class CallLedger:
    """The calls of one turn.

    :param asked_for: returns the request that was made for a call, ``None`` for none.
    """

    def __init__(self, around: Surroundings, turn: Turn, asked_for: Callable[[str], ApprovalId | None]) -> None:
        self._around = around
        self._turn = turn
        self._asked_for = asked_for
        self._entries: dict[str, AuditEntry] = {}
        self._since = 0.0
        self._row: MessageId | None = None

    def asked(self, step: AssistantStep) -> tuple[AuditEntry, ...]:
        """Return what is noted of the calls of a step."""
        now, self._since = self._around.clock.now(), self._around.clock.monotonic()
        entries = tuple(
            AuditEntry(
                call_id=call.id,
                tool_name=call.name,
                effect=call.effect,
                arguments=call.arguments[:MOST_ARGUMENTS],
                started_at=now,
            )
            for call in step.tool_calls
        )
        self._entries = {entry.call_id: entry for entry in entries}
        return entries

    def stored(self, row: MessageId) -> None:
        """Take where the step stands by now."""
        self._row = row

    def answered(self, result: ToolResult) -> tuple[AuditEntry, ...]:
        """Return what is noted of a result; nothing for one of no call."""
        entry = self._entries.get(result.call_id)
        if entry is None:
            return ()
        elapsed = int((self._around.clock.monotonic() - self._since) * 1000)
        return (
            attrs.evolve(
                entry,
                outcome=result.outcome if result.outcome in CALL_OUTCOMES else FAILED,
                duration_ms=elapsed if result.duration_ms is None else result.duration_ms,
                result=result.content[:MOST_RESULT],
                approval_id=self._asked_for(result.call_id),
            ),
        )

    async def tell(self, result_row: MessageId) -> None:
        """Tell who listens that a tool has answered; its rows are read back only where somebody does."""
        hooks, call_row = self._around.hooks, self._row
        if call_row is None or not hooks.is_heard("hermes_after_tool_call"):
            return
        lineage_id = self._turn.lineage_id

        def rows(reader: StoreReader) -> list[Message]:
            wanted = (call_row, result_row)
            found = [reader.messages(lineage_id, operator(), after=_before(one), limit=1) for one in wanted]
            return [row for rows in found for row in rows]

        read = await asyncio.wrap_future(self._around.store.submit_read(rows))
        if [row.id for row in read] == [call_row, result_row]:
            hooks.fire("hermes_after_tool_call", turn=self._turn, call=read[0], result=read[1])


def _before(row: MessageId) -> MessageId:
    return type(row)(row - 1)
