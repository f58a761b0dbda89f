"""The work on one lineage: its messages are answered one turn after another, first in, first out."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.outbox.topics import outbox_topic
from hermes_core.settling import settled
from hermes_core.turns.answering import ToTheOutbox
from hermes_core.turns.control_work import barriers
from hermes_core.turns.engine import Conduct
from hermes_core.turns.forsaken import take_back_forsaken
from hermes_core.turns.sweeping import close_dead
from hermes_core.turns.topics import WORK
from hermes_hookspecs.errors import HermesError, StorageError
from hermes_hookspecs.inbox import INTERNAL
from hermes_hookspecs.operations import Begun
from hermes_hookspecs.principal import operator
from hermes_hookspecs.sessions import SessionEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_core.context.opening import Opened
    from hermes_core.outbox.streams import Following
    from hermes_core.turns.engine import TurnEngine
    from hermes_core.turns.queue import LineageQueue, QueueLook
    from hermes_core.turns.serving import Serving
    from hermes_core.turns.waker import Waiter
    from hermes_hookspecs.ids import InboxId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import Lineage, Session
    from hermes_hookspecs.source import SessionSource

__all__ = ["LineageWork"]

_log = getLogger(__name__)

_LOOK_S = 1.0
"""Longest time between two looks at a queue that somebody else is in the way of."""


@attrs.frozen(kw_only=True)
class _View:
    look: QueueLook
    lineage: Lineage | None
    tip: Session | None
    barriers: Mapping[SessionKey, InboxId]


class LineageWork:
    """Answers the messages of one lineage until none is left that this process serves.

    :param queue: of the lineage; it remembers since when a holder gives no sign of life.
    :param slots: bounds the turns that this process runs at a time.
    """

    def __init__(self, engine: TurnEngine, serving: Serving, queue: LineageQueue, slots: asyncio.Semaphore) -> None:
        self._engine = engine
        self._around = engine.around
        self._serving = serving
        self._queue = queue
        self._slots = slots
        self._held: tuple[InboxId | None, float] = (None, 0.0)
        self._opened: Opened | None = None
        self.in_turn = False
        self.leaving = False
        self.stands_behind = False
        """Whether it waits for a message that another process has to answer first."""

    async def run(self) -> None:
        """Answer; return when there is nothing more to do, or this process is to leave."""
        waiter = self._around.waker.enter(self._queue.lineage_id)
        try:
            while not self.leaving and await self._step(waiter):
                await self._around.leftovers.write()
        finally:
            self._around.waker.leave(waiter)

    async def _step(self, waiter: Waiter) -> bool:
        """Do what can be done now, or wait for a change; say whether there may be more."""
        view = await asyncio.wrap_future(self._around.store.submit_read(self._view))
        look = view.look
        if look.lease is None or view.lineage is None or view.tip is None:
            return False
        await take_back_forsaken(self._around, look)
        batch = self._serving.batch(look, view.barriers)
        if not batch and look.dead is not None:
            await asyncio.to_thread(close_dead, self._around, look)
            return True
        if look.is_whole and not any(self._serving.serves(item) for item in look.waiting):
            return False
        hold_s = self._hold_s(batch) if batch else 0.0
        if hold_s > 0:
            await waiter.wait(hold_s)
            return True
        if batch and await self._serving.fetch(batch, self._queue.lineage_id):
            return True  # their rows are others now
        if not batch or look.is_held:
            self.stands_behind = look.oldest is not None and not self._serving.serves(look.oldest)
            if look.oldest is not None and not batch:
                self._around.waker.wake(WORK)  # it is somebody else's turn
            waiter.watch(look.lease.holder)
            await waiter.wait(_LOOK_S)
            self.stands_behind = False
            return True
        async with self._slots:
            await self._turn(view.lineage, view.tip, look, batch)
        return True

    def _hold_s(self, batch: tuple[InboxItem, ...]) -> float:
        """Return the seconds for which a batch may still grow, whatever becomes of the wall clock meanwhile."""
        now = self._around.clock.monotonic()
        newest, until = self._held
        if newest != batch[-1].id:
            until = now + self._serving.hold_s(batch, self._around.clock.now())
            self._held = (batch[-1].id, until)
        return until - now

    def _view(self, reader: StoreReader) -> _View:
        everybody = operator()
        lineage = reader.lineage(self._queue.lineage_id, everybody)
        tip = None if lineage is None else reader.session(lineage.tip, everybody)
        look = self._queue.look(reader)
        return _View(look=look, lineage=lineage, tip=tip, barriers=barriers(reader, self._serving, look.waiting))

    async def _turn(self, lineage: Lineage, tip: Session, look: QueueLook, batch: Sequence[InboxItem]) -> None:
        """Begin with a batch, if it still is its turn, and run to the end; how it ended is in the store."""
        serving, first = self._serving, batch[0]
        shared = serving.desk.shared(first.source)
        snapshot = self._engine.snapshot(tip, _entry(lineage, first, shared=shared), serving.agent, serving.tools)
        principal = serving.desk.principal(_speaker(first))
        self._opened = await self._engine.open(batch, tip, principal, taken=self._opened)
        operation = self._queue.begin(
            look, batch, holder=serving.holder(first), shared=shared, snapshot=snapshot, opened=self._opened
        )
        self.in_turn = True
        following: Following | None = None
        try:
            reach("begin.before")
            begun = await settled(self._around.store.perform(operation))
            reach("begin.stored")
            if not isinstance(begun, Begun):
                return  # somebody was quicker, or the queue has changed: the next look tells
            following = serving.follow(begun.items[-1].source, lineage.id, begun.items[0].id)
            conduct = Conduct(
                agent=serving.agent,
                source=first.source,
                principal=principal,
                answering=ToTheOutbox(begun.items, self._around.recovery_attempts),
                tools=serving.tools,
                commands=serving.commands,
                steered=serving.policy(first) == "steer",
                shared=shared,
                on_event=None if following is None else following.event,
                side_usage=self._opened.usage,
            )
            self._opened = attrs.evolve(self._opened, usage=())  # the turn has taken it over
            await self._engine.conduct(begun, conduct)
        except StorageError:
            raise
        except HermesError as error:
            _log.info("a turn of %s ended early: %s", self._queue.lineage_id, error)
        finally:
            if following is not None:
                await settled(following.close())
            self.in_turn = False
            self._around.waker.wake(outbox_topic(first.entrance))


def _speaker(item: InboxItem) -> SessionSource:
    """Return who says a message: a role is good for what its holder says, not for what comes of it later."""
    return attrs.evolve(item.source, roles=()) if item.kind == INTERNAL else item.source


def _entry(lineage: Lineage, item: InboxItem, *, shared: bool) -> SessionEntry:
    """Return what a message's key leads to, as plugins see it."""
    return SessionEntry(
        session_key=item.session_key,
        session_id=lineage.tip,
        lineage_id=lineage.id,
        source=lineage.source,
        created_at=lineage.created_at,
        updated_at=lineage.last_activity,
        version=lineage.version,
        title=lineage.title,
        shared=shared,
    )
