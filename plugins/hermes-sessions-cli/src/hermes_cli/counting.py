"""``hermes sessions stats``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import size_text
from hermes_hookspecs.principal import operator
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall

__all__ = ["run"]


def run(call: CliCall) -> int:
    """Print counts that add up with the list and the export: conversations = listed + empty + archived."""
    store = call.app.store
    stats = store.stats()
    # As the list has it: an archived conversation counts as archived, whether it is empty or not.
    empty = 0
    if stats.empty:
        where = SessionFilter(archived=False, empty=True)
        empty = len(store.summaries(operator(), where=where, limit=None))
    listed = stats.lineages - stats.archived - empty
    if call.values["json"]:
        from hermes_cli.records import print_json

        record = {
            "lineages": stats.lineages,
            "listed": listed,
            "empty": empty,
            "archived": stats.archived,
            "sessions": stats.sessions,
            "messages": stats.messages,
            "hidden": stats.hidden,
            "turns": stats.turns,
            "routes": stats.routes,
            "waiting": stats.waiting,
            "size": stats.size,
            "platforms": [
                {"source": source, "lineages": lineages, "messages": messages}
                for source, lineages, messages in stats.per_platform
            ],
        }
        print_json(call.out, record)
        return 0
    rows = [
        ["conversations", str(stats.lineages), f"= {listed} listed + {empty} empty + {stats.archived} archived"],
        ["sessions", str(stats.sessions), "a conversation has one more for each compression"],
        ["messages", str(stats.messages), f"and {stats.hidden} taken back" if stats.hidden else ""],
        ["turns", str(stats.turns), ""],
        ["routes", str(stats.routes), ""],
        ["waiting", str(stats.waiting), "messages accepted and not yet answered" if stats.waiting else ""],
        ["size", size_text(stats.size), safe_line(store.location)],
    ]
    for line in layout(rows, width=None, giving=2, right=frozenset({1})):
        print(line, file=call.out)
    if stats.per_platform:
        table = [["PLATFORM", "CONVERSATIONS", "MESSAGES"]]
        table += [[safe_line(name), str(lineages), str(messages)] for name, lineages, messages in stats.per_platform]
        print(file=call.out)
        for line in layout(table, width=call.width, giving=0, right=frozenset({1, 2})):
            print(line, file=call.out)
    return 0
