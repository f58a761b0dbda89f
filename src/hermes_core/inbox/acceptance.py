"""Accepting what nobody waits for: redaction, key, one transaction for the batch, and what is told to the sender.

Only when this has returned is the platform told that the messages arrived (``design.md`` section 4). An item that
cannot be read, or whose sender cannot be told apart, becomes a quarantined row: it never holds up the cursor, and never
reaches somebody else's session. So does one that cannot be redacted, without its content.
"""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Protocol

from hermes_core.faultpoints import reach
from hermes_core.inbox.door import entrance_of
from hermes_core.inbox.identities import identities_of
from hermes_core.leases import dead_stamp, holder_lives
from hermes_hookspecs.errors import KeyBuildError, PluginError
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.inbox import CONTROL, MESSAGE, InboxDraft
from hermes_hookspecs.operations import Accept, Deliver, Revoke
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import Lease

__all__ = ["UNREADABLE", "Acceptance"]

_log = getLogger(__name__)

UNREADABLE = "unreadable"
"""Chat type in the key of rows that have no key of their own."""

BUSY = "busy"
"""Why a draft was refused that asked to be taken only by an idle session."""

_TRIES = 3


class IsCommand(Protocol):
    """Whether a text is a slash command; mentions in front count only where it is ``addressed`` to us."""

    def __call__(self, text: str, *, addressed: bool = True) -> bool:
        """Return it."""
        ...


class Acceptance:
    """Takes batches of messages for entrances that somebody serves.

    :param is_command: whether a text is a slash command. wake: wakes those who serve.
    :param make_way: ends in some lineages what dead processes left there; blocks.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        desk: SessionDesk,
        settings: Settings,
        is_command: IsCommand,
        wake: Callable[[Iterable[Entrance]], None],
        make_way: Callable[[Sequence[LineageId]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._desk = desk
        self._settings = settings
        self._is_command = is_command
        self._wake = wake
        self._make_way = make_way

    async def accept(
        self, events: Sequence[MessageEvent], state: Sequence[StateUpdate], *, said: bool = False
    ) -> Sequence[AcceptResult]:
        """Store a batch and its sender's state; results in order. Errors as ``App.accept`` raises them.

        :param said: a command says it: it is no command, whatever it looks like, and no turn has to end for it.
        """
        now = self._clock.now()
        drafts = tuple(self._draft(event, said=said) for event in events)
        await self._end_the_dead(drafts)
        if self._desk.resets.active:
            from asyncio import to_thread

            # Looked at on arrival: what waits, however long, is said in the conversation that it was meant for.
            await to_thread(self._desk.resets.settle_all, [draft.session_key for draft in drafts if not draft.error])
        operation = Accept(drafts=drafts, now=now, max_waiting=self._settings.inbox.max_waiting, state=tuple(state))
        reach("accept.before")
        results = await self._store.perform(operation)
        reach("accept.stored")
        notices = tuple(
            self._refusal(draft, result.refused, number)
            for number, (draft, result) in enumerate(zip(drafts, results, strict=True))
            if result.refused
        )
        if notices:
            await self._store.perform(Deliver(drafts=notices, now=now))
        for draft, result in zip(drafts, results, strict=True):
            if result.id is not None and not result.duplicate and not said:
                await self._interrupt(draft, result.id)
        self._wake(draft.entrance for draft in drafts)
        return results

    def _draft(self, event: MessageEvent, *, said: bool) -> InboxDraft:
        source, error = self._desk.at_home(event.source), event.error
        try:
            key = self._desk.key(source)
        except KeyBuildError as refused:
            key = SessionKey(f"agent:{source.profile}:{source.platform}:{UNREADABLE}")
            error = error or str(refused)
        text, attachments = "", event.attachments
        try:
            # What cannot be read may still hold what is to be redacted.
            text = self._hooks.redact_inbound(event.text, source) if event.text else ""
        except PluginError as failed:
            error, attachments = f"plugin {failed.plugin} could not redact it", ()
            _log.warning("a message of %s was put aside without its content: %s", entrance_of(source), error)
        may_be_command = event.kind == MESSAGE and not event.attachments and not said
        kind = CONTROL if may_be_command and self._said_to_us(text, event) else event.kind
        if kind == CONTROL and not self._is_command(text):
            error = error or "a control row that is no command"
        return InboxDraft(
            session_key=key,
            source=source,
            entrance=entrance_of(source),
            text=text,
            accepted_at=self._clock.now(),
            identities=identities_of(event),
            attachments=attachments,
            kind=kind,
            error=error,
            only_if_idle=kind == MESSAGE and not error and not said and self._policy(source) == "reject",
        )

    def _said_to_us(self, text: str, event: MessageEvent) -> bool:
        return self._is_command(text, addressed=event.addressed)

    def _policy(self, source: SessionSource) -> str:
        return self._settings.busy_policy_of(source.platform)

    async def _end_the_dead(self, drafts: Sequence[InboxDraft]) -> None:
        """Let no dead process make a session busy for a message that only an idle one is to take."""
        keys = {draft.session_key for draft in drafts if draft.only_if_idle}
        if not keys:
            return
        from asyncio import to_thread, wrap_future

        left = await wrap_future(self._store.submit_read(lambda reader: _left_by_the_dead(reader, keys)))
        if left:
            await to_thread(self._make_way, left)

    def _refusal(self, draft: InboxDraft, reason: str, number: int) -> DeliveryDraft:
        """Return what the sender of a refused message is told, once however often it is delivered."""
        if reason == BUSY:
            text = "I am still at work here. This message was not taken; send it again later."
        else:
            most = self._settings.inbox.max_waiting
            what = "commands" if draft.kind == CONTROL else "messages"
            text = f"{most} {what} wait here already. This message was not taken; send it again later."
            self._hooks.fire("hermes_after_inbox_overflow", session_key=draft.session_key, waiting=most)
        # Prefixed, since an identity of the platform's may look like the number of a row.
        message = draft.identities[0] if draft.identities else f"{draft.accepted_at}:{number}"
        return DeliveryDraft(
            key=delivery_key(draft.session_key, f"refused:{message}"),
            target=draft.source,
            text=text,
            session_key=draft.session_key,
            kind=NOTICE,
        )

    async def _interrupt(self, draft: InboxDraft, inbox_id: InboxId) -> None:
        """Stop the turn of the same sender and key, where its platform says so; the message goes on in its place.

        The lease is compared as it was read: a turn that ended meanwhile, or a younger one, is not touched. One that
        answers the message itself is what it is to go on in.
        """
        if draft.kind != MESSAGE or draft.error or self._policy(draft.source) != "interrupt":
            return
        from asyncio import wrap_future

        for _ in range(_TRIES):  # a renewal between the look and the revoke changes the lease, not the turn
            lease = await wrap_future(self._store.submit_read(lambda reader: _running(reader, draft, inbox_id)))
            if lease is None:
                return
            operation = Revoke(
                lineage_id=lease.lineage_id,
                now=self._clock.now(),
                reason="a newer message came",
                expected=lease.stamp,
            )
            is_dead = dead_stamp(lease) is not None  # now: who lives when it ends tells that itself
            ended = await self._store.perform(operation)
            if ended is not None:
                if is_dead:
                    self._hooks.turn_ended(ended)
                self._desk.wake(lease.lineage_id)
                return


def _left_by_the_dead(reader: StoreReader, keys: Iterable[SessionKey]) -> tuple[LineageId, ...]:
    """Return the lineages of keys in which the only sign of work is of processes that are known to be dead."""
    found = []
    for route in filter(None, map(reader.route, keys)):
        lease = None if route.lineage_id is None else reader.lease(route.lineage_id)
        if route.lineage_id is None or lease is None:
            continue
        waiting = reader.waiting(route.lineage_id)
        forsaken = [item for item in waiting if item.waiter is not None and holder_lives(item.waiter) is False]
        if forsaken or dead_stamp(lease) is not None:
            found.append(route.lineage_id)
    return tuple(found)


def _running(reader: StoreReader, draft: InboxDraft, newest: InboxId) -> Lease | None:
    """Return the lease under which a turn of a message's key and sender runs that answers only older messages."""
    key = draft.session_key
    route = reader.route(key)
    lease = None if route is None or route.lineage_id is None else reader.lease(route.lineage_id)
    if lease is None or lease.holder is None or lease.holder.session_key != key:
        return None
    turn = reader.active_turn(lease.lineage_id)
    if turn is None or turn.user_id != draft.source.participant:
        return None
    return None if any(item >= newest for item in turn.inbox_ids) else lease
