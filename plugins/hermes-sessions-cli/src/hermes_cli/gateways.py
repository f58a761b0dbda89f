"""``hermes gateway``: run it, ask how it is, stop it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import display_width, layout, wrap
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, counted, utc_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.gateway import AccountStatus, GatewayStatus
    from hermes_hookspecs.sessions import StoreStats

__all__ = ["run", "status", "stop"]

_CONNECTED = "connected"
_INDENT = "    "
_RIGHT = frozenset({3, 4, 5, 6})
_OPEN = ("waiting", "sending", "failed")
_MOST = 100_000


def run(call: CliCall) -> int:
    """Run the gateway until it is told to stop."""
    import asyncio

    from hermes_cli.gateway_log import show

    show(call.err, as_json=call.app.setting("gateway", "log") == "json")
    chosen = call.values["platform"]
    platforms = tuple(map(str, chosen)) if isinstance(chosen, tuple) else ()
    try:
        asyncio.run(call.app.gateway.run(platforms=platforms, signals=True))
    except KeyboardInterrupt:  # before it listens, or where signals are not to be had
        return 130
    return 0


def status(call: CliCall) -> int:
    """Print each gateway process, each account, and what waits."""
    gateway = call.app.gateway
    processes, accounts, refusals = gateway.status(), gateway.accounts(), gateway.refusals()
    stats, outbox = call.app.store.stats(), _outbox(call)
    runs = any(one.lives is not False for one in processes)
    well = runs and bool(accounts) and all(one.state == _CONNECTED for one in accounts)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(
            call.out,
            {
                "running": runs,
                "processes": [_process(one) for one in processes],
                "accounts": [account_record(one) for one in accounts],
                "waiting": stats.waiting,
                "outbox": outbox,
                "refused": sum(one.count for one in refusals),
            },
        )
        return 0 if well else 1
    for line in _lines(call, processes, accounts):
        print(line, file=call.out)
    _print_counts(call, stats, outbox, sum(one.count for one in refusals))
    return 0 if well else 1


def _lines(call: CliCall, processes: Sequence[GatewayStatus], accounts: Sequence[AccountStatus]) -> list[str]:
    width, now = call.width, call.app.clock.now()
    lines: list[str] = []
    for one in processes:
        since = utc_time(one.started_at) if width is None else ago(now, one.started_at)
        lines += _folded(f"gateway {one.pid} on {safe_line(one.host)}: {_life(one)}, began {since}", width)
        if one.health:
            lines += _folded(f"{_INDENT}health: {safe_line(one.health)}", width)
    if not processes:
        lines += _folded("No gateway runs; `hermes gateway run` starts it.", width)
    if not accounts:
        lines += _folded("No chat platform is configured; the README of its plugin shows how.", width)
        return lines
    cells = [["ACCOUNT", "STATE", "SINCE", "TAKEN", "REFUSED", "SENT", "FAILED"]]
    details = [""]
    for account in accounts:
        since = "-" if not account.since else utc_time(account.since) if width is None else ago(now, account.since)
        numbers = (account.accepted, account.refused, account.sent, account.failed)
        cells.append([safe_line(str(account.entrance)), account.state or "not running", since, *map(str, numbers)])
        details.append(safe_line(account.detail))
    if width is None:
        cells = [[*cell, detail or "-"] for cell, detail in zip(cells, ["DETAIL", *details[1:]], strict=True)]
        return [*lines, *layout(cells, width=None, giving=0, right=_RIGHT)]
    for line, detail in zip(layout(cells, width=width, giving=0, right=_RIGHT), details, strict=True):
        lines.append(line)
        if detail:
            lines += [_INDENT + each for each in wrap(detail, width - len(_INDENT))]
    return lines


def _folded(text: str, width: int | None) -> list[str]:
    return [text] if width is None or display_width(text) <= width else wrap(text, width)


def _life(one: GatewayStatus) -> str:
    if one.lives is False:
        return "died without a word"
    if one.lives is None:
        return "its process cannot be seen from here"
    return "stopping" if one.stopping else "running"


def _print_counts(call: CliCall, stats: StoreStats, outbox: dict[str, int], refused: int) -> None:
    unsent, failed = outbox["waiting"] + outbox["sending"], outbox["failed"]
    parts = [f"{counted(stats.waiting, 'message')} waiting", f"{counted(unsent, 'answer')} not sent yet"]
    if failed:
        parts.append(f"{failed} given up (hermes outbox list)")
    if refused:
        parts.append(f"{counted(refused, 'message')} refused (hermes pairing list)")
    for line in _folded("; ".join(parts), call.width):
        print(line, file=call.err)


def _outbox(call: CliCall) -> dict[str, int]:
    counts = dict.fromkeys(_OPEN, 0)
    for delivery in call.app.outbox.list(statuses=_OPEN, limit=_MOST):
        counts[delivery.status] += 1
    return counts


def stop(call: CliCall) -> int:
    """Ask the gateways to stop, and wait until they have."""
    given = call.values["timeout"]
    stopped = call.app.gateway.stop(timeout_s=float(given) if isinstance(given, int) else 90.0)
    left = [one for one in stopped if one.lives is not False]
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_process(one) for one in stopped])
    elif not stopped:
        print("No gateway runs.", file=call.err)
    for one in stopped if not call.values["json"] else ():
        word = "has stopped" if one.lives is False else "still runs; `kill` ends it, and nothing is lost"
        print(f"gateway {one.pid} {word}", file=call.err)
    return 75 if left else 0


def _process(one: GatewayStatus) -> dict[str, object]:
    return {
        "pid": one.pid,
        "host": one.host,
        "lives": one.lives,
        "stopping": one.stopping,
        "started_at": one.started_at,
        "updated_at": one.updated_at,
        "health": one.health or None,
        "accounts": [account_record(account) for account in one.accounts],
    }


def account_record(one: AccountStatus) -> dict[str, object]:
    """Return an account as plain data; times are UTC milliseconds."""
    return {
        "source": one.entrance.platform,
        "account_id": one.entrance.account_id,
        "state": one.state or None,
        "detail": one.detail,
        "since": one.since or None,
        "heard_at": one.heard_at,
        "starts": one.starts,
        "accepted": one.accepted,
        "duplicates": one.duplicates,
        "refused": one.refused,
        "unaddressed": one.unaddressed,
        "sent": one.sent,
        "deferred": one.deferred,
        "failed": one.failed,
    }
