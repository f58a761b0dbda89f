"""The turn engine: accept → wait → begin → load → run → store each step → finish (``design.md`` section 4).

Every step is one transaction, fenced by the lease's token. A step with tool calls, and each result, is stored before
the agent is asked for its next one; an answer without calls is stored with what comes next, so that a plain turn is
three transactions: accept, begin, finish. However a turn ends, by itself, by an exception, by cancellation or by the
loss of its lease, it is closed once and told once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from hermes_core.context.window import read_rows, window_of
from hermes_core.faultpoints import reach
from hermes_core.leases import holder_lives
from hermes_core.search.history import SearchingHistory
from hermes_core.settling import settled
from hermes_core.turns.answering import ToTheWaiter
from hermes_core.turns.leftovers import Leftovers
from hermes_core.turns.presence import Presence
from hermes_core.turns.run import TurnRun
from hermes_core.turns.steering import SteeringWheel
from hermes_core.turns.surroundings import Surroundings
from hermes_core.turns.waiting import LeaseTimes, TurnWait
from hermes_hookspecs.errors import InboxOverflow, LeaseLost, SessionNotFound
from hermes_hookspecs.operations import Accept, Snapshot, Withdraw
from hermes_hookspecs.ports.agent import Progress, TurnContext
from hermes_hookspecs.ports.app import TurnResult
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import Fence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.hooks import Hooks
    from hermes_core.turns.answering import Answering
    from hermes_core.turns.run import Ended
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import InboxDraft
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, Tool
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session, SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["Conduct", "TurnEngine", "TurnRequest"]


@attrs.frozen(kw_only=True)
class TurnRequest:
    """One message to be answered while its sender waits.

    Attributes:
        draft: its inbox row, routed and redacted. principal: on whose behalf the agent reads.
        on_event: told each event of the agent. on_wait: told, in words, who is in the way.
    """

    draft: InboxDraft
    entry: SessionEntry
    principal: Principal
    agent: Agent
    tools: Mapping[str, Tool] = attrs.field(factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    on_event: Callable[[AgentEvent], None] | None = None
    on_wait: Callable[[str], None] | None = None


@attrs.frozen(kw_only=True)
class Conduct:
    """How a begun turn is run.

    Attributes:
        source: where it was asked. principal: on whose behalf the agent reads. answering: where its answer goes.
        steered: messages that come meanwhile are put into it. shared: with the names of their senders.
    """

    agent: Agent
    source: SessionSource
    principal: Principal
    answering: Answering
    tools: Mapping[str, Tool] = attrs.field(factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    on_event: Callable[[AgentEvent], None] | None = None
    steered: bool = False
    shared: bool = False


class TurnEngine:
    """Runs turns of one store.

    :param max_waiting: most messages of one key that may wait. inactivity_s: seconds without a sign of life after
        which an agent is given up.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        waker: LocalWaker,
        times: LeaseTimes,
        max_waiting: int,
        inactivity_s: float,
        recovery_attempts: int = 2,
        index: Callable[[], SearchIndex] | None = None,
    ) -> None:
        self._max_waiting = max_waiting
        self._index = (lambda: _scan(store)) if index is None else index
        self.around = Surroundings(
            store=store,
            clock=clock,
            hooks=hooks,
            waker=waker,
            leftovers=Leftovers(store),
            presence=Presence(clock, times.ttl_s),
            times=times,
            inactivity_s=inactivity_s,
            recovery_attempts=recovery_attempts,
        )

    async def run(self, request: TurnRequest) -> TurnResult:
        """Accept the message, wait for its turn, run it, and return the answer.

        :raises SessionNotFound: the session is gone, or not the principal's; the message was not taken, or was
            settled while it waited.
        :raises InboxOverflow: too many wait already; the message was not taken.
        :raises LeaseBusy: the turn did not begin in time; the message was taken back.
        :raises LeaseLost: the turn was stopped, or taken over, while it ran; what was stored before stays.
        :raises AgentFailed: the agent raised; the turn is closed as failed.
        """
        if request.draft.waiter is None or request.draft.lineage_id is None:
            raise ValueError("a message that waits names its waiter and its lineage")
        around = self.around
        snapshot = await self._snapshot_for(request)
        await around.leftovers.write()
        inbox_id = await self._accept(request.draft)
        wait = TurnWait(
            around,
            lineage_id=request.draft.lineage_id,
            inbox_id=inbox_id,
            holder=request.draft.waiter,
            shared=request.entry.shared,
            snapshot=snapshot,
            on_wait=request.on_wait,
            on_way=lambda who: _show(request, f"waiting for {who}"),
        )
        begun = await wait.begin()
        waited_s = wait.waited_s
        if wait.was_held_up:
            _show(request, "")
        conduct = Conduct(
            agent=request.agent,
            source=request.draft.source,
            principal=request.principal,
            answering=ToTheWaiter(),
            tools=request.tools,
            commands=request.commands,
            on_event=request.on_event,
        )
        ended = await self.conduct(begun, conduct)
        entry = attrs.evolve(
            request.entry,
            session_id=begun.session.id,
            lineage_id=begun.turn.lineage_id,
            title=begun.session.title,
            version=ended.version,
            updated_at=max(request.entry.updated_at, ended.turn.ended_at or 0),
            created=False,
        )
        return TurnResult(turn=ended.turn, text=ended.text, entry=entry, usage=ended.usage, waited_s=waited_s)

    async def conduct(self, begun: Begun, how: Conduct) -> Ended:
        """Run a turn that has begun to its end; tell its beginning, and the end of a dead one that it replaced.

        :raises LeaseLost: it was stopped, or taken over. :raises AgentFailed: the agent raised.
        """
        around = self.around
        if begun.interrupted is not None:
            around.hooks.fire("hermes_after_turn_finish", turn=begun.interrupted)
        around.hooks.fire("hermes_after_turn_start", turn=begun.turn)
        wheel = None
        if how.steered and begun.items:
            fence = Fence(begun.turn.lineage_id, begun.turn.id, begun.lease.token)
            wheel = SteeringWheel(around, fence, begun.items[0], shared=how.shared)
        run = TurnRun(around, begun, how.answering, on_event=how.on_event, steering=wheel)
        return await run.through(how.agent, lambda: self._context(begun, how, wheel))

    async def _accept(self, draft: InboxDraft) -> InboxId:
        operation = Accept(drafts=(draft,), now=draft.accepted_at, max_waiting=self._max_waiting)
        reach("accept.before")
        (result,) = await settled(self.around.store.perform(operation))
        reach("accept.stored")
        if result.id is None and await self._take_back_the_dead(draft):
            (result,) = await settled(self.around.store.perform(operation))
        if result.id is None:
            self.around.hooks.fire(
                "hermes_after_inbox_overflow", session_key=draft.session_key, waiting=self._max_waiting
            )
            raise InboxOverflow(f"{self._max_waiting} messages wait already; this one was not taken, send it later")
        return result.id

    async def _take_back_the_dead(self, draft: InboxDraft) -> bool:
        """Withdraw waiting rows whose process died: they fill the queue, and nobody waits for their answer."""
        waiting = await asyncio.wrap_future(
            self.around.store.submit_read(
                lambda reader: reader.waiting_of_key(draft.session_key, limit=self._max_waiting)
            )
        )
        dead = tuple(item.id for item in waiting if item.waiter is not None and holder_lives(item.waiter) is False)
        return bool(dead) and await self.around.store.perform(Withdraw(ids=dead, now=self.around.clock.now())) > 0

    async def _snapshot_for(self, request: TurnRequest) -> Snapshot | None:
        session = await asyncio.wrap_future(self.around.store.submit_read(lambda reader: _spoken_in(reader, request)))
        return self.snapshot(session, request.entry, request.agent)

    def snapshot(self, session: Session, entry: SessionEntry, agent: Agent) -> Snapshot | None:
        """Return what a session's first turn freezes; asked of the plugins only where nothing is frozen yet."""
        if session.model is not None or session.system_prompt is not None:
            return None
        parts = self.around.hooks.system_prompt_parts(entry)
        return Snapshot(model=agent.model or agent.name, system_prompt="\n\n".join(parts) or None)

    async def _context(self, begun: Begun, how: Conduct, wheel: SteeringWheel | None) -> TurnContext:
        """Load what the agent is to see; everything in it is a copy."""
        session, principal = begun.session, how.principal
        rows = await asyncio.wrap_future(self.around.store.submit_read(lambda reader: _said(reader, begun)))
        return TurnContext(
            turn=begun.turn,
            session=session,
            source=how.source,
            principal=principal,
            messages=window_of(session, rows),
            text="\n".join(item.text for item in begun.items),
            attachments=tuple(one for item in begun.items for one in item.attachments),
            history=SearchingHistory(self.around.store, self._index, principal, session.lineage_id),
            tools=how.tools,
            commands=how.commands,
            steering=wheel,
        )


def _spoken_in(reader: StoreReader, request: TurnRequest) -> Session:
    """Return the session that the message goes into: the principal's own, or the one its key leads to.

    :raises SessionNotFound: neither.
    """
    session = reader.session(request.entry.session_id, operator())
    lineage_id = request.draft.lineage_id
    if session is not None and session.lineage_id == lineage_id:
        if reader.lineage(lineage_id, request.principal) is not None:
            return session
        route = reader.route(request.draft.session_key)
        if route is not None and route.lineage_id == lineage_id:
            return session
    raise SessionNotFound(request.entry.session_id)


def _said(reader: StoreReader, begun: Begun) -> Sequence[Message]:
    """Return the rows of a turn's session as long as the turn holds its lease.

    Who may speak in a session hears all of it; what was said elsewhere is the principal's alone.

    :raises LeaseLost: it was taken while the process stood still: others may have written by now.
    """
    lease = reader.lease(begun.turn.lineage_id)
    if lease is None or lease.token != begun.lease.token:
        raise LeaseLost(begun.turn.lineage_id, begun.lease.token)
    return read_rows(reader, begun.session, operator())


def _scan(store: Store) -> SearchIndex:
    from hermes_core.search.scan import ScanIndex

    return ScanIndex(store)


def _show(request: TurnRequest, label: str) -> None:
    """Tell whoever watches what is waited for; a listener that fails hears it from the turn."""
    if request.on_event is not None:
        with suppress(Exception):
            request.on_event(Progress(label=label))
