"""A function as an agent."""

from __future__ import annotations

from inspect import isasyncgen, isawaitable
from typing import TYPE_CHECKING

from hermes_hookspecs.ports.agent import AssistantStep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["FunctionAgent"]


class FunctionAgent:
    """Answers with what a function returns.

    :param function: takes the :class:`~hermes_hookspecs.ports.agent.TurnContext`; returns the answer, something
        awaitable that gives it, or an asynchronous generator of steps. A plain function runs on a thread, so it may
        block. The empty text means no answer; ``None`` is a forgotten ``return`` and fails the turn. A function that
        asks for steered messages says so as any agent does, by an attribute ``steers`` that is true.
    """

    model: str | None = None

    def __init__(self, function: Callable[..., object]) -> None:
        self.name = getattr(function, "__name__", "function")
        self.steers = bool(getattr(function, "steers", False))
        self._function = function

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the function's answer as one step, or its own steps."""
        from asyncio import to_thread
        from contextlib import aclosing
        from inspect import isasyncgenfunction, iscoroutinefunction

        is_async = isasyncgenfunction(self._function) or iscoroutinefunction(self._function)
        result = self._function(turn) if is_async else await to_thread(self._on_thread, turn)
        if isasyncgen(result):
            async with aclosing(result):  # closed with this generator, not when the collector finds it
                async for event in result:
                    yield event  # type: ignore[misc]  # whatever it is: the engine refuses what is no event
            return
        if isawaitable(result):
            result = await result
        if not isinstance(result, str):
            kind = "nothing" if result is None else type(result).__name__
            raise TypeError(f"{self.name} returned {kind}; an agent function returns its answer as text")
        if result:
            yield AssistantStep(content=result)

    def _on_thread(self, turn: TurnContext) -> object:
        """Call the function. What a future does not carry unchanged, or what looks like a person's, is its error."""
        try:
            return self._function(turn)
        except (StopIteration, GeneratorExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"{type(error).__name__} in {self.name}") from error
