"""Fake agents and tools for tests: each does exactly what its script says.

::

    gate = Gate()
    agent = ScriptedAgent(say("let me see"), call("look", "c1"), pause(gate), say("done"))

An agent runs one script in every turn. ``ScriptedAgent(...).then(...)`` gives the turns scripts of their own.
"""

from __future__ import annotations

from hashlib import sha256
from threading import Event, Lock
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AttachmentRefused
from hermes_hookspecs.files import FileResult
from hermes_hookspecs.messages import USER, Attachment, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.toolbox import brought
from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import AsyncIterator, Callable, Mapping

    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

    Step = Callable[["TurnContext"], AsyncIterator[AgentEvent]]

__all__ = [
    "FakeOutgoing",
    "FakeTool",
    "Gate",
    "ScriptedAgent",
    "ask_for",
    "bring",
    "call",
    "count",
    "echo",
    "fail",
    "pause",
    "recite",
    "say",
    "spend",
    "stream",
]


class Gate:
    """A place where an agent stands until a test lets it pass. Works across threads and event loops."""

    def __init__(self) -> None:
        self.reached = Event()
        """Set when an agent stands at the gate, or has passed it."""
        self._lock = Lock()
        self._is_open = False
        self._waiters: list[tuple[AbstractEventLoop, Future[None]]] = []

    def open(self) -> None:
        """Let everybody pass, now and later; from any thread."""
        with self._lock:
            self._is_open = True
            waiters, self._waiters = self._waiters, []
        for loop, waiter in waiters:
            loop.call_soon_threadsafe(_wake, waiter)

    async def pass_through(self) -> None:
        """Wait until the gate is open."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        with self._lock:
            if not self._is_open:
                waiter: Future[None] | None = loop.create_future()
                assert waiter is not None
                self._waiters.append((loop, waiter))
            else:
                waiter = None
        self.reached.set()
        if waiter is not None:
            await waiter


def _wake(waiter: Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class ScriptedAgent:
    """An :class:`~hermes_hookspecs.ports.agent.Agent` that follows a script.

    :param script: steps of every turn, in order. name, model, steers: as the port says; the steps of this module never
        ask for steered messages.
    """

    def __init__(
        self, *script: Step, name: str = "scripted", model: str | None = "fake-1", steers: bool = False
    ) -> None:
        self.name = name
        self.model = model
        self.steers = steers
        self.turns: list[TurnContext] = []
        """What each turn was given, oldest first."""
        self.finished = 0
        """Turns that ran to their end."""
        self.closed = 0
        """Turns that were closed or cancelled before their end: the lease was lost, or somebody stopped them."""
        self._scripts = [script]

    def then(self, *script: Step) -> ScriptedAgent:
        """Give the next turn a script of its own; the last script serves all turns behind it. Returns the agent."""
        self._scripts.append(script)
        return self

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the steps of the script."""
        script = self._scripts[min(len(self.turns), len(self._scripts) - 1)]
        self.turns.append(turn)
        try:
            for step in script:
                async for event in step(turn):
                    yield event
        except Exception:
            raise
        except BaseException:
            self.closed += 1
            raise
        self.finished += 1


class FakeTool:
    """A :class:`~hermes_hookspecs.ports.agent.Tool` that writes down its calls.

    :param answer: what it returns, or a function of the arguments that does.
    """

    def __init__(
        self,
        name: str,
        answer: str | FileResult | Callable[[Mapping[str, object]], str] = "42",
        *,
        effect: str = "read",
        description: str = "",
    ) -> None:
        self.name = name
        self.description = description
        self.effect = effect
        self.parameters: Mapping[str, object] = {"type": "object"}
        self.calls: list[Mapping[str, object]] = []
        """Arguments of each call, in order."""
        self._answer = answer

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str | FileResult:
        """Return the answer."""
        self.calls.append(dict(arguments))
        return self._answer if isinstance(self._answer, str | FileResult) else self._answer(arguments)


class FakeOutgoing:
    """A :class:`~hermes_hookspecs.ports.agent.Outgoing` that keeps nothing. ``added``: what it was given, in order.

    :param refuse: names of files that are not taken.
    """

    def __init__(self, *refuse: str) -> None:
        self.added: list[OutgoingFile] = []
        self._refuse = refuse

    async def add(self, file: OutgoingFile) -> Attachment:
        """Return what an event names the file by."""
        if file.name in self._refuse:
            raise AttachmentRefused(f"{file.name} was not taken: it is too large")
        self.added.append(file)
        number = sha256(file.data).hexdigest()
        return Attachment(kind=file.kind, name=file.name, media_type=file.media_type, size=file.size, sha256=number)


# --- steps -----------------------------------------------------------------------------------------------------


def say(text: str) -> Step:
    """Return a step that answers ``text``."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield AssistantStep(content=text, finish_reason="stop")

    return step


def stream(*pieces: str) -> Step:
    """Return a step that shows its answer in pieces before it gives it whole."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield Progress(label="thinking")
        for piece in pieces:
            yield TextDelta(text=piece)
        yield AssistantStep(content="".join(pieces), finish_reason="stop")

    return step


def echo() -> Step:
    """Return a step that answers what was asked."""

    async def step(turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield AssistantStep(content=turn.text, finish_reason="stop")

    return step


def recite() -> Step:
    """Return a step that answers the window it was given: one line ``role: content`` a row."""

    async def step(turn: TurnContext) -> AsyncIterator[AgentEvent]:
        lines = [f"{row.role}: {row.content}" for row in turn.messages]
        yield AssistantStep(content="\n".join(lines), finish_reason="stop")

    return step


def count() -> Step:
    """Return a step that answers how many user rows it was given: ``step 3``."""

    async def step(turn: TurnContext) -> AsyncIterator[AgentEvent]:
        asked = sum(row.role == USER for row in turn.messages)
        yield AssistantStep(content=f"step {asked}", finish_reason="stop")

    return step


def ask_for(*calls: ToolCall, content: str = "") -> Step:
    """Return a step that asks for tools and leaves the calls open."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield AssistantStep(content=content, tool_calls=calls, finish_reason="tool_calls")

    return step


def call(name: str, call_id: str, arguments: str = "{}", *, result: str = "42", effect: str = "write") -> Step:
    """Return a step that asks for one tool and runs it: the turn's tool of that name, else it answers ``result``."""

    async def step(turn: TurnContext) -> AsyncIterator[AgentEvent]:
        from json import loads

        tool = turn.tools.get(name)
        asked = ToolCall(id=call_id, name=name, arguments=arguments, effect=effect if tool is None else tool.effect)
        yield AssistantStep(tool_calls=(asked,), finish_reason="tool_calls")
        answer = result if tool is None else await tool.call(loads(arguments), turn)
        if isinstance(answer, FileResult):
            along = await brought(answer, turn)
            yield ToolResult(call_id=call_id, name=name, content=along.text, files=along.files)
        else:
            yield ToolResult(call_id=call_id, name=name, content=answer)

    return step


def bring(*files: OutgoingFile, content: str = "") -> Step:
    """Return a step that answers with files."""

    async def step(turn: TurnContext) -> AsyncIterator[AgentEvent]:
        along = await brought(FileResult(files=files), turn)
        yield AssistantStep(content=content, files=along.files, finish_reason="stop")

    return step


def pause(gate: Gate) -> Step:
    """Return a step that waits at a gate: a slow agent that is exactly as slow as the test wants."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield Progress(label="waiting")
        await gate.pass_through()

    return step


def fail(error: BaseException) -> Step:
    """Return a step that raises."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        yield Progress(label="failing")
        raise error

    return step


def spend(input_tokens: int, output_tokens: int, *, model: str = "fake-1") -> Step:
    """Return a step that reports usage."""

    async def step(_turn: TurnContext) -> AsyncIterator[AgentEvent]:
        usage = Usage(model=model, input_tokens=input_tokens, output_tokens=output_tokens)
        yield UsageReport(usage=usage)

    return step
