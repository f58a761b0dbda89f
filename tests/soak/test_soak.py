"""The soak in its shortest form, and that its verdict sees."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from soak_harness.crowd import Person, Said, crowd
from soak_harness.play import Outcome, Plan, play
from soak_harness.rules import verdict


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_crossed_whatever_platforms_kills_and_strangers_do(tmp_path):
    plan = Plan(folder=tmp_path, seed=5, seconds=12, people=10, every_s=5, pause_s=3, lock_s=2)

    outcome = asyncio.run(play(plan, lambda _line: None))

    assert verdict(outcome) == []
    assert outcome.kills >= 1
    assert len({one.person.platform for one in outcome.said}) == 3


def test_fifty_people_are_on_three_platforms_and_in_rooms():
    people = crowd(50)

    assert len({person.name for person in people}) == 50
    assert {(person.platform, person.group) for person in people} == {
        ("feishu", False), ("feishu", True), ("slack", False), ("slack", True), ("weixin", False),
    }  # fmt: skip


ONE = Person(name="p01", platform="feishu", chat_id="dm-p01", user_id="p01")
TWO = Person(name="p02", platform="slack", chat_id="D0", user_id="p02")
SAID = [
    Said(person=person, text=text, message_id=text, at_s=0.0)
    for person, text in ((ONE, "p01-1"), (ONE, "p01-2"), (TWO, "p02-1"))
]
SEEN = [
    (ONE.place, "answer 1 to p01-1 after p01-1"),
    (ONE.place, "answer 2 to p01-2 after p01-1"),
    (TWO.place, "answer 1 to p02-1 after p02-1"),
]


def lineage(*contents):
    roles = ("user", "assistant") * len(contents)
    rows = [{"role": role, "content": text, "kind": ""} for role, text in zip(roles, contents, strict=False)]
    return {"session_id": "S", "messages": rows}


KEPT_ONE = lineage("p01-1", SEEN[0][1], "p01-2", SEEN[1][1])
KEPT_TWO = lineage("p02-1", SEEN[2][1])
GOOD = Outcome(
    said=SAID, seen=SEEN, lineages=[KEPT_ONE, KEPT_TWO], unrest={"waiting": 0}, bad={}, kills=1, latencies=[], faults=[]
)


def test_the_verdict_lets_pass_what_is_right_and_a_repeat_that_says_so():
    assert verdict(GOOD) == []
    assert verdict(attrs.evolve(GOOD, seen=[*SEEN, (TWO.place, f"(may be a repeat) {SEEN[2][1]}")])) == []


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        ({"seen": SEEN[:2]}, "lost: p02-1"),
        ({"seen": [*SEEN, SEEN[2]]}, "doubled: p02-1"),
        ({"seen": [*SEEN[:2], (ONE.place, SEEN[2][1])]}, "crossed: "),
        ({"seen": [*SEEN[:2], (TWO.place, "answer 1 to p02-1 after p01-1")]}, "crossed: "),
        ({"seen": [SEEN[0], (ONE.place, "answer 1 to p01-2 after p01-1"), SEEN[2]]}, "interleaved: "),
        ({"seen": [*SEEN, (TWO.place, "Sorry")]}, "odd: "),
        ({"lineages": [KEPT_ONE]}, "lost: the store has p02-1 0 times"),
        ({"lineages": [KEPT_ONE, KEPT_TWO, KEPT_TWO]}, "doubled: the store has p02-1 2 times"),
        ({"lineages": [lineage("p01-1", SEEN[0][1], "p02-1", SEEN[2][1]), KEPT_TWO]}, "crossed: S holds messages"),
        ({"lineages": [lineage("p01-1", SEEN[1][1], "p01-2", SEEN[0][1]), KEPT_TWO]}, "interleaved: behind 'p01-1'"),
        ({"unrest": {"waiting": 2}}, "lost: 2 waiting"),
        ({"faults": ["a send without uuid"]}, "odd: a send without uuid"),
    ],
)
def test_the_verdict_names_what_is_wrong(broken, word):
    assert any(one.startswith(word) for one in verdict(attrs.evolve(GOOD, **broken)))
