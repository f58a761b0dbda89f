"""The end of conversations by policy: looked at with each message, and by a sweep that says the same."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from hermes_core.resets.effective import any_policy
from hermes_hookspecs.ports.policies import Keep, Reset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.resets.closing import AgentClosings
    from hermes_core.resets.notices import Owed
    from hermes_core.resets.verdicts import Facts, Verdict
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import Released
    from hermes_hookspecs.ports.policies import Activity
    from hermes_hookspecs.ports.resets import ResetExplanation
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import Route
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate

__all__ = ["MOST_RESETS", "ResetDesk"]

MOST_RESETS = 500
"""Conversations that one sweep ends; each is a transaction of its own."""

_AT_ONCE = 100
"""Routes whose facts are read in one view of the store."""


class ResetDesk:
    """Decides, ends, tells. Thread-safe; blocks.

    :param store: returns the open store. hooks, settings, clock: of the profile.
    """

    def __init__(self, store: Callable[[], Store], hooks: Hooks, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._hooks = hooks
        self._settings = settings
        self._clock = clock
        self.active = any_policy(settings)
        self._unchanging: dict[SessionKey, tuple[LineageId, int]] = {}
        self._lock = Lock()

    @cached_property
    def closings(self) -> AgentClosings:
        """Return what has agents let go of conversations that have ended."""
        from hermes_core.resets.closing import AgentClosings

        return AgentClosings(self._hooks, self._settings.session_reset.cleanup_timeout_s)

    # --- deciding

    def decide(self, facts: Facts, now: int) -> Verdict:
        """Return the verdict on a conversation: the one function behind the look, the sweep and the explanation.

        Where the policies cannot be had nothing is reset, and messages are answered all the same.
        """
        from hermes_core.resets.verdicts import judge, undecided
        from hermes_hookspecs.errors import PluginError

        activities = self._activities(facts, now)
        try:
            policies = self._hooks.reset_policies()
        except PluginError as error:
            return undecided(judge(facts, self._settings, {}, activities, now), error)
        return judge(facts, self._settings, policies, activities, now)

    def _activities(self, facts: Facts, now: int) -> tuple[Activity, ...]:
        from hermes_core.resets.verdicts import unknown_activity
        from hermes_hookspecs.errors import PluginError
        from hermes_hookspecs.ports.policies import Activity
        from hermes_hookspecs.principal import operator

        try:
            found = self._hooks.background_activity(facts.lineage.id)
        except PluginError as error:
            found = (unknown_activity(facts.lineage.id, error, now),)
        jobs = self._store().jobs(operator(), lineage_id=facts.lineage.id, running=True)
        return (*found, *(Activity(kind="job", label=job.label, started_at=job.started_at) for job in jobs))

    def _look(self, key: SessionKey) -> Verdict | None:
        from hermes_core.resets.verdicts import facts_of

        facts = self._store().submit_read(lambda reader: facts_of(reader, key)).result()
        return None if facts is None else self.decide(facts, self._clock.now())

    def explain(self, key: SessionKey) -> ResetExplanation:
        """Say what is in force for a key, and what would become of its conversation now; change nothing.

        :raises SessionNotFound: no route has this key.
        """
        from hermes_core.resets.explain import explanation

        return explanation(self._store(), self._settings, key, self._look(key))

    # --- ending

    def settle(self, key: SessionKey) -> bool:
        """Let go of what a key leads to if its time has come; return whether this call did.

        Called for a message before it gets a session. What is in use, or has moved on by then, is left alone.
        """
        if not self.active:
            return False
        verdict = self._look(key)
        return verdict is not None and self._end(verdict)

    def settle_all(self, keys: Iterable[SessionKey]) -> None:
        """Do what :meth:`settle` does for each of several keys."""
        for key in dict.fromkeys(keys):
            self.settle(key)

    def sweep(self) -> tuple[int, bool]:
        """End what :meth:`settle` would end; return how many, and whether there may be more."""
        if not self.active:
            return 0, False
        now, ended = self._clock.now(), 0
        routes = [route for route in self._store().routes() if self._may_end(route, now)]
        for start in range(0, len(routes), _AT_ONCE):
            for verdict in self._verdicts(routes[start : start + _AT_ONCE], now):
                ended += self._end(verdict)
                if ended >= MOST_RESETS:
                    return ended, True
        self._forget_all_but(routes, now)
        return ended, False

    def _may_end(self, route: Route, now: int) -> bool:
        if route.lineage_id is None:
            return False
        with self._lock:
            lineage_id, until = self._unchanging.get(route.key, (None, 0))
        return lineage_id != route.lineage_id or now >= until

    def _verdicts(self, routes: Sequence[Route], now: int) -> list[Verdict]:
        from hermes_core.resets.verdicts import facts_of

        read = self._store().submit_read(lambda reader: [facts_of(reader, route.key) for route in routes])
        verdicts = [self.decide(facts, now) for facts in read.result() if facts is not None]
        with self._lock:
            for verdict in verdicts:
                decision, facts = verdict.decision, verdict.facts
                if isinstance(decision, Keep) and decision.next_check is not None:
                    self._unchanging[facts.route.key] = (facts.lineage.id, decision.next_check)
        return verdicts

    def _forget_all_but(self, routes: Sequence[Route], now: int) -> None:
        """Keep no notes on what was looked at and has passed, nor more of them than there may be conversations."""
        with self._lock:
            self._unchanging = {key: note for key, note in self._unchanging.items() if now < note[1]}

    def _end(self, verdict: Verdict) -> bool:
        """Let go of a conversation if the verdict says so and it has not moved since; tell of it."""
        from hermes_core.resets.notices import owing
        from hermes_hookspecs.errors import Conflict
        from hermes_hookspecs.operations import ReleaseRoute

        facts, decision = verdict.facts, verdict.decision
        if not isinstance(decision, Reset):
            return False
        carrying = self.carrying(facts.route.key, facts.lineage.id, verdict.now, automatic=True)
        release = ReleaseRoute(
            key=facts.route.key,
            now=verdict.now,
            reason=decision.reason,
            check=True,
            expected=facts.lineage.id,
            quiet_since=facts.last_activity,
            state=(*carrying, *owing(verdict, decision.reason)),
        )
        try:
            released = self._store().apply(release)
        except Conflict:
            return False  # somebody was here meanwhile
        self._tell(verdict, decision, released)
        return True

    def _tell(self, verdict: Verdict, decision: Reset, released: Released) -> None:
        """Tell plugins and agents; its people are owed their notice since it ended."""
        from hermes_hookspecs.principal import operator

        store, lineage = self._store(), verdict.facts.lineage
        tip = store.session(lineage.tip, operator())
        ended = None if tip is None else tip.end_reason
        if released.lineage is not None and ended is not None:
            self._hooks.fire("hermes_after_session_end", lineage_id=lineage.id, session_id=lineage.tip, reason=ended)
        self.tell_reset(lineage.id, decision.reason, automatic=True)
        self.close_agents(lineage.id)

    def carrying(
        self, key: SessionKey, lineage_id: LineageId | None, now: int, *, automatic: bool
    ) -> tuple[StateUpdate, ...]:
        """Return what a reset remembers for the next session under a key, by ``[session_reset] carry_over``."""
        from hermes_core.resets.carrying import ALWAYS, NEVER, carrying, forgetting

        wanted = self._settings.session_reset.carry_over
        if wanted == NEVER or lineage_id is None:
            return ()
        return carrying(key, lineage_id, now) if automatic or wanted == ALWAYS else forgetting(key)

    def close_agents(self, lineage_id: LineageId) -> None:
        """Have agents let go of a conversation that no route leads to any more; delays nothing."""
        if not self._store().routes(lineage_id=lineage_id, limit=1):
            self.closings.close(lineage_id)

    def tell_reset(self, lineage_id: LineageId, reason: str, *, automatic: bool) -> None:
        """Tell plugins that a route let go of a lineage."""
        from hermes_hookspecs.principal import operator

        lineage = self._store().lineage(lineage_id, operator())
        if lineage is not None:
            self._hooks.fire(
                "hermes_after_reset",
                lineage_id=lineage_id,
                session_id=lineage.tip,
                reason=reason,
                automatic=automatic,
            )

    # --- what is owed

    def has_ended(self, key: SessionKey, lineage_id: LineageId) -> bool:
        """Return whether a policy has ended the conversation that somebody under ``key`` has before them, or does now.

        What a person let go of, or led elsewhere, is not meant: who goes on in it says so on purpose.
        """
        if not self.active:
            return False
        route = self._store().route(key)
        if route is None:
            return False
        if route.lineage_id == lineage_id:
            return self.settle(key)
        return route.lineage_id is None and self._was_ended_by_policy(lineage_id)

    def _was_ended_by_policy(self, lineage_id: LineageId) -> bool:
        from hermes_core.resets.answers import OF_THE_STORE
        from hermes_hookspecs.principal import operator

        store, everybody = self._store(), operator()
        lineage = store.lineage(lineage_id, everybody)
        tip = None if lineage is None else store.session(lineage.tip, everybody)
        return tip is not None and tip.end_reason is not None and tip.end_reason not in OF_THE_STORE

    def notice(self, key: SessionKey) -> Owed | None:
        """Return the notice that is owed under a key, until :meth:`drop_notice`."""
        if not self.active:
            return None
        from hermes_core.resets.notices import owed

        return owed(self._store(), key, self._clock.now())

    def drop_notice(self, key: SessionKey) -> None:
        """Owe nothing under a key any more."""
        from hermes_core.resets.notices import forgetting
        from hermes_hookspecs.operations import PutState

        if self.notice(key) is not None:
            self._store().apply(PutState(updates=(forgetting(key),), now=self._clock.now()))

    def deliver_notice(self, key: SessionKey, target: SessionSource) -> None:
        """Put the notice that is owed under a key into the outbox, once, to where somebody has just spoken."""
        found = self.notice(key)
        if found is None:
            return
        from hermes_hookspecs.operations import Deliver
        from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key

        draft = DeliveryDraft(
            key=delivery_key(key, f"reset:{found.lineage_id}:{found.at}"),
            target=target,
            text=found.text,
            session_key=key,
            kind=NOTICE,
        )
        self._store().apply(Deliver(drafts=(draft,), now=self._clock.now()))
        self.drop_notice(key)
