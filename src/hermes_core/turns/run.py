"""A turn that has begun: the agent's steps are stored as they come, the lease is renewed, the end is written once."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.plugins.stages import in_words, one_line
from hermes_core.settling import settled
from hermes_core.turns.agent_events import assistant_draft, result_draft
from hermes_core.turns.agent_task import AgentTask
from hermes_core.turns.ledger import CallLedger
from hermes_core.turns.outgoing import TurnOutgoing
from hermes_core.turns.renewal import Renewal
from hermes_core.turns.side_usage import record_side_usage
from hermes_core.turns.spending import Spending
from hermes_hookspecs.audit import RUNNING
from hermes_hookspecs.errors import AgentFailed, HermesError, LeaseLost, StorageError
from hermes_hookspecs.messages import ASSISTANT, KIND_CLOSING, TOOL, MessageDraft, closing_text, may_have_begun
from hermes_hookspecs.metering import metered
from hermes_hookspecs.operations import Append, Finish, RecordAudit, RecordUsage
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.turns import DONE, FAILED, STOPPED, Fence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hermes_core.turns.answering import Answering
    from hermes_core.turns.approvals import TurnApprovals
    from hermes_core.turns.steering import SteeringWheel
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.audit import AuditEntry
    from hermes_hookspecs.ids import ApprovalId, MessageId
    from hermes_hookspecs.messages import Attachment, ToolCall
    from hermes_hookspecs.operations import Begun, Operation
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, TurnContext
    from hermes_hookspecs.turns import Turn, Usage

__all__ = ["Ended", "TurnRun"]

_log = getLogger(__name__)


@attrs.frozen(kw_only=True)
class Ended:
    """How the turn ended: its row, the answer and what that brings along, what it used, the lineage's version."""

    turn: Turn
    text: str
    files: tuple[Attachment, ...]
    usage: Usage | None
    version: int


class TurnRun:
    """Runs one begun turn to its end.

    :param begun: what *begin* gave. answering: where its answer goes. on_event: told each event of the agent, on the
        loop. steering: puts messages into the turn that come while it runs. side_usage: of what was done for it before.
    """

    def __init__(
        self,
        around: Surroundings,
        begun: Begun,
        answering: Answering,
        *,
        on_event: Callable[[AgentEvent], None] | None = None,
        steering: SteeringWheel | None = None,
        side_usage: Sequence[Usage] = (),
    ) -> None:
        self._around = around
        self._store = around.store
        self._clock = around.clock
        self._hooks = around.hooks
        self._waker = around.waker
        self._leftovers = around.leftovers
        self._answering = answering
        self._steering = steering
        self._steps: AgentTask | None = None
        self._approvals: TurnApprovals | None = None
        self.outgoing = TurnOutgoing(begun.turn, around.files, around.outgoing)
        self._ledger = CallLedger(around, begun.turn, self._asked_for)
        self._notes: tuple[AuditEntry, ...] = ()
        self._unwritten: list[AuditEntry] = []
        self._open: dict[str, ToolCall] = {}
        self._turn = begun.turn
        self._version = begun.version
        self._fence = Fence(begun.turn.lineage_id, begun.turn.id, begun.lease.token)
        self._on_event = on_event
        self._held: list[MessageDraft] = []
        self._answer = ""
        self._spending = Spending(side_usage)

    def allow(self, seconds: float) -> None:
        """Let the agent give no sign of life for so many seconds (:class:`~hermes_hookspecs.ports.agent.Patience`)."""
        if self._steps is not None:
            self._steps.allow(seconds)

    def asks_through(self, approvals: TurnApprovals) -> None:
        """Say who is asked for calls of dangerous tools."""
        self._approvals = approvals

    def _may_have_run(self) -> tuple[ToolCall, ...]:
        """Return the calls without a result, but those that nobody approved, and those that had not begun."""
        asked, begun = self._approvals, may_have_begun(self._open.values())
        return tuple(call for call in begun if asked is None or asked.may_have_run(call.id))

    def _asked_for(self, call_id: str) -> ApprovalId | None:
        return None if self._approvals is None else self._approvals.asked_for(call_id)

    async def through(self, agent: Agent, context: Callable[[], Awaitable[TurnContext]]) -> Ended:
        """Load, run ``agent``, store, finish.

        :raises AgentFailed: the agent, or loading, raised. :raises LeaseLost: somebody took the lease.
        """
        try:
            with metered(self._spending.add_beside):
                return await self._through(agent, context)
        finally:
            if late := self._spending.beside:
                await settled(record_side_usage(self._around, self._turn.id, late))

    async def _through(self, agent: Agent, context: Callable[[], Awaitable[TurnContext]]) -> Ended:
        steps = self._steps = AgentTask(
            agent,
            self._turn.id,
            take=self._take,
            inactivity_s=self._around.inactivity_s,
            cleanup_s=self._around.cleanup_s,
        )
        try:
            await self._guarded(steps, context)
            return await self._finish(DONE)
        except LeaseLost:
            try:
                await self._keep_records()
            finally:
                self._tell(STOPPED, "the lease was lost")
            raise
        except asyncio.CancelledError:
            outcome, reason = self._answering.when_cancelled
            await settled(self._close(outcome, reason))
            raise
        except Exception as error:
            reason = steps.fault or in_words(error)
            await settled(self._close(FAILED, reason))
            if isinstance(error, HermesError):
                raise
            raise AgentFailed(f"{agent.name} failed: {reason}") from error
        finally:
            self._waker.wake_next(self._turn.lineage_id)

    async def _guarded(self, steps: AgentTask, context: Callable[[], Awaitable[TurnContext]]) -> None:
        """Run the steps beside the renewal; the loss of the lease ends them before anything else runs."""
        renewal = asyncio.create_task(Renewal(self._around, self._fence).run())
        try:
            await steps.run_beside(renewal, context)
        finally:
            try:
                await steps.end()  # the lease is kept for as long as the agent cleans up
            finally:
                renewal.cancel()
                await asyncio.gather(renewal, return_exceptions=True)

    # --- steps

    async def _take(self, event: AgentEvent) -> None:
        """Store what is to be stored of one event, then tell it."""
        if isinstance(event, AssistantStep):
            await self._flush()
            self.outgoing.bring(event.files)
            self._held.append(assistant_draft(event, self._clock.now()))
            if event.tool_calls:
                self._open = {call.id: call for call in event.tool_calls}
                self._notes = self._ledger.asked(event)
                self._ledger.stored((await self._flush())[-1])
            elif event.content:
                self._answer = event.content
        elif isinstance(event, ToolResult):
            await self._flush()
            self.outgoing.bring(event.files)
            self._held.append(result_draft(event, self._clock.now()))
            self._notes = self._ledger.answered(event)
            stored = await self._flush()
            self._open.pop(event.call_id, None)
            await self._ledger.tell(stored[-1])
            if self._steering is not None and not self._open:
                await self._steering.turn()
        elif isinstance(event, UsageReport):
            self._spending.add(event.usage)
        elif isinstance(event, TextDelta):
            await self._flush()
        self._show(event)

    def _show(self, event: AgentEvent) -> None:
        """Tell the caller; a listener that fails is told nothing more, and the turn goes on to its end."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - what is shown has no say in what is stored
            self._on_event = None
            _log.warning("the listener of turn %s failed and is told nothing more: %s", self._turn.id, one_line(error))

    async def _flush(self) -> Sequence[MessageId]:
        """Store what is held back, and what is noted of calls; only then may the agent go on. Return the rows."""
        if not self._held:
            return ()
        drafts, self._held = tuple(self._held), []
        notes, self._notes = self._notes, ()
        self._unwritten += [note for note in notes if note.outcome != RUNNING]  # what did not run needs no note
        reach("step.before")
        operation = Append(
            fence=self._fence,
            drafts=drafts,
            now=self._clock.now(),
            audit=notes,
            usage=self._spending.own,
            side_usage=self._spending.beside,
        )
        stored = await settled(self._store.perform(operation))
        self._spending.stored(operation)
        self._unwritten.clear()
        reach("result.stored" if drafts[0].role == TOOL else "step.stored")
        await asyncio.sleep(0)  # a cancellation is felt here, before the agent runs what stands behind its step
        return stored

    # --- the end

    async def _finish(self, outcome: str) -> Ended:
        now, files = self._clock.now(), self.outgoing.files
        operation = Finish(
            fence=self._fence,
            outcome=outcome,
            now=now,
            drafts=tuple(self._held),
            usage=self._spending.own,
            side_usage=self._spending.beside,
            deliveries=self._answering.answer(self._turn, self._answer, files),
        )
        reach("finish.before")
        try:
            finished = await settled(self._store.perform(operation))
        except StorageError as error:
            if self._answering.waits:
                raise
            # A full disk, say: the answer is there, and is stored and sent as soon as it can be.
            self._leftovers.owe(operation, f"the answer of turn {self._turn.id}", error)
        else:
            self._version = finished.version
        self._spending.stored(operation)
        reach("finish.stored")
        turn = self._tell(outcome, "")
        return Ended(turn=turn, text=self._answer, files=files, usage=self._spending.total(), version=self._version)

    async def _close(self, outcome: str, reason: str) -> None:
        """End a turn that did not end by itself; what it had stored stays, one closing row says why.

        Never raises because the store cannot write it: why the turn ended is what its caller is told.
        """
        now = self._clock.now()
        closing = MessageDraft(role=ASSISTANT, content=closing_text(outcome, reason), timestamp=now, kind=KIND_CLOSING)
        verdict = self._answering.broken_off(self._turn, outcome, self._may_have_run())
        operation = Finish(
            fence=self._fence,
            outcome=outcome,
            now=now,
            reason=reason,
            drafts=(*self._held, closing),
            usage=self._spending.own,
            side_usage=self._spending.beside,
            again=verdict.again,
            deliveries=verdict.deliveries,
        )
        try:
            await self._end_with(operation)
        except LeaseLost:
            reason = "the lease was lost"
            await self._keep_records()
        finally:
            self._tell(outcome, reason)

    async def _end_with(self, operation: Finish) -> None:
        """Write the end; where what the turn brought along cannot be stored, its closing row alone.

        :raises LeaseLost: the lease is gone.
        """
        try:
            await self._store.perform(operation)
        except LeaseLost:
            raise
        except StorageError as error:
            self._leftovers.owe(operation, f"the end of turn {self._turn.id}", error)
        except Exception as error:
            if len(operation.drafts) == 1 and not (operation.usage or operation.side_usage):
                raise
            # Whatever it is: a turn that stays open holds its lease, and is taken for interrupted, and runs again.
            _log.warning("turn %s ends without its last rows and usage: %s", self._turn.id, one_line(error))
            await self._end_with(attrs.evolve(operation, drafts=operation.drafts[-1:], usage=(), side_usage=()))
            return
        self._spending.stored(operation)

    async def _keep_records(self) -> None:
        """Record what a turn used and did although its lease is gone: it was done, whoever has the lineage now."""
        turn_id, now = self._turn.id, self._clock.now()
        late: list[Operation[None]] = [
            RecordUsage(turn_id=turn_id, usage=usage, now=now) for usage in self._spending.own
        ]
        if self._unwritten:
            late.append(RecordAudit(turn_id=turn_id, entries=tuple(self._unwritten), now=now))
        for operation in late:
            try:
                await settled(self._store.perform(operation))
            except HermesError as error:
                _log.warning("what turn %s used or did is not recorded: %s", turn_id, one_line(error))

    def _tell(self, outcome: str, reason: str) -> Turn:
        self._turn = attrs.evolve(self._turn, outcome=outcome, reason=reason, ended_at=self._clock.now())
        self._hooks.turn_ended(self._turn)
        return self._turn
