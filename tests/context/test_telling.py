"""Each repair that changed something is told: its kind and the rows that it is about, once."""

from __future__ import annotations

import attrs
import pytest

from hermes_core.context.telling import tell_repairs
from hermes_core.context.window import make_window
from hermes_hookspecs.context import REPAIR_REASONS
from hermes_hookspecs.ids import MessageId, TurnId
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, Message, ToolCall
from hermes_hookspecs.sessions import Session

SESSION = Session(id="S1", lineage_id="L1", source="cli", started_at=0)
LOOK = ToolCall(id="a", name="look")


def row(role, content="x", **fields):
    return {"role": role, "content": content, **fields}


# kind → what the turn before has said, and the places of the rows that the repair names
CASES = {
    "orphaned-result": ([row(ASSISTANT), row(TOOL, tool_call_id="nowhere")], [2]),
    "doubled-result": (
        [row(ASSISTANT, tool_calls=(LOOK,)), row(TOOL, tool_call_id="a"), row(TOOL, tool_call_id="a")],
        [3],
    ),
    "unanswered-call": ([row(ASSISTANT, tool_calls=(LOOK,))], [1]),
    "doubled-call": ([row(ASSISTANT, tool_calls=(LOOK, LOOK)), row(TOOL, tool_call_id="a")], [1]),
    "unnamed-call": (
        [row(ASSISTANT, tool_calls=(attrs.evolve(LOOK, name=" "),)), row(TOOL, tool_call_id="a")],
        [1],
    ),
    "empty-answer": ([row(ASSISTANT, "")], [1]),
    "unknown-role": ([row("narrator")], [1]),
    "joined": ([row(ASSISTANT), row(USER), row(USER, "and")], [2, 3]),
}


def rows_of(*turns):
    """Return the rows of turns, ids from 10 on."""
    return [
        Message(
            id=MessageId(10 + number),
            lineage_id="L1",
            session_id="S1",
            turn_id=TurnId(f"T{turn}"),
            timestamp=number,
            **fields,
        )
        for number, (turn, fields) in enumerate((turn, one) for turn, some in enumerate(turns) for one in some)
    ]


class Hears:
    def __init__(self):
        self.told = []

    @hookimpl
    def hermes_after_repair(self, lineage_id, session_id, kind, message_ids):
        self.told.append((lineage_id, session_id, kind, list(message_ids)))


@pytest.fixture
def telling(profile):
    """Return a function that begins a turn with rows, and gives what was told."""
    hears = Hears()
    app = profile(plugins=[hears], listens=False)

    def tell(rows):
        hears.told.clear()
        tell_repairs(app.hooks, SESSION, make_window(SESSION, rows))
        app.hooks.flush()
        return list(hears.told)

    return tell


def test_every_kind_of_repair_has_a_case():
    assert set(CASES) == set(REPAIR_REASONS)


@pytest.mark.parametrize("backend", ["memory"])
@pytest.mark.parametrize("kind", CASES)
def test_a_repair_is_told_with_its_kind_and_rows_in_the_turn_that_makes_it_first(telling, kind):
    said, places = CASES[kind]
    first, second, third = ([row(USER), *said], [row(USER)], [row(USER)])

    told = telling(rows_of(first, second))
    again = telling(rows_of(first, [*second, row(ASSISTANT)], third))

    assert told == [("L1", "S1", kind, [10 + place for place in places])]
    assert again == []


@pytest.mark.parametrize("backend", ["memory"])
def test_nothing_is_told_of_what_is_sent_as_it_was_said(telling):
    said = [row(USER), row(ASSISTANT, tool_calls=(LOOK,)), row(TOOL, tool_call_id="a"), row(ASSISTANT)]

    assert telling(rows_of(said, [row(USER)])) == []
