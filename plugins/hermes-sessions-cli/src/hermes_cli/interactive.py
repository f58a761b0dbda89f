"""A person at a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_cli.approving import QUESTION, Approver
from hermes_cli.conversation import Leave, interrupts_win, stoppable
from hermes_cli.safe_text import safe_line
from hermes_cli.streams import is_terminal, width_of
from hermes_hookspecs.errors import LeaseBusy, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from typing import TextIO

    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from hermes_cli.conversation import Conversation
    from hermes_hookspecs.cli import CliCall

__all__ = ["talk"]

_PROMPT = "> "
_TYPED_AHEAD_S = 0.25
"""Seconds of a prompt within which a line was typed before it: while the answer was written nobody read it."""


def talk(conversation: Conversation, call: CliCall) -> int:
    """Prompt, answer, prompt again until the person leaves; then say how to come back."""
    import asyncio

    conversation.status.follow(width_of(call.err))
    print("Hermes. /help shows the commands, Ctrl-D leaves.", file=call.err, flush=True)
    conversation.tell_setup()
    session = _prompt_session(conversation, call)
    conversation.approver = Approver(
        conversation.app,
        conversation.source,
        ask=_approval_prompt(call),
        err=call.err,
        status=conversation.status,
        width=width_of(call.err) or 80,
    )
    with interrupts_win():
        asyncio.run(_talk(conversation, call, session))
    _farewell(conversation, call)
    return 0


async def _talk(conversation: Conversation, call: CliCall, session: PromptSession[str]) -> None:
    monotonic = conversation.app.clock.monotonic
    answered = False
    while True:
        asked_at = monotonic()
        try:
            text = await session.prompt_async(_PROMPT)
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        if not text.strip():
            continue
        if answered and text.strip().lower() == "/stop" and monotonic() - asked_at < _TYPED_AHEAD_S:
            conversation.complain("/stop came too late: the answer is complete; Ctrl-C stops one while it is written")
            continue
        before = None if conversation.entry is None else conversation.entry.lineage_id
        try:
            said = await stoppable(conversation.take(text))
        except Leave:
            return
        except (LeaseBusy, StoreBusy) as error:
            conversation.complain(str(error))  # nothing was kept of the message; the person may try again
            continue
        answered = said is not None and said.result is not None
        if said is None:
            print("(stopped)", file=call.err, flush=True)
        elif said.is_command and conversation.entry is not None and conversation.entry.lineage_id != before:
            _show_recap(conversation, call)


def _show_recap(conversation: Conversation, call: CliCall) -> None:
    """Show what a command has put before the person, as the resume options do."""
    lineage = conversation.lineage()
    if lineage is not None and lineage.message_count and is_terminal(call.out):
        from hermes_cli.chat import recap_text

        if call.app.setting("display", "resume_display") == "full":
            print(recap_text(conversation, width_of(call.out) or 80), file=call.out, flush=True)


def _prompt_session(conversation: Conversation, call: CliCall) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.output import create_output

    commands = conversation.app.commands(conversation.source.platform)
    words = sorted({f"/{command.name}" for command in commands} | {"/quit"})
    return PromptSession(
        completer=WordCompleter(words, sentence=True),
        complete_while_typing=False,
        key_bindings=_keys(),
        multiline=True,
        output=create_output(stdout=_screen(call)),
        enable_history_search=True,
    )


def _screen(call: CliCall) -> TextIO:
    """Return the stream that the person sees: ``hermes > answers.txt`` still prompts."""
    return call.out if is_terminal(call.out) else call.err


def _approval_prompt(call: CliCall) -> Callable[[], Awaitable[str]]:
    """Return a function that asks for one line; Ctrl-C at it is an answer and stops no turn."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(stdout=_screen(call)))

    async def ask() -> str:
        with _typed_ahead(session.app.input):
            return await session.prompt_async(QUESTION, handle_sigint=False)  # a signal from outside stops the turn

    return ask


@contextmanager
def _typed_ahead(keys: Input) -> Iterator[None]:
    """Keep what was typed before a question from answering it: it waits for the next prompt."""
    from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead

    early = get_typeahead(keys)
    with keys.raw_mode():  # so that a line without its end can be read, too
        early += keys.read_keys()
    try:
        yield
    finally:
        store_typeahead(keys, early)


def _keys() -> KeyBindings:
    """Return the keys: Enter sends, also a text of several lines; Alt-Enter begins a line; Ctrl-C clears."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    @keys.add("c-j")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _farewell(conversation: Conversation, call: CliCall) -> None:
    """Print the id that goes on, which compression or a command may have changed, and how to come back to it."""
    lineage = conversation.lineage()
    if lineage is None or not lineage.message_count:
        return
    name = safe_line(f"{lineage.tip} ({lineage.title})" if lineage.title else lineage.tip)
    hermes = f"hermes{_same_store(call)}"
    print(
        f"Session {name}. Go on with: {hermes} -c   or: {hermes} -r {safe_line(lineage.tip)}", file=call.err, flush=True
    )


def _same_store(call: CliCall) -> str:
    """Return the options, a space before each, that lead to the store of this call again."""
    import shlex

    named = [(option, call.values.get(option)) for option in ("home", "profile", "db")]
    return "".join(f" --{option} {shlex.quote(str(value))}" for option, value in named if value is not None)
