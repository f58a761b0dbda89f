"""``hermes audit``: what tools did, on whose behalf, where, how that went and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import clip, layout
from hermes_cli.jobs import DEFAULT_LIMIT, wanted_lineage
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, moment, took_text, utc_time
from hermes_hookspecs.audit import AuditFilter
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.audit import AuditRow
    from hermes_hookspecs.cli import CliCall

__all__ = ["run"]

_INDENT = "    "
_PIPED = 60
"""Most columns of arguments and of a result in a pipe, where a call is one line."""
_TOOK = frozenset({2})


def run(call: CliCall) -> int:
    """Print calls of tools, newest first."""
    values = call.values
    limit = values["limit"]
    most = limit if isinstance(limit, int) else DEFAULT_LIMIT
    where = AuditFilter(
        lineage_id=wanted_lineage(call),
        tool_name=_text(values["tool"]),
        person=_text(values["person"]),
        outcome=_text(values["outcome"]),
        since=moment(values["since"], "--since"),
        until=moment(values["until"], "--until"),
    )
    found = call.app.oversight.audit(operator(), where=where, limit=most + 1)
    shown = found[:most]
    if values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(row) for row in shown])
    elif shown:
        for line in _table(call, shown):
            print(line, file=call.out)
    else:
        chosen = where != AuditFilter() and call.app.oversight.audit(operator(), limit=1)
        print("None of these." if chosen else "No tool was called yet.", file=call.err)
    if len(found) > most:
        call.out.flush()
        print("more (--limit shows more)", file=call.err)
    return 0


def _table(call: CliCall, rows: Sequence[AuditRow]) -> list[str]:
    """Return the lines: in a pipe one a call, on a terminal with the call and its result below it."""
    if call.width is None:
        cells = [["WHEN", "OUTCOME", "TOOK", "SESSION", "WHO", "WHERE", "TOOL", "ARGUMENTS", "RESULT"]]
        for row in rows:
            tool, *texts = _call_texts(row)
            where = safe_line(str(row.entrance))
            cut = (clip(text, _PIPED) for text in texts)
            cells.append([utc_time(row.entry.started_at), *_facts(row), _who(row), where, tool, *cut])
        return layout(cells, width=None, giving=7, right=_TOOK)
    cells, below = [["WHEN", "OUTCOME", "TOOK", "SESSION", "WHO"]], [("TOOL", "ARGUMENTS", "RESULT")]
    for row in rows:
        who = f"{_who(row)} ({safe_line(str(row.entrance))})"
        cells.append([ago(call.app.clock.now(), row.entry.started_at), *_facts(row), who])
        below.append(_call_texts(row))
    room = call.width - len(_INDENT)
    return [
        line
        for head, (tool, arguments, result) in zip(
            layout(cells, width=call.width, giving=4, right=_TOOK), below, strict=True
        )
        for line in (head, _INDENT + clip(f"{tool}  {arguments}", room), _INDENT + clip(result, room))
    ]


def _facts(row: AuditRow) -> tuple[str, str, str]:
    outcome = f"{row.entry.outcome}, late" if row.late else row.entry.outcome
    return outcome, took_text(row.entry.duration_ms), safe_line(row.session_id)


def _who(row: AuditRow) -> str:
    return safe_line(row.user_name or row.user_id or "") or "-"


def _call_texts(row: AuditRow) -> tuple[str, str, str]:
    entry = row.entry
    return safe_line(entry.tool_name) or "-", safe_line(entry.arguments) or "-", safe_line(entry.result) or "-"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _record(row: AuditRow) -> dict[str, object]:
    entry = row.entry
    return {
        "id": row.id,
        "lineage_id": row.lineage_id,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "call_id": entry.call_id,
        "tool_name": entry.tool_name,
        "effect": entry.effect,
        "outcome": entry.outcome,
        "late": row.late,
        "started_at": entry.started_at,
        "duration_ms": entry.duration_ms,
        "approval_id": entry.approval_id,
        "source": row.entrance.platform,
        "account_id": row.entrance.account_id,
        "terminal": row.entrance.terminal,
        "session_key": row.session_key,
        "user_id": row.user_id,
        "user_name": row.user_name,
        "arguments": entry.arguments,
        "result": entry.result,
    }
