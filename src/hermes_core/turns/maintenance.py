"""Turns without an agent: what a person wants changed of what the model sees.

Everything is made ready first, and the lease is taken for two transactions only; whoever spoke meanwhile is heard,
since new rows stand behind the cut. Where another one compressed meanwhile, nothing is done.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import attrs

from hermes_core.context.compression import Context, load_context, view_of
from hermes_core.context.rest import note_rest
from hermes_core.context.views import earlier_view
from hermes_core.faultpoints import reach
from hermes_core.leases import dead_stamp
from hermes_core.settling import settled
from hermes_core.turns.side_usage import record_side_usage
from hermes_hookspecs.errors import LeaseBusy, LeaseLost, SessionNotFound
from hermes_hookspecs.ids import new_session_id, new_turn_id
from hermes_hookspecs.messages import KIND_SUMMARY, TOOL, MessageDraft
from hermes_hookspecs.metering import metered
from hermes_hookspecs.operations import UNCOMPRESSION, Begin, Begun, Busy, Compress, Control, Finish
from hermes_hookspecs.ports.app import CompressionReport
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import DONE, Fence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.context.compression import Compressor
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import InboxId, LineageId, MessageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import LeaseHolder, Usage

__all__ = ["MaintenanceTurns"]

T = TypeVar("T")

_RESTING = 4
"""Strikes after an uncompression: more than an hour in which nothing compresses again by itself."""


class MaintenanceTurns:
    """Compresses and uncompresses sessions of one store on a person's behalf."""

    def __init__(self, around: Surroundings, compressor: Compressor) -> None:
        self._around = around
        self._compressor = compressor

    async def compress(
        self, lineage_id: LineageId, holder: LeaseHolder, focus: str, control_id: InboxId | None
    ) -> CompressionReport:
        """Compress; what is reported is what the next turn loads.

        :raises SessionNotFound: no such lineage. :raises LeaseBusy: a turn is running; nothing was changed.
        """
        applied = await self._applied(control_id)
        if applied is not None:
            return applied
        context = await self._read(lambda reader: self._free_context(reader, lineage_id))
        used: list[Usage] = []
        try:
            with metered(used.append):
                cut = await self._compressor.by_hand(context, focus)
        finally:
            if used:  # the summary was made, whatever becomes of it
                await settled(self._record(lineage_id, used))
        if cut is None:
            refusal = "There is nothing to compress yet: what could go takes less room than a summary."
            return await self._applied(control_id) or _refused(context, refusal)
        return await self._run(
            context, holder, control_id, lambda fence: self._compressor.compressing(fence, context, cut)
        )

    async def _record(self, lineage_id: LineageId, used: Sequence[Usage]) -> None:
        """Add what a summary took to the newest turn."""
        turns = await self._read(lambda reader: reader.turns(lineage_id, operator()))
        if turns:
            await record_side_usage(self._around, turns[-1].id, used)

    async def uncompress(
        self, lineage_id: LineageId, holder: LeaseHolder, control_id: InboxId | None
    ) -> CompressionReport:
        """Take the last compression back; errors as in :meth:`compress`."""
        applied = await self._applied(control_id)
        if applied is not None:
            return applied
        context, made = await self._read(lambda reader: self._earlier(reader, lineage_id))
        if made is None:
            refusal = "Nothing is compressed: the model sees all of this session."
            return await self._applied(control_id) or _refused(context, refusal)
        kept_from, summary = made
        now = self._around.clock.now()
        operation = Compress(
            fence=Fence(lineage_id, new_turn_id(now), 0),
            expected=context.session.id,
            session_id=new_session_id(now),
            kept_from=kept_from,
            now=now,
            summary=summary,
            reason=UNCOMPRESSION,
        )
        report = await self._run(context, holder, control_id, lambda fence: _fenced(operation, fence))
        after = await self._read(lambda reader: self._context(reader, lineage_id))
        reason = "a person took the compression back"
        await note_rest(self._around.store, view_of(after, None), now, reason, strikes=_RESTING)
        return report

    # --- the turn

    async def _run(
        self,
        context: Context,
        holder: LeaseHolder,
        control_id: InboxId | None,
        operation: Callable[[Fence], Compress],
    ) -> CompressionReport:
        """Take the lease, compress and let go of it; return what came of it."""
        store, clock, lineage_id = self._around.store, self._around.clock, context.session.lineage_id
        fence = await self._begin(lineage_id, holder)
        wanted = _finishing(operation(fence))
        made = False
        try:
            reach("compress.before")
            if control_id is None:
                await settled(store.perform(wanted))
                made = True
            else:
                control = Control(inbox_id=control_id, effect=wanted, now=clock.now())
                made = not (await settled(store.perform(control))).repeated
            reach("compress.stored")
        finally:
            if not made:
                with suppress(LeaseLost):  # it was made after all, or somebody took the lease
                    await settled(store.perform(Finish(fence=fence, outcome=DONE, now=clock.now(), touch=False)))
            self._around.waker.wake_next(lineage_id)
        if not made:  # another process has run the same row meanwhile
            return await self._applied(control_id) or _report(context, context)
        after = await self._read(lambda reader: self._context(reader, lineage_id))
        self._compressor.tell(context.session, after.session)
        return _report(context, after)

    async def _begin(self, lineage_id: LineageId, holder: LeaseHolder) -> Fence:
        now = self._around.clock.now()
        begin = Begin(
            lineage_id=lineage_id,
            turn_id=new_turn_id(now),
            holder=holder,
            now=now,
            ttl_ms=int(self._around.times.ttl_s * 1000),
            maintenance=True,
            touch=False,
        )
        begun = await settled(self._around.store.perform(begin))
        if isinstance(begun, Busy) and begun.lease.holder is not None:
            raise _busy(begun.lease.holder)
        if not isinstance(begun, Begun):
            raise LeaseBusy("this session is busy; try again in a moment")
        return Fence(lineage_id, begun.turn.id, begun.lease.token)

    # --- reads

    async def _applied(self, control_id: InboxId | None) -> CompressionReport | None:
        """Return what the command's row did in an earlier try whose reply is still owed."""
        return None if control_id is None else await self._read(lambda reader: self._applied_by(reader, control_id))

    def _applied_by(self, reader: StoreReader, control_id: InboxId) -> CompressionReport | None:
        item = reader.inbox_item(control_id)
        if item is None or item.outcome is None or item.outcome.session_id is None:
            return None
        child = reader.session(item.outcome.session_id, operator())
        parent = None if child is None or child.parent_session_id is None else child.parent_session_id
        before = None if parent is None else reader.session(parent, operator())
        if child is None or before is None:
            return None
        return _report(load_context(reader, before), load_context(reader, child))

    def _context(self, reader: StoreReader, lineage_id: LineageId) -> Context:
        everybody = operator()
        lineage = reader.lineage(lineage_id, everybody)
        tip = None if lineage is None else reader.session(lineage.tip, everybody)
        if tip is None:
            raise SessionNotFound(lineage_id)
        return load_context(reader, tip)

    def _free_context(self, reader: StoreReader, lineage_id: LineageId) -> Context:
        """Return the context of the tip. :raises LeaseBusy: a turn runs there, a summary would be for nothing."""
        lease = reader.lease(lineage_id)
        if lease is not None and lease.holder is not None and dead_stamp(lease) is None:
            raise _busy(lease.holder)
        return self._context(reader, lineage_id)

    def _earlier(
        self, reader: StoreReader, lineage_id: LineageId
    ) -> tuple[Context, tuple[MessageId | None, MessageDraft | None] | None]:
        """Return the context of the tip, and what it was before its last compression."""
        context = self._free_context(reader, lineage_id)
        target = earlier_view(reader.segments(lineage_id, operator()))
        return context, None if target is None else self._view(reader, target)

    def _view(self, reader: StoreReader, target: Session) -> tuple[MessageId | None, MessageDraft | None] | None:
        """Return first row and summary of a session's context."""
        own = reader.messages(target.lineage_id, operator(), session_id=target.id, limit=1)
        summary = next((row for row in own if row.kind == KIND_SUMMARY), None)
        draft = None if summary is None else self._again(summary)
        if target.kept_from is not None and (summary is None or target.kept_from != summary.id):
            return target.kept_from, draft
        rows = load_context(reader, target).rows
        first = next((row for row in rows if row.role != TOOL and row.kind != KIND_SUMMARY), None)
        if first is None:
            return None if draft is None else (None, draft)
        return first.id, draft

    def _again(self, summary: Message) -> MessageDraft:
        now = self._around.clock.now()
        text, sent = summary.content, summary.sent
        return MessageDraft(role=summary.role, content=text, sent=sent, kind=KIND_SUMMARY, timestamp=now)

    async def _read(self, read: Callable[[StoreReader], T]) -> T:
        return await asyncio.wrap_future(self._around.store.submit_read(read))


def _finishing(operation: Compress) -> Compress:
    return attrs.evolve(operation, finish=True)


def _fenced(operation: Compress, fence: Fence) -> Compress:
    return attrs.evolve(operation, fence=fence)


def _busy(holder: LeaseHolder) -> LeaseBusy:
    name = holder.describe()
    return LeaseBusy(f"{name} is answering in this session; try again when it is done", holder=name)


def _report(before: Context, after: Context) -> CompressionReport:
    (rows, tokens), (rows_left, tokens_left) = before.size, after.size
    return CompressionReport(
        session_id=after.session.id,
        rows_before=rows,
        rows_after=rows_left,
        tokens_before=tokens,
        tokens_after=tokens_left,
    )


def _refused(context: Context, why: str) -> CompressionReport:
    rows, tokens = context.size
    return CompressionReport(
        session_id=context.session.id,
        refusal=why,
        rows_before=rows,
        rows_after=rows,
        tokens_before=tokens,
        tokens_after=tokens,
    )
