"""The suites of what decides about compression: a policy that says where to cut, a summariser that writes.

A policy is judged alone, on conversations with parallel calls, long stretches without a person, and rows that are only
for people. The core moves an illegal cut back; a policy that relies on that keeps more than it meant to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.ids import LineageId, MessageId, SessionId, TurnId
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, Message, ToolCall
from hermes_hookspecs.ports.policies import CompressionView
from hermes_hookspecs.sessions import Session
from hermes_hookspecs.testing.completeness import CompleteSuite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.policies import CompressionPolicy, Summariser

__all__ = ["CompressionSuite", "SummariserSuite", "conversation", "faults_of_cut", "view_on"]

LEAST_ROWS = 4

quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)

steps = st.sampled_from(["ask", "ask", "answer", "answer", "call", "calls", "long"])
"""What may happen next in a conversation."""
plans = st.lists(steps, min_size=4, max_size=40)

_SESSION = Session(id=SessionId("S1"), lineage_id=LineageId("L1"), source="cli", started_at=0)


def conversation(plan: Sequence[str]) -> tuple[Message, ...]:
    """Return the rows of a conversation that goes as planned: *ask*, *answer*, *call*, *calls* (three), *long*."""
    rows: list[Message] = []

    def add(role: str, content: str, **fields: object) -> None:
        number = len(rows) + 1
        row = Message(
            id=MessageId(number),
            lineage_id=_SESSION.lineage_id,
            session_id=_SESSION.id,
            turn_id=TurnId(f"T{number}"),
            role=role,
            content=content,
            timestamp=number,
        )
        # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
        rows.append(attrs.evolve(row, **fields))  # type: ignore[arg-type]

    for place, step in enumerate(plan):
        if step == "ask":
            add(USER, f"question {place}")
        elif step == "answer":
            add(ASSISTANT, f"answer {place}")
        elif step == "long":
            add(ASSISTANT, f"a long answer {place} " + "with many words " * 60)
        else:
            # Models use the same ids again; they are unique within a turn only.
            names = [f"c{number}" for number in range(1 if step == "call" else 3)]
            add(ASSISTANT, "", tool_calls=tuple(ToolCall(id=name, name="look") for name in names))
            for name in reversed(names):
                add(TOOL, f"result {place}", tool_call_id=name, tool_name="look")
    return tuple(rows)


def view_on(
    rows: Sequence[Message], *, tokens: int = 100, window: int | None = 100, forced: bool = True
) -> CompressionView:
    """Return a view on rows; by default of a window that is full, for a person who asks."""
    return CompressionView(
        session=_SESSION, rows=tuple(rows), tokens=tokens, measured=False, window_tokens=window, forced=forced
    )


def faults_of_cut(rows: Sequence[Message], kept_from: MessageId) -> list[str]:
    """Return what is wrong with a cut, in words; empty for a legal one."""
    places = [place for place, row in enumerate(rows) if row.id == kept_from]
    if not places:
        return ["the row is none of the context"]
    place, faults = places[0], []
    if place == 0:
        faults.append("nothing is cut")
    if rows[place].role == TOOL:
        faults.append("a result stands first")
    called: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row.role == TOOL and called.get(row.tool_call_id or "", number) < place <= number:
            faults.append("a call is parted from its result")
        called |= {call.id: number for call in row.tool_calls}
    for role in (USER, ASSISTANT):
        own = [number for number, row in enumerate(rows) if row.role == role]
        said = [number for number in own if rows[number].content] or own  # a step without words, where all are
        if said and said[-1] < place:
            faults.append(f"the last {role} message goes")
    return faults


class CompressionSuite(CompleteSuite):
    """What every compression policy does. A subclass gives the fixture ``policy``.

    Attributes:
        compresses_when_asked: a person who asks gets a cut wherever a conversation of 40 exchanges stands.
    """

    compresses_when_asked: ClassVar[bool] = True

    @pytest.fixture
    def policy(self) -> CompressionPolicy:
        """Return the policy under test. To be overridden."""
        raise NotImplementedError("a subclass of CompressionSuite gives the fixture `policy`")

    def test_it_has_a_name(self, policy: CompressionPolicy) -> None:
        assert policy.name
        assert policy.name == policy.name.strip()

    @quick
    @given(plan=plans, forced=st.booleans(), tokens=st.integers(1, 400))
    def test_every_cut_is_legal(self, policy: CompressionPolicy, plan: list[str], forced: bool, tokens: int) -> None:
        rows = conversation(plan)

        kept_from = policy.cut(view_on(rows, tokens=tokens, forced=forced))

        assert kept_from is None or faults_of_cut(rows, kept_from) == []

    @quick
    @given(plan=plans, forced=st.booleans(), tokens=st.integers(1, 400))
    def test_the_same_view_gives_the_same_answer(
        self,
        policy: CompressionPolicy,
        plan: list[str],
        forced: bool,
        tokens: int,
    ) -> None:
        view = view_on(conversation(plan), tokens=tokens, forced=forced)
        other = view_on(conversation(["ask", "long"] * 30), tokens=400)

        first = policy.cut(view)
        policy.cut(other)

        assert policy.cut(view) == first == policy.cut(attrs.evolve(view))

    @pytest.mark.parametrize("plan", [[], ["ask"], ["ask", "answer"], ["ask", "answer", "ask"], ["ask", "call"]])
    def test_a_short_conversation_is_left_alone(self, policy: CompressionPolicy, plan: list[str]) -> None:
        rows = conversation(plan)
        assert len(rows) < LEAST_ROWS

        assert policy.cut(view_on(rows, tokens=10**6)) is None

    def test_a_person_who_asks_gets_a_cut(self, policy: CompressionPolicy) -> None:
        if not self.compresses_when_asked:
            pytest.skip("this policy does not listen to people")
        rows = conversation(["ask", "answer"] * 40)

        assert policy.cut(view_on(rows, tokens=2000, window=100_000)) is not None

    def test_a_long_stretch_without_a_person_is_cut_between_its_rounds(self, policy: CompressionPolicy) -> None:
        if not self.compresses_when_asked:
            pytest.skip("this policy does not listen to people")
        rows = conversation(["calls", "call"] * 30 + ["answer"])

        kept_from = policy.cut(view_on(rows, tokens=2000, window=100_000))

        assert kept_from is not None
        assert faults_of_cut(rows, kept_from) == []


class SummariserSuite(CompleteSuite):
    """What every summariser does. A subclass gives the fixture ``summariser``."""

    @pytest.fixture
    def summariser(self) -> Summariser:
        """Return the summariser under test. To be overridden."""
        raise NotImplementedError("a subclass of SummariserSuite gives the fixture `summariser`")

    def test_it_returns_text(self, summariser: Summariser) -> None:
        text = _summarise(summariser, conversation(["ask", "answer", "calls", "answer"]))

        assert text.strip()

    def test_rows_are_not_copied(self, summariser: Summariser) -> None:
        rows = conversation(["ask", "long"] * 200)

        text = _summarise(summariser, rows)

        assert len(text) < sum(len(row.content) for row in rows) / 2

    def test_it_reads_rows_that_say_nothing(self, summariser: Summariser) -> None:
        silent = tuple(attrs.evolve(row, content="") for row in conversation(["ask", "calls", "answer"]))

        assert _summarise(summariser, silent).strip()

    def test_it_builds_on_the_summary_before(self, summariser: Summariser) -> None:
        first = _summarise(summariser, _rows("We decided to use the zebra protocol for all uploads."))

        second = _summarise(summariser, _rows("Please write the upload page."), previous=first)

        assert "zebra" in second


def _rows(text: str) -> tuple[Message, ...]:
    return tuple(attrs.evolve(row, content=text) for row in conversation(["ask"])) + conversation(["ask", "answer"])[1:]


def _summarise(summariser: Summariser, rows: Sequence[Message], previous: str | None = None) -> str:
    return asyncio.run(summariser.summarise(rows, previous=previous, focus=None))
