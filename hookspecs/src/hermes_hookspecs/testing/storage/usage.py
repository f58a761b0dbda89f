"""Sums of usage: what is not known is never taken for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.operations import RecordUsage
from hermes_hookspecs.principal import Principal, owner_of
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures
from hermes_hookspecs.turns import Usage
from hermes_hookspecs.usage import GROUPINGS, UsageSum

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["UsageTests"]

PRICED = Usage(model="m", input_tokens=10, output_tokens=2, cache_read_tokens=4, estimated_cost_usd=0.25)
FREE = Usage(model="n", input_tokens=1, output_tokens=1)


def _two_people(scene: Scene) -> tuple[SessionEntry, SessionEntry]:
    mine = scene.enter()
    scene.finish(scene.ask(mine), usage=(PRICED, PRICED))
    other = scene.enter(OTHER_KEY, source_at("oc_2", "ou_2"))
    scene.finish(scene.ask(other), usage=(PRICED, FREE))
    return mine, other


class UsageTests(StoreFixtures):
    """Sums per session, lineage, person, model and day."""

    def test_reports_are_summed(self, store: Store, scene: Scene) -> None:
        mine, _ = _two_people(scene)

        (group,) = store.usage_sums(ALL, lineage_id=mine.lineage_id)

        usage = Usage(model="m", input_tokens=20, output_tokens=4, cache_read_tokens=8, estimated_cost_usd=0.5)
        assert (group.name, group.sum) == ("", UsageSum(calls=2, turns=1, usage=usage, known_cost_usd=0.5))
        assert store.usage_sums(ALL, session_id=mine.session_id) == (group,)

    def test_one_unknown_cost_makes_the_sum_unknown(self, store: Store, scene: Scene) -> None:
        _, other = _two_people(scene)

        (group,) = store.usage_sums(ALL, lineage_id=other.lineage_id)

        assert group.sum.usage.estimated_cost_usd is None
        assert (group.sum.unpriced, group.sum.known_cost_usd) == (1, 0.25)
        assert (group.sum.usage.model, group.sum.usage.input_tokens) == (None, 11)
        assert scene.tip(other.lineage_id).estimated_cost_usd is None
        summary = store.summary(other.lineage_id, ALL)
        assert summary is not None
        assert (summary.estimated_cost_usd, summary.input_tokens) == (None, 11)

    @pytest.mark.parametrize("order", [(PRICED, FREE, PRICED), (FREE, PRICED, PRICED), (PRICED, PRICED, FREE)])
    def test_an_unknown_cost_stays_unknown_whenever_it_came(
        self, order: tuple[Usage, ...], store: Store, scene: Scene
    ) -> None:
        entry = scene.enter()

        for usage in order:
            scene.finish(scene.ask(entry), usage=(usage,))

        assert scene.tip(entry.lineage_id).estimated_cost_usd is None
        assert store.usage_sums(ALL)[0].sum.unpriced == 1

    def test_a_price_of_nothing_is_known(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        scene.finish(scene.ask(entry), usage=(Usage(input_tokens=1, estimated_cost_usd=0.0),))

        assert store.usage_sums(ALL)[0].sum.usage.estimated_cost_usd == 0.0
        assert scene.tip(entry.lineage_id).estimated_cost_usd == 0.0

    def test_of_nothing_nothing_is_known(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        assert [group.sum for group in store.usage_sums(ALL, lineage_id=entry.lineage_id)] == [UsageSum()]
        assert store.usage_sums(ALL, by="owner") == ()

    def test_sums_are_grouped(self, store: Store, scene: Scene) -> None:
        mine, other = _two_people(scene)
        owners = sorted(str(scene.lineage(one.lineage_id).owner) for one in (mine, other))

        names = {by: [group.name for group in store.usage_sums(ALL, by=by)] for by in GROUPINGS}
        calls = {by: sum(group.sum.calls for group in store.usage_sums(ALL, by=by)) for by in GROUPINGS}

        assert names["session"] == sorted([mine.session_id, other.session_id])
        assert names["lineage"] == sorted([mine.lineage_id, other.lineage_id])
        assert names["owner"] == owners
        assert names["model"] == ["m", "n"]
        assert names["platform"] == ["cli"]
        assert len(names["day"]) == 1
        assert names["day"][0][4::3] == "--"
        assert set(calls.values()) == {4}

    def test_there_are_no_other_groupings(self, store: Store) -> None:
        with pytest.raises(ValueError, match="colour"):
            store.usage_sums(ALL, by="colour")

    def test_sums_are_of_what_the_principal_may_see(self, store: Store, scene: Scene) -> None:
        mine, other = _two_people(scene)
        me = Principal(owners=frozenset({owner_of(source_at(), shared=False)}))

        assert store.usage_sums(me)[0].sum.calls == 2
        assert store.usage_sums(me, lineage_id=other.lineage_id)[0].sum == UsageSum()
        assert store.usage_sums(ALL, owner=scene.lineage(mine.lineage_id).owner)[0].sum.unpriced == 0

    def test_what_was_used_late_counts_and_time_is_that_of_the_report(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.finish(begun, usage=(PRICED,))
        scene.clock.advance(1000)

        scene.run(RecordUsage(turn_id=begun.turn.id, usage=PRICED, now=scene.now))

        assert store.usage_sums(ALL)[0].sum.calls == 2
        assert store.usage_sums(ALL, since=scene.now)[0].sum.calls == 1
