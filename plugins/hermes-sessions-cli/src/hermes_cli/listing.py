"""``hermes sessions list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import layout
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.times import ago, utc_time
from hermes_cli.unanswered import state_word
from hermes_hookspecs.principal import operator
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionSummary

__all__ = ["DEFAULT_LIMIT", "account_text", "left_out_text", "run"]

DEFAULT_LIMIT = 20


def run(call: CliCall) -> int:
    """Print conversations, last active first, and behind them how many were left out and why."""
    store = call.app.store
    source = call.values["source"]
    source = source if isinstance(source, str) else None
    limit = call.values["limit"]
    everything = bool(call.values["all"])
    most = limit if isinstance(limit, int) else None if everything else DEFAULT_LIMIT
    where = SessionFilter(source=source, archived=None if everything else False, empty=None if everything else False)
    rows = store.summaries(operator(), where=where, limit=most)
    left_out = _left_out(store, source, len(rows), everything=everything)
    if call.values["json"]:
        _print_json(call, rows)
    else:
        for line in _table(call.app, rows, width=call.width):
            print(line, file=call.out)
        if not rows and not sum(left_out.values()):
            print(_nothing(store, source), file=call.err)
    if sum(left_out.values()):
        call.out.flush()
        print(left_out_text(left_out, any_shown=bool(rows)), file=call.err)
    return 0


def _print_json(call: CliCall, rows: Sequence[SessionSummary]) -> None:
    from hermes_cli.records import print_json, summary_record

    records = []
    for row in rows:
        tip = call.app.store.session(row.session_id, operator()) if row.segments > 1 else None
        parent = None if tip is None else tip.parent_session_id
        records.append(summary_record(row, parent, _turn_state(call.app, row)))
    print_json(call.out, records)


def _left_out(store: Store, source: str | None, shown: int, *, everything: bool) -> dict[str, int]:
    """Return how many conversations are not in the list, by the reason; with ``shown`` they are all there are."""
    stats = store.stats()
    total = stats.lineages
    if source is not None:
        total = sum(lineages for platform, lineages, _ in stats.per_platform if platform == source)
    if everything:
        return {"older": max(total - shown, 0), "empty": 0, "archived": 0}
    counts = {}
    for name, archived, empty in (("archived", True, None), ("empty", False, True)):
        if source is None and not {"archived": stats.archived, "empty": stats.empty}[name]:
            counts[name] = 0
            continue
        where = SessionFilter(source=source, archived=archived, empty=empty)
        counts[name] = len(store.summaries(operator(), where=where, limit=None))
    older = max(total - shown - counts["empty"] - counts["archived"], 0)
    return {"older": older, "empty": counts["empty"], "archived": counts["archived"]}


def left_out_text(counts: dict[str, int], *, any_shown: bool) -> str:
    """Return the last line of a list: ``3 more: 2 empty, 1 archived (--all shows them)``."""
    ways = []
    if counts["empty"] or counts["archived"]:
        ways.append("--all shows them")
    if counts["older"]:
        ways.insert(0, "--limit shows more")
    parts = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{sum(counts.values())}{' more' if any_shown else ' not shown'}: {parts} ({', '.join(ways)})"


def _nothing(store: Store, source: str | None) -> str:
    if source is not None:
        there = ", ".join(safe_line(platform) for platform, _, _ in store.stats().per_platform)
        if there:
            return f"No sessions of {safe_line(source)}; there are some of: {there}."
    return "No sessions yet; `hermes` starts one."


def account_text(source: str, account_id: str) -> str:
    """Return ``feishu``, or ``feishu/second`` for an account that is not the default one."""
    return safe_line(source if account_id == "default" else f"{source}/{account_id}")


def _turn_state(app: App, row: SessionSummary) -> str:
    """Return what runs there; asked only of rows with a holder, whose process may be gone."""
    return app.turn_state(row.lineage_id) if row.locked_by else ""


def _state(app: App, row: SessionSummary) -> str:
    words = (state_word(_turn_state(app, row)), "pinned" if row.pinned else "", "archived" if row.archived else "")
    return ",".join(filter(None, words))


def _table(app: App, rows: Sequence[SessionSummary], *, width: int | None) -> list[str]:
    """Return the lines of the list; a column of states only where one of the rows has any."""
    if not rows:
        return []
    now = app.clock.now()
    cells = [["ID", "TITLE", "SOURCE", "MESSAGES", "LAST ACTIVE", "STATE"]]
    for row in rows:
        title = safe_line(row.title) if row.title else f'"{safe_line(row.preview)}"' if row.preview else "-"
        when = utc_time(row.last_activity) if width is None else ago(now, row.last_activity)
        cells.append(
            [
                safe_text(row.session_id),
                title,
                account_text(row.source, row.account_id),
                str(row.message_count),
                when,
                _state(app, row),
            ]
        )
    if not any(line[-1] for line in cells[1:]):
        cells = [line[:-1] for line in cells]
    return layout(cells, width=width, giving=1, right=frozenset({3}))
