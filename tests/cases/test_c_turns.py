"""Group C: one conversation, one writer; across keys, threads and processes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic

import pytest

from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.operations import Append, BindRoute, Finish, PutState, Revoke
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import saying
from hermes_hookspecs.turns import Fence

ALL = operator()
PATIENCE_S = 60


def rows_of(app, entry):
    return app.store.messages(entry.lineage_id, ALL)


def alternates(rows):
    return [row.role for row in rows] == [USER, ASSISTANT] * (len(rows) // 2)


class Slow:
    """An agent that is at work until somebody lets it end."""

    def __init__(self):
        self.working = Event()
        self.may_end = Event()

    def __call__(self, turn):
        self.working.set()
        assert self.may_end.wait(PATIENCE_S)
        return "the slow answer"


def wait_for(look):
    """Return what ``look`` sees as soon as it is something."""
    until = monotonic() + PATIENCE_S
    while not (seen := look()):
        assert monotonic() < until
        Event().wait(0.005)
    return seen


# ------------------------------------------------------------------ C01


def test_c01_two_keys_of_one_session_take_turns(app, alice, terminal):
    entry = app.get_or_create_session(alice)
    second = app.resume_session(terminal, entry.lineage_id)
    slow, seen = Slow(), []

    def follower(turn):
        seen.extend(row.content for row in turn.messages)
        return "the second answer"

    with ThreadPoolExecutor() as threads:
        first = threads.submit(app.ask, "m1", alice, agent=slow)
        assert slow.working.wait(PATIENCE_S)
        later = threads.submit(app.ask, "m2", terminal, agent=follower)
        waiting = wait_for(lambda: app.store.waiting(entry.lineage_id))
        before = later.done()
        slow.may_end.set()
        first.result(PATIENCE_S)
        later.result(PATIENCE_S)

    assert ([item.text for item in waiting], before) == (["m2"], False)
    assert second.session_id == entry.session_id
    assert seen == ["m1", "the slow answer", "m2"]
    assert alternates(rows_of(app, entry))


def test_c01_many_messages_from_both_keys_alternate_and_keep_their_order(app, alice, terminal):
    entry = app.get_or_create_session(alice)
    app.resume_session(terminal, entry.lineage_id)

    def talk(source, name):
        return [app.ask(f"{name} {number}", source, agent="echo").text for number in range(10)]

    with ThreadPoolExecutor() as threads:
        answers = [threads.submit(talk, source, name) for source, name in ((alice, "a"), (terminal, "b"))]
        told = [future.result(PATIENCE_S) for future in answers]

    rows = rows_of(app, entry)
    assert alternates(rows)
    assert len(rows) == 40
    for name, texts in zip("ab", told, strict=True):
        assert [row.content for row in rows if row.content.startswith(f"{name} ")] == [f"{name} {n}" for n in range(10)]
        assert [text.split(": ")[1] for text in texts] == [f"{name} {number}" for number in range(10)]


# ------------------------------------------------------------------ C02

SLOW_ELSEWHERE = """
from threading import Event


def agent(turn):
    say("working")
    hear()
    return "the answer from elsewhere"


with open_app(HOME, plugins=False) as app:
    app.ask("m1", ALICE, agent=agent)
say("ended")
"""
FOLLOW_ELSEWHERE = """
def agent(turn):
    return " | ".join(row.content for row in turn.messages)


with open_app(HOME, plugins=False, overrides={"turns.busy_notice_s": 0}) as app:
    import asyncio

    say("ready")
    result = asyncio.run(app.ask_async("m2", ALICE, agent=agent, on_wait=lambda who: say("waiting")))
    say(result.text.replace(" ", "_"))
"""


def test_c02_a_turn_waits_for_one_in_another_process_and_sees_it(start, open_home, alice):
    program = start(SLOW_ELSEWHERE)
    assert program.hear() == "working"
    app = open_home(overrides={"turns.busy_notice_s": 0})
    told = []

    async def ask():
        def waiting(who):
            told.append(who)
            program.say("end")

        return await app.ask_async("m2", alice, agent="echo", on_wait=waiting)

    result = asyncio.run(ask())

    assert program.end() == ["ended"]
    assert [f"process {program.process.pid} " in who for who in told] == [True]
    assert result.text == "echo 2: m2"
    rows = rows_of(app, result.entry)
    assert alternates(rows)
    assert [row.content for row in rows][:3] == ["m1", "the answer from elsewhere", "m2"]


def test_c02_and_the_other_way_round(start, app, alice):
    slow = Slow()
    with ThreadPoolExecutor() as threads:
        mine = threads.submit(app.ask, "m1", alice, agent=slow)
        assert slow.working.wait(PATIENCE_S)
        program = start(FOLLOW_ELSEWHERE)
        assert (program.hear(), program.hear()) == ("ready", "waiting")
        slow.may_end.set()
        mine.result(PATIENCE_S)

    assert program.end() == ["m1_|_the_slow_answer_|_m2"]
    assert alternates(rows_of(app, app.get_or_create_session(alice)))


def test_c02_a_holder_that_crashed_is_in_nobodys_way(start, open_home, alice):
    program = start(SLOW_ELSEWHERE)
    assert program.hear() == "working"
    program.kill()
    app = open_home()

    result = app.ask("m2", alice, agent="echo")

    assert result.text == "echo 2: m2"
    assert result.waited_s < app.settings.turns.lease_ttl_s / 2
    assert [turn.outcome for turn in app.store.turns(result.entry.lineage_id, ALL)] == ["interrupted", "done"]


ROUNDS = """
with open_app(HOME, plugins=False) as app:
    app.get_or_create_session(ALICE)
    say("ready")
    hear()
    for number in range(200):
        app.ask(f"{sys.argv[2]} {number}", ALICE, agent="echo")
say("ended")
"""


@pytest.mark.slow
def test_c02_two_processes_on_one_session_for_two_hundred_rounds(start, open_home, alice):
    programs = [start(ROUNDS, name) for name in "ab"]
    for program in programs:
        assert program.hear() == "ready"

    for program in programs:
        program.say()
    ends = [program.end() for program in programs]

    app = open_home()
    rows = rows_of(app, app.get_or_create_session(alice))
    assert ends == [["ended"], ["ended"]]
    assert len(rows) == 800
    assert alternates(rows)
    said = [row.content for row in rows if row.role == USER]
    for name in "ab":
        assert [text for text in said if text.startswith(name)] == [f"{name} {number}" for number in range(200)]
    answers = [row.content for row in rows if row.role == ASSISTANT]
    assert answers == [f"echo {number}: {text}" for number, text in enumerate(said, 1)]
    assert {turn.outcome for turn in app.store.turns(rows[0].lineage_id, ALL)} == {"done"}


# ------------------------------------------------------------------ C14


def test_c14_a_holder_that_was_overtaken_is_refused_loudly(app, open_home, alice):
    other = open_home()
    entry = app.get_or_create_session(alice)
    slow = Slow()
    with ThreadPoolExecutor() as threads:
        stale = threads.submit(app.ask, "from A", alice, agent=slow)
        assert slow.working.wait(PATIENCE_S)
        (lease,) = app.store.leases()
        (turn,) = app.store.turns(entry.lineage_id, ALL)
        other.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
        other.ask("from B", alice, agent="echo")
        slow.may_end.set()
        with pytest.raises(LeaseLost):
            stale.result(PATIENCE_S)

    fence = Fence(entry.lineage_id, turn.id, lease.token)
    for late in (
        Append(fence=fence, drafts=(saying("late"),), now=2),
        Finish(fence=fence, outcome="done", drafts=(saying("late"),), now=2),
    ):
        with pytest.raises(LeaseLost):
            app.store.apply(late)
    texts = [row.content for row in rows_of(app, entry)]
    assert texts[0] == "from A"
    assert texts[2:] == ["from B", "echo 2: from B"]
    assert "the slow answer" not in texts


def test_c14_a_handle_from_before_is_reloaded_not_merged(app, open_home, alice):
    stale = app.ask("one", alice, agent="echo").entry
    open_home().ask("two, from elsewhere", alice, agent="echo")
    seen = []

    def agent(turn):
        seen.extend(row.content for row in turn.messages)
        return "three"

    fresh = app.ask("three", alice, entry=stale, agent=agent)

    assert seen == ["one", "echo 1: one", "two, from elsewhere", "echo 2: two, from elsewhere", "three"]
    assert fresh.entry.version > stale.version
    assert alternates(rows_of(app, stale))


def test_c14_what_is_compared_and_set_conflicts_and_changes_nothing(app, open_home, alice):
    entry, other = app.get_or_create_session(alice), open_home()
    moved = other.get_or_create_session(alice, force_new=True)
    third = other.new_session(alice)
    bind = BindRoute(
        key=SessionKey(entry.session_key),
        key_version=1,
        source=alice,
        policy=KeyPolicy(),
        lineage_id=entry.lineage_id,
        now=5,
        check=True,
        expected=moved.lineage_id,
    )
    update = StateUpdate(namespace="n", key="k", value="1")
    other.store.apply(PutState(updates=(update,), now=5))
    stale = StateUpdate(namespace="n", key="k", value="2", expected_version=7)

    with pytest.raises(Conflict):
        app.store.apply(bind)
    with pytest.raises(Conflict):
        app.store.apply(PutState(updates=(stale,), now=5))

    assert app.store.route(entry.session_key).lineage_id == third.lineage_id
    assert app.store.state("n", "k", now=5).value == "1"


# ------------------------------------------------------------------ C15


def test_c15_what_another_process_said_is_in_the_next_prompt(app, alice, hermes):
    entry = app.ask("hello", alice, agent="echo").entry
    hermes("-r", entry.session_id, "--agent", "echo", "-q", "the code word is kiwi")
    seen = []

    def agent(turn):
        seen.extend(row.content for row in turn.messages)
        return "kiwi"

    result = app.ask("what is the code word?", alice, agent=agent)

    assert seen[2:4] == ["the code word is kiwi", "echo 2: the code word is kiwi"]
    assert result.entry.session_id == entry.session_id
    assert alternates(rows_of(app, entry))
