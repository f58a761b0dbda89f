"""Each rule of the checker is broken once, by facts that are made up, and is kept by a run in which all went well."""

from __future__ import annotations

import attrs
import pytest
from fault_harness.facts import (
    Ack,
    Ask,
    DeliveryRow,
    Effect,
    Event,
    Facts,
    InboxRow,
    LineageRow,
    MessageRow,
    PartRow,
    Sending,
    SessionRow,
    TurnRow,
    Window,
)
from fault_harness.rules import RULES, check

DEAD, ALIVE, WAITER = 1, 2, 3
"""Processes. Lineage L1 has seen most of what can happen; L2 was compressed once, by hand."""

INBOX = (
    InboxRow(id=1, names=("a1/0.1",), text="#0.1"),
    InboxRow(id=2, names=("a1/0.2",), text="#0.2"),
    InboxRow(id=3, names=("a1/0.3",), text="#0.3"),
    InboxRow(id=4, names=("a1/0.4",), text="#0.4", status="superseded"),
    InboxRow(id=5, names=("a1/0.5",), text="/new", kind="control"),
    InboxRow(id=6, key="tty", entrance="cli", text="#tty0.1", waits_here=True, waiter_pid=WAITER),
    InboxRow(id=7, key="tty", entrance="cli", text="#tty0.2", waits_here=True, waiter_pid=DEAD, status="pending"),
    InboxRow(id=8, names=("a1/0.6",), text="#0.6"),
    InboxRow(id=10, key="two", lineage="L2", names=("a2/0.1",), text="/compress", kind="control"),
)
TURNS = (
    TurnRow(number=1, id="T1", token=1, inbox_ids=(1,), outcome="interrupted"),
    TurnRow(number=2, id="T2", token=3, inbox_ids=(1, 2)),
    TurnRow(number=3, id="T3", token=4, inbox_ids=(3,), outcome="interrupted"),
    TurnRow(number=4, id="T4", token=6, inbox_ids=(6,)),
    TurnRow(number=5, id="T5", token=7, inbox_ids=(8,), outcome="stopped"),
    TurnRow(number=9, id="U1", lineage="L2", session="P1", token=1),
    TurnRow(number=10, id="U2", lineage="L2", session="P2", token=2),
)
MESSAGES = (
    MessageRow(id=1, turn=1, role="user", inbox_id=1),
    MessageRow(id=2, turn=1, role="assistant", calls=(("1.0", "read"),)),
    MessageRow(id=3, turn=1, role="tool", call_id="1.0", kind="interrupted"),
    MessageRow(id=4, turn=1, role="assistant", kind="closing"),
    MessageRow(id=5, turn=2, role="user", inbox_id=2),
    MessageRow(id=6, turn=2, role="assistant"),
    MessageRow(id=7, turn=3, role="user", inbox_id=3),
    MessageRow(id=8, turn=3, role="assistant", calls=(("1.0", "write"),)),
    MessageRow(id=9, turn=3, role="tool", call_id="1.0", kind="interrupted"),
    MessageRow(id=10, turn=3, role="assistant", kind="closing"),
    MessageRow(id=11, turn=4, role="user", inbox_id=6),
    MessageRow(id=12, turn=4, role="assistant"),
    MessageRow(id=13, turn=5, role="user", inbox_id=8),
    MessageRow(id=20, lineage="L2", session="P1", turn=9, role="user"),
    MessageRow(id=21, lineage="L2", session="P1", turn=9, role="assistant"),
    MessageRow(id=22, lineage="L2", session="P2", turn=10, role="system", kind="summary"),
)
SESSIONS = (
    SessionRow(id="S1"),
    SessionRow(id="P1", lineage="L2", is_ended=True, end_reason="compression", rows=2),
    SessionRow(id="P2", lineage="L2", parent="P1", kept_from=21),
)
DELIVERIES = (
    DeliveryRow(
        id=1,
        key="k1",
        inbox_id=1,
        turn="T2",
        text="answer to #0.1 #0.2",
        parts=(PartRow(index=0, key="k1-0"), PartRow(index=1, key="k1-1", is_marked=True)),
    ),
    DeliveryRow(id=2, key="k3", inbox_id=3, turn="T3", kind="notice", parts=(PartRow(index=0, key="k3-0"),)),
    DeliveryRow(id=3, key="k5", inbox_id=5, kind="reply", parts=(PartRow(index=0, key="k5-0"),)),
    DeliveryRow(id=10, key="k6", address="chatA:c", inbox_id=10, kind="reply", parts=(PartRow(index=0, key="k6-0"),)),
)
SENDINGS = (
    Sending(pid=DEAD, key="k1-0", address="chatA:a"),
    Sending(pid=DEAD, key="k1-1", address="chatA:a", index=1),
    Sending(pid=ALIVE, key="k1-1", address="chatA:a", index=1, is_marked=True),
    Sending(pid=ALIVE, key="k3-0", address="chatA:a"),
    Sending(pid=ALIVE, key="k5-0", address="chatA:a"),
    Sending(pid=ALIVE, key="k6-0", address="chatA:c"),
)
GOOD = Facts(
    inbox=INBOX,
    turns=TURNS,
    messages=MESSAGES,
    deliveries=DELIVERIES,
    lineages=(LineageRow(id="L1", token=8, rows=13), LineageRow(id="L2", token=2, tip="P2", rows=3)),
    sessions=SESSIONS,
    acks=(Ack(name="a1/0.1"), Ack(name="a1/0.1"), Ack(name="a1/0.5")),
    asks=(Ask(name="#tty0.1", turn="T4", text="answer to #tty0.1"),),
    cursors=((0, 6),),
    sendings=SENDINGS,
    effects=(Effect(turn="T1", token=1, call="1.0"), Effect(turn="T3", token=4, call="1.0")),
    windows=(
        Window(turn="T1", token=1, digests=("a",)),
        Window(turn="T2", token=3, digests=("a", "b", "c")),
        Window(turn="T3", token=4, digests=("a", "b", "c", "d")),
    ),
    events=(
        Event(pid=DEAD, name="start", turn="T1"),
        Event(pid=ALIVE, name="start", turn="T2"),
        Event(pid=ALIVE, name="finish", turn="T2"),
    ),
    dead=frozenset({DEAD}),
)


def _with(field, index, **changes):
    """Return the good facts with one row changed."""
    rows = list(getattr(GOOD, field))
    rows[index] = attrs.evolve(rows[index], **changes)
    return attrs.evolve(GOOD, **{field: tuple(rows)})


def _without(field, index):
    rows = list(getattr(GOOD, field))
    del rows[index]
    return attrs.evolve(GOOD, **{field: tuple(rows)})


def _and(field, *more):
    return attrs.evolve(GOOD, **{field: (*getattr(GOOD, field), *more)})


BROKEN = {
    "what was acknowledged is stored": [_and("acks", Ack(name="a1/0.9"))],
    "every message has an outcome": [
        _with("inbox", 0, status="claimed"),
        _with("inbox", 2, status="pending"),
        _with("turns", 4, outcome="failed"),
        _without("deliveries", 1),
        _and("inbox", InboxRow(id=9, names=("a1/0.9",))),
    ],
    "every command has a reply": [_without("deliveries", 2), _with("inbox", 4, status="applied")],
    "whoever left is superseded by a command": [_with("inbox", 4, key="other")],
    "every delivery went out": [
        _with("deliveries", 0, status="waiting"),
        _with("deliveries", 1, parts=()),
        _without("sendings", 4),
    ],
    "nothing is held for ever": [
        _with("lineages", 0, is_held=True),
        _with("lineages", 0, active_turn="T9"),
        _with("turns", 3, outcome="active"),
    ],
    "whoever waited has left": [_with("inbox", 6, waiter_pid=ALIVE), _with("inbox", 6, status="claimed")],
    "whoever waited got his own answer": [
        _with("asks", 0, text="answer to #tty0.2"),
        _with("asks", 0, turn="T3"),
        _with("asks", 0, turn="T9"),
    ],
    "a cursor is never ahead": [attrs.evolve(GOOD, cursors=((0, 7),))],
    "the file is sound": [attrs.evolve(GOOD, damage=("row 3 missing from index x",))],
    "a lineage goes on in one session": [
        _with("lineages", 1, tip="P9"),
        _with("lineages", 1, tip="P1"),
        _with("sessions", 1, is_ended=False),
        _and("sessions", SessionRow(id="S9")),
    ],
    "a child has its summary": [
        _without("messages", -1),
        _with("messages", -1, session="S1"),
        _with("sessions", 2, kept_from=1),
        _with("sessions", 2, kept_from=None),
    ],
    "no row is lost by a compression": [_without("messages", -3), _with("sessions", 1, rows=1)],
    "a session has one child": [_and("sessions", SessionRow(id="P3", lineage="L2", parent="P1", kept_from=21))],
    "a command compresses once": [_with("inbox", -1, text="/new"), _with("inbox", -1, lineage="L1")],
    "a message is stored once": [_and("inbox", InboxRow(id=9, names=("a1/0.1",), status="superseded"))],
    "a message has one outcome": [
        _and("deliveries", DeliveryRow(id=4, key="k2", inbox_id=2, parts=(PartRow(index=0, key="k2-0"),))),
        _with("turns", 0, outcome="done"),
    ],
    "a message is tried a few times": [
        _and("turns", *(TurnRow(number=n, id=f"T{n}", token=n, inbox_ids=(8,)) for n in (6, 7, 8)))
    ],
    "a user row is stored once": [_with("messages", 4, inbox_id=1)],
    "a part is sent once": [
        _with("sendings", 2, is_marked=False),
        _with("sendings", 1, pid=ALIVE),
        _and("sendings", Sending(pid=ALIVE, key="k9-0", address="chatA:b")),
    ],
    "a key names one delivery": [_with("deliveries", 1, parts=(PartRow(index=0, key="k1-0"),))],
    "a tool runs once": [_and("effects", Effect(turn="T1", token=1, call="1.0"))],
    "what may have happened is not repeated": [
        _with("messages", 1, calls=(("1.0", "write"),)),
        _and("turns", TurnRow(number=6, id="T6", token=8, inbox_ids=(3,))),
    ],
    "a turn ends once": [_and("events", Event(pid=ALIVE, name="finish", turn="T2")), _without("events", 2)],
    "rows of turns are not mixed": [_with("messages", 5, turn=1), _with("messages", 5, turn=None)],
    "tokens only grow": [_with("turns", 1, token=1), _with("lineages", 0, token=6)],
    "tokens grow for a reason": [_with("lineages", 0, token=10)],
    "messages are answered in order": [_with("turns", 4, inbox_ids=(2,)), _with("turns", 1, inbox_ids=(2, 1))],
    "answers arrive in order": [attrs.evolve(GOOD, sendings=(SENDINGS[3], *SENDINGS[:3], SENDINGS[4]))],
    "every call has one result": [
        _without("messages", 2),
        _with("messages", 3, role="tool", call_id="1.0"),
        _and("messages", MessageRow(id=14, turn=5, role="assistant", calls=(("1.0", "read"),))),
    ],
    "the prompt only grows": [
        _with("windows", 1, digests=("b", "a", "c")),
        _with("windows", 2, digests=("a", "b")),
    ],
    "an answer is about its messages": [_with("deliveries", 0, text="answer to #0.1")],
}


def test_a_run_in_which_all_went_well_breaks_no_rule():
    assert check(GOOD) == []


def test_a_prompt_begins_anew_behind_a_compression():
    turns = (*GOOD.turns[:1], *(attrs.evolve(turn, session="S2") for turn in GOOD.turns[1:]))
    windows = (GOOD.windows[0], *(attrs.evolve(one, digests=("summary",)) for one in GOOD.windows[1:]))

    compressed = attrs.evolve(GOOD, turns=turns, windows=windows)

    assert check(compressed) == []
    assert check(attrs.evolve(compressed, turns=GOOD.turns)) != []


@pytest.mark.parametrize(
    ("rule", "facts"),
    [pytest.param(rule, facts, id=f"{rule} {n}") for rule, each in BROKEN.items() for n, facts in enumerate(each, 1)],
)
def test_a_rule_notices_what_breaks_it(rule, facts):
    assert rule in {breach.rule for breach in check(facts)}


def test_every_rule_is_broken_by_some_facts():
    assert set(BROKEN) == {rule.__name__.replace("_", " ") for _, rule in RULES}
