"""``hermes sessions show``: a conversation as it was, with every entrance named where it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.entrances import Entrances
from hermes_cli.listing import account_text
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.times import counted, local_time
from hermes_cli.unanswered import RUNNING, what_next
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.app import Resolved
    from hermes_hookspecs.sessions import Session

__all__ = ["run", "transcript_lines"]

_ARGUMENTS = 200
"""Most characters of a call's arguments."""


def run(call: CliCall) -> int:
    """Print what is known of a conversation, and its transcript, oldest message first."""
    if call.values["context"]:
        from hermes_cli.contexts import run as run_context

        return run_context(call)
    found = call.app.resolve(str(call.values["ref"]), operator())
    if call.values["recap"]:
        return _recap(call, found)
    last = call.values["last"]
    count = last if isinstance(last, int) else None
    if call.values["json"]:
        _print_json(call, found, count)
        return 0
    store = call.app.store
    lineage = found.lineage
    segments = store.segments(lineage.id, operator())
    state = call.app.turn_state(lineage.id)
    for name, value in _header(found, segments, state):
        print(f"{name:<9} {value}", file=call.out)
    if count is None:
        rows = store.messages(lineage.id, operator())
    else:
        rows = store.last_messages(lineage.id, operator(), count=count) if count else ()
    turns = store.turns(lineage.id, operator())
    entrances = Entrances(turns)
    earlier = lineage.message_count - len(rows)
    if earlier > 0:
        print(f"\n... {counted(earlier, 'earlier message')} ...", file=call.out)
    for line in transcript_lines(rows, entrances, [segment.id for segment in segments]):
        print(line, file=call.out)
    hint = what_next(call.app, lineage.id, turns, state)
    if hint:
        call.out.flush()
        print(hint, file=call.err)
    return 0


def _recap(call: CliCall, found: Resolved) -> int:
    """Print what restores the scene of a conversation."""
    from hermes_hookspecs.ports.conversations import recap_text

    recap = call.app.conversations.recap(found.lineage.id, operator())
    if call.values["json"]:
        from attrs import asdict

        from hermes_cli.records import print_json

        print_json(call.out, asdict(recap))
        return 0
    for line in recap_text(recap).splitlines():
        print(safe_line(line), file=call.out)
    return 0


def _header(found: Resolved, segments: Sequence[Session], state: str) -> Iterator[tuple[str, str]]:
    lineage, named = found.lineage, found.session
    tip = next((segment for segment in segments if segment.id == lineage.tip), named)
    yield "session", safe_line(lineage.tip)
    yield "title", safe_line(lineage.title) if lineage.title else "-"
    yield "source", account_text(lineage.source.platform, lineage.source.account_id)
    who = lineage.source.participant
    if who:
        name = lineage.source.user_name
        yield "user", safe_line(f"{who} ({name})" if name and name != who else who)
    if tip.model:
        yield "model", safe_line(tip.model)
    yield "started", local_time(lineage.created_at)
    yield "active", local_time(lineage.last_activity)
    if tip.ended_at is not None:
        yield "ended", f"{local_time(tip.ended_at)} ({safe_line(tip.end_reason or 'no reason')})"
    yield "messages", f"{lineage.message_count} in {counted(lineage.turn_count, 'turn')}"
    flags = [word for word, is_so in (("pinned", lineage.pinned), ("archived", lineage.archived)) if is_so]
    if flags:
        yield "state", ", ".join(flags)
    if len(segments) > 1:
        place = next((at for at, segment in enumerate(segments, 1) if segment.id == named.id), 0)
        said = f"; {safe_line(named.id)} is segment {place}" if named.id != lineage.tip else ""
        yield "segments", f"{len(segments)}{said}"
    if state:
        yield "turn", safe_line(state)


def transcript_lines(rows: Sequence[Message], entrances: Entrances, segments: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a transcript.

    :param rows: in order of storing.
    :param entrances: names the door of each row.
    :param segments: ids of all sessions of the lineage, oldest first; a new one is marked where its first row stands.
    """
    door: str | None = None
    session: str | None = None
    for row in rows:
        if row.session_id != session:
            if session is not None and row.session_id in segments:
                place = list(segments).index(row.session_id) + 1
                yield ""
                yield f"== segment {place} of {len(segments)}: {safe_line(row.session_id)} =="
            session = row.session_id
        name = entrances.name(row.turn_id)
        if name != door:
            door = name
            yield ""
            yield f"-- {name}, {local_time(row.timestamp)} --"
        yield from _row_lines(row)


def _row_lines(row: Message) -> Iterator[str]:
    """Yield one row: the role on its own margin, so that nothing in the text can pass for another row."""
    label = row.role if not row.kind else f"{row.role} ({row.kind})"
    if row.role == "tool" and row.tool_name:
        label = f"tool {row.tool_name}"
    if row.content or not (row.tool_calls or row.attachments):
        lines = safe_text(row.content).split("\n")
        yield f"{safe_line(label)}> {lines[0]}".rstrip()
        for line in lines[1:]:
            yield f"    {line}".rstrip()
    for attachment in row.attachments:
        yield f"    [{safe_line(f'{attachment.kind} {attachment.name}')}]"
    for each in row.tool_calls:
        arguments = safe_line(each.arguments)
        if len(arguments) > _ARGUMENTS:
            arguments = f"{arguments[:_ARGUMENTS]}..."
        yield f"    calls {safe_line(each.name)} {arguments}".rstrip()


def _print_json(call: CliCall, found: Resolved, count: int | None) -> None:
    """Print the export of the whole lineage as one object, and what runs there; ``running`` names a living holder."""
    from hermes_cli.records import print_json

    lineage = found.lineage
    record = call.app.export_session(lineage.tip, lineage=True)
    state = call.app.turn_state(lineage.id)
    record.setdefault("running", state.removeprefix(RUNNING) if state.startswith(RUNNING) else None)
    record.setdefault("turn_state", state)
    messages = record.get("messages")
    if count is not None and isinstance(messages, list):
        record["messages"] = messages[max(len(messages) - count, 0) :]
    print_json(call.out, record)
