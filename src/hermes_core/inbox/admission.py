"""The gate in front of the inbox of a gateway: who is let in, decided before anything of a message is stored.

Of a refused sender identity and reason are kept, and nothing else.
"""

from __future__ import annotations

from asyncio import wrap_future
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.config.access import access_of
from hermes_core.inbox.access import UNADDRESSED, decide, needs_standing
from hermes_core.inbox.pairing import CODE_LIFE_MS, new_code, request, standing
from hermes_core.inbox.recalls import take_back
from hermes_hookspecs.errors import Conflict, KeyBuildError, PluginError
from hermes_hookspecs.inbox import AcceptResult
from hermes_hookspecs.operations import Deliver, PutState
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key
from hermes_hookspecs.specs.decisions import Allow, Ignore, Refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.config.access import AccessSettings
    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.inbox.acceptance import Acceptance
    from hermes_core.inbox.refusals import RefusalBook
    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.state import StateUpdate

__all__ = ["Admission"]

_log = getLogger(__name__)

_ASKED = "waits to be paired"
_FULL = "too many ask to be paired"
_BOT_TURNS = 10
"""Messages of bots in one chat, one after another, until a person has to write: two bots would talk for ever."""
_CHATS = 1000


class Admission:
    """Lets messages of one platform in, or not. For one event loop.

    :param admits: the platform lets only those through who know a secret (:attr:`PlatformAbilities.admits`).
    :param wake: wakes those who serve an entrance: there is something to send.
    """

    def __init__(
        self,
        acceptance: Acceptance,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        desk: SessionDesk,
        settings: Settings,
        book: RefusalBook,
        admits: bool,
        wake: Callable[[Iterable[Entrance]], None],
    ) -> None:
        self._acceptance = acceptance
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._desk = desk
        self._settings = settings
        self._book = book
        self._admits = admits
        self._wake = wake
        self._bots: dict[str, int] = {}

    async def accept(self, events: Sequence[MessageEvent], state: Sequence[StateUpdate]) -> Sequence[AcceptResult]:
        """Store what is let in, with the adapter's state, in one transaction; results in order of ``events``.

        :raises StorageError: nothing may be acknowledged.
        """
        decided = [await self._decide(event) for event in events]
        decisions = [decision for decision, _ in decided]
        events = [_in_role(event, roles) for event, (_, roles) in zip(events, decided, strict=True)]
        let_in = [at for at, decision in enumerate(decisions) if isinstance(decision, Allow)]
        recalls = [at for at in let_in if events[at].recalls]
        messages = [at for at in let_in if not events[at].recalls]
        results: dict[int, AcceptResult] = {}
        # With recalls the adapter's state comes last: should the process die, the platform says all of it again.
        taken = await self._store_messages([events[at] for at in messages], () if recalls else state)
        results.update(zip(messages, taken, strict=True))
        for at in recalls:
            results[at] = await self._take_back(events[at])
        if recalls and state:
            await self._store.perform(PutState(updates=tuple(state), now=self._clock.now()))
        for at, decision in enumerate(decisions):
            if not isinstance(decision, Allow):
                results[at] = AcceptResult(id=None, refused=decision.reason)
                await self._refuse(events[at], decision)
        return [results[at] for at in range(len(events))]

    async def _store_messages(
        self, events: Sequence[MessageEvent], state: Sequence[StateUpdate]
    ) -> Sequence[AcceptResult]:
        return await self._acceptance.accept(events, state) if events or state else ()

    # --- decisions

    async def _decide(self, event: MessageEvent) -> tuple[Allow | Refuse | Ignore, frozenset[str]]:
        """Return the decision, and the roles that are stored with the message.

        Those of the built-in rule are not: whoever is taken off a list of the settings is an admin no longer.
        """
        try:
            decision = self._hooks.decide_access(event)
        except PluginError as failed:
            _log.warning("a message was refused: %s", failed)
            return Ignore(reason=f"plugin {failed.plugin} could not say whether to let them in"), frozenset()
        roles = decision.roles if isinstance(decision, Allow) else frozenset()
        if decision is None:
            decision = await self._by_rule(event)
        return (decision if not isinstance(decision, Allow) else self._of_bots(event, decision)), roles

    async def _by_rule(self, event: MessageEvent) -> Allow | Refuse | Ignore:
        source, now = event.source, self._clock.now()
        access = access_of(self._settings, source.platform, source.chat_id, source.parent_chat_id, admits=self._admits)
        known = ""
        if needs_standing(event, access):
            known = await wrap_future(self._store.submit_read(lambda reader: standing(reader, source, now)))
        decision = decide(event, access, paired=known == "paired")
        if decision is not None:
            return decision
        return Ignore(reason=_ASKED) if known == "asked" else await self._offer(event, access)

    async def _offer(self, event: MessageEvent, access: AccessSettings) -> Refuse | Ignore:
        """Send a stranger a code, once until it expires; what they wrote is not kept."""
        if event.recalls:
            return Ignore(reason=_ASKED)
        source, now, code = event.source, self._clock.now(), new_code()
        update = await wrap_future(self._store.submit_read(lambda reader: request(reader, source, code, now)))
        if update is None:
            return Ignore(reason=_FULL)
        try:
            await self._store.perform(PutState(updates=(update,), now=now))
        except Conflict:  # their other message was quicker
            return Ignore(reason=_ASKED)
        minutes = CODE_LIFE_MS // 60_000
        reply = (
            f"I do not know you yet, so I did not read this. To be let in, give this code to the person who runs me: "
            f"{code}\nIt is good for {minutes} minutes (hermes pairing approve {code})."
        )
        return Refuse(reason=_ASKED, reply=reply)

    def _of_bots(self, event: MessageEvent, decision: Allow) -> Allow | Ignore:
        chat = f"{event.source.account_id}:{event.source.chat_id}:{event.source.thread_id or ''}"
        if not event.source.is_bot or self._admits:
            self._bots.pop(chat, None)
            return decision
        turns = self._bots.get(chat, 0) + 1
        if turns > _BOT_TURNS:
            return Ignore(reason="bots talk to each other here; a person has to write first")
        if len(self._bots) >= _CHATS:
            self._bots.clear()
        self._bots[chat] = turns
        return decision

    # --- refusals and recalls

    async def _refuse(self, event: MessageEvent, decision: Refuse | Ignore) -> None:
        if decision.reason == UNADDRESSED:
            return
        self._book.note(event.source, decision.reason)
        bare = attrs.evolve(event, text="", attachments=())
        self._hooks.fire("hermes_after_message_refused", event=bare, reason=decision.reason)
        if isinstance(decision, Refuse) and decision.reply:
            await self._reply(event, decision.reply)

    async def _reply(self, event: MessageEvent, text: str) -> None:
        from hermes_core.inbox.door import entrance_of

        source, now = self._desk.at_home(event.source), self._clock.now()
        try:
            key = self._desk.key(source)
        except KeyBuildError as error:
            _log.info("a refused sender is not told: %s", error)
            return
        message = event.identities[0] if event.identities else str(now)
        draft = DeliveryDraft(
            key=delivery_key(key, f"access:{message}"), target=source, text=text, session_key=key, kind=NOTICE
        )
        await self._store.perform(Deliver(drafts=(draft,), now=now))
        self._wake((entrance_of(source),))

    async def _take_back(self, event: MessageEvent) -> AcceptResult:
        try:
            result = await take_back(event, store=self._store, clock=self._clock, desk=self._desk)
        except KeyBuildError as error:
            return AcceptResult(id=None, refused=str(error))
        self._wake(())
        return result


def _in_role(event: MessageEvent, roles: frozenset[str]) -> MessageEvent:
    """Return a message with the roles of its sender, and with no others."""
    if not roles and not event.source.roles:
        return event
    return attrs.evolve(event, source=attrs.evolve(event.source, roles=roles))
