"""Whatever a plugin answers about resets, messages are answered, and nothing is reset on nonsense."""

from __future__ import annotations

import pytest
from resets_scene import CHAT, HOUR, IDLE, accept, serve

from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.policies import Activity, Defer, Keep, Reset


class Policy:
    def __init__(self, answer, name="odd"):
        self.answer, self.name = answer, name

    def decide(self, view):
        return self.answer(view)


class Plugin:
    """Gives what it is told to, whatever that is."""

    def __init__(self, policies=None, activities=None):
        self.policies, self.activities = policies, activities

    @hookimpl
    def hermes_reset_policies(self):
        return self.policies

    @hookimpl
    def hermes_background_activity(self, lineage_id):
        return self.activities


def outlive(app, clock):
    """Let time pass over a conversation and speak, sweep and explain in it; return the explanation and the answers."""
    accept(app, "one")
    serve(app)
    clock.advance(3 * HOUR)
    explained = app.explain_reset(app.session_key(CHAT))
    assert app.maintain().reset == 0
    assert app.maintain().reset == 0
    accept(app, "two")
    return explained, serve(app).texts()


ODD = {
    "nothing": lambda view: None,
    "a word": lambda view: "reset",
    "a class": lambda view: Keep,
    "a reset for no reason": lambda view: Reset(reason=None),
    "a reset at a word": lambda view: Reset(reason="because", at="soon"),
    "a reset at a datetime": lambda view: Reset(reason="because", at=view.now),
    "a reset behind the end of time": lambda view: Reset(reason="because", at=10**18),
    "kept until a word": lambda view: Keep(next_check="tomorrow"),
    "kept until infinity": lambda view: Keep(next_check=float("inf")),
    "kept until a datetime": lambda view: Keep(next_check=view.now),
    "deferred for no reason": lambda view: Defer(reason=None),
    "deferred until a word": lambda view: Defer(reason="busy", until="later"),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_what_is_no_decision_resets_nothing_and_holds_no_message_up(opened, clock, answer):
    app = opened({"session_reset.mode": "odd"}, plugins=[Plugin([Policy(answer)])])

    explained, answers = outlive(app, clock)

    assert (explained.verdict, explained.next_at) == ("defer", None)
    assert explained.reason.startswith("the policy odd gave no decision: it")
    assert len(answers) == 1
    assert answers[0].endswith("two")


WRONG = {
    "no sequence": Policy(lambda view: Keep()),
    "a word": "idle",
    "without a name": [object()],
    "a name that is taken": [Policy(lambda view: Reset(reason="mine"), "idle")],
}


@pytest.mark.parametrize("policies", WRONG.values(), ids=WRONG)
def test_where_policies_cannot_be_had_nothing_is_reset_and_messages_are_answered(opened, clock, policies):
    app = opened(IDLE, plugins=[Plugin(policies)])

    explained, answers = outlive(app, clock)

    assert explained.verdict == "defer"
    assert "hermes_reset_policies" in explained.reason
    assert answers[0].endswith("two")


RUNNING = {
    "a word": "building",
    "words": ["building"],
    "since a word": [Activity(kind="job", label="build", started_at="noon")],
    "of nothing": [Activity(kind="job", label=None, started_at=0)],
}


@pytest.mark.parametrize("activities", RUNNING.values(), ids=RUNNING)
def test_activity_that_cannot_be_read_pins(opened, clock, activities):
    app = opened(IDLE, plugins=[Plugin(activities=activities)])

    explained, answers = outlive(app, clock)

    assert explained.verdict == "defer"
    assert "hermes_background_activity" in explained.pins[0]
    assert answers[0].endswith("two")


def test_a_reason_commands_no_terminal(opened, clock):
    app = opened(
        {"session_reset.mode": "odd"}, plugins=[Plugin([Policy(lambda view: Reset(reason="a\x1b[31m\nb\ud800"))])]
    )
    accept(app, "one")
    serve(app)

    explained = app.explain_reset(app.session_key(CHAT))

    assert explained.reason == "a [31m b"
