"""The commands that look: history, usage, queue, search, recap; and steer, which says something in mid-turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.aside import aside
from hermes_core.commands.at_work import turn_words
from hermes_core.commands.echoes import echoed
from hermes_hookspecs.commands import Command, CommandReply, Saying
from hermes_hookspecs.errors import SessionError
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER

if TYPE_CHECKING:
    from hermes_hookspecs.commands import CommandCall
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.search import FoundSession
    from hermes_hookspecs.usage import UsageSum

__all__ = ["LOOKING_COMMANDS"]

_HERE, _EVERYWHERE = "This conversation", "All conversations"
_NONE_YET = "There is no session yet; send a message first."
_SHOWN, _MOST_SHOWN = 10, 50
_LONGEST = 200
_FOUND = 5
_NAMES = {USER: "You", ASSISTANT: "Answer", TOOL: "Tool"}


def _history(call: CommandCall) -> CommandReply:
    """Show the last messages."""
    if call.entry is None:
        return CommandReply(text=_NONE_YET, failed=True)
    wanted = call.arguments or str(_SHOWN)
    if not (wanted.isascii() and wanted.isdigit()) or not 1 <= int(wanted[:9]) <= _MOST_SHOWN:
        return CommandReply(text=f"/history takes a number from 1 to {_MOST_SHOWN}, not {echoed(wanted)}.", failed=True)
    rows = call.app.store.last_messages(call.entry.lineage_id, call.principal, count=int(wanted))
    lines = [line for line in map(_line_of, rows) if line]
    return CommandReply(text="\n".join(lines) or "Nothing was said here yet.")


def _line_of(row: Message) -> str:
    name = _NAMES.get(row.role, row.kind.capitalize() or row.role.capitalize())
    if row.role == TOOL and row.tool_name:
        name = row.tool_name
    calls = f" [calls {', '.join(call.name for call in row.tool_calls)}]" if row.tool_calls else ""
    return f"{name}: {_cut(row.content)}{calls}"


def _cut(text: str, longest: int = _LONGEST) -> str:
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _usage(call: CommandCall) -> CommandReply:
    """Say what this conversation, and everything of its person, has used."""
    if call.entry is None:
        return CommandReply(text=_NONE_YET, failed=True)
    here = call.app.usage_of(call.principal, lineage_id=call.entry.lineage_id)
    everything = call.app.usage_of(call.principal)
    return CommandReply(text=f"Here: {_sum(here)}\nAll conversations: {_sum(everything)}")


def _sum(one: UsageSum) -> str:
    if not one.calls:
        return "nothing was reported"
    usage = one.usage
    parts = [f"{one.calls} model call{'' if one.calls == 1 else 's'}"]
    for number, name in ((usage.input_tokens, "tokens in"), (usage.output_tokens, "tokens out")):
        parts.append(f"{'unknown' if number is None else number} {name}")
    if usage.cache_read_tokens:
        parts.append(f"{usage.cache_read_tokens} of them from the cache")
    least = "at least " if one.unpriced else ""
    priced = one.calls > one.unpriced
    parts.append(f"{least}${one.known_cost_usd:.4f}" if priced else "cost unknown")
    return ", ".join(parts)


def _queue(call: CommandCall) -> CommandReply:
    """Show what waits, or take it back."""
    conversations = call.app.conversations
    if call.arguments.lower() == "clear":
        dropped = conversations.drop_waiting(call.source, control_id=call.control_id)
        what = "1 message was" if dropped == 1 else f"{dropped or 'no'} messages were"
        text = f"{what} taken back; nobody will answer {'it' if dropped == 1 else 'them'}."
        return CommandReply(text=text.capitalize() if dropped else "Nothing waits.")
    if call.arguments:
        return CommandReply(
            text=f"/queue shows what waits, /queue clear takes it back; not {echoed(call.arguments)}.", failed=True
        )
    waiting = conversations.waiting(call.source)
    running = turn_words(call)
    head = f"A turn is {running}." if running else "No turn runs here."
    if not waiting:
        return CommandReply(text=f"{head} Nothing waits.")
    lines = [f"{place:>2}. {_cut(item.text, 80) or '[attachment]'}" for place, item in enumerate(waiting[:_SHOWN], 1)]
    more = [f"    … {len(waiting) - _SHOWN} more"] if len(waiting) > _SHOWN else []
    return CommandReply(text="\n".join([f"{head} Waiting:", *lines, *more]))


def _steer(call: CommandCall) -> CommandReply:
    """Say something to the turn that runs."""
    if not call.arguments:
        return CommandReply(text="/steer needs a text: what is the turn to know?", failed=True)
    running = "" if call.entry is None else call.app.turn_state(call.entry.lineage_id)
    say = Saying(text=call.arguments, steers=True)
    if not running:
        return CommandReply(text="No turn runs here; it is taken as a message.", say=say)
    return CommandReply(
        text="It goes into the turn that runs, where the agent takes it; else it is answered next.", say=say
    )


def _search(call: CommandCall) -> CommandReply:
    """Find earlier conversations."""
    if not call.arguments:
        return CommandReply(text="/search needs words to look for.", failed=True)
    try:
        answer = call.app.session_search(call.arguments, limit=_FOUND, window=1, principal=call.principal)
    except (ValueError, SessionError) as error:
        return CommandReply(text=str(error), failed=True)
    if not answer.results:
        return CommandReply(text=f"Nothing was found ({answer.note})." if answer.note else "Nothing was found.")
    lines = [_found(place, one) for place, one in enumerate(answer.results, 1)]
    note = [f"({answer.note})"] if answer.note else []
    return CommandReply(text="\n".join([*lines, *note, "/resume ID goes on with one."]))


def _found(place: int, one: FoundSession) -> str:
    from hermes_hookspecs.ports.search import HIT_END, HIT_START

    title = one.title or _cut(one.preview, 40)
    snippet = one.snippet.replace(HIT_START, "").replace(HIT_END, "")
    return f"{place}. {one.session_id}  {title}\n   {_cut(snippet, 160)}"


def _recap(call: CommandCall) -> CommandReply:
    """Restore the scene of this conversation."""
    from hermes_hookspecs.ports.conversations import recap_text

    if call.entry is None:
        return CommandReply(text=_NONE_YET, failed=True)
    try:
        return CommandReply(text=recap_text(call.app.conversations.recap(call.entry.lineage_id, call.principal)))
    except SessionError as error:
        return CommandReply(text=str(error), failed=True)


LOOKING_COMMANDS = (
    Command(name="recap", summary="what was wanted, done, decided and left open", run=aside(_recap), group=_HERE),
    Command(name="history", summary="the last messages", usage="[N]", run=aside(_history), group=_HERE),
    Command(name="usage", summary="tokens and money so far", run=aside(_usage), group=_HERE),
    Command(
        name="queue",
        summary="what waits to be answered; clear takes it back",
        usage="[clear]",
        run=aside(_queue),
        group=_HERE,
    ),
    Command(
        name="steer",
        summary="say something to the turn that runs",
        usage="TEXT",
        run=aside(_steer),
        urgent=True,
        group=_HERE,
    ),
    Command(name="search", summary="find what was said", usage="WORDS", run=aside(_search), group=_EVERYWHERE),
)
