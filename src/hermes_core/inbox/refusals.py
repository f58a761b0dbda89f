"""Whose messages were not taken: counted in memory, written down now and then, bounded whoever knocks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.inbox.pairing import NAMESPACE
from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.ports.gateway import Refusal
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateEntry

__all__ = ["RefusalBook", "refusals"]

MOST: Final = 200
"""People of one account who are told apart; whoever comes behind them is counted together with the others."""
LONGEST_ID: Final = 200
KEPT_MS: Final = 30 * 86_400_000
_PREFIX = "refused:"
_OTHERS = "others"


class RefusalBook:
    """Counts refusals, and writes what came together when it is told to. For one event loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: dict[str, Refusal] = {}

    def note(self, source: SessionSource, reason: str) -> None:
        """Count one message of a sender."""
        now = self._clock.now()
        entrance = Entrance(source.platform, source.account_id)
        user, chat = (source.participant or "")[:LONGEST_ID], (source.chat_id or "")[:LONGEST_ID]
        key = _key(entrance, user, chat)
        if key not in self._pending and len(self._pending) >= MOST:
            user, chat, key = "", "", _key(entrance, None, "")
        before = self._pending.get(key)
        self._pending[key] = Refusal(
            entrance=entrance,
            reason=reason,
            count=1 if before is None else before.count + 1,
            first_at=now if before is None else before.first_at,
            last_at=now,
            user_id=user,
            chat_id=chat,
        )

    async def write(self) -> None:
        """Add what was counted since the last time. :raises StorageError: it is counted, and written the next time."""
        if not self._pending:
            return
        from asyncio import wrap_future

        pending, now = dict(self._pending), self._clock.now()
        stored = await wrap_future(self._store.submit_read(lambda reader: _stored(reader, now)))
        updates = _updates(pending, stored, now)
        await self._store.perform(PutState(updates=updates, now=now))
        for key, written in pending.items():
            if self._pending.get(key) is written:
                del self._pending[key]
            elif (later := self._pending.get(key)) is not None:  # counted on meanwhile: what is written is taken off
                self._pending[key] = attrs.evolve(later, count=later.count - written.count, first_at=written.last_at)


def refusals(reader: StoreReader, now: int) -> Sequence[Refusal]:
    """Return what is written down, last refused first."""
    return sorted(_stored(reader, now).values(), key=lambda one: (-one.last_at, str(one.entrance), one.user_id))


def _updates(pending: dict[str, Refusal], stored: dict[str, Refusal], now: int) -> tuple[StateUpdate, ...]:
    merged: dict[str, Refusal] = {}
    room = MOST - len(stored)
    for key, one in pending.items():
        place = key
        if key not in stored and key not in merged:
            if room <= 0:
                place = _key(one.entrance, None, "")
                one = attrs.evolve(one, user_id="", chat_id="")  # noqa: PLW2901 - counted with the others
            room -= 1
        before = merged.get(place) or stored.get(place)
        merged[place] = (
            one
            if before is None
            else attrs.evolve(one, count=one.count + before.count, first_at=min(one.first_at, before.first_at))
        )
    return tuple(
        StateUpdate(
            namespace=NAMESPACE,
            key=key,
            value=_value(one),
            person=one.user_id or None,
            expires_at=now + KEPT_MS,
        )
        for key, one in merged.items()
    )


def _stored(reader: StoreReader, now: int) -> dict[str, Refusal]:
    entries = reader.states(NAMESPACE, now=now, prefix=_PREFIX)
    return {entry.key: one for entry in entries if (one := _read(entry)) is not None}


def _key(entrance: Entrance, user: str | None, chat: str) -> str:
    who = _OTHERS if user is None else f"{encode_text(user)}:{encode_text(chat)}"
    return f"{_PREFIX}{encode_text(entrance.platform)}:{encode_text(entrance.account_id)}:{who}"


def _value(one: Refusal) -> str:
    return json.dumps(
        {
            "platform": one.entrance.platform,
            "account_id": one.entrance.account_id,
            "reason": one.reason,
            "count": one.count,
            "first_at": one.first_at,
            "last_at": one.last_at,
            "user_id": one.user_id,
            "chat_id": one.chat_id,
        }
    )


def _read(entry: StateEntry) -> Refusal | None:
    try:
        held = json.loads(entry.value)
        entrance = Entrance(held.pop("platform"), held.pop("account_id"))
        return Refusal(entrance=entrance, **held)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
