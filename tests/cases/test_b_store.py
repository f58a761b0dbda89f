"""Group B: what was acknowledged is there, once, whoever else writes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.errors import AgentFailed, StoreBusy
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, MessageDraft, ToolCall
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.scene import Scene, saying

ALL = operator()
PATIENCE_S = 60

HOLD_THE_LOCK = """
import apsw
connection = apsw.Connection(HOME + "/state.db")
connection.set_busy_timeout(20_000)
connection.execute("BEGIN IMMEDIATE")
say("held")
hear()
connection.execute("ROLLBACK")
say("released")
"""
DIE_IN_A_TURN = """
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep


async def agent(turn):
    yield AssistantStep(content="I look", tool_calls=(ToolCall(id="c1", name="look"),))
    say("in the turn")
    hear()


open_app(HOME, plugins=False).ask("first", ALICE, agent=agent)
"""


def rows_of(app, source):
    return app.store.messages(app.get_or_create_session(source).lineage_id, ALL)


@pytest.fixture
def held(app, alice, start):
    """Return a program that holds SQLite's lock on the home until it hears a word."""
    app.ask("before", alice, agent="echo")
    program = start(HOLD_THE_LOCK)
    assert program.hear() == "held"
    return program


# ------------------------------------------------------------------ B01, B07 a


def test_b01_b07_writes_wait_out_a_sibling_that_holds_the_lock_for_seconds(app, alice, bob, held):
    with ThreadPoolExecutor() as threads:
        append = threads.submit(app.ask, "meanwhile", alice, agent="echo")
        create = threads.submit(app.ask, "created meanwhile", bob, agent="echo")
        for future in (append, create):
            with pytest.raises(TimeoutError):
                future.result(1.5)
        held.say()

        assert append.result(PATIENCE_S).text == "echo 2: meanwhile"
        assert create.result(PATIENCE_S).text == "echo 1: created meanwhile"
    assert [row.content for row in rows_of(app, alice)] == [
        "before",
        "echo 1: before",
        "meanwhile",
        "echo 2: meanwhile",
    ]


def test_b01_b07_real_exhaustion_is_said_and_nothing_is_half_done(app, alice, bob, held, open_home):
    hasty = open_home(overrides={"storage.busy_timeout_s": 0.3})

    with pytest.raises(StoreBusy) as raised:
        hasty.ask("too much", bob, agent="echo")
    held.say()
    assert held.hear() == "released"

    assert "disk" not in str(raised.value).lower()
    assert raised.value.exit_code == 75
    assert hasty.ask("later", bob, agent="echo").text == "echo 1: later"
    assert [row.content for row in rows_of(app, bob)] == ["later", "echo 1: later"]


def test_b01_readers_do_not_wait_for_the_holder(app, alice, held):
    summaries = app.store.summaries(ALL)

    assert [summary.preview for summary in summaries] == ["before"]


APPEND_MANY = """
with open_app(HOME, plugins=False) as app:
    me = SessionSource(platform="feishu", chat_id=sys.argv[2], user_id="u")
    app.store
    say("ready")
    hear()
    for number in range(25):
        app.ask(f"{sys.argv[2]} {number}", me, agent="echo")
"""


@pytest.mark.slow
def test_b01_many_processes_that_append_lose_and_double_nothing(start, open_home):
    programs = [start(APPEND_MANY, f"oc_{number}") for number in range(6)]
    for program in programs:
        assert program.hear() == "ready"

    for program in programs:
        program.say()
    for program in programs:
        program.end()

    app = open_home()
    summaries = app.store.summaries(ALL, limit=None)
    assert [summary.message_count for summary in summaries] == [50] * 6
    for summary in summaries:
        said = [row.content for row in app.store.messages(summary.lineage_id, ALL) if row.role == USER]
        assert said == [f"{said[0].split()[0]} {number}" for number in range(25)]


@pytest.fixture
def store(tmp_path):
    opened = SqliteBackend().open(StoreOptions(path=tmp_path / "home" / "state.db"))
    yield opened
    opened.close()


@pytest.fixture
def scene(store):
    return Scene(store)


# ------------------------------------------------------------------ B05


def test_b05_rows_come_in_the_order_of_storing_whatever_the_clock_says(store, scene):
    begun = scene.ask(scene.enter(), "question")
    lineage = begun.turn.lineage_id
    scene.append(begun, attrs.evolve(saying("let me look"), timestamp=10_400, tool_calls=(ToolCall(id="c", name="t"),)))
    scene.append(begun, MessageDraft(role=TOOL, content="found", timestamp=10_200, tool_call_id="c", tool_name="t"))
    scene.finish(begun, attrs.evolve(saying("the answer"), timestamp=10_300))
    expected = ["question", "let me look", "found", "the answer"]

    rows = store.messages(lineage, ALL)

    assert [row.content for row in rows] == expected
    assert [row.timestamp for row in rows][1:] == [10_400, 10_200, 10_300]
    assert [row.content for row in store.messages(lineage, ALL, after=rows[0].id, limit=2)] == expected[1:3]
    assert [row.content for row in store.last_messages(lineage, ALL, count=3)] == expected[1:]
    assert [row.content for row in store.scan(["e"], ALL)] == ["the answer", "let me look", "question"]
    told = [change.message_id for change in store.changes(None)[0] if change.message_id is not None]
    assert told == [row.id for row in rows]


def test_b05_a_clock_that_steps_back_moves_nothing(open_home, alice, home, hermes):
    class SteppingBack:
        now_ms = 1_700_000_000_000

        def now(self):
            self.now_ms -= 3_600_000
            return self.now_ms

        def monotonic(self):
            return 0.0

    app = open_home(clock=SteppingBack())
    for number in range(3):
        app.ask(f"say {number}", alice, agent="echo")
    expected = [text for number in range(3) for text in (f"say {number}", f"echo {number + 1}: say {number}")]
    entry = app.get_or_create_session(alice)

    exported = app.export_session(entry.session_id)["messages"]
    shown = hermes("sessions", "show", entry.session_id).out

    assert [row.content for row in app.sessions.load_transcript(entry.session_id)] == expected
    assert [row["content"] for row in exported] == expected
    assert [shown.index(text) for text in expected] == sorted(shown.index(text) for text in expected)


# ------------------------------------------------------------------ B07 b


def test_b07_one_message_and_one_reply_are_two_rows(app, alice):
    app.ask("hello", alice, agent="echo")

    assert [(row.role, row.content) for row in rows_of(app, alice)] == [(USER, "hello"), (ASSISTANT, "echo 1: hello")]


def test_b07_the_same_text_sent_twice_on_purpose_is_two_messages(app, alice):
    app.ask("yes", alice, agent="echo")
    app.ask("yes", alice, agent="echo")

    assert [row.content for row in rows_of(app, alice)] == ["yes", "echo 1: yes", "yes", "echo 2: yes"]


def test_b07_a_process_that_dies_in_its_turn_doubles_and_loses_no_row(start, open_home, alice):
    program = start(DIE_IN_A_TURN)
    assert program.hear() == "in the turn"
    program.kill()

    app = open_home()
    app.ask("second", alice, agent="echo")

    rows = rows_of(app, alice)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [row.content for row in rows if row.role == USER] == ["first", "second"]
    assert rows[2].tool_call_id == "c1"
    assert rows[-1].content == "echo 2: second"
    assert app.store.stats().waiting == 0


def test_b07_an_agent_that_fails_keeps_the_message_once(app, alice):
    def fail(turn):
        raise ZeroDivisionError("no")

    with pytest.raises(AgentFailed):
        app.ask("try", alice, agent=fail)
    app.ask("again", alice, agent="echo")

    assert [row.content for row in rows_of(app, alice) if row.role == USER] == ["try", "again"]


# ------------------------------------------------------------------ B08


def counts(app):
    """Return, for each conversation, what the list says and what is there."""
    return [
        (summary.message_count, len(app.store.messages(summary.lineage_id, ALL)))
        for summary in app.store.summaries(ALL, limit=None)
    ]


def test_b08_counts_are_those_of_the_rows_on_every_surface(app, alice, hermes):
    app.ask("one", alice, agent="echo")
    hermes("-q", "two", "--agent", "echo")
    hermes("--agent", "echo", stdin="three\nfour\n")

    listed = json.loads(hermes("sessions", "list", "--json").out)
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    exported = [json.loads(line) for line in hermes("sessions", "export", "-").out.splitlines()]

    assert sorted(row["message_count"] for row in listed) == [2, 2, 4]
    assert stats["messages"] == 8
    assert sorted(len(one["messages"]) for one in exported) == [2, 2, 4]
    assert all(claimed == there for claimed, there in counts(app))


def test_b08_a_kill_between_the_rows_leaves_true_counts_and_the_conversation_in_the_list(start, open_home):
    program = start(DIE_IN_A_TURN)
    assert program.hear() == "in the turn"
    program.kill()

    app = open_home()

    assert counts(app) == [(2, 2)]
    assert app.store.stats().messages == 2
    (session,) = app.store.segments(app.store.summaries(ALL)[0].lineage_id, ALL)
    assert (session.message_count, session.tool_call_count) == (2, 1)


# ------------------------------------------------------------------ B18, B19


def test_b18_versions_grow_where_the_clock_stands_still(open_home, alice):
    class Still:
        def now(self):
            return 1_700_000_000_000

        def monotonic(self):
            return 0.0

    app = open_home(clock=Still())
    versions = [app.get_or_create_session(alice).version]
    for number in range(3):
        result = app.ask(f"say {number}", alice, agent="echo")
        versions.append(result.entry.version)

    assert versions == sorted(set(versions))
    assert app.get_or_create_session(alice).version == versions[-1]
    again = app.ask("with the entry of the last turn", alice, entry=result.entry, agent="echo")
    assert again.text.startswith("echo 4")


BIND_ANOTHER = """
with open_app(HOME, plugins=False) as app:
    source = SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_bob")
    say(app.get_or_create_session(source).session_id)
"""


def test_b19_a_route_of_another_process_is_seen_and_survives(app, alice, bob, start, open_home):
    mine = app.get_or_create_session(alice)
    theirs = start(BIND_ANOTHER).end()[0]

    seen = app.get_or_create_session(bob)
    app.ask("still mine", alice, agent="echo")
    app.close()
    again = open_home()

    assert (seen.session_id, seen.created) == (theirs, False)
    assert again.get_or_create_session(bob).session_id == theirs
    assert again.get_or_create_session(alice).session_id == mine.session_id
    assert len(again.store.routes()) == 2


def test_b19_a_route_that_another_process_let_go_is_not_followed(app, open_home, alice):
    mine = app.get_or_create_session(alice)

    open_home().leave_session(alice, mine)

    assert app.get_or_create_session(alice).session_id != mine.session_id
