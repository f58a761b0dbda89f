"""Tickets for the typing state, which the server hands out a person and which are kept for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.clock import Clock

__all__ = ["TypingState"]

_KEEP_S = 12 * 3600.0
_FIRST_S, _MOST_S = 2.0, 3600.0
_MOST_PEERS = 1000


class TypingState:
    """The tickets of one account; a person whose ticket is refused is left alone for ever longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tickets: dict[str, tuple[str, float]] = {}
        self._quiet: dict[str, tuple[float, float]] = {}

    async def ticket(self, peer: str, ask: Callable[[], Awaitable[str]]) -> str:
        """Return a ticket, ``""`` while there is none to be had."""
        now = self._clock.monotonic()
        until, _ = self._quiet.get(peer, (0.0, 0.0))
        if peer in self._quiet and now < until:
            return ""
        kept = self._tickets.get(peer)
        if kept is not None and now < kept[1]:
            return kept[0]
        ticket = await ask()
        if len(self._tickets) >= _MOST_PEERS:
            self._tickets.clear()
            self._quiet.clear()
        if ticket:
            self._tickets[peer] = (ticket, now + _KEEP_S)
            self._quiet.pop(peer, None)
        return ticket

    def failed(self, peer: str) -> None:
        """Note that the server refused; nobody is told, since nothing is lost."""
        _, last_s = self._quiet.get(peer, (0.0, _FIRST_S / 2))
        wait_s = min(last_s * 2, _MOST_S)
        self._quiet[peer] = (self._clock.monotonic() + wait_s, wait_s)
        self._tickets.pop(peer, None)
