"""``hermes leases``: which turns run, who runs them, and whether that process still lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import display_width, layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, utc_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.desks import LeaseRow

__all__ = ["run"]

_STATES = {True: "running", False: "process is gone", None: "unknown host"}
"""What is known of the holder's process from here."""
_HOLDER = 2
"""Which column the holder is; where a line has no room for it, it gets one of its own."""


def run(call: CliCall) -> int:
    """Print a row for each lease that is held, longest held first."""
    rows = call.app.care.leases()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(row) for row in rows])
    elif rows:
        for line in _table(call, rows):
            print(line, file=call.out)
    else:
        print("No turn runs.", file=call.err)
    return 0


def _table(call: CliCall, rows: Sequence[LeaseRow]) -> list[str]:
    width, now = call.width, call.app.clock.now()
    cells = [["SESSION", "TITLE", "HOLDER", "SINCE", "STATE", "WAITING"]]
    for row in rows:
        since = row.lease.acquired_at
        when = "-" if since is None else utc_time(since) if width is None else ago(now, since)
        holder = "-" if row.lease.holder is None else safe_line(row.lease.holder.describe())
        cells.append(
            [
                safe_line(row.lease.lineage_id if row.lineage is None else row.lineage.tip),
                safe_line((row.lineage.title if row.lineage is not None else None) or "-"),
                holder,
                when,
                _STATES[row.lives],
                str(row.waiting),
            ]
        )
    lines = layout(cells, width=width, giving=1, right=frozenset({5}))
    if width is None or all(display_width(line) <= width for line in lines):
        return lines
    holders = [f"    {line[_HOLDER]}" for line in cells]
    others = [line[:_HOLDER] + line[_HOLDER + 1 :] for line in cells]
    lines = layout(others, width=width, giving=1, right=frozenset({4}))
    return [line for pair in zip(lines, holders, strict=True) for line in pair]


def _record(row: LeaseRow) -> dict[str, object]:
    lease, holder = row.lease, row.lease.holder
    return {
        "lineage_id": lease.lineage_id,
        "session_id": None if row.lineage is None else row.lineage.tip,
        "title": None if row.lineage is None else row.lineage.title,
        "turn_id": None if row.turn is None else row.turn.id,
        "attempt": None if row.turn is None else row.turn.attempt,
        "source": None if holder is None else holder.entrance.platform,
        "account_id": None if holder is None else holder.entrance.account_id,
        "terminal": None if holder is None else holder.entrance.terminal,
        "session_key": None if holder is None else holder.session_key,
        "host": None if holder is None else holder.host,
        "pid": None if holder is None else holder.pid,
        "state": _STATES[row.lives],
        "token": lease.token,
        "renewals": lease.renewals,
        "acquired_at": lease.acquired_at,
        "expires_at": lease.expires_at,
        "waiting": row.waiting,
    }
