"""``hermes pairing``: who asked to be let in, who was, and whose messages were not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, until, utc_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.gateway import Pairing, Refusal

__all__ = ["approve", "list_pairings", "revoke"]

_SHOWN = 20
"""Refused people that a person is shown; ``--json`` has all."""


def list_pairings(call: CliCall) -> int:
    """Print who asked, who was let in, and who was refused, the last refused first."""
    pairings, refusals = call.app.gateway.pairings(), call.app.gateway.refusals()
    if call.values["json"]:
        from hermes_cli.records import print_json

        held = {"pairings": list(map(_record, pairings)), "refusals": list(map(_refusal, refusals))}
        print_json(call.out, held)
        return 0
    for line in _table(call, pairings):
        print(line, file=call.out)
    if pairings and refusals:
        print(file=call.out)
    for line in _refused(call, refusals[:_SHOWN]):
        print(line, file=call.out)
    if not pairings and not refusals:
        print("Nobody asked to be let in, and nobody was refused.", file=call.err)
    if len(refusals) > _SHOWN:
        print(f"{len(refusals) - _SHOWN} more were refused (--json shows them)", file=call.err)
    return 0


def _table(call: CliCall, pairings: Sequence[Pairing]) -> list[str]:
    if not pairings:
        return []
    cells = [["ACCOUNT", "USER", "NAME", "STATE", "SINCE", "CODE EXPIRES"]]
    now = call.app.clock.now()
    for one in pairings:
        since, expires = utc_time(one.since), "-" if one.expires_at is None else utc_time(one.expires_at)
        if call.width is not None:
            since = ago(now, one.since)
            expires = "-" if one.expires_at is None else until(now, one.expires_at)
        state = "let in" if one.approved else "asked"
        who = (safe_line(one.user_id), safe_line(one.user_name) or "-")
        cells.append([safe_line(str(one.entrance)), *who, state, since, expires])
    return layout(cells, width=call.width, giving=2)


def _refused(call: CliCall, refusals: Sequence[Refusal]) -> list[str]:
    if not refusals:
        return []
    cells = [["ACCOUNT", "REFUSED USER", "CHAT", "MESSAGES", "LAST", "WHY"]]
    now = call.app.clock.now()
    for one in refusals:
        last = utc_time(one.last_at) if call.width is None else ago(now, one.last_at)
        who = (safe_line(one.user_id) or "others", safe_line(one.chat_id) or "-")
        cells.append([safe_line(str(one.entrance)), *who, str(one.count), last, safe_line(one.reason)])
    return layout(cells, width=call.width, giving=5, right=frozenset({3}))


def approve(call: CliCall) -> int:
    """Let in whoever was sent a code; they are told."""
    one = call.app.gateway.approve(str(call.values["code"]))
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, _record(one))
    else:
        print(f"{_name(one)} is let in, and will be told", file=call.err)
    return 0


def revoke(call: CliCall) -> int:
    """Let somebody in no longer, or forget that they asked."""
    platform = call.values["platform"]
    found = call.app.gateway.revoke(str(call.values["user"]), platform=None if platform is None else str(platform))
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, list(map(_record, found)))
    elif not found:
        print("nobody has this id; `hermes pairing list` shows who there is", file=call.err)
    for one in found if not call.values["json"] else ():
        print(f"{_name(one)} {'is let in no longer' if one.approved else 'is forgotten'}", file=call.err)
    return 0 if found else 1


def _name(one: Pairing) -> str:
    name = f" ({one.user_name})" if one.user_name else ""
    return safe_line(f"{one.user_id}{name} of {one.entrance}")


def _record(one: Pairing) -> dict[str, object]:
    return {
        "source": one.entrance.platform,
        "account_id": one.entrance.account_id,
        "scope_id": one.scope_id,
        "user_id": one.user_id,
        "user_name": one.user_name or None,
        "approved": one.approved,
        "since": one.since,
        "expires_at": one.expires_at,
    }


def _refusal(one: Refusal) -> dict[str, object]:
    return {
        "source": one.entrance.platform,
        "account_id": one.entrance.account_id,
        "user_id": one.user_id or None,
        "chat_id": one.chat_id or None,
        "reason": one.reason,
        "count": one.count,
        "first_at": one.first_at,
        "last_at": one.last_at,
    }
