"""Group B: the database file through updates, crashes, bad bytes and other programs."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.errors import StoreRefused
from hermes_hookspecs.principal import operator

ALL = operator()
READING = [
    ("sessions", "list", "--json"),
    ("sessions", "stats", "--json"),
    ("sessions", "export", "-"),
    ("sessions", "show", "plan"),
    ("routes", "list", "--json"),
]


@pytest.fixture
def told(open_home, alice):
    """Return the home's file after a conversation called plan; nobody has it open."""
    with open_home() as app:
        result = app.ask("hello", alice, agent="echo")
        app.rename_session(result.entry.lineage_id, "plan")
    return result.entry


def shape_of(sql):
    return sql("SELECT type, name, sql FROM sqlite_schema ORDER BY name"), sql("PRAGMA user_version")


# ------------------------------------------------------------------ B09


@pytest.mark.parametrize(
    ("table", "column"), [("messages", "reasoning"), ("sessions", "model_config"), ("turns", "reason")]
)
def test_b09_a_column_that_an_earlier_build_did_not_make_is_added(told, sql, open_home, alice, table, column):
    sql(f"ALTER TABLE {table} DROP COLUMN {column}")

    app = open_home()
    second = app.ask("again", alice, agent="echo")

    assert second.text == "echo 2: again"
    assert second.entry.session_id == told.session_id
    assert len(app.export_session(told.session_id)["messages"]) == 4


def test_b09_opening_again_changes_nothing(told, sql, open_home):
    before = shape_of(sql)

    for _ in range(3):
        open_home().store.stats()

    assert shape_of(sql) == before


OPEN_AND_SAY = """
app = open_app(HOME, plugins=False)
say("opening")
app.store
say("open")
hear()
"""


@pytest.mark.parametrize("moment", ["opening", "open"])
def test_b09_a_kill_while_the_file_is_made_leaves_one_that_opens(start, open_home, alice, sql, moment):
    for _ in range(2):
        program = start(OPEN_AND_SAY)
        while program.hear() != moment:
            pass
        program.kill()

    with open_home() as app:
        assert app.ask("hello", alice, agent="echo").text == "echo 1: hello"
    assert sql("PRAGMA integrity_check") == [("ok",)]


# ------------------------------------------------------------------ B10


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_b10_the_first_command_after_an_update_may_be_one_that_only_reads(told, sql, hermes, command):
    sql("ALTER TABLE messages DROP COLUMN reasoning")
    sql("ALTER TABLE turns DROP COLUMN reason")

    ran = hermes(*command)

    assert (ran.status, ran.err) == (0, "")
    assert told.session_id in ran.out or json.loads(ran.out)["messages"] == 2


@pytest.mark.parametrize("command", [*READING, ("-q", "hello")], ids=" ".join)
def test_b10_a_newer_file_is_refused_and_stays_as_it_is(told, sql, home, hermes, command):
    sql("PRAGMA user_version = 999")
    before = {path.name: path.read_bytes() for path in home.glob("state.db*") if path.stat().st_size}

    ran = hermes(*command)

    assert (ran.status, ran.out) == (78, "")
    assert ran.err.count("\n") == 1
    assert "newer" in ran.err
    assert {path.name: path.read_bytes() for path in home.glob("state.db*") if path.stat().st_size} == before


def test_b10_the_refusal_is_an_error_of_its_own_kind(told, sql, open_home):
    sql("PRAGMA user_version = 999")

    with pytest.raises(StoreRefused, match="newer"):
        _ = open_home().store


# ------------------------------------------------------------------ B14

GATEWAY = """
with open_app(HOME, plugins=False) as app:
    app.ask("begin", ALICE, agent="echo")
    say("ready")
    import threading
    stop = threading.Event()
    threading.Thread(target=lambda: (hear(), stop.set()), daemon=True).start()
    count = 1
    while not stop.is_set():
        app.ask(f"say {count}", ALICE, agent="echo")
        count += 1
say(count)
"""
COME_AND_GO = """
me = SessionSource(platform="webhook", chat_id=sys.argv[2], user_id="u")
for number in range(int(sys.argv[3])):
    with open_app(HOME, plugins=False) as app:
        if number % 3:
            app.ask(f"say {number}", me, agent="echo")
        else:
            app.store.summaries(ALL)
say("done")
"""
DIE_OPEN = """
app = open_app(HOME, plugins=False)
app.store.stats()
app.ask("acknowledged", SessionSource(platform="slack", chat_id=sys.argv[2], user_id="u"), agent="echo")
say("open")
hear()
"""


@pytest.mark.slow
def test_b14_programs_that_come_go_and_die_beside_a_gateway_lose_nothing(start, sql, open_home, home):
    gateway = start(GATEWAY)
    assert gateway.hear() == "ready"
    log = (home / "state.db-wal").stat().st_ino
    visitors = [start(COME_AND_GO, f"w{number}", "18") for number in range(2)]
    for number in range(4):
        victim = start(DIE_OPEN, f"d{number}")
        assert victim.hear() == "open"
        victim.kill()
    for visitor in visitors:
        assert visitor.end() == ["done"]

    same_log = (home / "state.db-wal").stat().st_ino == log
    gateway.say("stop")
    (count,) = gateway.end()

    assert same_log, "the log was replaced under a program that writes into it"
    assert sql("PRAGMA integrity_check") == [("ok",)]
    assert sql("PRAGMA journal_mode") == [("wal",)]
    by_platform = {name: messages for name, _, messages in open_home().store.stats().per_platform}
    assert by_platform == {"feishu": 2 * int(count), "webhook": 2 * 2 * 12, "slack": 2 * 4}


# ------------------------------------------------------------------ B17

HURT = [
    "UPDATE messages SET content = CAST(x'68656c6cc3' AS TEXT) WHERE role = 'user'",
    "UPDATE messages SET content = CAST(x'ff00fe' AS TEXT) WHERE role = 'user'",
    "UPDATE messages SET sent = CAST(x'ff' AS TEXT), reasoning = CAST(x'c3' AS TEXT)",
    "UPDATE messages SET tool_calls = '[{\"id\": ' WHERE role = 'assistant'",
    "UPDATE messages SET attachments = CAST(x'ff' AS TEXT)",
    "UPDATE messages SET finish_reason = CAST(x'e4bd' AS TEXT)",
    "UPDATE lineages SET title = CAST(x'706c616eff' AS TEXT), preview = CAST(x'ff' AS TEXT)",
    "UPDATE lineages SET source = CAST(x'ff' AS TEXT)",
    "UPDATE lineages SET source = '{'",
    "UPDATE lineages SET owner = 'nonsense'",
    "UPDATE sessions SET user_id = CAST(x'ff' AS TEXT), model = CAST(x'e4bd' AS TEXT)",
    "UPDATE turns SET user_name = CAST(x'ff' AS TEXT), reason = CAST(x'ff' AS TEXT)",
    "UPDATE turns SET inbox_ids = 'nonsense'",
    "UPDATE routes SET source = CAST(x'ff' AS TEXT)",
    "UPDATE lineages SET lease_holder = '{', lease_label = CAST(x'ff' AS TEXT) WHERE title = 'plan'",
    "UPDATE inbox SET source = '[', identities = '{', waiter = '7', attachments = 'x'",
    "UPDATE routes SET pending_title = CAST(x'ff' AS TEXT)",
]


@pytest.mark.parametrize("statement", HURT)
def test_b17_a_row_with_bad_bytes_takes_nobody_along(told, open_home, sql, alice, bob, statement):
    sql(statement)
    app = open_home()
    healthy = app.ask("I am well", bob, agent="recall")
    lineages = [summary.lineage_id for summary in app.store.summaries(ALL)]

    exported = list(app.export_sessions(ALL))

    assert set(lineages) == {told.lineage_id, healthy.entry.lineage_id}
    assert len(exported) == 2
    assert [len(one["messages"]) for one in exported] == [2, 2]
    json.dumps(exported, ensure_ascii=False).encode("utf-8")
    assert app.store.scan(["well"], ALL)
    assert len(app.store.routes()) == 2
    assert len(app.store.leases()) <= 1
    assert app.store.inbox_item(1).text == "hello"
    assert app.ask("go on", bob, agent="echo").text == "echo 2: go on"


def test_b17_the_bad_row_is_shown_with_a_mark(told, sql, hermes):
    sql("UPDATE messages SET content = CAST(x'68656c6cc3' AS TEXT) WHERE role = 'user'")

    shown = hermes("sessions", "show", "plan")

    assert (shown.status, shown.err) == (0, "")
    assert "hell\ufffd" in shown.out
    assert hermes("sessions", "list").status == 0
    assert json.loads(hermes("sessions", "export", "-").out)["messages"][0]["content"] == "hell\ufffd"
