"""Accepting what nobody waits for: redaction, key, one transaction for the batch, and what is told to the sender.

Only when this has returned is the platform told that the messages arrived (``design.md`` section 4). An item that
cannot be read, or whose sender cannot be told apart, becomes a quarantined row: it never holds up the cursor, and never
reaches somebody else's session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.faultpoints import reach
from hermes_core.inbox.door import entrance_of
from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.inbox import CONTROL, MESSAGE, InboxDraft
from hermes_hookspecs.operations import Accept, Deliver, Revoke
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key
from hermes_hookspecs.source import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import Lease

__all__ = ["UNREADABLE", "Acceptance"]

UNREADABLE = "unreadable"
"""Chat type in the key of rows that have no key of their own."""

BUSY = "busy"
"""Why a draft was refused that asked to be taken only by an idle session."""

_TRIES = 3


class Acceptance:
    """Takes batches of messages for entrances that somebody serves.

    :param is_command: whether a text is a slash command. wake: wakes those who serve.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        desk: SessionDesk,
        settings: Settings,
        is_command: Callable[[str], bool],
        wake: Callable[[Iterable[Entrance]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._desk = desk
        self._settings = settings
        self._is_command = is_command
        self._wake = wake

    async def accept(self, events: Sequence[MessageEvent], state: Sequence[StateUpdate]) -> Sequence[AcceptResult]:
        """Store a batch and its sender's state; results in order. Errors as ``App.accept`` raises them."""
        now = self._clock.now()
        drafts = tuple(self._draft(event) for event in events)
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
            if result.id is not None and not result.duplicate:
                await self._interrupt(draft, result.id)
        self._wake(draft.entrance for draft in drafts)
        return results

    def _draft(self, event: MessageEvent) -> InboxDraft:
        source, error = self._desk.at_home(event.source), event.error
        try:
            key = self._desk.key(source)
        except KeyBuildError as refused:
            key = SessionKey(f"agent:{source.profile}:{source.platform}:{UNREADABLE}")
            error = error or str(refused)
        # What cannot be read may still hold what is to be redacted.
        text = self._hooks.redact_inbound(event.text, source) if event.text else ""
        kind = CONTROL if event.kind == MESSAGE and not event.attachments and self._is_command(text) else event.kind
        if kind == CONTROL and not self._is_command(text):
            error = error or "a control row that is no command"
        return InboxDraft(
            session_key=key,
            source=source,
            entrance=entrance_of(source),
            text=text,
            accepted_at=self._clock.now(),
            identities=tuple(_of_account(identity, source) for identity in event.identities),
            attachments=event.attachments,
            kind=kind,
            error=error,
            only_if_idle=kind == MESSAGE and not error and self._policy(source) == "reject",
        )

    def _policy(self, source: SessionSource) -> str:
        return self._settings.busy_policy_of(source.platform)

    def _refusal(self, draft: InboxDraft, reason: str, number: int) -> DeliveryDraft:
        """Return what the sender of a refused message is told, once however often it is delivered."""
        if reason == BUSY:
            text = "I am still at work here. This message was not taken; send it again later."
        else:
            most = self._settings.inbox.max_waiting
            text = f"{most} messages wait here already. This message was not taken; send it again later."
            self._hooks.fire("hermes_after_inbox_overflow", session_key=draft.session_key, waiting=most)
        message = draft.identities[0] if draft.identities else f"refused:{draft.accepted_at}:{number}"
        return DeliveryDraft(
            key=delivery_key(draft.session_key, message),
            target=draft.source,
            text=text,
            session_key=draft.session_key,
            kind=NOTICE,
        )

    async def _interrupt(self, draft: InboxDraft, inbox_id: InboxId) -> None:
        """Stop the turn that the same key began, where its platform says so; the message goes on in its place.

        The lease is compared as it was read: a turn that ended meanwhile, or a younger one, is not touched. One that
        answers the message itself is what it is to go on in.
        """
        if draft.kind != MESSAGE or draft.error or self._policy(draft.source) != "interrupt":
            return
        from asyncio import wrap_future

        for _ in range(_TRIES):  # a renewal between the look and the revoke changes the lease, not the turn
            lease = await wrap_future(
                self._store.submit_read(lambda reader: _running(reader, draft.session_key, inbox_id))
            )
            if lease is None:
                return
            operation = Revoke(
                lineage_id=lease.lineage_id,
                now=self._clock.now(),
                reason="a newer message came",
                expected=lease.stamp,
            )
            if await self._store.perform(operation) is not None:
                self._desk.wake(lease.lineage_id)
                return


def _of_account(identity: str, source: SessionSource) -> str:
    """Return an identity that tells the accounts apart: what two of our bots receive are two messages.

    As in a key, the first account is not named.
    """
    if source.account_id == DEFAULT_ACCOUNT:
        return identity
    return f"account={encode_text(source.account_id)}:{identity}"


def _running(reader: StoreReader, key: SessionKey, newest: InboxId) -> Lease | None:
    """Return the lease under which a turn of this key runs that answers nothing but older messages."""
    route = reader.route(key)
    lease = None if route is None or route.lineage_id is None else reader.lease(route.lineage_id)
    if lease is None or lease.holder is None or lease.holder.session_key != key:
        return None
    turn = reader.active_turn(lease.lineage_id)
    return None if turn is None or any(item >= newest for item in turn.inbox_ids) else lease
