"""The end of a turn: last rows, usage, counters, and a free lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.ids import TurnId
from hermes_hookspecs.messages import (
    INTERRUPTED_RESULT,
    KIND_INTERRUPTED,
    TOOL,
)
from hermes_hookspecs.operations import Append, RecordUsage
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    asking,
    fence_of,
    result,
    saying,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures
from hermes_hookspecs.turns import RecordedUsage, Usage

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["FinishTests"]


class FinishTests(StoreFixtures):
    """A finish stores the last rows, settles, counts and frees, all at once."""

    def test_a_finish_settles_everything(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.clock.advance(10)

        finished = scene.finish(begun, saying("hi"))

        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert (turn.outcome, turn.ended_at, turn.reason) == ("done", scene.now, "")
        assert scene.status(begun.turn.inbox_ids[0]) == "done"
        assert scene.texts(entry.lineage_id) == ["hello", "hi"]
        assert finished.message_ids == (scene.rows(entry.lineage_id)[-1].id,)
        assert finished.version == scene.lineage(entry.lineage_id).version == begun.version + 1
        assert scene.lineage(entry.lineage_id).last_activity == scene.now

    def test_a_finish_frees_the_lease_and_keeps_its_token(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.talk(entry)

        lease = scene.lease(entry.lineage_id)

        assert (lease.token, lease.holder) == (begun.turn.token, None)
        assert (lease.acquired_at, lease.expires_at) == (None, None)
        assert store.leases() == ()
        assert scene.ask(entry).turn.token == begun.turn.token + 1

    def test_a_finish_says_why_it_failed(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())

        scene.finish(begun, saying("sorry"), outcome="failed", reason="model is away")

        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert (turn.outcome, turn.reason) == ("failed", "model is away")

    def test_open_calls_get_results_before_the_last_rows(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1", "c2", "c3"))
        scene.append(begun, result("c3", "three"))

        scene.finish(begun, result("c2", "two"), saying("bye"))

        rows = scene.rows(entry.lineage_id)[2:]
        found = [(row.tool_call_id, row.content) for row in rows]
        assert found == [("c3", "three"), ("c2", "two"), ("c1", INTERRUPTED_RESULT), (None, "bye")]
        assert [row.kind for row in rows] == ["", "", KIND_INTERRUPTED, ""]
        assert all(row.turn_id == begun.turn.id for row in rows)

    def test_counters_move_with_the_rows(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, saying("let me see"), asking("c1", "c2"))
        middle = scene.lineage(entry.lineage_id)
        scene.finish(begun, result("c1"), saying("bye"))

        session, lineage = scene.tip(entry.lineage_id), scene.lineage(entry.lineage_id)
        assert (session.message_count, session.tool_call_count) == (6, 2)
        assert (middle.message_count, middle.turn_count) == (3, 1)
        assert (lineage.message_count, lineage.turn_count, lineage.segments) == (6, 1, 1)
        assert len([row for row in scene.rows(entry.lineage_id) if row.role == TOOL]) == 2

    def test_usage_is_kept_and_added_up(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        first = Usage(model="m", input_tokens=10, estimated_cost_usd=0.5)
        second = Usage(model="m", input_tokens=5, output_tokens=7)

        scene.finish(begun, usage=(first, second))

        recorded = [(each.usage, each.at, each.late) for each in store.usage(begun.turn.id)]
        assert recorded == [(first, scene.now, False), (second, scene.now, False)]
        session = scene.tip(entry.lineage_id)
        assert (session.input_tokens, session.output_tokens) == (15, 7)
        assert (session.cache_read_tokens, session.cache_write_tokens) == (None, None)
        assert session.estimated_cost_usd is None
        (summary,) = store.summaries(ALL)
        assert (summary.input_tokens, summary.output_tokens, summary.cache_read_tokens) == (15, 7, None)

    def test_what_was_used_beside_the_agent_is_kept_with_the_end_and_measures_no_prompt(
        self, store: Store, scene: Scene
    ) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        own, beside = Usage(model="big", input_tokens=10), Usage(model="small", input_tokens=5)

        scene.finish(begun, usage=(own,), side_usage=(beside,))

        recorded = [(each.usage, each.at, each.late) for each in store.usage(begun.turn.id)]
        assert recorded == [(own, scene.now, False), (beside, scene.now, True)]
        assert scene.tip(entry.lineage_id).input_tokens == 15

    def test_what_a_step_brings_along_is_kept_although_its_turn_never_ends(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        own, beside = Usage(model="big", input_tokens=10), Usage(model="small", input_tokens=5)
        step = Append(fence=fence_of(begun), drafts=(asking("c1"),), now=scene.now, usage=(own,), side_usage=(beside,))
        scene.run(step)
        scene.revoke(entry.lineage_id)

        with pytest.raises(LeaseLost):
            scene.run(attrs.evolve(step, drafts=(saying("too late"),)))

        assert [(each.usage, each.late) for each in store.usage(begun.turn.id)] == [(own, False), (beside, True)]
        assert scene.tip(entry.lineage_id).input_tokens == 15

    def test_a_known_zero_is_not_unknown(self, scene: Scene) -> None:
        entry = scene.enter()

        scene.finish(scene.ask(entry), usage=(Usage(cache_read_tokens=0),))

        assert scene.tip(entry.lineage_id).cache_read_tokens == 0

    def test_usage_is_taken_from_a_turn_that_lost_its_lease(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.revoke(entry.lineage_id)
        version = scene.lineage(entry.lineage_id).version

        scene.clock.advance(5)
        late = Usage(output_tokens=3)

        scene.run(RecordUsage(turn_id=begun.turn.id, usage=late, now=scene.now))

        assert store.usage(begun.turn.id) == (RecordedUsage(usage=late, at=scene.now, late=True),)
        assert scene.tip(entry.lineage_id).output_tokens == 3
        assert scene.lineage(entry.lineage_id).version == version

    def test_usage_of_an_unknown_turn_is_dropped(self, store: Store, scene: Scene) -> None:
        unknown = TurnId("T-nowhere")
        scene.ask(scene.enter())

        scene.run(RecordUsage(turn_id=unknown, usage=Usage(output_tokens=3), now=scene.now))

        assert store.usage(unknown) == ()

    def test_turns_are_listed_oldest_first(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        first = scene.talk(entry).turn.id
        scene.talk(other)
        scene.clock.set_now(scene.now - 5000)
        second = scene.talk(entry).turn.id

        assert [turn.id for turn in store.turns(entry.lineage_id, ALL)] == [first, second]
        assert store.waiting_of_key(KEY) == ()
