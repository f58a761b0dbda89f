"""Gateways under load that are killed: the short form of ``python -m toy_faults``, and that its verdict sees."""

from __future__ import annotations

import asyncio

import pytest
from toy_faults import Outcome, Plan, play, verdict


@pytest.mark.parametrize("idempotent", [False, True])
def test_every_message_is_answered_once_or_marked_whichever_gateway_is_killed(tmp_path, idempotent):
    plan = Plan(folder=str(tmp_path), kills=5, seed=11, idempotent=idempotent, pause_s=(0.4, 0.9))

    outcome = asyncio.run(play(plan, lambda _line: None))

    assert verdict(outcome) == []
    assert len(outcome.said) >= 20
    assert not idempotent or not [text for _, text in outcome.seen if text.startswith("(may")]


SAID = [("a", "message-1."), ("a", "message-2."), ("b", "message-3.")]
GOOD = [("a", "echo 1: message-1."), ("b", "echo 1: message-3."), ("a", "echo 2: message-2.")]


def _outcome(seen, waiting=0):
    return Outcome(said=SAID, seen=seen, acked={}, killed=0, waiting=waiting)


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (GOOD[:2], "lost"),
        ([*GOOD, GOOD[0]], "doubled"),
        ([GOOD[0], ("a", "echo 1: message-3."), GOOD[2]], "crossed"),
        ([GOOD[2], GOOD[1], GOOD[0]], "interleaved"),
        ([*GOOD, ("a", "echo 3: some")], "not an answer"),
    ],
)
def test_the_verdict_names_what_is_wrong(seen, word):
    assert any(one.startswith(word) for one in verdict(_outcome(seen)))


def test_the_verdict_lets_a_repeat_pass_that_says_so():
    repeated = [*GOOD, ("a", "(may be a repeat) echo 1: message-1.")]

    assert verdict(_outcome(repeated)) == []
    assert verdict(_outcome(GOOD, waiting=1)) == ["lost: 1 messages still wait"]
