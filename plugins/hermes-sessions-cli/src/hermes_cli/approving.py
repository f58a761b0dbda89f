"""Asking the person at this terminal whether a dangerous call may be made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_cli.columns import wrap
from hermes_cli.safe_text import safe_line, safe_text
from hermes_hookspecs.approvals import MOST_SHOWN, OPEN
from hermes_hookspecs.errors import ApprovalNotFound, HermesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TextIO

    from hermes_cli.answers import StatusLine
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.source import SessionSource

__all__ = ["QUESTION", "Approver", "request_lines"]

QUESTION = "[y] once  [a] always in this session  [n] no: "
"""The prompt; Enter alone is a no."""

_ONCE, _ALWAYS, _NO = "once", "always", "no"
_CHOICES = {"y": _ONCE, "yes": _ONCE, "a": _ALWAYS, "always": _ALWAYS, "n": _NO, "no": _NO, "": _NO}
_LOOK_S = 0.5
"""Seconds between two looks at whether a request is still open: somebody else may answer it, its time may be over."""


class Approver:
    """Puts the requests of the running turn before the person, one at a time, and answers them in their name.

    *Always* holds for one tool in one conversation, and for as long as this chat is open: nothing of it is stored, and
    each call is still recorded as one that was asked for and approved.

    :param ask: prompts with :data:`QUESTION` and returns the line. :raises EOFError, KeyboardInterrupt: Ctrl-D, Ctrl-C.
    """

    def __init__(
        self,
        app: App,
        source: SessionSource,
        *,
        ask: Callable[[], Awaitable[str]],
        err: TextIO,
        status: StatusLine,
        width: int,
    ) -> None:
        self._app = app
        self._source = source
        self._ask = ask
        self._err = err
        self._status = status
        self._width = width
        self._always: set[tuple[LineageId, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self.is_asking = False
        """Whether a question stands on the terminal; nothing else may be written there."""

    def take(self, approval: Approval) -> None:
        """Begin to ask about a request; returns at once. On the loop."""
        task = asyncio.get_running_loop().create_task(self._settle(approval))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Take back the questions of a turn that has ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle(self, approval: Approval) -> None:
        async with self._one_at_a_time:
            try:
                choice = await self._choice(approval)
                if choice is not None:
                    approve = choice in (_ONCE, _ALWAYS)
                    await asyncio.to_thread(self._app.oversight.answer, approval.id, self._source, approve=approve)
            except ApprovalNotFound:
                self._say(f"{approval.tool_name}: the answer came too late; it was not called")
            except HermesError as error:
                self._say(str(error))

    async def _choice(self, approval: Approval) -> str | None:
        """Return what the person decides; ``None`` where there is nothing to decide any more."""
        always = (approval.lineage_id, approval.tool_name)
        if always in self._always:
            return _ALWAYS
        if not await self._is_open(approval):
            return None
        self.is_asking = True
        try:
            self._status.clear()
            for line in request_lines(approval, self._width):
                print(line, file=self._err, flush=True)
            choice = await self._answered(approval)
        except asyncio.CancelledError:
            self._say_over(approval)  # with it the turn may have ended before we looked
            raise
        finally:
            self.is_asking = False
        if choice is None:
            self._say_over(approval)
        elif choice == _ALWAYS:
            self._always.add(always)
        return choice

    async def _answered(self, approval: Approval) -> str | None:
        """Prompt until there is an answer or the request is settled without us."""
        asking = asyncio.ensure_future(self._asked())
        try:
            while not (await asyncio.wait({asking}, timeout=_LOOK_S))[0]:
                if not await self._is_open(approval):
                    return None
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _asked(self) -> str:
        while True:
            try:
                said = (await self._ask()).strip().lower()
            except (EOFError, KeyboardInterrupt):
                return _NO
            if said in _CHOICES:
                return _CHOICES[said]

    async def _is_open(self, approval: Approval) -> bool:
        found = await asyncio.to_thread(self._app.store.approval, approval.id)
        return found is not None and found.status == OPEN

    def _say_over(self, approval: Approval) -> None:
        self._say(
            f"{approval.tool_name}: nobody waits for this answer any more; it was given elsewhere, or came too late"
        )

    def _say(self, text: str) -> None:
        self._status.clear()
        print(f"hermes: {safe_line(text)}", file=self._err, flush=True)


def request_lines(approval: Approval, width: int) -> list[str]:
    """Return what the person is asked: the tool, what a repetition of it would do, and every argument.

    An argument stands behind its name; its further lines are indented deeper, so that none can pass for another one.
    """
    lines = [f"May {safe_line(approval.tool_name)} be called ({safe_line(approval.effect)})?"]
    for name, value in _arguments(approval.arguments):
        first, *further = safe_text(value).split("\n")
        lines += _indented(f"{safe_line(name)}: {first}" if name else first, 2, width)
        for line in further:
            lines += _indented(line, 6, width)
    if len(approval.arguments) >= MOST_SHOWN:
        lines.append(f"  (only the first {MOST_SHOWN} characters are shown)")
    return lines


def _indented(line: str, depth: int, width: int) -> list[str]:
    """Return one line of text in the width of the terminal; what does not fit stands deeper."""
    return [" " * (depth + 4 * (at > 0)) + piece for at, piece in enumerate(wrap(line, width - depth - 4))]


def _arguments(written: str) -> list[tuple[str, str]]:
    """Return names and values of what a model wrote; as it stands where it is no object of JSON."""
    import json

    try:
        read: object = json.loads(written)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        return [("", written)] if written.strip() else []
    return [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in read.items()
    ]
