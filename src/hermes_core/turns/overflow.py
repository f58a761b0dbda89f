"""An agent that is run once more, with less to read, when its model could not read it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from hermes_hookspecs.errors import ContextOverflow
from hermes_hookspecs.ports.agent import Progress, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from hermes_hookspecs.ports.agent import Agent, AgentEvent, TurnContext

    Shorter = Callable[[ContextOverflow], Awaitable[TurnContext | None]]

__all__ = ["AgentWithSecondTry"]


class AgentWithSecondTry:
    """Runs another agent, and runs it again when it raises :class:`~hermes_hookspecs.errors.ContextOverflow`: once.

    :param shorter: compresses and returns what to read instead, ``None`` where nothing can go: then the first error
        stands. What the agent had said by then is in the transcript, and so in what it reads.
    """

    def __init__(self, agent: Agent, shorter: Shorter) -> None:
        self.name = agent.name
        self.model = agent.model
        self._agent = agent
        self._shorter = shorter

    def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Return the agent's steps; what they are otherwise is as if nobody stood between."""
        return _Steps(self._agent, turn, self._shorter)


class _Steps:
    """The steps of one try, and behind them those of the second one."""

    def __init__(self, agent: Agent, turn: TurnContext, shorter: Shorter) -> None:
        self._agent = agent
        self._shorter: Shorter | None = shorter
        self._events = agent.run(turn)
        self._between: list[AgentEvent] = []
        self._overflow: ContextOverflow | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentEvent:
        if self._between:
            return self._between.pop(0)
        if self._overflow is not None and self._shorter is not None:
            shorter, self._shorter = self._shorter, None
            again = await shorter(self._overflow)
            if again is None:
                raise self._overflow
            self._events = self._agent.run(again)
        try:
            return await anext(self._events)
        except ContextOverflow as error:
            if self._shorter is None:
                raise
            self._overflow = error
            # The empty delta has what was held back stored; then the compressor sees it.
            self._between = [Progress(label="too long for the model, making room")]
            return TextDelta(text="")

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()
