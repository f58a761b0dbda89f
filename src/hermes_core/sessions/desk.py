"""Routing and sessions of one profile: which key, which lineage, and what may be done with it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from hermes_core.sessions.leading import key_behind, leads_to, may_claim
from hermes_hookspecs.errors import Conflict, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.resets.desk import ResetDesk
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.inbox import ControlOutcome, InboxItem
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.operations import BindRoute, Branch, Claim, Deleted, ReleaseRoute, Rename, Revoke
    from hermes_hookspecs.outbox import DeliveryDraft
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Left, SessionEntry
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["SessionDesk"]


class SessionDesk:
    """Finds, makes, binds, names and removes sessions. Thread-safe; blocks.

    :param store: returns the open store. wake: wakes who waits for a lineage, or works in it.
    :ivar carried: makes the first row of a session behind one that is carried over.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        hooks: Hooks,
        settings: Settings,
        clock: Clock,
        wake: Callable[[LineageId], None],
    ) -> None:
        from hermes_core.sessions.endings import Endings
        from hermes_core.sessions.single_flight import SingleFlight

        self._store = store
        self._hooks = hooks
        self._settings = settings
        self._clock = clock
        self.wake = wake
        self._flights: SingleFlight[SessionEntry] = SingleFlight()
        self._endings = Endings(store, hooks)
        self.carried: Callable[[Store, LineageId, int], MessageDraft | None] = lambda *_: None

    @cached_property
    def resets(self) -> ResetDesk:
        """Return what ends conversations by policy; who only reads does not need it."""
        from hermes_core.resets.desk import ResetDesk

        return ResetDesk(self._store, self._hooks, self._settings, self._clock)

    def close(self) -> None:
        """Wait, for as long as it may take, for agents that let go of a conversation."""
        if "resets" in self.__dict__:
            self.resets.closings.wait()

    # --- keys

    @property
    def keys(self) -> KeyBuilder:
        """Return the key builder in force."""
        return self._hooks.key_builder()

    def policy(self, source: SessionSource) -> KeyPolicy:
        """Return the sharing policy of the platform that ``source`` names."""
        from hermes_core.routing.policy import policy_of

        return policy_of(self._settings, source.platform)

    def at_home(self, source: SessionSource) -> SessionSource:
        """Return ``source`` with this profile's namespace, unless it names another one."""
        from hermes_core.routing.policy import key_profile
        from hermes_hookspecs.source import DEFAULT_PROFILE

        own = key_profile(self._settings.profile)
        if source.profile != DEFAULT_PROFILE or own == DEFAULT_PROFILE:
            return source
        import attrs

        return attrs.evolve(source, profile=own)

    def key(self, source: SessionSource) -> SessionKey:
        """Return the session key of ``source``. :raises KeyBuildError: too little identity."""
        return self.keys.build(self.at_home(source), self.policy(source))

    def shared(self, source: SessionSource) -> bool:
        """Return whether several people write into the session behind the key of ``source``."""
        return self.keys.parts(source, self.policy(source)).shared

    def principal(self, source: SessionSource) -> Principal:
        """Return on whose behalf a message from ``source`` reads: the terminal is the operator."""
        from hermes_core.config.access import admins_of
        from hermes_hookspecs.principal import ADMIN, operator, principal_of

        if source.platform == "cli":
            return operator(source.user_name or source.user_id or "")
        found = principal_of(source, shared=self.shared(source))
        if admins_of(self._settings, source.platform).isdisjoint((source.user_id, source.user_id_alt)):
            return found
        import attrs

        return attrs.evolve(found, roles=found.roles | {ADMIN})

    # --- routes

    def get_or_create(self, source: SessionSource, *, force_new: bool = False, touch: bool = True) -> SessionEntry:
        """Return the session of ``source``; callers at once share one answer, or one error.

        With ``force_new`` those are at once who saw the same session behind the key when they called, in whatever
        process: one of them makes the new one.
        """
        source = self.at_home(source)
        key = self.key(source)
        seen = leads_to(self._store(), key) if force_new else None
        mine: list[SessionEntry] = []

        def make() -> SessionEntry:
            if not force_new:
                self.resets.settle(key)
            observed = seen if force_new else leads_to(self._store(), key)
            mine.append(self._get_or_create(key, source, force_new, touch, observed))
            return mine[0]

        entry = self._flights.do((key, force_new, touch, seen), make)
        if mine or not entry.created:
            return entry
        import attrs

        return attrs.evolve(entry, created=False)  # one call made it: the one that was followed

    def entry_for(self, source: SessionSource, entry: SessionEntry | None = None) -> SessionEntry:
        """Return the session in which a message of ``source`` is said now.

        :param entry: the session that its sender has before them; a new one where a policy has ended it.
        """
        if entry is None or self.resets.has_ended(self.key(source), entry.lineage_id):
            return self.get_or_create(source)
        return entry

    def route_waiting(self, item: InboxItem) -> SessionEntry:
        """Give the messages that wait under a row's own key a session; the key of today's settings may be another."""
        self.resets.deliver_notice(item.session_key, item.source)
        lineage_id = leads_to(self._store(), item.session_key)
        return self._get_or_create(item.session_key, item.source, False, False, lineage_id)

    def entry_behind(self, item: InboxItem) -> SessionEntry | None:
        """Return the session that a row's own key leads to now, or that it may claim; makes none."""
        self.resets.settle(item.session_key)
        lineage_id = leads_to(self._store(), item.session_key)
        if lineage_id is None and not may_claim(self._store(), self._claims(item.session_key, item.source)):
            return None
        return self._get_or_create(item.session_key, item.source, False, False, lineage_id)

    def _claims(self, key: SessionKey, source: SessionSource) -> tuple[Claim, ...]:
        """Return the older routes that a message of a key may take over; none where the key was let go."""
        from hermes_core.routing.claims import claims_of

        if self._store().route(key) is not None:
            return ()
        claims = claims_of(self.keys, self._hooks.legacy_claims, self.at_home(source), self.policy(source))
        self.resets.settle_all(claim.key for claim in claims)  # what has had its time is not brought back
        return claims

    def _get_or_create(
        self, key: SessionKey, source: SessionSource, force_new: bool, touch: bool, observed: LineageId | None
    ) -> SessionEntry:
        from hermes_hookspecs.ids import new_lineage_id, new_session_id
        from hermes_hookspecs.operations import GetOrCreate
        from hermes_hookspecs.principal import owner_of

        store, policy, shared, now = self._store(), self.policy(source), self.shared(source), self._clock.now()
        carry = self._carry(key, now) if observed is None and not force_new else None
        entry = store.apply(
            GetOrCreate(
                key=key,
                key_version=self.keys.version,
                source=source,
                owner=owner_of(source, shared=shared),
                policy=policy,
                shared=shared,
                now=now,
                session_id=new_session_id(now),
                lineage_id=new_lineage_id(now),
                force_new=force_new,
                observed=observed,
                touch=touch,
                claims=self._claims(key, source) if observed is None and not force_new else (),
                carry=carry,
            )
        )
        if entry.created:
            if observed is not None:
                self._endings.tell_left(observed)
            self._hooks.fire("hermes_after_session_start", entry=entry)
        return entry

    def _carry(self, key: SessionKey, now: int) -> MessageDraft | None:
        """Return what a session begins with that is made under a key now, whose route was let go of."""
        from hermes_core.resets.carrying import NEVER, carried_from

        if self._settings.session_reset.carry_over == NEVER:
            return None
        lineage_id = carried_from(self._store(), key, now)
        return None if lineage_id is None else self.carried(self._store(), lineage_id, now)

    def branch(
        self, source: SessionSource, lineage_id: LineageId, *, title: str | None, control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a lineage that begins where another one stands; errors as in the port."""
        from hermes_core.sessions.branching import branching

        source = self.at_home(source)
        key, item = (
            key_behind(self._store(), control_id, lambda: self.key(source)),
            None if control_id is None else self._store().inbox_item(control_id),
        )
        if item is not None and item.outcome is not None and item.outcome.lineage_id is not None:
            return self._get_or_create(key, source, False, False, item.outcome.lineage_id)
        made = branching(self, self._store(), key, source, lineage_id, title=title, now=self._clock.now())
        before = leads_to(self._store(), key)
        outcome = self._run(made, control_id)
        entry = self._get_or_create(key, source, False, False, outcome.lineage_id)
        self._endings.tell_left(before)
        self._hooks.fire("hermes_after_session_start", entry=entry)
        return entry

    def resume(
        self, source: SessionSource, lineage_id: LineageId, *, control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a lineage and return its tip, reopened.

        :raises SessionNotFound: no such lineage, or not the principal's.
        """
        from attrs import evolve

        from hermes_hookspecs.operations import BindRoute

        source = self.at_home(source)
        store, principal = self._store(), self.principal(source)
        if store.lineage(lineage_id, principal) is None:
            raise SessionNotFound(lineage_id)
        key = key_behind(self._store(), control_id, lambda: self.key(source))
        before = store.route(key)
        bind = BindRoute(
            key=key,
            key_version=self.keys.version,
            source=source,
            policy=self.policy(source),
            lineage_id=lineage_id,
            now=self._clock.now(),
            carry=control_id is None,
            control_id=control_id,
        )
        if control_id is None:
            entry = store.apply(bind)
        else:
            outcome = self._run(bind, control_id)
            entry = self._get_or_create(key, source, False, False, lineage_id)
            entry = evolve(entry, superseded=outcome.superseded)
        if before is not None and before.lineage_id not in (None, lineage_id):
            self._endings.tell_left(before.lineage_id)
        return entry

    def leave(
        self,
        source: SessionSource,
        entry: SessionEntry | None,
        *,
        title: str | None = None,
        control_id: InboxId | None = None,
    ) -> Left | None:
        """Let the key of ``source`` lead nowhere; the next message makes a session. No history is lost.

        :param entry: what the caller shows; where the key leads elsewhere by now nothing is let go.
        :returns: what was left, ``None`` where there was nothing.
        """
        from hermes_hookspecs.operations import ReleaseRoute
        from hermes_hookspecs.principal import operator
        from hermes_hookspecs.sessions import Left

        key, now = key_behind(self._store(), control_id, lambda: self.key(source)), self._clock.now()
        if may_claim(self._store(), self._claims(key, source)):
            self._get_or_create(key, self.at_home(source), False, False, None)
        before = leads_to(self._store(), key)
        release = ReleaseRoute(
            key=key,
            now=now,
            reason="session_reset",
            title=title,
            check=entry is not None,
            expected=None if entry is None else entry.lineage_id,
            control_id=control_id,
            state=self.resets.carrying(key, before, now, automatic=False),
        )
        held = self._endings.left_by_the_dead(before)
        try:
            outcome = self._run(release, control_id)
        except Conflict:
            return None
        self.resets.drop_notice(release.key)
        if outcome.lineage_id is None:
            return Left(summary=None, superseded=outcome.superseded, stopped=False) if outcome.superseded else None
        if outcome.stopped is not None or outcome.superseded:
            self.wake(outcome.lineage_id)
        self._endings.tell_dead(outcome, held)
        if not outcome.repeated:
            self._endings.tell_left(outcome.lineage_id)
            self.resets.tell_reset(outcome.lineage_id, release.reason, automatic=False)
            self.resets.close_agents(outcome.lineage_id)
        summary = self._store().summary(outcome.lineage_id, operator())
        return Left(summary=summary, superseded=outcome.superseded, stopped=outcome.stopped is not None)

    def stop(
        self,
        lineage_id: LineageId,
        reason: str,
        control_id: InboxId | None,
        deliveries: tuple[DeliveryDraft, ...] = (),
    ) -> bool:
        """Revoke the lease of a lineage and end its turn for good; return whether one was running.

        :param deliveries: what the senders of its messages are told.
        :raises SessionNotFound: no such lineage.
        """
        from hermes_hookspecs.operations import Revoke

        held = self._endings.left_by_the_dead(lineage_id)
        revoke = Revoke(lineage_id=lineage_id, now=self._clock.now(), reason=reason, deliveries=deliveries)
        outcome = self._run(revoke, control_id)
        self.wake(lineage_id)
        self._endings.tell_dead(outcome, held)
        return outcome.stopped is not None

    def _run(
        self, effect: BindRoute | Branch | ReleaseRoute | Rename | Revoke, control_id: InboxId | None
    ) -> ControlOutcome:
        """Run an effect; as that of a command's row it runs once, however often this is called."""
        from hermes_hookspecs.operations import Control
        from hermes_hookspecs.operations.outcomes import outcome_of

        if control_id is None:
            return outcome_of(effect, self._store().apply(effect))
        return self._store().apply(Control(inbox_id=control_id, effect=effect, now=self._clock.now()))

    def forget(self, sources: Sequence[SessionSource]) -> None:
        """Remove the routes of entrances that end with this process; a store that cannot do it soon keeps them.

        They do no harm, and why the process ends is what its user has to be told.
        """
        if sources:  # else a command that only read: it has not loaded the operations either
            from hermes_core.sessions.removal import forget

            forget(self._store(), dict.fromkeys(map(self.key, sources)), now=self._clock.now())

    # --- names and removal

    def rename(self, lineage_id: LineageId, title: str | None, *, control_id: InboxId | None = None) -> str | None:
        """Clean and set a person's title. :raises TitleError: too long, or taken."""
        from hermes_core.sessions.titles import clean_title
        from hermes_hookspecs.operations import Rename

        clean = clean_title(title)
        rename = Rename(lineage_id=lineage_id, title=clean, origin="user", now=self._clock.now())
        outcome = self._run(rename, control_id)
        if not outcome.repeated:
            self._hooks.fire("hermes_after_title_change", lineage_id=lineage_id, title=outcome.title, origin="user")
        return outcome.title

    def check_title(self, title: str | None, source: SessionSource) -> str | None:
        """Return a clean title that a session of ``source`` could have now.

        :raises TitleError: too long, or taken by another session of the same owner.
        """
        from hermes_core.sessions.titles import free_title
        from hermes_hookspecs.principal import owner_of

        return free_title(self._store(), title, owner_of(source, shared=self.shared(source)))

    def delete(self, lineage_id: LineageId, *, force: bool = False) -> Deleted:
        """Remove a lineage with all that hangs on it. :raises LeaseBusy: a turn runs, and not ``force``."""
        from hermes_core.sessions.removal import delete

        deleted = delete(self._store(), self._hooks, lineage_id, now=self._clock.now(), force=force)
        self.wake(lineage_id)
        return deleted
