"""The answer of a turn, printed as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.safe_text import SafeStream, safe_line
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult

if TYPE_CHECKING:
    from typing import TextIO

    from hermes_hookspecs.ports.agent import AgentEvent
    from hermes_hookspecs.ports.app import TurnResult

__all__ = ["AnswerPrinter", "StatusLine"]


class StatusLine:
    """One line on a terminal that says what is going on, and that goes away before anything else is printed.

    On a stream that is no terminal it prints nothing.
    """

    def __init__(self, err: TextIO, width: int | None = None) -> None:
        self._err = err
        self._width = width
        self._shown = False

    @property
    def is_lively(self) -> bool:
        """Return whether there is a terminal to show it."""
        return self._width is not None

    def follow(self, width: int | None) -> None:
        """Show the line from now on, on a terminal of ``width`` columns."""
        self._width = width

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._width is not None:
            from hermes_cli.columns import clip

            self._err.write(f"\r\x1b[K\x1b[2m{clip(safe_line(text), self._width - 1)}\x1b[0m")
            self._err.flush()
            self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._err.write("\r\x1b[K")
            self._err.flush()
            self._shown = False


class AnswerPrinter:
    """Prints the pieces of one answer to ``out`` as they come; a step without pieces is printed when it is complete.

    What happens between the steps of an agent is shown on a terminal only. An output that breaks while the turn runs
    is no fault of the agent: the turn goes on unseen and is stored, and :meth:`finish` raises what happened.
    """

    def __init__(self, out: TextIO, status: StatusLine) -> None:
        self._out = out
        self._status = status
        self._stream = SafeStream()
        self._in_line = False
        self._pieces = False
        self._anything = False
        self._broken: OSError | None = None
        self.label = ""
        """What the agent is busy with, for the status line; ``""`` while it writes."""
        self.writing = False
        """Whether the answer has begun: the status line would tear it apart."""

    def event(self, event: AgentEvent) -> None:
        """Take one event of the running turn."""
        if self._broken is None:
            try:
                self._take(event)
            except OSError as error:
                self._broken = error

    def _take(self, event: AgentEvent) -> None:
        if isinstance(event, TextDelta):
            self._pieces = True
            self._print(self._stream.feed(event.text))
        elif isinstance(event, AssistantStep):
            if not self._pieces and event.content:
                self._print(self._stream.feed(event.content))
            self._end_line()
            self._pieces = False
            self.label = ", ".join(call.name for call in event.tool_calls)
        elif isinstance(event, Progress):
            self.label = event.label
        elif isinstance(event, ToolResult):
            self.label = ""

    def finish(self, result: TurnResult | None) -> None:
        """Print what was not printed yet; ``None`` where the turn has no result.

        An answer of nothing is an empty line, so that answers can be counted.

        :raises OSError: the output broke, now or while the turn ran.
        """
        if self._broken is not None:
            raise self._broken
        if result is not None and not self._anything:
            self._print(self._stream.feed(result.text))
            self._in_line = self._in_line or not result.text
        self._end_line()

    def _print(self, text: str) -> None:
        if text:
            self._status.clear()
            self._out.write(text)
            self._out.flush()
            self._anything = True
            self.writing = self._in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        self._print(self._stream.end())
        if self._in_line:
            self._status.clear()
            self._out.write("\n")
            self._out.flush()
        self._in_line = self.writing = False
