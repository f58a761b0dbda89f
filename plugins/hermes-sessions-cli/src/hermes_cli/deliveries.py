"""``hermes outbox``: what is on its way, what failed, and what is to become of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes_cli.columns import clip, layout, wrap
from hermes_cli.safe_text import safe_line
from hermes_cli.streams import is_terminal
from hermes_cli.times import ago, until, utc_time
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.files import file_line
from hermes_hookspecs.ids import DeliveryId
from hermes_hookspecs.outbox import SENDING, SENT, WAITING
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.outbox import Delivery

__all__ = ["DEFAULT_LIMIT", "MOST", "drop", "list_deliveries", "retry"]

DEFAULT_LIMIT = 50
MOST = 1_000_000
_UNDONE = ("waiting", "sending", "failed")
_FAILED = ("failed",)
_TEXT = 60
"""Most columns of a text in a pipe, where a delivery is one line."""
_LONGEST = 1000
"""Most characters of a text that are looked at for its line."""
_INDENT = "    "
_RIGHT = frozenset({0, 4})
_PLACES = 3
"""Most places that a question names."""
_RETRIED = "is sent as soon as its turn comes and its account may send"


def list_deliveries(call: CliCall) -> int:
    """Print deliveries, newest first: those that are open or failed, unless asked for others."""
    chosen = call.values["status"]
    everything = bool(call.values["all"])
    statuses = tuple(map(str, chosen)) if isinstance(chosen, tuple) and chosen else () if everything else _UNDONE
    limit = call.values["limit"]
    most = limit if isinstance(limit, int) else MOST if everything else DEFAULT_LIMIT
    found = call.app.outbox.list(statuses=statuses, limit=most + 1)
    shown = found[:most]
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(one) for one in shown])
    elif shown:
        for line in _table(call, shown):
            print(line, file=call.out)
    else:
        others = statuses and call.app.outbox.list(limit=1)
        print("None of these; --all shows the others." if others else "Nothing was sent yet.", file=call.err)
    if len(found) > most:
        call.out.flush()
        print("more (--limit shows more)", file=call.err)
    return 0


def _table(call: CliCall, found: Sequence[Delivery]) -> list[str]:
    """Return the lines: in a pipe one a delivery, on a terminal with the text, and what went wrong, below it."""
    width, now = call.width, call.app.clock.now()
    cells = [["NO", "TO", "STATUS", "PARTS", "FAILURES", "STORED", "DUE"]]
    texts = [("TEXT", "ERROR")]
    for one in found:
        waits = one.status == WAITING
        if width is None:
            times = utc_time(one.created_at), utc_time(one.due_at) if waits else "-"
        else:
            times = ago(now, one.created_at), until(now, one.due_at) if waits and not one.awaits_inbound else "-"
        cells.append([str(one.id), _place(one), _status(call, one), _parts(one), str(one.failures), *times])
        words = " ".join(filter(None, (one.text[:_LONGEST], *(file_line(file) for file in one.files))))
        text = clip(safe_line(words), _TEXT if width is None else width - len(_INDENT))
        error = safe_line(one.error)
        texts.append((text or "-", error or "-"))
    if width is None:
        whole = [[*cell, *pair] for cell, pair in zip(cells, texts, strict=True)]
        return layout(whole, width=None, giving=1, right=_RIGHT)
    lines: list[str] = []
    for at, line in enumerate(layout(cells, width=width, giving=1, right=_RIGHT)):
        lines.append(line)
        if at:
            text, error = texts[at]
            lines.append(_INDENT + text)
            lines += [_INDENT + each for each in (wrap(error, width - len(_INDENT)) if error != "-" else ())]
    return lines


def _place(one: Delivery) -> str:
    """Return where a delivery goes: the entrance and the conversation there."""
    target = one.target
    entrance = str(Entrance(target.platform, target.account_id))
    parts = (entrance, target.chat_id or target.participant or "", target.thread_id or "")
    return safe_line(" ".join(filter(None, parts)))


def _status(call: CliCall, one: Delivery) -> str:
    words = (
        one.status,
        "sender died" if one.status == SENDING and call.app.outbox.has_dead_sender(one) else "",
        "until they write" if one.awaits_inbound else "",
        "perhaps twice" if one.is_possible_repeat else "",
    )
    return ", ".join(filter(None, words))


def _parts(one: Delivery) -> str:
    """Return how many parts went out, and of how many: ``1/3``."""
    return f"{_sent_parts(one)}/{len(one.parts)}" if one.parts else "-"


def _sent_parts(one: Delivery) -> int:
    return sum(part.sent_at is not None for part in one.parts)


def _record(one: Delivery) -> dict[str, object]:
    target = one.target
    return {
        "id": one.id,
        "key": one.key,
        "status": one.status,
        "kind": one.kind,
        "lineage_id": one.lineage_id,
        "turn_id": one.turn_id,
        "inbox_id": one.inbox_id,
        "session_key": one.session_key,
        "source": target.platform,
        "account_id": target.account_id,
        "chat_type": target.chat_type,
        "scope_id": target.scope_id,
        "chat_id": target.chat_id,
        "thread_id": target.thread_id,
        "user_id": target.user_id,
        "text": one.text,
        "files": [file.name for file in one.files],
        "parts": len(one.parts),
        "parts_sent": _sent_parts(one),
        "possible_repeat": one.is_possible_repeat,
        "attempt": one.attempt,
        "failures": one.failures,
        "error": one.error,
        "awaits_inbound": one.awaits_inbound,
        "created_at": one.created_at,
        "due_at": one.due_at,
        "settled_at": one.settled_at,
    }


def retry(call: CliCall) -> int:
    """Let deliveries be sent as soon as their turn comes and their account may send."""
    return _each(call, _chosen(call), call.app.outbox.retry, lambda _one: _RETRIED)


def drop(call: CliCall) -> int:
    """Never send deliveries, after a question or with ``--yes``."""
    numbers = _chosen(call)
    there = [found for found in map(call.app.store.delivery, numbers) if found is not None and found.status != SENT]
    if there and not call.values["yes"] and not _is_meant(call, there):
        print("nothing was dropped", file=call.err)
        return 1
    return _each(call, numbers, call.app.outbox.drop, _dropped)


def _dropped(one: Delivery) -> str:
    """Return what a drop did; of a delivery that went out in part, only the rest can be kept back."""
    sent, count = _sent_parts(one), len(one.parts)
    if not sent:
        return "is never sent"
    rest = f"part {count} is" if sent + 1 == count else f"parts {sent + 1}\N{EN DASH}{count} are"
    return f"went out in part: {rest} not sent any more"


def _chosen(call: CliCall) -> list[DeliveryId]:
    """Return the deliveries that a command line names. :raises ConfigError: none, or what is no number."""
    from hermes_cli.parser import usage_error

    words = call.values["numbers"]
    words = words if isinstance(words, tuple) else ()
    wrong = next((word for word in words if not (word.isascii() and word.isdigit())), None)
    if wrong is not None:
        raise usage_error(f"{wrong!r} is no number of a delivery; `hermes outbox list` shows them")
    if words and call.values["failed"]:
        raise usage_error("give numbers of deliveries or --failed, not both", "option --failed")
    if not words and not call.values["failed"]:
        raise usage_error("give numbers of deliveries, or --failed for all that failed")
    if words:
        return [DeliveryId(int(word)) for word in dict.fromkeys(words)]
    # The oldest first: so they keep their order where they go to the same place.
    return [one.id for one in reversed(call.app.outbox.list(statuses=_FAILED, limit=MOST))]


def _is_meant(call: CliCall, found: Sequence[Delivery]) -> bool:
    places = list(dict.fromkeys(map(_place, found)))
    shown = ", ".join(places[:_PLACES]) + (f" and {len(places) - _PLACES} more places" if places[_PLACES:] else "")
    what = f"{len(found)} {'delivery' if len(found) == 1 else 'deliveries'} to {shown}"
    if not (is_terminal(sys.stdin) and is_terminal(call.err)):
        from hermes_cli.parser import usage_error

        raise usage_error(f"nobody can be asked here: --yes drops {what} without a question", "option --yes")
    print(f"Never send {what}? [y/N] ", end="", file=call.err, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _each(
    call: CliCall,
    numbers: Sequence[DeliveryId],
    change: Callable[[DeliveryId], Delivery],
    became: Callable[[Delivery], str],
) -> int:
    """Change one after the other; one that cannot be changed keeps the others from nothing."""
    changed, status = [], 0
    for number in numbers:
        try:
            one = change(number)
        except HermesError as error:
            print(f"hermes: {safe_line(str(error))}", file=call.err)
            status = status or _exit_code(call, number, error)
            continue
        changed.append(one)
        if not call.values["json"]:
            print(f"{number} to {_place(one)} {became(one)}", file=call.err)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(one) for one in changed])
    elif not numbers:
        print("nothing failed", file=call.err)
    return status


def _exit_code(call: CliCall, number: DeliveryId, error: HermesError) -> int:
    """Return the status of a refusal; what was sent stays sent, so that is no *try again later*."""
    found = call.app.store.delivery(number)
    return HermesError.exit_code if found is not None and found.status == SENT else error.exit_code
