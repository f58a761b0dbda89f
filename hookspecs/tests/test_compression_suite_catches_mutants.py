"""The compression suites catch what they are there for: each planted fault fails the test that is about it."""

from __future__ import annotations

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's own policy and store")

from hermes_core.context.hygiene import Hygiene
from hermes_core.context.summaries import ExtractiveSummariser
from hermes_core.storage.memory import MemoryStore, compression
from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.messages import TOOL, USER, MessageDraft
from hermes_hookspecs.testing.compression import CompressionSuite, SummariserSuite
from hermes_hookspecs.testing.scene import Scene
from hermes_hookspecs.testing.storage.compression import CompressionTests


class TestHygiene(CompressionSuite):
    @pytest.fixture
    def policy(self):
        return Hygiene()


class TestExtractive(SummariserSuite):
    @pytest.fixture
    def summariser(self):
        return ExtractiveSummariser()


def _due(view):
    return len(view.rows) >= 4


class InsideAPair:
    name = "inside-a-pair"

    def cut(self, view):
        results = [row.id for row in view.rows if row.role == TOOL]
        return results[0] if _due(view) and results else None


class BetweenParallelResults:
    name = "between"

    def cut(self, view):
        seen = [
            row.id for before, row in zip(view.rows, view.rows[1:], strict=False) if before.role == row.role == TOOL
        ]
        return seen[0] if _due(view) and seen else None


class LastUserLost:
    name = "last-user-lost"

    def cut(self, view):
        rest = [row for row in view.rows if row.role not in {USER, TOOL}]
        return rest[-1].id if _due(view) and rest else None


class Impure:
    name = "impure"

    def __init__(self):
        self.asked = 0

    def cut(self, view):
        self.asked += 1
        cuts = [row.id for row in view.rows[1:] if row.role == USER]
        return cuts[self.asked % len(cuts)] if _due(view) and len(cuts) > 1 else None


class Remembering(Hygiene):
    name = "remembering"

    last = None

    def cut(self, view):
        self.last = super().cut(view) or self.last
        return self.last


class Hasty(Hygiene):
    name = "hasty"

    def cut(self, view):
        return view.rows[-1].id if view.rows and view.rows[-1].role != TOOL else None


@pytest.mark.parametrize(
    ("policy", "law"),
    [
        (InsideAPair, "test_every_cut_is_legal"),
        (BetweenParallelResults, "test_every_cut_is_legal"),
        (LastUserLost, "test_every_cut_is_legal"),
        (Impure, "test_the_same_view_gives_the_same_answer"),
        (Remembering, "test_the_same_view_gives_the_same_answer"),
        (Hasty, "test_a_short_conversation_is_left_alone"),
    ],
)
def test_a_faulty_policy_is_caught(policy, law):
    suite = CompressionSuite()
    arguments = [["ask", "answer", "ask"]] if law == "test_a_short_conversation_is_left_alone" else []

    with pytest.raises(BaseException) as caught:
        getattr(suite, law)(policy(), *arguments)

    assert not isinstance(caught.value, TypeError | AttributeError)


class Copying:
    name = "copying"

    async def summarise(self, rows, *, previous, focus):
        return "\n".join(row.content for row in rows) or "nothing"


class Forgetting:
    name = "forgetting"

    async def summarise(self, rows, *, previous, focus):
        return "all well"


@pytest.mark.parametrize(
    ("summariser", "law"),
    [(Copying, "test_rows_are_not_copied"), (Forgetting, "test_it_builds_on_the_summary_before")],
)
def test_a_faulty_summariser_is_caught(summariser, law):
    with pytest.raises(AssertionError):
        getattr(SummariserSuite(), law)(summariser())


# --- stores


def _tail_copied(tables, operation):
    """Copy the rows that stay into the child."""
    made = compression.compress(tables, operation)
    turn = tables.turns[operation.fence.turn_id]
    kept = [row for row in tables.transcripts[turn.lineage_id] if row.id >= operation.kept_from and not row.kind]
    names = {field.name for field in attrs.fields(MessageDraft)}
    drafts = [MessageDraft(**{name: getattr(row, name) for name in names} | {"inbox_id": None}) for row in kept]
    tables.add_rows(turn.lineage_id, operation.session_id, turn.id, drafts, operation.now)
    return attrs.evolve(made, session=tables.sessions[operation.session_id])


def _any_tip(tables, operation):
    """Do not compare the tip."""
    lineage = tables.lineages.get(operation.fence.lineage_id)
    if lineage is not None and operation.session_id not in tables.sessions:
        operation = attrs.evolve(operation, expected=lineage.tip)
    return compression.compress(tables, operation)


def _not_recognised(tables, operation):
    """Take a repetition for a second compression."""
    if operation.session_id in tables.sessions:
        raise Conflict("there is such a session")
    return compression.compress(tables, operation)


def _parent_open(tables, operation):
    """Leave the parent open."""
    made = compression.compress(tables, operation)
    parent = tables.sessions[made.session.parent_session_id]
    tables.sessions[parent.id] = attrs.evolve(parent, ended_at=None, end_reason=None)
    return made


def _title_moved(tables, operation):
    """Give the lineage the child's title."""
    made = compression.compress(tables, operation)
    lineage = tables.lineages[made.lineage_id]
    tables.lineages[lineage.id] = attrs.evolve(lineage, title=made.session.title)
    return made


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (_tail_copied, "test_no_row_is_copied_moved_or_removed"),
        (_any_tip, "test_two_compressors_make_one_child"),
        (_not_recognised, "test_a_repetition_is_known_by_the_child"),
        (_parent_open, "test_the_child_is_the_tip_and_the_parent_has_ended"),
        (_title_moved, "test_a_title_is_numbered_and_its_lineage_keeps_it"),
    ],
)
def test_a_faulty_store_is_caught(mutant, law):
    store = MemoryStore()
    store._run = dict(store._run) | {ops.Compress: mutant}
    test = getattr(CompressionTests(), law)
    names = test.__code__.co_varnames[: test.__code__.co_argcount]
    given = {"store": store, "scene": Scene(store)}

    with pytest.raises((AssertionError, Conflict, pytest.fail.Exception)):
        test(**{name: given[name] for name in names if name in given})
