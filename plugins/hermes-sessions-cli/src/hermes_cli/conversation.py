"""A conversation at this terminal: what is shown, and what happens to a line that was typed."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hermes_cli.answers import AnswerPrinter, StatusLine
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.streams import fitted
from hermes_hookspecs.errors import HermesError, LeaseBusy, LeaseLost, SessionNotFound, StorageError
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Iterator
    from typing import TextIO, TypeVar

    from hermes_cli.approving import Approver
    from hermes_cli.received import Received
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.app import App, TurnResult
    from hermes_hookspecs.sessions import Lineage, SessionEntry
    from hermes_hookspecs.source import SessionSource

    T = TypeVar("T")

__all__ = ["Conversation", "Leave", "Said", "interrupts_win", "stoppable"]

_LEAVE = ("/quit", "/exit")
_LEAVE_HELP = ("/quit", "leave; Ctrl-D does too")
"""What ``/help`` says here besides the commands that are the same on every entrance."""
_PATIENCE_S = 0.4
"""Seconds of silence before the status line shows up."""
_WAITING = "waiting for "
"""How the label of a turn begins that waits for another one."""


class Leave(Exception):
    """The entrance is asked to close; no error, but the way out of a loop that reads lines."""


class Said:
    """What became of one line: ``ok``, for a message its ``result``, and the exit ``status`` of a program that ends.

    ``is_command``: no message was said. ``files``: what the answer brought along, and where it is.
    """

    __slots__ = ("files", "is_command", "ok", "result", "status")

    def __init__(
        self,
        ok: bool,
        result: TurnResult | None = None,
        *,
        status: int | None = None,
        is_command: bool = False,
        files: tuple[Received, ...] = (),
    ) -> None:
        self.ok = ok
        self.is_command = is_command
        self.result = result
        self.files = files
        self.status = status if status is not None else 0 if ok else 1


@contextmanager
def interrupts_win() -> Iterator[None]:
    """Let Ctrl-C be Ctrl-C around the running of a loop.

    One that falls between the end of a task and the end of its loop leaves a stop behind, and closing the runner then
    says that the loop was stopped; what it hides is the interrupt.
    """
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


async def stoppable(work: Coroutine[object, object, T]) -> T | None:
    """Run ``work``; Ctrl-C cancels it, lets it clean up, and ``None`` is returned. In the main thread only.

    ``None`` also where the work ended all the same: a program that reads a script of lines must not miss the signal.

    :raises asyncio.CancelledError: somebody else cancelled the caller.
    """
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    task: asyncio.Task[T] = loop.create_task(work)
    stopped = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopped
        stopped = True
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        result = await task
    except asyncio.CancelledError:
        if not stopped:
            task.cancel()
            raise
        return None
    else:
        return None if stopped else result
    finally:
        signal.signal(signal.SIGINT, before)


class Conversation:
    """One entrance and the session that it shows, which is made with the first message and not before.

    :param bound: the key of ``source`` leads to what is shown; false for a program without a terminal.
    """

    def __init__(self, app: App, source: SessionSource, *, bound: bool, out: TextIO, err: TextIO) -> None:
        self.app = app
        self.source = source
        self.bound = bound
        self.entry: SessionEntry | None = None
        self._out = out
        self._err = err
        self.status = StatusLine(err)
        self.approver: Approver | None = None
        """Who asks for approval of dangerous calls; ``None`` where nobody can be asked: they are refused, in words."""

    # what is shown
    def resume(self, reference: str) -> SessionEntry:
        """Show the session that ``reference`` means. :raises SessionNotFound, AmbiguousReference: as in ``resolve``."""
        found = self.app.resolve(reference, self.app.principal(self.source))
        return self._show(found.lineage.id)

    def go_on(self) -> SessionEntry:
        """Show the session that this terminal showed last, else the latest one of any terminal.

        :raises HermesError: there is none.
        """
        from hermes_hookspecs.sessions import SessionFilter

        if self.bound:
            route = self.app.store.route(self.app.session_key(self.source))
            if route is not None and route.lineage_id is not None:
                return self._show(route.lineage_id)
        where = SessionFilter(source=self.source.platform, empty=False)
        latest = self.app.store.summaries(self.app.principal(self.source), where=where, limit=1)
        if not latest:
            raise HermesError(
                "no terminal has an earlier session to go on with; `hermes` begins one, and `hermes -r REF` goes on "
                "with any that `hermes sessions list` shows"
            )
        return self._show(latest[0].lineage_id)

    def _show(self, lineage_id: str) -> SessionEntry:
        from hermes_hookspecs.ids import LineageId

        self.entry = self.app.resume_session(self.source, LineageId(lineage_id), bind=self.bound)
        return self.entry

    def lineage(self) -> Lineage | None:
        """Return the conversation that is shown, as it stands now; ``None`` before the first message."""
        return None if self.entry is None else self.app.store.lineage(self.entry.lineage_id, operator())

    def _session(self) -> SessionEntry:
        """Return the session to speak in, made if need be."""
        if self.entry is None:
            if self.bound:
                self.entry = self.app.get_or_create_session(self.source, force_new=True)
            else:
                self.entry = self.app.new_session(self.source)
        return self.entry

    # what was typed
    async def take(self, text: str, *, answer: bool = True) -> Said:
        """Do what one line asks for, and print what comes of it.

        :param answer: print the answer of a message.
        :raises Leave: it asks to close this entrance.
        :raises HermesError: what ends the whole entrance: a store that fails, a lease that could not be had.
        """
        if text.strip().lower() in _LEAVE:
            raise Leave
        try:
            said = await self._command(text.strip(), answer=answer)
            return await self._message(text, answer=answer) if said is None else said
        except (StorageError, LeaseBusy):
            raise
        except HermesError as error:
            self.complain(str(error))
            return Said(False, status=error.exit_code)

    def tell_setup(self) -> None:
        """Say in one line how to configure an agent with a model, where the one without answers because nobody did."""
        if line := self.app.agent_setup():
            self.complain(line)

    def complain(self, text: str) -> None:
        """Print one line about what went wrong to stderr."""
        self.status.clear()
        print(fitted(f"hermes: {safe_line(text)}", self._err), file=self._err, flush=True)

    def _forget_if_gone(self) -> bool:
        """Let go of the session in hand where it was deleted meanwhile; say so, and return whether it was."""
        if self.entry is None or self.lineage() is not None:
            return False
        self.entry = None
        self.complain("this session is gone: it was deleted from elsewhere; your next message begins a new one")
        return True

    async def _command(self, text: str, *, answer: bool) -> Said | None:
        if text.startswith("/"):
            self._forget_if_gone()
        reply = await self.app.command(text, self.source, self.entry)
        if reply is None:
            return None
        if reply.entry is not None:
            self.entry = reply.entry
        elif reply.released:
            self.entry = None
        shown = safe_text(reply.text)
        if text.lower() == "/help" and not reply.failed:
            shown = f"{shown}\n{self._leave_line()}"
        if shown:
            stream = self._err if reply.failed else self._out
            print(fitted(shown, stream), file=stream, flush=True)
        if reply.leave:
            raise Leave
        if reply.say is not None:
            return await self._message(reply.say.text, answer=answer, attachments=reply.say.attachments)
        return Said(not reply.failed, is_command=True)

    def _leave_line(self) -> str:
        """Return the line of ``/quit``, its summary under those of the other commands."""
        forms = (f"/{one.name} {one.usage}".rstrip() for one in self.app.commands(self.source.platform))
        name, summary = _LEAVE_HELP
        return f"  {name:<{max(map(len, forms), default=0)}}  {summary}"

    async def _message(self, text: str, *, answer: bool, attachments: tuple[Attachment, ...] = ()) -> Said:
        try:
            return await self._asked(text, answer=answer, attachments=attachments)
        except SessionNotFound as error:
            # The message was not taken, or was settled while it waited; whoever sees nothing must know.
            if not self._forget_if_gone():
                self.entry = None
                self.complain("this session was reset from elsewhere; your next message begins a new one")
            return Said(False, status=error.exit_code)
        except LeaseLost as error:
            if not self._forget_if_gone():
                self.complain("the turn was stopped from elsewhere; what it had stored is kept")
            return Said(False, status=error.exit_code)

    async def _asked(self, text: str, *, answer: bool, attachments: tuple[Attachment, ...]) -> Said:
        from asyncio import to_thread

        printer = AnswerPrinter(self._out, self.status)
        ticker = self._ticker(printer)
        try:
            result = await self.app.ask_async(
                text,
                self.source,
                entry=await to_thread(self._session),  # may wait for the store; Ctrl-C must not
                on_event=printer.event if answer else None,
                on_wait=self._waiting,
                attachments=attachments,
                on_approval=None if self.approver is None else self.approver.take,
            )
        except BaseException:
            await self._quiet(ticker)
            with suppress(OSError):  # a broken output must not hide why the turn ended
                self.status.clear()
                printer.finish(None)
            raise
        await self._quiet(ticker)
        self.status.clear()
        self.entry = result.entry
        files = await self._received(result)
        if answer:
            printer.finish(result)
            for file in files:
                print(safe_line(file.line), file=self._err, flush=True)
        if result.turn.outcome != DONE:
            self.complain(f"the answer {result.turn.outcome}: {result.turn.reason}".rstrip(": "))
        return Said(result.turn.outcome == DONE, result, files=files)

    async def _received(self, result: TurnResult) -> tuple[Received, ...]:
        """Put the files of an answer where a person can open them."""
        if not result.files:
            return ()
        from asyncio import to_thread

        from hermes_cli.received import received

        return await to_thread(received, result, self.app)

    async def _quiet(self, ticker: asyncio.Task[None] | None) -> None:
        """End what writes to the terminal on behalf of a turn."""
        await _ended(ticker)
        if self.approver is not None:
            await self.approver.end()

    def _waiting(self, who: str) -> None:
        with suppress(OSError):  # called from inside the turn, which has no part in our streams
            self.status.clear()
            print(fitted(f"hermes: waiting: {safe_line(who)}", self._err), file=self._err, flush=True)

    def _ticker(self, printer: AnswerPrinter) -> asyncio.Task[None] | None:
        """Start what keeps the status line up to date, where there is a terminal to show it."""
        if not self.status.is_lively:
            return None
        import asyncio

        return asyncio.get_running_loop().create_task(self._tick(printer))

    async def _tick(self, printer: AnswerPrinter) -> None:
        """Keep the status line up to date until cancelled."""
        import asyncio

        monotonic = self.app.clock.monotonic
        began = monotonic()
        await asyncio.sleep(_PATIENCE_S)
        while True:
            if not (printer.writing or (self.approver is not None and self.approver.is_asking)):
                label, seconds = printer.label or "thinking", f"{monotonic() - began:.0f} s"
                if self._waits(label):  # who it is may be long: what to do stands before it
                    whom = label.removeprefix(_WAITING)
                    self.status.show(f"... waiting {seconds} (Ctrl-C only stops the waiting) for {whom}")
                else:
                    self.status.show(f"... {label} ({seconds}; Ctrl-C stops)")
            await asyncio.sleep(1)

    def _waits(self, label: str) -> bool:
        """Return whether somebody else's turn is in the way, which Ctrl-C here does not stop."""
        if not label.startswith(_WAITING) or self.entry is None:
            return False
        lease = self.app.store.lease(self.entry.lineage_id)
        return lease is not None and lease.holder is not None and lease.holder.pid != os.getpid()


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel a task of ours and wait for its end."""
    if task is not None:
        import asyncio

        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
