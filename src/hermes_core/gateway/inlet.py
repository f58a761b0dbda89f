"""Where an adapter hands messages in: access, then the inbox, with a count of what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.inbox.access import UNADDRESSED
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, FAILED, WAITING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.gateway.board import AccountBoard
    from hermes_core.inbox.admission import Admission
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.state import StateUpdate

__all__ = ["AccountInlet"]


class AccountInlet:
    """The inlet of one account (:class:`~hermes_hookspecs.ports.platform.Inlet`). For one event loop.

    Attributes:
        heard: on the monotonic clock, when the platform was heard last in this run; ``None`` until it was.
        stirred: the same, when anything was last said at all.
    """

    def __init__(self, admission: Admission, board: AccountBoard, clock: Clock) -> None:
        self._admission = admission
        self._board = board
        self._clock = clock
        self.heard: float | None = None
        self.stirred = clock.monotonic()

    def begin(self) -> None:
        """Begin a new run of the adapter."""
        self.heard = None
        self.stirred = self._clock.monotonic()
        self._board.starts += 1
        self._board.set(CONNECTING)

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch and the adapter's state. :raises StorageError: acknowledge nothing."""
        results = await self._admission.accept(events, state)
        for result in results:
            self._board.count(_became(result))
        return results

    def alive(self) -> None:
        """Say that the platform was heard."""
        self.heard = self.stirred = self._clock.monotonic()
        self._board.heard_at = self._clock.now()
        if self._board.state == CONNECTING:
            self._board.set(CONNECTED)

    def report(self, state: str, detail: str = "") -> None:
        """Say how the connection is; a word that nobody knows counts as *waiting*, with the word as its detail."""
        self.stirred = self._clock.monotonic()
        if state in (CONNECTING, CONNECTED, WAITING, FAILED):
            self._board.set(state, detail)
        else:
            self._board.set(WAITING, f"{state}: {detail}".removesuffix(": "))


def _became(result: AcceptResult) -> str:
    if result.refused:
        return "unaddressed" if result.refused == UNADDRESSED else "refused"
    return "duplicates" if result.duplicate else "accepted"
