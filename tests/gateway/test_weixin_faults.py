"""The WeChat plugin before killed gateways: the short form of ``python -m toy_faults --platform weixin``."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("hermes_weixin", reason="the stage is the WeChat plugin's")

from toy_faults import Plan, play, verdict


def played(folder, **plan):
    return asyncio.run(play(Plan(folder=str(folder), platform="weixin", **plan), lambda _line: None))


@pytest.mark.slow
@pytest.mark.parametrize("gentle", [False, True], ids=["killed", "asked to leave"])
def test_every_message_is_answered_once_in_order_by_the_account_that_it_was_written_to(tmp_path, gentle):
    outcome = played(tmp_path, kills=4, seed=11, gentle=gentle, pause_s=(0.4, 0.9))

    assert verdict(outcome) == []
    assert len(outcome.said) >= 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "words"), [("ids-alone", "doubled"), ("one-ledger", "a context token of somebody else")]
)
def test_a_rule_that_is_forgotten_is_noticed(tmp_path, mutant, words):
    outcome = played(tmp_path, kills=0, seed=11, mutant=mutant, pause_s=(1.0, 1.5))

    assert any(words in one for one in verdict(outcome))
