"""``hermes`` and ``hermes chat``: which session, and in which manner."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_cli.columns import wrap
from hermes_cli.conversation import Conversation, Leave, interrupts_win, stoppable
from hermes_cli.recap import build_recap, draw_recap, recap_limits
from hermes_cli.safe_text import safe_line
from hermes_cli.streams import input_lines, input_text, is_terminal, width_of
from hermes_cli.terminal import terminal_source, transient_source
from hermes_cli.times import ago, counted
from hermes_cli.unanswered import what_next
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from hermes_cli.conversation import Said
    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.app import TurnResult

__all__ = ["recap_text", "run"]


def run(call: CliCall) -> int:
    """Talk: one question, lines from a pipe, or a person at a terminal."""
    _check_agent(call)
    source = terminal_source()
    conversation = Conversation(
        call.app, source or transient_source(), bound=source is not None, out=call.out, err=call.err
    )
    question = _question(call)
    interactive = question is None and is_terminal(sys.stdin) and (is_terminal(call.out) or is_terminal(call.err))
    resumed = _choose(conversation, call)
    if resumed:
        _greet(conversation, call, full=interactive and is_terminal(call.out))
    if interactive:
        from hermes_cli.interactive import talk

        return talk(conversation, call)
    status = _answer_lines(conversation) if question is None else _ask_once(conversation, call, question)
    if not status:
        conversation.tell_setup()
    return status


def _check_agent(call: CliCall) -> None:
    """Refuse an agent that does not exist before a session is made for it. :raises ConfigError: naming those there are.

    Nothing is looked up where nothing is configured: the default is always there.
    """
    name = call.app.setting("agent", "runner")
    if not name or name in call.app.agent_names():
        return
    from hermes_hookspecs.errors import ConfigError

    origins = {(row.section, row.key): row.origin for row in call.app.setting_rows()}
    origin = origins.get(("agent", "runner"), "configuration")
    known = ", ".join(call.app.agent_names()) or "none"
    raise ConfigError(
        f"{origin}: there is no agent {name!r}; there are: {known}", origin=origin, section="agent", key="runner"
    )


def _question(call: CliCall) -> str | None:
    """Return what ``--query`` asks, ``None`` without it."""
    from hermes_cli.parser import usage_error

    question = call.values["query"]
    if question is None:
        if call.values["json"]:
            raise usage_error("option --json needs --query here", "option --json")
        return None
    text = input_text() if question == "-" else str(question)
    if not text.strip():
        raise usage_error("there is nothing to ask: the text of --query is empty", "option --query")
    return text


def _choose(conversation: Conversation, call: CliCall) -> bool:
    """Let the conversation show an earlier session where an option says so; return whether it does."""
    name = call.values["continue"]
    reference = call.values["resume"]
    if reference is None:
        reference = call.values["session"]
    if reference is None and name:
        reference = name
    if reference is not None:
        conversation.resume(str(reference))
    elif name is not None:
        conversation.go_on()
    else:
        return False
    return True


def _greet(conversation: Conversation, call: CliCall, *, full: bool) -> None:
    """Show what is gone on with: a panel on a terminal, one line on stderr elsewhere."""
    if full and call.app.setting("display", "resume_display") == "full":
        print(recap_text(conversation, call.width or 80), file=call.out, flush=True)
    else:
        print(_summary(conversation), file=call.err, flush=True)
        lineage = conversation.lineage()
        hint = "" if lineage is None else _hint(conversation, lineage.id)
        if hint:
            print(f"hermes: {hint}", file=call.err, flush=True)


def _summary(conversation: Conversation) -> str:
    lineage = conversation.lineage()
    if lineage is None:
        return "hermes: going on with a new session"
    heading = safe_line(f"{lineage.title} ({lineage.tip})" if lineage.title else lineage.tip)
    when = ago(conversation.app.clock.now(), lineage.last_activity)
    return f"hermes: going on with {heading}: {counted(lineage.message_count, 'message')}, {when}"


def _hint(conversation: Conversation, lineage_id: LineageId) -> str:
    app = conversation.app
    return what_next(app, lineage_id, app.store.turns(lineage_id, operator()), app.turn_state(lineage_id))


def recap_text(conversation: Conversation, width: int) -> str:
    """Return the recap panel of the session that is shown. Reads the whole transcript.

    Below it stands what to do where the last message has no answer.
    """
    from hermes_cli.entrances import Entrances

    lineage = conversation.lineage()
    if lineage is None:
        return ""
    store = conversation.app.store
    rows = store.messages(lineage.id, operator())
    turns = store.turns(lineage.id, operator())
    recap = build_recap(rows, recap_limits(conversation.app), Entrances(turns).name)
    if not recap.entries and not recap.earlier:
        return _summary(conversation)
    lines = draw_recap(recap, safe_line(lineage.title or ""), safe_line(lineage.tip), width)
    hint = what_next(conversation.app, lineage.id, turns, conversation.app.turn_state(lineage.id))
    return "\n".join([*lines, *wrap(hint, width)] if hint else lines)


def _ask_once(conversation: Conversation, call: CliCall, question: str) -> int:
    import asyncio

    as_json = bool(call.values["json"])
    if is_terminal(call.err) and not as_json:
        conversation.status.follow(width_of(call.err))
    try:
        with interrupts_win():
            said = asyncio.run(stoppable(conversation.take(question, answer=not as_json)))
    except Leave:
        return 0
    if said is None:
        raise KeyboardInterrupt
    if as_json and said.result is not None:
        from hermes_cli.records import print_json

        session = call.app.store.session(said.result.entry.session_id, operator())
        print_json(call.out, _result_record(said, said.result, None if session is None else session.model))
    return said.status


def _result_record(said: Said, result: TurnResult, model: str | None) -> dict[str, object]:
    usage = result.usage
    return {
        "session_id": result.entry.session_id,
        "lineage_id": result.entry.lineage_id,
        "title": result.entry.title,
        "turn_id": result.turn.id,
        "outcome": result.turn.outcome,
        "reason": result.turn.reason,
        "text": result.text,
        "files": [
            {
                "name": one.file.name,
                "media_type": one.file.media_type,
                "size": one.file.size,
                "sha256": one.file.sha256,
                "path": one.path or None,
            }
            for one in said.files
        ],
        "model": model if usage is None or usage.model is None else usage.model,
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "cache_read_tokens": None if usage is None else usage.cache_read_tokens,
        "cache_write_tokens": None if usage is None else usage.cache_write_tokens,
        "estimated_cost_usd": None if usage is None else usage.estimated_cost_usd,
        "waited_s": result.waited_s,
    }


def _answer_lines(conversation: Conversation) -> int:
    """Answer stdin line by line; the loop rests while the next line is read, so Ctrl-C ends the program at once."""
    import asyncio

    status = 0
    with interrupts_win(), asyncio.Runner() as runner:
        for line in input_lines():
            if not line.strip():
                continue
            try:
                said = runner.run(stoppable(conversation.take(line)))
            except Leave:
                break
            if said is None:
                raise KeyboardInterrupt
            status = status or (0 if said.ok else 1)
    return status
