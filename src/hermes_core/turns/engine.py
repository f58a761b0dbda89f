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

from hermes_core.config.sections import CompressionSettings
from hermes_core.context.attachments import TurnFiles
from hermes_core.context.compression import Compressor, load_context
from hermes_core.context.telling import tell_repairs
from hermes_core.context.toolset import freeze_tools, offered_by, tools_of
from hermes_core.context.window import make_window
from hermes_core.faultpoints import reach
from hermes_core.leases import holder_lives
from hermes_core.search.history import SearchingHistory
from hermes_core.settling import settled
from hermes_core.turns.answering import ToTheWaiter
from hermes_core.turns.approvals import TurnApprovals
from hermes_core.turns.hearing import job_news, tell_news
from hermes_core.turns.jobs import TurnJobs
from hermes_core.turns.leftovers import Leftovers
from hermes_core.turns.loading import Loading, Means
from hermes_core.turns.outgoing import OutgoingLimits
from hermes_core.turns.overflow import AgentWithSecondTry
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

    from hermes_core.context.compression import Context
    from hermes_core.context.opening import Opened
    from hermes_core.hooks import Hooks
    from hermes_core.turns.answering import Answering
    from hermes_core.turns.run import Ended
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import InboxDraft, InboxItem
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, Tool
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session, SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Usage

__all__ = ["Conduct", "TurnEngine", "TurnRequest"]


@attrs.frozen(kw_only=True)
class TurnRequest:
    """One message to be answered while its sender waits.

    Attributes:
        draft: its inbox row, routed and redacted. principal: on whose behalf the agent reads.
        on_event: told each event of the agent. on_wait: told, in words, who is in the way. on_approval: told each
            request that somebody has to answer; ``None`` where nobody can be asked.
    """

    draft: InboxDraft
    entry: SessionEntry
    principal: Principal
    agent: Agent
    tools: Mapping[str, Tool] = attrs.field(factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    on_event: Callable[[AgentEvent], None] | None = None
    on_wait: Callable[[str], None] | None = None
    on_approval: Callable[[Approval], None] | None = None


@attrs.frozen(kw_only=True)
class Conduct:
    """How a begun turn is run.

    Attributes:
        source: where it was asked. principal: on whose behalf the agent reads. answering: where its answer goes.
        steered: messages that come meanwhile are put into it, if the agent says that it ``steers``.
        shared: with the names of their senders. on_approval: as in :class:`TurnRequest`; one whose sender does not
            wait is told by a delivery. side_usage: of what was done for the messages before.
    """

    agent: Agent
    source: SessionSource
    principal: Principal
    answering: Answering
    tools: Mapping[str, Tool] = attrs.field(factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    on_event: Callable[[AgentEvent], None] | None = None
    on_approval: Callable[[Approval], None] | None = None
    steered: bool = False
    shared: bool = False
    side_usage: tuple[Usage, ...] = ()


class TurnEngine:
    """Runs turns of one store.

    :param max_waiting: most messages of one key that may wait. inactivity_s: seconds without a sign of life after
        which an agent is given up. cleanup_s: seconds for which it may clean up when its turn ends without it.
        files: where the bytes of attachments are. outgoing: what files an answer may bring along.
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
        cleanup_s: float = 30.0,
        recovery_attempts: int = 2,
        index: Callable[[], SearchIndex] | None = None,
        compression: CompressionSettings | None = None,
        files: Callable[[], AttachmentStore | None] = lambda: None,
        approval_timeout_s: float = 900.0,
        outgoing: OutgoingLimits | None = None,
    ) -> None:
        self._max_waiting = max_waiting
        settings = CompressionSettings() if compression is None else compression
        self.compressor = Compressor(store=store, clock=clock, hooks=hooks, settings=settings)
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
            cleanup_s=cleanup_s,
            recovery_attempts=recovery_attempts,
            files=files,
            approval_timeout_s=approval_timeout_s,
            outgoing=OutgoingLimits() if outgoing is None else outgoing,
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
        session = await asyncio.wrap_future(around.store.submit_read(lambda reader: _spoken_in(reader, request)))
        snapshot = self.snapshot(session, request.entry, request.agent, request.tools)
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
            open=lambda item: self.open((item,), session, request.principal),
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
            on_approval=request.on_approval,
            side_usage=wait.side_usage,
        )
        ended = await self.conduct(begun, conduct)
        entry = attrs.evolve(
            request.entry,
            session_id=ended.turn.session_id,
            lineage_id=begun.turn.lineage_id,
            # a child's own title has a number behind it
            title=begun.session.title if begun.session.parent_session_id is None else request.entry.title,
            version=ended.version,
            updated_at=max(request.entry.updated_at, ended.turn.ended_at or 0),
            created=False,
        )
        return TurnResult(
            turn=ended.turn, text=ended.text, files=ended.files, entry=entry, usage=ended.usage, waited_s=waited_s
        )

    async def conduct(self, begun: Begun, how: Conduct) -> Ended:
        """Run a turn that has begun to its end; tell its beginning, and the end of a dead one that it replaced.

        :raises LeaseLost: it was stopped, or taken over. :raises AgentFailed: the agent raised.
        """
        around = self.around
        if begun.interrupted is not None:
            around.hooks.turn_ended(begun.interrupted)
        around.hooks.fire("hermes_after_turn_start", turn=begun.turn)
        wheel = None
        if begun.items and getattr(how.agent, "steers", False):
            only_marked = not how.steered
            fence, first = _fence_of(begun), begun.items[0]
            wheel = SteeringWheel(around, fence, first, shared=how.shared, only_marked=only_marked)
        run = TurnRun(around, begun, how.answering, on_event=how.on_event, steering=wheel, side_usage=how.side_usage)
        loading = Loading(self, begun, how, _fence_of(begun), self._means(begun, how, run, wheel))
        ended = await run.through(AgentWithSecondTry(how.agent, loading.shorter), loading.first)
        return attrs.evolve(ended, turn=attrs.evolve(ended.turn, session_id=loading.session.id))

    def _means(self, begun: Begun, how: Conduct, run: TurnRun, wheel: SteeringWheel | None) -> Means:
        around, fence = self.around, _fence_of(begun)
        item = None if how.answering.waits or not begun.items else begun.items[-1]
        approvals = None
        if item is not None or how.on_approval is not None:
            approvals = TurnApprovals(
                around, begun.turn, fence, how.source, item=item, on_approval=how.on_approval, patience=run
            )
            run.asks_through(approvals)
        jobs = TurnJobs(around, fence, how.source, begun.turn.session_key or "")
        return Means(steering=wheel, approvals=approvals, patience=run, jobs=jobs, outgoing=run.outgoing)

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

    async def open(
        self, items: Sequence[InboxItem], session: Session, principal: Principal, *, taken: Opened | None = None
    ) -> Opened:
        """Prepare messages whose turn is about to begin; nobody waits for this, the lease is not held.

        :param taken: of an earlier try with some of them.
        """
        history = SearchingHistory(self.around.store, self._index, principal, session.lineage_id)
        opener = self.around.opener
        return await opener.open(items, session=session, principal=principal, history=history, taken=taken)

    def snapshot(
        self, session: Session, entry: SessionEntry, agent: Agent, tools: Mapping[str, Tool]
    ) -> Snapshot | None:
        """Return what a session's first turn freezes; asked of the plugins only where nothing is frozen yet.

        The tools follow with the first turn whose agent sends a prompt.
        """
        if session.model_config is not None:
            return None
        is_new = session.model is None and session.system_prompt is None
        config = None if getattr(agent, "promptless", False) else freeze_tools(offered_by(agent, tools))
        if not is_new:
            return None if config is None else Snapshot(model_config=config)
        parts = self.around.hooks.system_prompt_parts(entry)
        return Snapshot(model=agent.model or agent.name, model_config=config, system_prompt="\n\n".join(parts) or None)

    async def load(self, begun: Begun, how: Conduct) -> Context:
        """Return the context of a turn that has begun, compressed where it is time.

        :raises LeaseLost: the lease was taken while the process stood still.
        """
        around, fence = self.around, _fence_of(begun)
        lineage_id = begun.turn.lineage_id
        read = around.store.submit_read(lambda reader: (_said(reader, begun), job_news(around, reader, lineage_id)))
        context, news = await asyncio.wrap_future(read)
        if news and await tell_news(around, fence, news):
            context = await asyncio.wrap_future(around.store.submit_read(lambda reader: _said(reader, begun)))
        return await self.compressor.before_load(_fence_of(begun), context, how.agent)

    def turn_context(self, begun: Begun, how: Conduct, means: Means, context: Context) -> TurnContext:
        """Return what the agent is to see; everything in it is a copy."""
        principal = how.principal
        window = make_window(context.session, context.rows, begun.turn)
        tell_repairs(self.around.hooks, context.session, window)
        means.outgoing.recall(window.rows)
        hashes = {one.sha256 for row in window.rows for one in row.attachments if one.sha256 is not None}
        return TurnContext(
            turn=begun.turn,
            session=context.session,
            source=how.source,
            principal=principal,
            messages=window.messages,
            text="\n".join(item.text for item in begun.items),
            attachments=tuple(one for row in begun.rows for one in row.attachments),
            history=SearchingHistory(self.around.store, self._index, principal, context.session.lineage_id),
            tools=tools_of(context.session.model_config, offered_by(how.agent, how.tools)),
            commands=how.commands,
            steering=means.steering,
            approvals=means.approvals,
            patience=means.patience,
            jobs=means.jobs,
            outgoing=means.outgoing.offered,
            files=TurnFiles(self.around.files(), hashes),
        )


def _fence_of(begun: Begun) -> Fence:
    return Fence(begun.turn.lineage_id, begun.turn.id, begun.lease.token)


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


def _said(reader: StoreReader, begun: Begun) -> Context:
    """Return the context of a turn's session as long as the turn holds its lease.

    Who may speak in a session hears all of it; what was said elsewhere is the principal's alone.

    :raises LeaseLost: it was taken while the process stood still: others may have written by now.
    """
    lease = reader.lease(begun.turn.lineage_id)
    if lease is None or lease.token != begun.lease.token:
        raise LeaseLost(begun.turn.lineage_id, begun.lease.token)
    return load_context(reader, begun.session)


def _scan(store: Store) -> SearchIndex:
    from hermes_core.search.scan import ScanIndex

    return ScanIndex(store)


def _show(request: TurnRequest, label: str) -> None:
    """Tell whoever watches what is waited for; a listener that fails hears it from the turn."""
    if request.on_event is not None:
        with suppress(Exception):
            request.on_event(Progress(label=label))
