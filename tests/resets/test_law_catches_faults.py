"""The law of conversations that end is worth something: it finds each of these faults, which no other layer refuses."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from resets_law import Conversations

from hermes_core.app import HermesApp
from hermes_core.resets.desk import ResetDesk
from hermes_core.sessions.desk import SessionDesk
from hermes_hookspecs.operations import BindRoute
from hermes_hookspecs.ports.policies import Reset
from hermes_hookspecs.principal import operator

HALF_AN_HOUR_MS = 1_800_000


def _messages_are_not_looked_at(patch):
    """Only the sweep ends conversations."""
    patch.setattr(ResetDesk, "settle", lambda *_: False)


def _the_sweep_ends_nothing(patch):
    patch.setattr(ResetDesk, "sweep", lambda _: (0, False))


def _conversations_end_early(patch):
    """The policy is asked about a moment that is half an hour away."""
    decide = ResetDesk.decide
    patch.setattr(ResetDesk, "decide", lambda self, facts, now: decide(self, facts, now + HALF_AN_HOUR_MS))


def _recovery_walks_behind_a_reset(patch):
    """A key that leads nowhere is led back to the last conversation that it had."""
    get_or_create = SessionDesk._get_or_create

    def walking(self, key, source, force_new, touch, observed):
        store = self._store()
        ended = [one for one in store.summaries(operator(), limit=None) if self.key(one_source(store, one)) == key]
        if observed is None and not force_new and ended:
            store.apply(
                BindRoute(
                    key=key,
                    key_version=1,
                    source=source,
                    policy=self.policy(source),
                    lineage_id=ended[0].lineage_id,
                    now=self._clock.now(),
                )
            )
        return get_or_create(self, key, source, force_new, touch, observed)

    patch.setattr(SessionDesk, "_get_or_create", walking)


def one_source(store, summary):
    return store.lineage(summary.lineage_id, operator()).source


def _what_is_kept_is_ended(patch):
    """The sweep does not ask the policy."""
    decide = ResetDesk.decide
    patch.setattr(ResetDesk, "decide", lambda *known: attrs.evolve(decide(*known), decision=Reset(reason="idle")))


def _looking_counts_as_use(patch):
    """Who explains a conversation keeps it alive."""
    explain = HermesApp.explain_reset

    def touching(self, key):
        explained, route = explain(self, key), self.store.route(key)
        if route.lineage_id is not None:
            self.desk._get_or_create(key, route.source, False, True, route.lineage_id)
        return explained

    patch.setattr(HermesApp, "explain_reset", touching)


FAULTS = (
    _messages_are_not_looked_at,
    _the_sweep_ends_nothing,
    _conversations_end_early,
    _recovery_walks_behind_a_reset,
    _what_is_kept_is_ended,
    _looking_counts_as_use,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_the_law_finds(monkeypatch, fault):
    fault(monkeypatch)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Conversations,
            settings=settings(
                max_examples=200,
                stateful_step_count=30,
                deadline=None,
                derandomize=True,
                database=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
