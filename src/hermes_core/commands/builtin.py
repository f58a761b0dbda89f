"""The commands that the core brings, and those among them that are about sessions: new, title, resume, stop, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from hermes_core.commands.aside import aside
from hermes_core.commands.at_work import turn_words
from hermes_core.commands.echoes import echoed
from hermes_core.commands.looking import LOOKING_COMMANDS
from hermes_core.commands.refusals import refused
from hermes_core.commands.revising import REVISING_COMMANDS
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.errors import LeaseBusy, SessionError, SessionNotFound
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.commands import CommandCall
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.app import CompressionReport
    from hermes_hookspecs.sessions import Left, SessionEntry, SessionSummary

__all__ = ["BUILTIN_COMMANDS", "CommandsPlugin"]

_LISTED = 10
_LABEL = 40
_HERE, _EVERYWHERE, _OTHERS = "This conversation", "All conversations", "More"
_GROUPS = (_HERE, _EVERYWHERE)
"""Headings of ``/help`` in their order; those of plugins follow by name."""
_QUOTES = "<>[]\"'“”‘’ "


def _help(call: CommandCall) -> CommandReply:
    """List what can be typed here, group by group."""
    return CommandReply(text="\n".join(_help_lines(call.app.commands(call.source.platform))))


def _help_lines(commands: Sequence[Command]) -> Iterator[str]:
    width = max((len(_form(command)) for command in commands), default=0)
    groups = {command.group for command in commands}
    for group in [*(one for one in _GROUPS if one in groups), *sorted(groups - {*_GROUPS, ""}), ""]:
        members = [command for command in commands if command.group == group]
        if members:
            yield f"{group or _OTHERS}:"
        for command in members:
            yield f"  {_form(command):<{width}}  {command.summary}"


def _form(command: Command) -> str:
    return f"/{command.name} {command.usage}".rstrip()


def _new(call: CommandCall) -> CommandReply:
    """Let go of the session; the next message begins another, titled if a title was given."""
    try:
        title = call.app.check_title(call.arguments or None, call.source)
    except SessionError as error:
        return CommandReply(text=str(error), failed=True)
    left = call.app.leave_session(call.source, call.entry, title=title, control_id=call.control_id)
    what = "" if left is None or left.summary is None else f"Left {_called(left.summary)}; it is kept. "
    settled = "" if left is None else _settled(left)
    name = f" called {title!r}" if title else ""
    return CommandReply(text=f"{what}{settled}Your next message begins a new session{name}.", released=True)


def _settled(left: Left) -> str:
    """Say what was stopped and what is not answered any more, as a sentence with a blank behind it."""
    stopped = "The turn that was running is stopped. " if left.stopped else ""
    if not left.superseded:
        return stopped
    waiting = "1 waiting message" if left.superseded == 1 else f"{left.superseded} waiting messages"
    return f"{stopped}{waiting} will not be answered. "


def _called(summary: SessionSummary) -> str:
    return f"{summary.title!r} ({summary.session_id})" if summary.title else summary.session_id


def _title(call: CommandCall) -> CommandReply:
    """Show or set the title of the session."""
    if call.entry is None:
        return CommandReply(text="There is no session yet; send a message first.", failed=True)
    if not call.arguments:
        lineage = call.app.store.lineage(call.entry.lineage_id, call.principal)
        title = None if lineage is None else lineage.title
        return CommandReply(text=f"Title: {title}" if title else "This session has no title; /title NAME gives it one.")
    try:
        title = call.app.rename_session(call.entry.lineage_id, call.arguments, control_id=call.control_id)
    except SessionError as error:
        return CommandReply(text=str(error), failed=True)
    return CommandReply(text=f"Title: {title}" if title else "The title is gone.")


def _resume(call: CommandCall) -> CommandReply:
    """Go on with an earlier session: by id, title, unique beginning of an id, or number in the list."""
    if not call.arguments:
        return _listed(call, "Earlier sessions; /resume NUMBER, ID or TITLE goes on with one:")
    try:
        applied = _resumed_before(call)
        lineage_id = applied or _meant(call)
    except SessionNotFound:
        text = f"No session answers to {echoed(call.arguments)}; /sessions lists what there is."
        return CommandReply(text=text, failed=True)
    except SessionError as error:
        return CommandReply(text=str(error), failed=True)
    if applied is None and call.entry is not None and call.entry.lineage_id == lineage_id:
        return CommandReply(text="You are in that session already.", entry=call.entry)
    from hermes_hookspecs.ports.conversations import recap_text

    entry = call.app.resume_session(call.source, lineage_id, control_id=call.control_id)
    lineage = call.app.store.lineage(lineage_id, call.principal)
    count = 0 if lineage is None else lineage.message_count
    name = f"{entry.title!r} ({entry.session_id})" if entry.title else entry.session_id
    waiting = f" {entry.superseded} waiting will not be answered." if entry.superseded else ""
    back = f"Back in {name}, {count} message{'' if count == 1 else 's'}.{waiting}"
    scene = f"\n\n{recap_text(call.app.conversations.recap(lineage_id, call.principal))}" if count else ""
    return CommandReply(text=f"{back}{scene}", entry=entry)


def _resumed_before(call: CommandCall) -> LineageId | None:
    """Return where the command's row has brought its sender in an earlier try whose reply is still owed."""
    item = None if call.control_id is None else call.app.store.inbox_item(call.control_id)
    return None if item is None or item.outcome is None else item.outcome.lineage_id


def _meant(call: CommandCall) -> LineageId:
    """Return the lineage that is meant: an id or a title, else a place in the list, else the beginning of an id.

    :raises SessionError: none, or several.
    """
    numbered = _by_number(call, call.arguments)
    try:
        resolved = call.app.resolve(call.arguments, call.principal)
    except SessionError:
        if numbered is not None:
            return numbered.lineage_id
        unquoted = call.arguments.strip(_QUOTES)
        if not unquoted or unquoted == call.arguments:
            raise
        return call.app.resolve(unquoted, call.principal).lineage.id
    if resolved.by == "prefix" and _is_place(call.arguments):
        if numbered is None:
            raise SessionNotFound(call.arguments)
        return numbered.lineage_id
    return resolved.lineage.id


def _is_place(reference: str) -> bool:
    return reference.isascii() and reference.isdigit() and len(reference) < 4


def _by_number(call: CommandCall, reference: str) -> SessionSummary | None:
    """Return the session at a place of the list that is shown; ``None`` for anything that is no such number."""
    if not _is_place(reference):
        return None
    summaries = _recent(call)
    place = int(reference)
    return summaries[place - 1] if 1 <= place <= len(summaries) else None


def _recent(call: CommandCall) -> list[SessionSummary]:
    found = call.app.store.summaries(call.principal, where=SessionFilter(empty=False), limit=_LISTED)
    return list(found)


def _sessions(call: CommandCall) -> CommandReply:
    """List the latest sessions."""
    return _listed(call, "Latest sessions:")


def _listed(call: CommandCall, heading: str) -> CommandReply:
    summaries = _recent(call)
    if not summaries:
        return CommandReply(text="There is no earlier session.")
    here = None if call.entry is None else call.entry.lineage_id
    lines = [
        f"{place:>2}. {one.session_id}  {_label(one)}{'  (here)' if one.lineage_id == here else ''}"
        for place, one in enumerate(summaries, 1)
    ]
    return CommandReply(text="\n".join([heading, *lines]))


def _label(summary: SessionSummary) -> str:
    """Return the title, or the beginning of what was said, in quotes."""
    if summary.title:
        return summary.title
    preview = summary.preview
    return f"“{preview if len(preview) <= _LABEL else preview[: _LABEL - 1] + '…'}”"


def _status(call: CommandCall) -> CommandReply:
    """Say which session this is and who works in it."""
    app, source = call.app, call.source
    lines = [("profile", app.profile)]
    if call.principal.sees_all:
        lines.append(("store", app.store.location))  # a path of the machine is nothing for a chat
    if call.entry is None:
        lines.append(("session", "none yet; your next message begins one"))
    else:
        lineage = app.store.lineage(call.entry.lineage_id, call.principal)
        session = app.store.session(call.entry.session_id, call.principal)
        lines += [
            ("session", call.entry.session_id),
            ("title", (lineage and lineage.title) or "none"),
            ("key", call.entry.session_key),
            ("model", (session and session.model) or "none yet"),
            ("messages", str(lineage.message_count if lineage else 0)),
            ("context", _context(call, call.entry)),
            ("turn", turn_words(call) or "none"),
        ]
    lines.append(("entrance", f"{source.platform} / {source.account_id}"))
    width = max(len(name) for name, _ in lines)
    return CommandReply(text="\n".join(f"{name:<{width}}  {value}" for name, value in lines))


def _context(call: CommandCall, entry: SessionEntry) -> str:
    """Say how full the context is, and when it is compressed by itself."""
    from hermes_core.commands.fullness import fullness_text

    try:
        return fullness_text(call.app.conversations.fullness(entry.session_id))
    except SessionNotFound:
        return "gone"


def _stop(call: CommandCall) -> CommandReply:
    """Stop the turn that runs in this session."""
    if call.entry is None:
        return CommandReply(text="There is no session yet, so nothing runs.")
    name = call.source.user_name or call.source.platform
    stopped = call.app.stop_turn(call.entry.lineage_id, reason=f"stopped by {name}", control_id=call.control_id)
    return CommandReply(text="Stopped." if stopped else "Nothing runs in this session.")


async def _compress(call: CommandCall) -> CommandReply:
    """Replace the older part of what the model sees by a summary."""
    if call.entry is None:
        return CommandReply(text="There is no session yet; send a message first.", failed=True)
    try:
        report = await call.app.compress_session(
            call.entry.lineage_id, call.source, focus=call.arguments, control_id=call.control_id
        )
    except (SessionError, LeaseBusy) as error:
        return refused(call, error)
    return _changed(call.entry, report, "Compressed")


async def _uncompress(call: CommandCall) -> CommandReply:
    """Take the last compression back."""
    if call.entry is None:
        return CommandReply(text="There is no session yet; send a message first.", failed=True)
    try:
        report = await call.app.uncompress_session(call.entry.lineage_id, call.source, control_id=call.control_id)
    except (SessionError, LeaseBusy) as error:
        return refused(call, error)
    return _changed(call.entry, report, "Uncompressed")


def _changed(entry: SessionEntry, report: CompressionReport, what: str) -> CommandReply:
    if report.refusal:
        return CommandReply(text=report.refusal)
    sizes = (
        f"{what}: the model sees {report.rows_after} messages instead of {report.rows_before}, "
        f"about {report.tokens_after} tokens instead of {report.tokens_before}."
    )
    shown = evolve(entry, session_id=report.session_id)
    return CommandReply(text=f"{sizes} Nothing is lost; this session goes on as {report.session_id}.", entry=shown)


_NEW = Command(
    name="new",
    summary="begin a new session; this one is kept",
    usage="[TITLE]",
    aliases=("reset",),
    run=aside(_new),
    urgent=True,
    group=_EVERYWHERE,
    resets=True,
)
BUILTIN_COMMANDS = (
    Command(name="help", summary="what can be typed here", run=aside(_help)),
    _NEW,
    Command(name="title", summary="show or set the title", usage="[TITLE]", run=aside(_title), group=_HERE),
    Command(
        name="resume",
        summary="go on with an earlier session",
        usage="[NUMBER|ID|TITLE]",
        run=aside(_resume),
        group=_EVERYWHERE,
    ),
    Command(name="sessions", summary="list the latest sessions", run=aside(_sessions), group=_EVERYWHERE),
    Command(name="stop", summary="stop the turn that runs in this session", run=aside(_stop), urgent=True, group=_HERE),
    Command(
        name="compress",
        summary="replace older messages by a summary; nothing is lost",
        usage="[FOCUS]",
        run=_compress,
        bypass=False,
        group=_HERE,
    ),
    Command(name="uncompress", summary="take the last compression back", run=_uncompress, bypass=False, group=_HERE),
    Command(name="status", summary="which session this is, and how full it is", run=aside(_status), group=_HERE),
    *REVISING_COMMANDS,
    *LOOKING_COMMANDS,
)
"""Sorted as people meet them; the facade sorts by name."""


class CommandsPlugin:
    """Brings the built-in commands; a plugin's command of the same name wins."""

    @hookimpl
    def hermes_commands(self) -> Sequence[Command] | None:
        return BUILTIN_COMMANDS
