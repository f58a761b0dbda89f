"""An inlet for an adapter's own tests: it takes everything and writes it down."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import AcceptResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.testing.adapters.state import MemoryState

__all__ = ["RecordingInlet"]


class RecordingInlet:
    """Takes everything, waits, or fails as often as it is told to; known identities are duplicates. For one event loop.

    :param state: takes the adapter's state in the same step as the events.
    :param limit_s: how long :meth:`until` waits.

    Attributes:
        events: what was new, in order. reports: ``(state, detail)``, in order. failures: raised by the next calls, one
            each. hold: what :meth:`accept` waits for. changed: set whenever anything came.
    """

    def __init__(self, state: MemoryState, *, limit_s: float = 30) -> None:
        self.state = state
        self.events: list[MessageEvent] = []
        self.reports: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self.duplicates = 0
        self.known: set[str] = set()
        self.changed = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self._limit_s = limit_s

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Take a batch, and the adapter's state with it."""
        if self.hold is not None:
            await self.hold.wait()
        if self.failures:
            self.changed.set()
            raise self.failures.pop(0)
        results = []
        for event in events:
            new = not self.known & set(event.identities)
            self.known |= set(event.identities)
            if new:
                self.events.append(event)
            else:
                self.duplicates += 1
            results.append(AcceptResult(id=InboxId(len(self.events)), duplicate=not new))
        self.state.take(state)
        self.changed.set()
        return results

    def alive(self) -> None:
        """Hear that the connection lives."""
        self.changed.set()

    def report(self, state: str, detail: str = "") -> None:
        """Hear how the connection stands."""
        self.reports.append((state, detail))
        self.changed.set()

    @property
    def texts(self) -> list[str]:
        """Return the texts of what was new, in order."""
        return [event.text for event in self.events]

    async def until(self, condition: Callable[[], object]) -> None:
        """Return once a condition holds. :raises TimeoutError: it never did."""
        async with asyncio.timeout(self._limit_s):
            while not condition():
                self.changed.clear()
                await self.changed.wait()
