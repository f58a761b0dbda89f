"""Commands of an entrance whose sender does not wait: effect once, reply once, in the order of one key.

The effect and the mark *applied* are one transaction of the store; the reply and the mark *done* are another. A process
that dies between the two leaves a row whose effect is not run again and whose reply is still owed. An urgent command,
such as one that stops a turn, does not stand behind one that waits for that turn, or that does not come to an end.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.leases import busy_words
from hermes_core.outbox.topics import outbox_topic
from hermes_core.settling import settled
from hermes_core.turns.forsaken import take_back
from hermes_core.turns.presence import door, is_forsaken
from hermes_core.turns.topics import WORK
from hermes_hookspecs.errors import HermesError, LeaseBusy, PluginError, StorageError
from hermes_hookspecs.operations import Deliver
from hermes_hookspecs.outbox import REPLY, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.turns.engine import TurnEngine
    from hermes_core.turns.serving import Serving
    from hermes_core.turns.waker import Waiter
    from hermes_hookspecs.ids import InboxId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["ControlWork", "Controls", "barrier", "barriers", "next_controls"]

_log = getLogger(__name__)

_MOST = 1000
_OVERTAKEN_S = 5.0
"""Seconds after which urgent commands do not wait any longer for one that runs."""
_AGAIN_S = 1.0
"""Seconds after which a command that found its session busy is tried again, where nobody says that it is free."""
_FAILED = "That command failed; what went wrong is in the log."


@attrs.frozen(kw_only=True)
class Controls:
    """The commands that can be run now, at most two of a key.

    Attributes:
        in_order: the oldest of its key, unless it has to wait. urgent: those that overtake the oldest of their key.
    """

    in_order: tuple[InboxItem, ...]
    urgent: tuple[InboxItem, ...]


class ControlWork:
    """Runs the commands of one key that wait, oldest first. One that waits for its turn holds up those behind it.

    Another process that serves the same entrance may run the same row at the same moment: whoever finds the session
    busy then leaves the row as it is and tries again, for as long as a turn would wait.

    :param running: rows whose commands run in this process; shared by all who run commands here.
    :param urgent: runs only those that overtake the others.
    """

    def __init__(
        self, engine: TurnEngine, serving: Serving, key: SessionKey, running: set[InboxId], *, urgent: bool = False
    ) -> None:
        self._around = engine.around
        self._serving = serving
        self._key = key
        self._running = running
        self._urgent = urgent
        self._since: float | None = None
        self._busy: tuple[InboxId, float] | None = None
        self._waiter: Waiter | None = None
        self._waits = False
        self.leaving = False

    @property
    def in_command(self) -> bool:
        """Return whether a command runs, and does not only wait for its session."""
        return self._since is not None and not self._waits

    @property
    def is_overtaken(self) -> bool:
        """Return whether its command runs for so long that urgent ones do not wait for it."""
        return self._since is not None and self._around.clock.monotonic() - self._since >= _OVERTAKEN_S

    async def run(self) -> None:
        """Run what can be run now."""
        try:
            await self._run()
        finally:
            if self._waiter is not None:
                self._around.waker.leave(self._waiter)

    async def _run(self) -> None:
        while not self.leaving:
            item, forsaken = await asyncio.wrap_future(self._around.store.submit_read(self._next))
            await take_back(self._around, forsaken)
            if item is None or item.id in self._running:
                return
            self._running.add(item.id)
            self._since = self._around.clock.monotonic()
            try:
                if not await self._run_one(item):
                    await self._wait(item)
                    continue
            finally:
                self._running.discard(item.id)
                self._since = None
            self._around.waker.wake(outbox_topic(item.entrance))
            if item.lineage_id is not None:
                self._around.waker.wake(item.lineage_id)  # what stands behind the command may begin

    def _next(self, reader: StoreReader) -> tuple[InboxItem | None, tuple[InboxId, ...]]:
        """Return the next command, and messages of dead waiters that stand before it."""
        mine = frozenset({self._key})
        found = next_controls(reader, self._serving, mine if self._urgent else frozenset(), of=mine)
        waiting = reader.waiting_of_key(self._key, limit=_MOST)
        forsaken = tuple(one.id for one in waiting if is_forsaken(one))
        return next(iter(found.urgent if self._urgent else found.in_order), None), forsaken

    async def _run_one(self, item: InboxItem) -> bool:
        """Run a command and reply; return ``False`` where its session is busy: then the row waits as before."""
        try:
            reply = await self._in_time(item)
        except StorageError:
            raise
        except LeaseBusy as error:
            if self._may_wait(item):
                return False
            reply = busy_words(error)
        except HermesError as error:
            if isinstance(error, PluginError):
                _log.warning("the command of inbox row %s failed: %s", item.id, error)
            reply = _FAILED if isinstance(error, PluginError) else str(error)
        except Exception:  # noqa: BLE001 - a command is a plugin's code; its fault is answered, not the worker's end
            _log.exception("the command of inbox row %s failed", item.id)
            reply = _FAILED
        drafts = (_reply(item, reply),) if reply else ()
        reach("control.applied")
        operation = Deliver(drafts=drafts, now=self._around.clock.now(), settle=item.id)
        await settled(self._around.store.perform(operation))
        reach("control.replied")
        return True

    def _may_wait(self, item: InboxItem) -> bool:
        """Return whether a command that found its session busy is tried again: it waits no longer than a turn does."""
        if not self._serving.waits_its_turn(item):
            return False
        now = self._around.clock.monotonic()
        if self._busy is None or self._busy[0] != item.id:
            self._busy = (item.id, now)
        return now - self._busy[1] < self._around.times.wait_s

    async def _wait(self, item: InboxItem) -> None:
        """Wait until the session of a command may be free; the first time not at all, lest a word of it be missed."""
        if self._waiter is None:
            self._waiter = self._around.waker.enter(WORK if item.lineage_id is None else item.lineage_id)
            return
        self._waits = True
        try:
            await self._waiter.wait(_AGAIN_S, look=False)
        finally:
            self._waits = False

    async def _in_time(self, item: InboxItem) -> str:
        """Run a command in a task of its own and return its reply, or that it was given up.

        One that does not end even when it is cancelled is left behind: its row is done then, so that it has no effect
        on this store any more.
        """
        limit_s = self._serving.settings.gateway.command_timeout_s
        running = asyncio.ensure_future(self._serving.run_control(item))
        try:
            await asyncio.wait({running}, timeout=limit_s)
        finally:
            if not running.done():
                running.add_done_callback(_forget)
                running.cancel()
                await settled(asyncio.wait({running}, timeout=self._around.cleanup_s))
        if not running.done() or running.cancelled():
            _log.warning("the command of inbox row %s was given up after %g s", item.id, limit_s)
            return f"That command did not end within {limit_s:g} s and was given up; look whether it took effect."
        return running.result()


def _forget(running: asyncio.Future[str]) -> None:
    """Look at how a command ended that nobody waits for."""
    if not running.cancelled() and running.exception() is not None:
        _log.info("a command that was given up failed: %s", type(running.exception()).__name__)


def next_controls(
    reader: StoreReader,
    serving: Serving,
    overtaken: frozenset[SessionKey] = frozenset(),
    *,
    of: frozenset[SessionKey] | None = None,
) -> Controls:
    """Return the commands that can be run now.

    :param overtaken: keys whose oldest command runs here for too long. of: only these keys; ``None`` for all.
    """
    in_order: list[InboxItem] = []
    urgent: list[InboxItem] = []
    oldest: dict[SessionKey, InboxItem] = {}
    for item in reader.controls(serving.entrances, limit=_MOST) if of is None else _of_keys(reader, serving, of):
        oldest.setdefault(item.session_key, item)
    for key, item in oldest.items():
        held_up = serving.waits_its_turn(item) and _is_held_up(reader, item)
        if not held_up:
            in_order.append(item)
        if (held_up or key in overtaken) and not serving.overtakes(item):
            behind = (one for one in _of_keys(reader, serving, (key,)) if serving.overtakes(one))
            urgent += [one for one in (next(behind, None),) if one is not None]
    return Controls(in_order=tuple(in_order), urgent=tuple(urgent))


def _of_keys(reader: StoreReader, serving: Serving, keys: Iterable[SessionKey]) -> list[InboxItem]:
    found = (item for key in keys for item in reader.controls_of_key(key, limit=_MOST))
    return [item for item in found if serving.serves(item)]


def barriers(reader: StoreReader, serving: Serving, waiting: Iterable[InboxItem]) -> dict[SessionKey, InboxId]:
    """Return the oldest command, not run or not replied to, of each key of messages: none behind it begins before."""
    doors = frozenset(door(one) for one in serving.entrances)
    found = {key: barrier(reader, key, doors) for key in {item.session_key for item in waiting}}
    return {key: inbox_id for key, inbox_id in found.items() if inbox_id is not None}


def barrier(reader: StoreReader, key: SessionKey, doors: frozenset[tuple[str, str]]) -> InboxId | None:
    """Return the oldest command of a key at some doors that was not run, or not replied to."""
    return next((one.id for one in reader.controls_of_key(key) if door(one.entrance) in doors), None)


def _is_held_up(reader: StoreReader, item: InboxItem) -> bool:
    """Return whether older messages of the key, or a turn of its session, go first; whose waiter died does not."""
    older = (one for one in reader.waiting_of_key(item.session_key, limit=_MOST) if one.id < item.id)
    if not all(map(is_forsaken, older)):
        return True
    route = reader.route(item.session_key)
    lease = None if route is None or route.lineage_id is None else reader.lease(route.lineage_id)
    return lease is not None and lease.holder is not None


def _reply(item: InboxItem, text: str) -> DeliveryDraft:
    return DeliveryDraft(
        key=delivery_key(item.session_key, item.id),
        target=item.source,
        text=text,
        session_key=item.session_key,
        lineage_id=item.lineage_id,
        inbox_id=item.id,
        kind=REPLY,
    )
