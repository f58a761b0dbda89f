"""``hermes reset explain``: when a conversation ends by itself, why, and which setting says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.resets import ResetExplanation
    from hermes_hookspecs.sessions import Lineage, Session

__all__ = ["explain"]

_VERDICTS = {
    "keep": "it goes on",
    "reset": "it ends with the next message, or the next sweep",
    "defer": "its end is put off",
    "nothing": "there is nothing to end",
}


def explain(call: CliCall) -> int:
    """Print what is in force for a key, or for each key that leads to a conversation."""
    reference = str(call.values["ref"])
    if call.app.store.route(SessionKey(reference)) is not None:
        return _print(call, [call.app.explain_reset(SessionKey(reference))])
    resolved = call.app.resolve(reference, operator())
    routes = call.app.store.routes(lineage_id=resolved.lineage.id)
    if routes:
        return _print(call, [call.app.explain_reset(route.key) for route in routes])
    tip = call.app.store.session(resolved.lineage.tip, operator())
    return _print_without_route(call, resolved.lineage, tip)


def _print(call: CliCall, found: Sequence[ResetExplanation]) -> int:
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(each) for each in found])
        return 0
    for number, each in enumerate(found):
        if number:
            print(file=call.out)
        for line in _lines(call, each):
            print(line, file=call.out)
    return 0


def _lines(call: CliCall, each: ResetExplanation) -> list[str]:
    rows = [["key", safe_line(each.session_key)]]
    if each.session_id is not None:
        title = f"  {safe_line(each.title)}" if each.title else ""
        rows.append(["session", f"{safe_line(each.session_id)}{title}"])
    if each.last_activity is not None:
        now = call.app.clock.now()
        rows.append(["last used", f"{_moment(each.last_activity, each.zone)} ({ago(now, each.last_activity)})"])
    why = f": {safe_line(each.reason)}" if each.reason else ""
    rows.append(["now", f"{_VERDICTS[each.verdict]}{why}"])
    if each.session_id is not None:
        rows.append(["ends at", "-" if each.next_at is None else _moment(each.next_at, each.zone)])
    rows += [["held by", safe_line(pin)] for pin in each.pins]
    rows += [["runs too long to hold it", safe_line(pin)] for pin in each.stale]
    lines = layout(rows, width=None, giving=1)
    settings = [["SETTING", "VALUE", "FROM"]]
    settings += [[value.key, safe_line(value.value), safe_line(value.origin)] for value in each.values]
    return [*lines, "", *layout(settings, width=None, giving=2)]


def _moment(at_ms: int, zone: str) -> str:
    """Return an instant in the zone that is counted in, the machine's where none is set."""
    from datetime import UTC, datetime, timedelta

    try:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
        if not zone:
            return f"{instant.astimezone():%Y-%m-%d %H:%M:%S %Z}"
        from zoneinfo import ZoneInfo

        return f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S} {zone}"
    except (OverflowError, ValueError, KeyError):
        return str(at_ms)  # an imported row may carry any number, and a host may have lost a zone


def _print_without_route(call: CliCall, lineage: Lineage, tip: Session | None) -> int:
    reason, ended_at = (None, None) if tip is None else (tip.end_reason, tip.ended_at)
    if call.values["json"]:
        from hermes_cli.records import print_json

        record = {
            "session_key": None,
            "lineage_id": lineage.id,
            "session_id": lineage.tip,
            "title": lineage.title,
            "verdict": "nothing",
            "ended_at": ended_at,
            "end_reason": reason,
        }
        print_json(call.out, [record])
        return 0
    ended = "" if ended_at is None else f"; it ended at {_moment(ended_at, '')}: {safe_line(reason or 'unknown')}"
    rows = [["session", safe_line(lineage.tip)], ["now", f"no key leads to it{ended}"]]
    for line in layout(rows, width=None, giving=1):
        print(line, file=call.out)
    return 0


def _record(each: ResetExplanation) -> dict[str, object]:
    return {
        "session_key": each.session_key,
        "lineage_id": each.lineage_id,
        "session_id": each.session_id,
        "title": each.title,
        "verdict": each.verdict,
        "reason": each.reason or None,
        "last_activity": each.last_activity,
        "next_at": each.next_at,
        "timezone": each.zone or None,
        "installed": each.known,
        "pins": list(each.pins),
        "stale": list(each.stale),
        "settings": [{"key": one.key, "value": one.value, "origin": one.origin} for one in each.values],
    }
