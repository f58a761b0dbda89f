"""An agent at work: its steps run in a task of their own, which is given up where it does not end.

Whatever an agent does, its turn ends: it may raise anything, fall silent, swallow its cancellation, or never come to
the end of its cleaning up. A task that is given up holds nothing: what it still yields is thrown away, and the store
refuses what it still writes.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from hermes_core.plugins.stages import in_words
from hermes_core.settling import abandon, settled
from hermes_core.turns.agent_events import fault_of
from hermes_hookspecs.errors import AgentFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, TurnContext

__all__ = ["AgentTask"]

_log = getLogger(__name__)


class AgentTask:
    """The steps of one agent in one turn. One instance, one run.

    :param take: stores and shows an event, whose values are sound by then; what it raises ends the steps.
    :param inactivity_s: seconds without a sign of life after which the agent is given up.
    :param cleanup_s: seconds for which it may clean up when it is closed or cancelled.
    """

    def __init__(
        self,
        agent: Agent,
        turn_id: TurnId,
        *,
        take: Callable[[AgentEvent], Awaitable[None]],
        inactivity_s: float,
        cleanup_s: float,
    ) -> None:
        self._agent = agent
        self._turn_id = turn_id
        self._take = take
        self._inactivity_s = inactivity_s
        self._cleanup_s = cleanup_s
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._overdue: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._is_over = False
        self._error: BaseException | None = None
        self._is_closing = False
        self.fault = ""
        """What the agent failed with, on one line; the empty text as long as it has not."""

    async def run_beside(self, guard: asyncio.Task[None], context: Callable[[], Awaitable[TurnContext]]) -> None:
        """Run the steps to their end; ``guard`` may end them before, with what it raises.

        Whoever calls this calls :meth:`end` behind it, also where it raises.

        :raises AgentFailed: the agent raised, yielded what is no event, or gave no sign of life.
        """
        task = self._task = asyncio.create_task(self._run(context))
        task.add_done_callback(_seen)
        await asyncio.wait({task, guard, self._overdue}, return_when=asyncio.FIRST_COMPLETED)
        if task.cancelled():  # by the agent: whoever cancels the caller cancels the wait above
            raise self._failed("it cancelled its own task")
        if task.done():
            task.result()
        elif guard.done():
            await self.end()
            guard.result()
        elif not self._is_closing:
            raise self._failed(f"no sign of life for {self._inactivity_s:g} s, given up")
        elif self._error is not None:
            raise self._error

    def allow(self, seconds: float) -> None:
        """Let the step that runs take at least so many seconds from now."""
        if self._due is not None:
            self._due = max(self._due, self._loop.time() + seconds)

    async def end(self) -> None:
        """Cancel the steps if they run, and wait until they have ended; give them up where they do not in time."""
        task, was_over, self._is_over = self._task, self._is_over, True
        if self._timer is not None:
            self._timer.cancel()
        if task is None or task.done() or was_over:
            return
        if not (self._is_closing and self._overdue.done()):  # else it had its time for cleaning up
            task.cancel()
            await settled(asyncio.wait({task}, timeout=self._cleanup_s))
        if not task.done():
            self._give_up(task)

    def _give_up(self, task: asyncio.Task[None]) -> None:
        _log.warning("agent %s does not end; turn %s ends without it", self._agent.name, self._turn_id)
        task.cancel()
        abandon(task)

    # --- in the task

    async def _run(self, context: Callable[[], Awaitable[TurnContext]]) -> None:
        turn = await context()
        events = self._begin(turn)
        try:
            await self._each(events)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._is_closing = True
            if self._is_running_here():  # else it is collected, and nothing can be waited for
                self._allow(self._cleanup_s)
                await self._put_away(events)
            self._error = None

    def _begin(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        try:
            return self._agent.run(turn)
        except BaseException as error:
            if self._is_ours(error):
                raise
            raise self._failed(in_words(error)) from error

    async def _each(self, events: AsyncIterator[AgentEvent]) -> None:
        while True:
            self._allow(self._inactivity_s)
            try:
                event = await self._next(events)
            except StopAsyncIteration:
                return
            self._due = None
            if self._is_over:
                raise asyncio.CancelledError  # the agent has swallowed it
            fault = fault_of(event)
            if fault:
                raise self._failed(fault)
            await self._take(event)

    async def _next(self, events: AsyncIterator[AgentEvent]) -> AgentEvent:
        """Return the agent's next event. What it raises is its own, and never taken for a fault of the turn's lease.

        :raises AgentFailed: it raised. :raises StopAsyncIteration: it has ended.
        """
        try:
            return await anext(events)
        except StopAsyncIteration:
            raise
        except BaseException as error:
            if self._is_ours(error):
                raise
            raise self._failed(in_words(error)) from error

    async def _put_away(self, events: AsyncIterator[AgentEvent]) -> None:
        """Close the agent's generator; what fails in its cleaning up does not change how the turn ends."""
        close = getattr(events, "aclose", None)
        if close is None:
            return
        try:
            await close()
        except BaseException as error:
            if self._is_ours(error):
                raise
            _log.warning("agent %s failed while it was closed", self._agent.name, exc_info=True)

    def _is_ours(self, error: BaseException) -> bool:
        """Return whether what came out of the agent is not its fault: a person's interrupt, our own cancellation."""
        if isinstance(error, KeyboardInterrupt):
            return current_thread() is main_thread()
        if isinstance(error, asyncio.CancelledError):
            return self._is_over
        if isinstance(error, GeneratorExit):
            return not self._is_running_here()  # nobody runs this any more, it is collected
        return False

    def _is_running_here(self) -> bool:
        try:
            return asyncio.current_task() is self._task
        except RuntimeError:  # no loop runs
            return False

    def _failed(self, reason: str) -> AgentFailed:
        if not self._is_over:
            self.fault = reason
        return AgentFailed(f"{self._agent.name} failed: {reason}")

    # --- time limits

    def _allow(self, seconds: float) -> None:
        """Give the agent so much time from now on; one timer serves all its steps."""
        if self._is_over:
            return
        self._due = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return  # not the agent's move; its next one sets a timer
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        elif not self._overdue.done():
            self._overdue.set_result(None)


def _seen(task: asyncio.Task[None]) -> None:
    """Look at what a task ended with: whoever gave it up does not ask."""
    if not task.cancelled():
        task.exception()
