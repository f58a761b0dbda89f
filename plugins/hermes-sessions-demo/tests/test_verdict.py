"""Whatever goes wrong is seen by the check that is there for it, and by no other."""

from __future__ import annotations

import pytest

from hermes_demo.people import ANNA, MING, Line
from hermes_demo.verdict import Kept, verdict


def line(person, text, wanted, conversation, **more):
    return Line(person=person, text=text, wanted=wanted, conversation=conversation, message_id="m", **more)


ASKED = line(MING, "几点？", "三点。", "小明 0")
AGAIN = line(MING, "多久？", "一小时。", "小明 0")
COMMAND = line(MING, "/title 面包", "Title: 面包", "小明 0", is_command=True)
OTHER = line(ANNA, "Rye?", "Sixteen hours.", "Anna 0")
LINES = [ASKED, COMMAND, AGAIN, OTHER]
SEEN = {MING.place: ["三点。", "Title: 面包", "一小时。"], ANNA.place: ["Sixteen hours."]}
LINEAGES = [["几点？", "多久？"], ["Rye?"]]
UNREST = {"waiting": 0}


def failed(*, acknowledged=LINES, seen=SEEN, lineages=LINEAGES, unrest=UNREST):
    rows = [{"messages": [{"role": "user", "content": text, "kind": ""} for text in texts]} for texts in lineages]
    checks = verdict(LINES, acknowledged=acknowledged, seen=seen, kept=Kept(lineages=rows, unrest=unrest))
    return [check.name for check in checks if not check.holds]


def test_a_story_that_went_well_holds():
    assert failed() == []


def test_a_repeat_that_says_so_is_no_double():
    assert failed(seen=SEEN | {ANNA.place: ["Sixteen hours.", "(may be a repeat) Sixteen hours."]}) == []


@pytest.mark.parametrize(
    ("broken", "names"),
    [
        ({"acknowledged": LINES[:-1]}, ["accepted"]),
        ({"seen": {MING.place: SEEN[MING.place]}}, ["answered, nothing lost"]),
        ({"seen": SEEN | {ANNA.place: ["Sixteen hours."] * 2}}, ["nothing doubled"]),
        ({"seen": SEEN | {ANNA.place: ["Sixteen hours.", "三点。"]}}, ["nothing crossed"]),
        ({"seen": SEEN | {ANNA.place: ["Sixteen hours.", "What?"]}}, ["nothing crossed"]),
        ({"lineages": [["几点？", "多久？", "Rye?"]]}, ["each in its own session"]),
        ({"lineages": [["几点？"], ["多久？"], ["Rye?"]]}, ["each in its own session"]),
        ({"lineages": [["几点？", "几点？", "多久？"], ["Rye?"]]}, ["each in its own session"]),
        ({"unrest": {"waiting": 1}}, ["all at rest"]),
    ],
)
def test_what_is_broken_is_named(broken, names):
    assert failed(**broken) == names
