"""An inlet that takes what it is handed, waits, fails or refuses when it is told to, and looks at everything."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import AcceptResult, MessageEvent
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, FAILED, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.errors import StorageError
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.testing.adapters.state import MemoryState

__all__ = ["ScriptedInlet"]

_DAY_MS = 86_400_000


@attrs.frozen
class _Failure:
    error: StorageError
    stored: bool


class ScriptedInlet:
    """The inlet of one account. For one event loop.

    :param state: takes the adapter's state in the same step as the events.
    :param is_acknowledged: whether the platform was told of a message id; asked while it must not be.
    :param faults: added to, one line for each rule that the adapter breaks: an adapter may swallow what is raised.

    Attributes:
        begun: every batch that was handed in, also those that were not stored. events: what was stored, in order,
            each message once. duplicates: what was known already. refused: what was refused.
        reports: ``(state, detail)`` in order, of the adapter that was started last. details: of all of them.
        beats: how often :meth:`alive` was called. heard: when it was in this run, on the monotonic clock.
    """

    def __init__(
        self,
        platform: str,
        account_id: str,
        state: MemoryState,
        *,
        is_acknowledged: Callable[[str], bool],
        faults: list[str],
        patience_s: float,
    ) -> None:
        self._platform = platform
        self._account_id = account_id
        self._state = state
        self._is_acknowledged = is_acknowledged
        self._faults = faults
        self._patience_s = patience_s
        self._failures: deque[_Failure] = deque()
        self._refusals: deque[str] = deque()
        self._known: dict[str, InboxId] = {}
        self._open = asyncio.Event()
        self._open.set()
        self._changed = asyncio.Event()
        self.begun: list[tuple[MessageEvent, ...]] = []
        self.events: list[MessageEvent] = []
        self.duplicates: list[MessageEvent] = []
        self.refused: list[MessageEvent] = []
        self.reports: list[tuple[str, str]] = []
        self.details: list[str] = []
        self.beats = 0
        self.heard: float | None = None

    def begin(self) -> None:
        """Begin another run of the same adapter: it has promised nothing yet."""
        self.heard = None

    def forget(self) -> None:
        """Forget what an adapter said before: it is started anew."""
        self.begin()
        self.beats = 0
        self.reports.clear()

    # --- the script

    def hold(self) -> None:
        """Let every :meth:`accept` wait, until :meth:`release`."""
        self._open.clear()

    def release(self) -> None:
        """Let those that wait go on."""
        self._open.set()

    def fail(self, *errors: StorageError, stored: bool = False) -> None:
        """Let the next calls of :meth:`accept` raise, one each.

        :param stored: the batch is stored all the same, as when a commit's outcome is unknown.
        """
        self._failures.extend(_Failure(error, stored) for error in errors)

    def refuse(self, *reasons: str) -> None:
        """Refuse the next new messages, one for each reason."""
        self._refusals.extend(reasons)

    # --- the port

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch and the adapter's state, as the script says."""
        batch = tuple(events)
        for event in batch:
            self._look_at(event)
        self._watch_for_early_acks(batch, "was handed in")
        self.begun.append(batch)
        self.nudge()
        await self._open.wait()
        self._watch_for_early_acks(batch, "was stored")
        failure = self._failures.popleft() if self._failures else None
        results: list[AcceptResult] = []
        if failure is None or failure.stored:
            self._remember(state)
            results = [self._store(event) for event in batch]
        self.nudge()
        if failure is not None:
            raise failure.error
        return results

    def alive(self) -> None:
        """Count that the platform was heard."""
        self.beats += 1
        self.heard = time.monotonic()
        self.nudge()

    def report(self, state: str, detail: str = "") -> None:
        """Write down how the connection is."""
        if state not in (CONNECTING, CONNECTED, WAITING, FAILED):
            self._faults.append(f"reports {state!r}, which is none of the four states")
        if "\n" in detail:
            self._faults.append(f"reports more than one line: {detail!r}")
        self.reports.append((state, detail))
        self.details.append(detail)
        self.nudge()

    # --- what is asked of it

    @property
    def texts(self) -> list[str]:
        """Return the texts of what was stored, in order, without what could not be read."""
        return [event.text for event in self.events if not event.error]

    @property
    def handed(self) -> list[MessageEvent]:
        """Return everything that was handed in, in order, as often as it was."""
        return [event for batch in self.begun for event in batch]

    @property
    def is_up(self) -> bool:
        """Return whether the adapter says that it is connected, as it said last."""
        return self.reports[-1][0] == CONNECTED if self.reports else self.beats > 0

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until ``condition()`` holds. :raises AssertionError: it did not in time; ``what`` was waited for."""
        try:
            async with asyncio.timeout(self._patience_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"waited in vain: {what}") from None

    def nudge(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    # --- storing

    def _store(self, event: MessageEvent) -> AcceptResult:
        for identity in event.identities:
            if identity in self._known:
                known = self._known[identity]
                self._known.update(dict.fromkeys(event.identities, known))
                self.duplicates.append(event)
                return AcceptResult(id=known, duplicate=True)
        if self._refusals:
            self.refused.append(event)
            return AcceptResult(id=None, refused=self._refusals.popleft())
        self.events.append(event)
        number = InboxId(len(self.events))
        self._known.update(dict.fromkeys(event.identities, number))
        return AcceptResult(id=number)

    def _remember(self, state: Sequence[StateUpdate]) -> None:
        try:
            self._state.take(state)
        except ValueError as error:
            self._faults.append(f"hands in state that is not sound: {error}")

    # --- rules

    def _look_at(self, event: MessageEvent) -> None:
        source = event.source
        if source.platform != self._platform:
            self._faults.append(f"hands in a message of platform {source.platform!r}, not {self._platform!r}")
        if source.account_id != self._account_id:
            self._faults.append(f"hands in a message of account {source.account_id!r}, not {self._account_id!r}")
        if not event.identities or any(not identity.strip() for identity in event.identities):
            self._faults.append(f"hands in a message without identity, which a redelivery doubles: {event!r}")
        if abs(event.received_at - time.time() * 1000) > _DAY_MS:
            self._faults.append(f"received_at {event.received_at} is not now in UTC milliseconds")
        if not event.error and source.chat_id is None and source.participant is None:
            self._faults.append(f"hands in a message from nowhere: {source!r}")

    def _watch_for_early_acks(self, batch: Sequence[MessageEvent], when: str) -> None:
        for event in batch:
            message_id = event.source.message_id
            is_known = any(identity in self._known for identity in event.identities)
            if message_id is not None and not is_known and self._is_acknowledged(message_id):
                self._faults.append(f"{message_id} was acknowledged before it {when}")
