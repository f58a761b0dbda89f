"""``hermes sessions rename`` and ``hermes sessions delete``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_cli.safe_text import safe_line
from hermes_cli.streams import is_terminal
from hermes_cli.times import counted
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.app import Resolved

__all__ = ["delete", "rename"]


def _named(session_id: str, title: str | None) -> str:
    return safe_line(f"{session_id} ({title})" if title else session_id)


def _resolved(call: CliCall) -> Resolved:
    return call.app.resolve(str(call.values["ref"]), operator())


def rename(call: CliCall) -> int:
    """Give a conversation a title, or take it away with an empty one."""
    found = _resolved(call)
    words = call.values["title"]
    text = " ".join(words) if isinstance(words, tuple) else ""
    title = call.app.rename_session(found.lineage.id, text.strip() or None)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, {"session_id": found.lineage.tip, "lineage_id": found.lineage.id, "title": title})
    elif title is None:
        print(f"{safe_line(found.lineage.tip)} has no title now", file=call.err)
    else:
        print(f"{safe_line(found.lineage.tip)} is called {safe_line(title)!r} now", file=call.err)
    return 0


def delete(call: CliCall) -> int:
    """Delete a conversation with all its segments, after a question or with ``--yes``."""
    found = _resolved(call)
    lineage = found.lineage
    name = _named(lineage.tip, lineage.title)
    if not call.values["yes"]:
        if not (is_terminal(sys.stdin) and is_terminal(call.err)):
            from hermes_cli.parser import usage_error

            raise usage_error(f"nobody can be asked here: --yes deletes {name} without a question", "option --yes")
        what = counted(lineage.message_count, "message")
        print(f"Delete {name} with {what} for good? [y/N] ", end="", file=call.err, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("nothing was deleted", file=call.err)
            return 1
    deleted = call.app.delete_session(lineage.id, force=bool(call.values["force"]))
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(
            call.out,
            {
                "session_id": lineage.tip,
                "lineage_id": deleted.lineage_id,
                "title": lineage.title,
                "sessions": deleted.sessions,
                "messages": deleted.messages,
            },
        )
    else:
        sessions, messages = counted(deleted.sessions, "session"), counted(deleted.messages, "message")
        print(f"deleted {name}: {sessions}, {messages}", file=call.err)
    return 0
