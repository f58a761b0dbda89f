"""The calls of one assistant row, run: what an agent does between two calls of its model.

::

    box = Toolbox(turn)
    calls = box.calls(asked)                        # ids made unique, each with the effect of its tool
    yield AssistantStep(content=text, tool_calls=calls)
    async with aclosing(box.run(calls)) as results:
        async for result in results:                # the row is on disk, the lease is held: only now
            yield result
    steered = box.steered()                         # what somebody said meanwhile

Whatever goes wrong with a call becomes its result, in words that a model can act on: arguments that are no JSON or do
not fit, a tool that is not there, an exception, a time limit, a person who said no.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.audit import ANSWERED, FAILED, REFUSED, TIMED_OUT
from hermes_hookspecs.errors import AttachmentRefused
from hermes_hookspecs.files import FileResult, file_line
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.parameters import ArgumentFault
from hermes_hookspecs.ports.agent import ToolResult
from hermes_hookspecs.tools import EFFECTS, result_text, shortened, words_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.agent import Approvals, Tool, TurnContext

__all__ = ["AskedCall", "Brought", "Toolbox", "brought"]

_LAST_WORDS_S = 5.0
"""Seconds behind the limit of a call within which the agent says what came of it."""
_MOST_UNKNOWN = 10
"""Most calls of one row of tools that are not there: a few answers tell as much as thousands."""
_SHOWN = 80
"""Most characters of a name that is quoted."""
_MOST_CHARACTERS = 50_000
"""Most characters of a result of a tool that names no limit of its own."""


@attrs.frozen(kw_only=True)
class AskedCall:
    """A call as a model asked for it: its id may be missing or used twice, its name unknown."""

    id: str = ""
    name: str
    arguments: str = ""


@attrs.frozen(kw_only=True)
class Brought:
    """What became of files that a tool returned.

    Attributes:
        text: the result for the model: its own text, and what became of which file.
        files: for :attr:`~hermes_hookspecs.ports.agent.ToolResult.files`. refused: none was taken, and there were some.
    """

    text: str
    files: tuple[Attachment, ...]
    refused: bool


async def brought(result: FileResult, turn: TurnContext) -> Brought:
    """Let the answer of a turn bring along what a tool returned.

    :raises StorageError: a file could not be kept.
    """
    lines, taken = [result.text] if result.text else [], []
    for file in result.files:
        try:
            if turn.outgoing is None:
                raise AttachmentRefused(f"{file.name} was not taken: no files can be sent from here")
            taken.append(await turn.outgoing.add(file))
        except AttachmentRefused as error:
            lines.append(f"Error: {error}")
        else:
            lines.append(f"{file_line(taken[-1])} goes to the person with your answer.")
    return Brought(text="\n".join(lines) or "ok", files=tuple(taken), refused=bool(result.files) and not taken)


class Toolbox:
    """Tools of one turn.

    :param tools: by name; those of the turn where not given.
    :param timeout_s: seconds that a call may take whose tool names no limit of its own.
    :param approvals: asked before a tool with ``dangerous`` is called; those of the turn where not given. Where there
        are none, such a call is refused.
    :param most_parallel: calls that run at a time, where all calls of a row only read.
    :param most_calls: of one row; the result of the last one says how many more were left out.
    """

    def __init__(
        self,
        turn: TurnContext,
        tools: Mapping[str, Tool] | None = None,
        *,
        timeout_s: float = 300.0,
        approvals: Approvals | None = None,
        most_parallel: int = 8,
        most_calls: int = 100,
    ) -> None:
        self._turn = turn
        self._tools = dict(turn.tools if tools is None else tools)
        self._timeout_s = timeout_s
        self._approvals = turn.approvals if approvals is None else approvals
        self._most_parallel = most_parallel
        self._most_calls = most_calls
        self._left_out: dict[str, int] = {}
        """Id of the last call of a row → how many more were asked for."""
        self._used = {call.id for row in turn.messages for call in row.tool_calls}

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the tools by name, sorted: the order in which plugins were found never reaches a prompt."""
        return tuple(self._tools[name] for name in sorted(self._tools))

    def calls(self, asked: Iterable[AskedCall]) -> tuple[ToolCall, ...]:
        """Return the calls as they are to be stored, in order.

        An id that is missing, or was used before in this context, is replaced; arguments stay as they were written.
        Where not all of them only read, each is marked to begin behind the result of the one before it. What is more
        than a row may hold is left out, so is what is more than a few calls of tools that are not there.
        """
        wanted = tuple(asked)
        kept = self._kept(wanted)
        effects = tuple(self._effect(one.name) for one in kept)
        in_order = not _run_together(effects)
        calls = tuple(
            ToolCall(id=self._unused(one.id), name=one.name, arguments=one.arguments, effect=effect, in_order=in_order)
            for one, effect in zip(kept, effects, strict=True)
        )
        if len(kept) < len(wanted):
            self._left_out[calls[-1].id] = len(wanted) - len(kept)
        return calls

    async def run(
        self, calls: Sequence[ToolCall], *, within_s: float | None = None
    ) -> AsyncGenerator[ToolResult, None]:
        """Yield one result for each call: as they come where all of them read, else in order, one after another.

        Whoever closes this generator, or is cancelled in it, cancels the calls that run.

        :param within_s: seconds that are left of the turn; a call gets no more than that.
        """
        if len(calls) > 1 and _run_together([call.effect for call in calls]):
            async with aclosing(self._together(calls, within_s)) as results:
                async for result in results:
                    yield result
            return
        deadline = None if within_s is None else asyncio.get_running_loop().time() + within_s
        for call in calls:
            left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
            yield await self._result(call, left)

    def steered(self) -> str:
        """Return what was put into the turn since the last time, as one user text; ``""`` for nothing.

        To be asked when all calls of a row are answered. Several texts are joined by a blank line, as later prompts
        have them.
        """
        steering = self._turn.steering
        return "" if steering is None else "\n\n".join(steering.take())

    def _kept(self, wanted: Sequence[AskedCall]) -> Sequence[AskedCall]:
        kept: list[AskedCall] = []
        unknown = 0
        for one in wanted:
            if len(kept) == self._most_calls:
                break
            unknown += one.name not in self._tools
            if one.name in self._tools or unknown <= _MOST_UNKNOWN:
                kept.append(one)
        return kept

    def _effect(self, name: str) -> str:
        """Return what a repetition would do: nothing where there is no such tool, the worst where a tool is unclear."""
        tool = self._tools.get(name)
        if tool is None:
            return "read"
        return tool.effect if tool.effect in EFFECTS else "write"

    def _unused(self, wanted: str) -> str:
        number = len(self._used) + 1
        unused = wanted or f"call_{number}"
        while unused in self._used:
            unused = f"{wanted or 'call'}_{number}"
            number += 1
        self._used.add(unused)
        return unused

    async def _together(self, calls: Sequence[ToolCall], within_s: float | None) -> AsyncGenerator[ToolResult, None]:
        room = asyncio.Semaphore(self._most_parallel)

        async def one(call: ToolCall) -> ToolResult:
            async with room:
                return await self._result(call, within_s)

        tasks = [asyncio.create_task(one(call)) for call in calls]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _result(self, call: ToolCall, within_s: float | None) -> ToolResult:
        """Return the result; raises only what cancels the turn."""
        result = await self._plain_result(call, within_s)
        left_out = self._left_out.pop(call.id, 0)
        if not left_out:
            return result
        note = (
            f"[{left_out} more calls of this answer were left out and did not run: at most {self._most_calls} at a "
            f"time, {_MOST_UNKNOWN} of tools that are not there. Ask again for those that are still needed.]"
        )
        return attrs.evolve(result, content=f"{result.content}\n\n{note}")

    async def _plain_result(self, call: ToolCall, within_s: float | None) -> ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            return _said(call, REFUSED, f"Error: there is no tool {call.name[:_SHOWN]!r}. There are: {known}.")
        try:
            arguments = _read(call.arguments)
        except ArgumentFault as fault:
            return _said(call, REFUSED, f"Error: {fault}. Nothing was done.")
        if getattr(tool, "dangerous", False):
            refusal = await self._refusal(call, tool)
            if refusal is not None:
                return _said(call, REFUSED, f"Error: {call.name} was not called: {refusal}")
        since = monotonic()
        outcome, content, files = await self._called(call, tool, arguments, within_s)
        return _said(call, outcome, content, int((monotonic() - since) * 1000), files)

    async def _called(
        self, call: ToolCall, tool: Tool, arguments: Mapping[str, object], within_s: float | None
    ) -> tuple[str, str, tuple[Attachment, ...]]:
        """Call a tool; return how that ended, the result in words, and what it brings along."""
        limit = getattr(tool, "timeout_s", None) or self._timeout_s
        if within_s is not None:
            limit = min(limit, within_s)
        if self._turn.patience is not None:
            self._turn.patience.allow(limit + _LAST_WORDS_S)  # a tool that runs is progress, within its own limit
        try:
            async with asyncio.timeout(limit) as time:
                result = await tool.call(arguments, self._turn)
            if isinstance(result, FileResult):
                result = attrs.evolve(result, text=self._shortened(result.text, tool))
                along = await brought(result, self._turn)
                return FAILED if along.refused else ANSWERED, along.text, along.files
        except ArgumentFault as fault:
            return REFUSED, f"Error: {fault}. Nothing was done.", ()
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return FAILED, _failed(call, error), ()  # something inside the tool was cancelled
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is its result
            if time.expired():
                return TIMED_OUT, _given_up(call, limit), ()
            return FAILED, _failed(call, error), ()
        return ANSWERED, self._shortened(result_text(result), tool), ()

    @staticmethod
    def _shortened(text: str, tool: Tool) -> str:
        return shortened(text, getattr(tool, "most_characters", _MOST_CHARACTERS))

    async def _refusal(self, call: ToolCall, tool: Tool) -> str | None:
        if self._approvals is None:
            return "it needs the approval of a person, and nobody can be asked here."
        return await self._approvals.ask(call, tool, self._turn)


def _run_together(effects: Sequence[str]) -> bool:
    """Return whether the calls of a row need no order: all of them only read."""
    return all(effect == "read" for effect in effects)


def _said(
    call: ToolCall, outcome: str, content: str, duration_ms: int = 0, files: tuple[Attachment, ...] = ()
) -> ToolResult:
    return ToolResult(
        call_id=call.id, name=call.name, content=content, outcome=outcome, duration_ms=duration_ms, files=files
    )


def _read(arguments: str) -> Mapping[str, object]:
    """Return the arguments of a call. :raises ArgumentFault: they are no JSON object."""
    if not arguments.strip():
        return {}
    try:
        read: object = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ArgumentFault(f"the arguments are no JSON ({error})") from error
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ArgumentFault("the arguments are no JSON object")
    return read


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _given_up(call: ToolCall, limit: float) -> str:
    what = "" if call.effect == "read" else " Whether it did anything is unknown."
    return f"Error: {call.name} did not answer within {limit:g} s and was given up.{what}"


def _failed(call: ToolCall, error: BaseException) -> str:
    words = " ".join(words_of(error).split())[:2000]
    return f"Error: {call.name} failed: {type(error).__name__}{': ' if words else ''}{words}"
