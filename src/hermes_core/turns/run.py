"""A turn that has begun: the agent's steps are stored as they come, the lease is renewed, the end is written once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.plugins.stages import one_line
from hermes_core.settling import settled
from hermes_hookspecs.errors import AgentFailed, HermesError, LeaseLost, StorageError, StoreBusy
from hermes_hookspecs.messages import ASSISTANT, KIND_CLOSING, TOOL, MessageDraft, closing_text
from hermes_hookspecs.operations import Append, Finish, RecordUsage, Renew
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.turns import DONE, FAILED, STOPPED, Fence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from hermes_core.turns.answering import Answering
    from hermes_core.turns.steering import SteeringWheel
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, TurnContext
    from hermes_hookspecs.turns import Turn, Usage

__all__ = ["Ended", "TurnRun"]

_log = getLogger(__name__)

_SHORT_S = 0.05
"""Seconds after which a turn begins to listen for its own revocation."""


@attrs.frozen(kw_only=True)
class Ended:
    """How the turn ended: its row, the answer, what it used, the lineage's version."""

    turn: Turn
    text: str
    usage: Usage | None
    version: int


class TurnRun:
    """Runs one begun turn to its end.

    :param begun: what *begin* gave. answering: where its answer goes. on_event: told each event of the agent, on the
        loop. steering: puts messages into the turn that come while it runs.
    """

    def __init__(
        self,
        around: Surroundings,
        begun: Begun,
        answering: Answering,
        *,
        on_event: Callable[[AgentEvent], None] | None = None,
        steering: SteeringWheel | None = None,
    ) -> None:
        self._store = around.store
        self._clock = around.clock
        self._hooks = around.hooks
        self._waker = around.waker
        self._leftovers = around.leftovers
        self._times = around.times
        self._inactivity_s = around.inactivity_s
        self._answering = answering
        self._steering = steering
        self._open: dict[str, ToolCall] = {}
        self._turn = begun.turn
        self._version = begun.version
        self._fence = Fence(begun.turn.lineage_id, begun.turn.id, begun.lease.token)
        self._on_event = on_event
        self._held: list[MessageDraft] = []
        self._answer = ""
        self._usage: list[Usage] = []
        self._fault = ""

    async def through(self, agent: Agent, context: Callable[[], Awaitable[TurnContext]]) -> Ended:
        """Load, run ``agent``, store, finish.

        :raises AgentFailed: the agent, or loading, raised. :raises LeaseLost: somebody took the lease.
        """
        try:
            await self._guarded(agent, context)
            return await self._finish(DONE)
        except LeaseLost:
            await self._keep_usage()
            self._tell(STOPPED, "the lease was lost")
            raise
        except asyncio.CancelledError:
            outcome, reason = self._answering.when_cancelled
            await settled(self._close(outcome, reason))
            raise
        except Exception as error:
            reason = self._fault or one_line(error)
            await settled(self._close(FAILED, reason))
            if isinstance(error, HermesError):
                raise
            raise AgentFailed(f"{agent.name} failed in turn {self._turn.id}: {reason}") from error
        finally:
            self._waker.wake_next(self._turn.lineage_id)

    async def _guarded(self, agent: Agent, context: Callable[[], Awaitable[TurnContext]]) -> None:
        """Run the steps beside the renewal; the loss of the lease ends them before anything else runs."""
        steps = asyncio.create_task(self._steps(agent, context))
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({steps, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if not steps.done():
                steps.cancel()
                await asyncio.gather(steps, return_exceptions=True)
                renewal.result()
            steps.result()
        finally:
            steps.cancel()
            renewal.cancel()
            await asyncio.gather(steps, renewal, return_exceptions=True)

    # --- steps

    async def _steps(self, agent: Agent, context: Callable[[], Awaitable[TurnContext]]) -> None:
        turn = await context()
        try:
            events = agent.run(turn)
        except Exception as error:
            raise self._failed(agent, one_line(error)) from error
        try:
            while True:
                try:
                    event = await self._next(agent, events)
                except StopAsyncIteration:
                    return
                await self._take(event)
        finally:
            await _put_away(agent, events)

    async def _next(self, agent: Agent, events: AsyncIterator[AgentEvent]) -> AgentEvent:
        """Return the agent's next event. What it raises is its own, and never taken for a fault of this turn's lease.

        :raises AgentFailed: it raised, or gave no sign of life. :raises StopAsyncIteration: it has ended.
        """
        try:
            async with asyncio.timeout(self._inactivity_s) as limit:
                return await anext(events)
        except StopAsyncIteration:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self._failed(agent, one_line(error)) from error  # something inside the agent was cancelled
        except Exception as error:
            if limit.expired():
                reason = f"no sign of life for {self._inactivity_s:g} s, given up"
                raise self._failed(agent, reason) from error
            raise self._failed(agent, one_line(error)) from error

    def _failed(self, agent: Agent, reason: str) -> AgentFailed:
        self._fault = reason
        return AgentFailed(f"{agent.name} failed in turn {self._turn.id}: {reason}")

    async def _take(self, event: AgentEvent) -> None:
        """Store what is to be stored of one event, then tell it."""
        if isinstance(event, AssistantStep):
            await self._flush()
            self._held.append(self._assistant(event))
            if event.tool_calls:
                self._open = {call.id: call for call in event.tool_calls}
                await self._flush()
            elif event.content:
                self._answer = event.content
        elif isinstance(event, ToolResult):
            self._held.append(self._result(event))
            await self._flush()
            self._open.pop(event.call_id, None)
            if self._steering is not None and not self._open:
                await self._steering.turn()
        elif isinstance(event, UsageReport):
            self._usage.append(event.usage)
        elif isinstance(event, TextDelta):
            await self._flush()
        elif not isinstance(event, Progress):
            raise TypeError(f"an agent yields its events, not {type(event).__name__}")
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

    async def _flush(self) -> None:
        """Store what is held back; only then may the agent go on."""
        if not self._held:
            return
        drafts, self._held = tuple(self._held), []
        reach("step.before")
        operation = Append(fence=self._fence, drafts=drafts, now=self._clock.now())
        await settled(self._store.perform(operation))
        reach("result.stored" if drafts[0].role == TOOL else "step.stored")
        await asyncio.sleep(0)  # a cancellation is felt here, before the agent runs what stands behind its step

    def _assistant(self, step: AssistantStep) -> MessageDraft:
        return MessageDraft(
            role=ASSISTANT,
            content=step.content,
            timestamp=self._clock.now(),
            tool_calls=step.tool_calls,
            token_count=step.token_count,
            finish_reason=step.finish_reason,
            reasoning=step.reasoning,
        )

    def _result(self, result: ToolResult) -> MessageDraft:
        return MessageDraft(
            role=TOOL,
            content=result.content,
            timestamp=self._clock.now(),
            tool_call_id=result.call_id,
            tool_name=result.name,
            token_count=result.token_count,
        )

    # --- the lease

    async def _renew(self) -> None:
        """Renew until cancelled; a signal makes it look at once. :raises LeaseLost: the lease is gone."""
        clock = asyncio.get_running_loop().time
        due = clock() + self._times.renew_s
        await asyncio.sleep(min(_SHORT_S, self._times.renew_s))  # most turns end before anybody could want to stop them
        waiter = self._waker.enter(self._fence.lineage_id)
        try:
            await self._check_lease()  # whatever happened before anybody listened
            while True:
                if await waiter.wait(max(0.0, due - clock()), look=False):
                    await self._check_lease()
                if clock() >= due:
                    await self._renew_once()
                    due = clock() + self._times.renew_s
        finally:
            self._waker.leave(waiter)

    async def _check_lease(self) -> None:
        lineage_id = self._fence.lineage_id
        lease = await asyncio.wrap_future(self._store.submit_read(lambda reader: reader.lease(lineage_id)))
        if lease is None or lease.token != self._fence.token:
            raise LeaseLost(lineage_id, self._fence.token)

    async def _renew_once(self) -> None:
        operation = Renew(fence=self._fence, now=self._clock.now(), ttl_ms=self._times.ttl_ms)
        with suppress(StoreBusy):  # no reason to give the turn up: every write of it is fenced
            await self._store.perform(operation)

    # --- the end

    async def _finish(self, outcome: str) -> Ended:
        now = self._clock.now()
        operation = Finish(
            fence=self._fence,
            outcome=outcome,
            now=now,
            drafts=tuple(self._held),
            usage=tuple(self._usage),
            deliveries=self._answering.answer(self._turn, self._answer),
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
        reach("finish.stored")
        turn = self._tell(outcome, "")
        return Ended(turn=turn, text=self._answer, usage=_sum(self._usage), version=self._version)

    async def _close(self, outcome: str, reason: str) -> None:
        """End a turn that did not end by itself; what it had stored stays, one closing row says why.

        Never raises because the store cannot write it: why the turn ended is what its caller is told.
        """
        now = self._clock.now()
        closing = MessageDraft(role=ASSISTANT, content=closing_text(outcome, reason), timestamp=now, kind=KIND_CLOSING)
        verdict = self._answering.broken_off(self._turn, outcome, tuple(self._open.values()))
        operation = Finish(
            fence=self._fence,
            outcome=outcome,
            now=now,
            reason=reason,
            drafts=(*self._held, closing),
            usage=tuple(self._usage),
            again=verdict.again,
            deliveries=verdict.deliveries,
        )
        try:
            await self._store.perform(operation)
        except LeaseLost:
            reason = "the lease was lost"
            await self._keep_usage()
        except StorageError as error:
            self._leftovers.owe(operation, f"the end of turn {self._turn.id}", error)
        finally:
            self._tell(outcome, reason)

    async def _keep_usage(self) -> None:
        """Record what a turn used although its lease is gone: tokens were spent, whoever has the lineage now."""
        for usage in self._usage:
            operation = RecordUsage(turn_id=self._turn.id, usage=usage, now=self._clock.now())
            await settled(self._store.perform(operation))

    def _tell(self, outcome: str, reason: str) -> Turn:
        self._turn = attrs.evolve(self._turn, outcome=outcome, reason=reason, ended_at=self._clock.now())
        self._hooks.fire("hermes_after_turn_finish", turn=self._turn)
        return self._turn


async def _put_away(agent: Agent, events: AsyncIterator[AgentEvent]) -> None:
    """Close the agent's generator; what fails in its cleaning up does not change how the turn ends."""
    close = getattr(events, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except Exception:
        from logging import getLogger

        getLogger(__name__).warning("agent %s failed while it was closed", agent.name, exc_info=True)


def _sum(usages: list[Usage]) -> Usage | None:
    """Return the sum of several reports; a number that nobody reported stays unknown."""
    from hermes_hookspecs.turns import Usage

    if not usages:
        return None

    def total(name: str) -> int | None:
        known = [value for value in (getattr(one, name) for one in usages) if value is not None]
        return sum(known) if known else None

    costs = [one.estimated_cost_usd for one in usages if one.estimated_cost_usd is not None]
    return Usage(
        model=usages[-1].model,
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cache_read_tokens=total("cache_read_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        estimated_cost_usd=sum(costs) if costs else None,
    )
