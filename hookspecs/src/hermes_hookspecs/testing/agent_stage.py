"""What the suite of agents plays with: the answers of a model, a turn, and what an agent made of both.

The kit takes the place of the engine: it asks for the next event only when it has noted the one before, and closes the
generator where the engine would.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import attrs

from hermes_hookspecs.ids import LineageId, MessageId, SessionId, TurnId
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, Message
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta, ToolResult, TurnContext, UsageReport
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.sessions import Session
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.providers import ShyHistory
from hermes_hookspecs.turns import ACTIVE, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes_hookspecs.ports.agent import Agent, AgentEvent, Approvals, Outgoing, Patience, Steering, Tool
    from hermes_hookspecs.turns import Usage

__all__ = [
    "AgentStage",
    "Alone",
    "Asks",
    "Breaks",
    "Move",
    "Performance",
    "Says",
    "StandingTool",
    "Stands",
    "perform",
    "turn_of",
]

PATIENCE_S = 10.0
"""Seconds within which an agent that is told to end has ended, and whatever it does in these tests is done."""


@attrs.frozen
class Says:
    """The model answers with a text, in pieces; ``usage`` is what it says that it took, ``(prompt, answer)``."""

    pieces: tuple[str, ...]
    usage: tuple[int, int] | None = None


@attrs.frozen
class Asks:
    """The model asks for tools, ``(name, arguments, id)`` each; an agent may replace ids."""

    calls: tuple[tuple[str, str, str], ...]
    text: str = ""


@attrs.frozen
class Breaks:
    """The model fails behind its pieces, for good; without pieces it refuses."""

    pieces: tuple[str, ...] = ()


@attrs.frozen
class Stands:
    """The model says its pieces, and then nothing for ever."""

    pieces: tuple[str, ...] = ()


Move = Says | Asks | Breaks | Stands
"""What the model does when it is asked once."""


class AgentStage(Protocol):
    """Makes agents whose model does what a test says."""

    def agent(self, *moves: Move, most_requests: int | None = None) -> Agent:
        """Return an agent whose model answers in this order; those made before are not used any more.

        :param most_requests: after so many the turn is to end with an answer; the agent's own limit where ``None``.
        """
        ...

    def sent(self) -> Sequence[Sequence[str]]:
        """Return what the model of the newest agent was asked, oldest first: of each request its parts as texts.

        The parts are what a provider's cache compares: the list of tools, where there is one, and each message.
        """
        ...


class Alone:
    """The stage of an agent that answers without a model.

    :param make: returns a new agent.
    """

    def __init__(self, make: Callable[[], Agent]) -> None:
        self._make = make

    def agent(self, *moves: Move, most_requests: int | None = None) -> Agent:
        """Return a new agent; there is nobody to say anything."""
        return self._make()

    def sent(self) -> Sequence[Sequence[str]]:
        """Return nothing."""
        return ()


class StandingTool:
    """A tool that does not come back until its gate is open."""

    description = "waits"
    parameters: Mapping[str, object] = {"type": "object"}

    def __init__(self, name: str, *, effect: str = "write", timeout_s: float | None = None) -> None:
        self.name = name
        self.effect = effect
        self.timeout_s = timeout_s
        self.reached = asyncio.Event()
        """Set when it was called."""
        self.gate = asyncio.Event()
        self.was_cancelled = False

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str:
        """Stand at the gate."""
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "passed"


def turn_of(
    text: str,
    *,
    before: Sequence[Message] = (),
    tools: Iterable[Tool] = (),
    history: ShyHistory | None = None,
    steering: Steering | None = None,
    approvals: Approvals | None = None,
    patience: Patience | None = None,
    outgoing: Outgoing | None = None,
) -> TurnContext:
    """Return a turn in which somebody says ``text`` behind the rows ``before``."""
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    session = Session(id=SessionId("S1"), lineage_id=LineageId("L1"), source="feishu", started_at=0)
    number = len(before) + 1
    turn = Turn(
        id=TurnId(f"T{number}"),
        lineage_id=session.lineage_id,
        session_id=session.id,
        token=1,
        entrance=Entrance("feishu"),
        session_key=None,
        user_id="ou_1",
        user_name=None,
        inbox_ids=(),
        started_at=0,
        ended_at=None,
        outcome=ACTIVE,
        reason="",
        attempt=1,
    )
    return TurnContext(
        turn=turn,
        session=session,
        source=source,
        principal=principal_of(source, shared=False),
        messages=(*before, _row(number, USER, text)),
        text=text,
        attachments=(),
        history=history or ShyHistory(),
        tools={one.name: one for one in tools},
        steering=steering,
        approvals=approvals,
        patience=patience,
        outgoing=outgoing,
    )


@attrs.define
class Performance:
    """What an agent did in one turn.

    Attributes:
        events: in order. error: what it raised, ``None`` for nothing.
    """

    turn: TurnContext
    events: list[AgentEvent] = attrs.field(factory=list)
    error: Exception | None = None

    @property
    def steps(self) -> list[AssistantStep]:
        """Return the assistant rows."""
        return [event for event in self.events if isinstance(event, AssistantStep)]

    @property
    def answer(self) -> str:
        """Return the answer of the turn: the newest text of a step without calls."""
        return next((step.content for step in reversed(self.steps) if step.content and not step.tool_calls), "")

    @property
    def shown(self) -> str:
        """Return all the text that was shown as it came."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def results(self) -> list[ToolResult]:
        """Return the results of calls."""
        return [event for event in self.events if isinstance(event, ToolResult)]

    @property
    def usages(self) -> list[Usage]:
        """Return what was reported."""
        return [event.usage for event in self.events if isinstance(event, UsageReport)]

    def rows(self) -> tuple[Message, ...]:
        """Return the window of the turn with its rows behind it: with what the next turn begins."""
        rows = list(self.turn.messages)
        for event in self.events:
            if isinstance(event, AssistantStep):
                rows.append(
                    attrs.evolve(
                        _row(len(rows) + 1, ASSISTANT, event.content),
                        tool_calls=event.tool_calls,
                        reasoning=event.reasoning,
                    )
                )
            elif isinstance(event, ToolResult):
                rows.append(
                    attrs.evolve(
                        _row(len(rows) + 1, TOOL, event.content), tool_call_id=event.call_id, tool_name=event.name
                    )
                )
        return tuple(rows)


async def perform(agent: Agent, turn: TurnContext, *, heard: Callable[[AgentEvent], bool] | None = None) -> Performance:
    """Run one turn to its end and return what came of it.

    :param heard: told each event behind which the agent stands still; ``True`` closes the agent there, as the engine
        does once the lease is lost.
    :raises TimeoutError: the turn does not end.
    """
    performance = Performance(turn)
    # `run` is declared as an iterator; what it returns is a generator, and the engine closes it
    async with asyncio.timeout(PATIENCE_S), aclosing(agent.run(turn)) as events:  # type: ignore[type-var]
        try:
            async for event in events:
                performance.events.append(event)
                await _breathe()  # storing takes its time, and nothing may happen meanwhile
                if heard is not None and heard(event):
                    break
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - however it fails, that is what a test asks about
            performance.error = error
    return performance


async def _breathe() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def _row(number: int, role: str, content: str) -> Message:
    return Message(
        id=MessageId(number),
        lineage_id=LineageId("L1"),
        session_id=SessionId("S1"),
        turn_id=TurnId(f"T{number}"),
        role=role,
        content=content,
        timestamp=number,
    )
