"""``hermes routes rekey`` and ``hermes routes history``: routes that get other keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import clip_middle, layout, wrap
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, utc_time
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ports.rekeying import MOVES, REFUSED, UNTOUCHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.rekeying import PlannedMove, RekeyReport
    from hermes_hookspecs.sessions import RouteMove

__all__ = ["DEFAULT_LIMIT", "history", "rekey"]

DEFAULT_LIMIT = 50
_INDENT = "    "
_ARROW = " -> "


def rekey(call: CliCall) -> int:
    """Show, do or undo what the settings in force mean for the keys of all routes.

    :returns: 1 where a route changed while it was to be moved, and was left.
    """
    applies, undoes = bool(call.values["apply"]), call.values["undo"]
    if applies + (undoes is not None) + bool(call.values["dry_run"]) > 1:
        raise HermesError("--dry-run, --apply and --undo exclude each other; nothing was changed")
    if undoes is not None:
        return _report(call, call.app.rekeying.undo(str(undoes) or None), "moved back")
    rows = call.app.rekeying.plan()
    if not applies:
        return _show(call, rows)
    refused = sum(row.verdict == REFUSED for row in rows)
    status = _report(call, call.app.rekeying.apply(), "moved")
    if refused:
        print(f"{refused} {_are(refused)} refused (--dry-run shows them and why)", file=call.err)
    return status


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _show(call: CliCall, rows: Sequence[PlannedMove]) -> int:
    """Print what would become of the routes that get another key, and count the others."""
    concerned = [row for row in rows if row.verdict != UNTOUCHED]
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_planned(row) for row in concerned])
    elif concerned:
        said = [([row.verdict], (row.route.key, row.new_key or "-"), row.reason) for row in concerned]
        for line in _table(call, ["WHAT"], said):
            print(line, file=call.out)
    call.out.flush()
    counts = [sum(row.verdict == verdict for row in rows) for verdict in (MOVES, REFUSED, UNTOUCHED)]
    moves, refused, stay = counts
    counted = f"{moves} can move, {refused} {_are(refused)} refused, {stay} keep their key; nothing was changed"
    print(counted + (" (--apply moves)" if moves else ""), file=call.err)
    return 0


def _planned(row: PlannedMove) -> dict[str, object]:
    return {
        "session_key": row.route.key,
        "lineage_id": row.route.lineage_id,
        "verdict": row.verdict,
        "new_session_key": row.new_key,
        "reason": row.reason,
    }


def _report(call: CliCall, report: RekeyReport, what: str) -> int:
    """Print what was done, under which name it can be undone, and what was left."""
    if call.values["json"]:
        from hermes_cli.records import print_json

        left = list(report.left)
        print_json(call.out, {"batch": report.batch, "moves": [_record(one) for one in report.moves], "left": left})
    else:
        for line in _journal(call, report.moves):
            print(line, file=call.out)
    call.out.flush()
    count = len(report.moves)
    named = f" under the name {report.batch}" if report.batch else ""
    print(f"{count} {'route was' if count == 1 else 'routes were'} {what}{named}", file=call.err)
    for key in report.left:
        print(f"left, since it leads elsewhere by now: {safe_line(key)}", file=call.err)
    if report.moves and call.app.store.servers():
        print("a process serves entrances with the settings of its start: restart it", file=call.err)
    return 1 if report.left else 0


def history(call: CliCall) -> int:
    """Print what was claimed, refused, moved and moved back, newest first, and why."""
    limit = call.values["limit"]
    most = limit if isinstance(limit, int) else DEFAULT_LIMIT
    found = call.app.rekeying.history(limit=most + 1)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(one) for one in found[:most]])
    elif found:
        for line in _journal(call, found[:most]):
            print(line, file=call.out)
    else:
        print("No route was claimed, refused or moved.", file=call.err)
    call.out.flush()
    if len(found) > most:
        print("more (--limit shows more)", file=call.err)
    return 0


def _journal(call: CliCall, lines: Sequence[RouteMove]) -> list[str]:
    """Return the lines that print a part of the journal, none for an empty one."""
    now, width = call.app.clock.now(), call.width
    said = [
        ([utc_time(one.at) if width is None else ago(now, one.at), one.kind], (one.key, one.new_key), one.reason)
        for one in lines
    ]
    return _table(call, ["WHEN", "WHAT"], said) if said else []


def _table(call: CliCall, heads: list[str], said: Sequence[tuple[list[str], tuple[str, str], str]]) -> list[str]:
    """Return one line a row in a pipe; on a terminal keys and reason stand below: two keys never fit side by side."""
    width = call.width
    if width is None:
        rows = [[*cells, *map(safe_line, keys), safe_line(why)] for cells, keys, why in said]
        return layout([[*heads, "KEY", "NEW KEY", "WHY"], *rows], width=None, giving=0)
    table = layout([heads, *(cells for cells, _, _ in said)], width=width, giving=0)
    lines = [table[0]]
    for line, (_, (key, new), why) in zip(table[1:], said, strict=True):
        lines += [line, _INDENT + clip_middle(safe_line(key), width - len(_INDENT))]
        lines.append(_ARROW + clip_middle(safe_line(new), width - len(_ARROW)))
        lines += [_INDENT + part for part in wrap(safe_line(why), width - len(_INDENT))]
    return lines


def _record(line: RouteMove) -> dict[str, object]:
    return {
        "id": line.id,
        "kind": line.kind,
        "at": line.at,
        "batch": line.batch,
        "session_key": line.key,
        "new_session_key": line.new_key,
        "lineage_id": line.lineage_id,
        "reason": line.reason,
    }
