"""What goes wrong: one clear line on stderr, an honest exit status, nothing half done."""

from __future__ import annotations

import os
import subprocess

import pytest

CHAT = ("-q", "hello", "--agent", "echo")
READS = [("sessions", "list"), ("sessions", "stats"), ("sessions", "export", "-"), ("routes", "list")]
EVERY = [CHAT, *READS]


# ------------------------------------------------------------------ the command line


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("sessions", "show", "nowhere"), 1, ("no session answers to 'nowhere'",)),
        (("sessions", "delete", "nowhere", "--yes"), 1, ("nowhere",)),
        (("sessions", "rename", "nowhere", "x"), 1, ("nowhere",)),
        (("sessions", "export", "-", "--session-id", "nowhere"), 1, ("nowhere",)),
        (("-r", "nowhere", "-q", "x"), 1, ("nowhere",)),
        (("-c", "nowhere", "-q", "x"), 1, ("nowhere",)),
        (("--session=nowhere", "-c", "-q", "x"), 1, ("nowhere",)),
        (("routes", "explain", "nonsense"), 1, ("nonsense",)),
        (("--nonsense",), 2, ("--nonsense",)),
        (("-q",), 2, ("--query", "-q")[1:]),
        (("-q", ""), 2, ("nothing to ask",)),
        (("-x", "hello"), 2, ("-x",)),
        (("sessions", "list", "--limit", "many"), 2, ("--limit", "whole number", "'many'")),
        (("sessions", "list", "--limit", "0"), 2, ("--limit", "from 1")),
        (("sessions", "list", "--json=yes"), 2, ("--json",)),
        (("sessions", "list", "extra"), 2, ("extra",)),
        (("sessions", "show"), 2, ("REF",)),
        (("sessoins", "list"), 2, ("did you mean sessions?",)),
        (("sessions", "lits"), 2, ("did you mean list?",)),
        (("sessions", "delete", "x"), 1, ("x",)),
        (("--profile", "../x", "-q", "x"), 2, ("profile",)),
        (("hello",), 2, ("hello",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_command_line_that_cannot_be_followed(hermes, sql, home, arguments, status, words, is_one_line):
    is_one_line(hermes(*arguments), status, *words)
    assert not (home / "state.db").exists() or sql("SELECT id FROM lineages") == []


# ------------------------------------------------------------------ files that are not ours


def random_bytes(path, sql):
    path.write_bytes(os.urandom(40_000))


def text_file(path, sql):
    path.write_text("These are my notes, not a database.\n" * 100)


def short_file(path, sql):
    path.write_bytes(b"SQLite format 3\x00and then nothing")


def foreign_database(path, sql):
    sql("CREATE TABLE songs (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO songs VALUES (1, 'x')", path=path)


def original_hermes(path, sql):
    sql(
        """
        PRAGMA journal_mode = WAL;
        CREATE TABLE schema_version (version INTEGER NOT NULL);
        INSERT INTO schema_version VALUES (16);
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, started_at REAL,
            ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, title TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
            content TEXT, timestamp REAL NOT NULL);
        INSERT INTO sessions (id, source, started_at) VALUES ('20250101_000000_abcdef', 'cli', 1.0);
        INSERT INTO messages (session_id, role, content, timestamp) VALUES ('20250101_000000_abcdef', 'user', 'x', 1.0);
        """,
        path=path,
    )


def another_application(path, sql):
    sql("CREATE TABLE t (x); PRAGMA application_id = 1234567; PRAGMA user_version = 1", path=path)


def newer_program(path, sql):
    sql("PRAGMA application_id = 1213353299; CREATE TABLE lineages (x); PRAGMA user_version = 4711", path=path)


STRANGERS = [random_bytes, text_file, short_file, foreign_database, original_hermes, another_application, newer_program]


@pytest.mark.parametrize("command", [CHAT, READS[0], READS[2]], ids=" ".join)
@pytest.mark.parametrize("make", STRANGERS, ids=lambda make: make.__name__)
def test_a_database_that_is_not_ours_is_refused_and_not_touched(hermes, home, sql, make, command, is_one_line):
    home.mkdir()
    path = home / "state.db"
    make(path, sql)
    before = path.read_bytes()

    ran = hermes(*command)

    assert ran.status in (65, 78)
    is_one_line(ran, ran.status, str(path))
    assert path.read_bytes() == before


def test_the_original_s_file_is_named_for_what_it_is(hermes, home, sql, is_one_line):
    home.mkdir()
    original_hermes(home / "state.db", sql)

    is_one_line(hermes(*CHAT), 78, "state.db")
    assert sql("SELECT content FROM messages") == [("x",)]


def test_a_file_of_a_newer_program_is_refused(hermes, sql, is_one_line):
    hermes(*CHAT)
    sql("PRAGMA user_version = 4711")

    for command in EVERY:
        is_one_line(hermes(*command), 78, "newer")
    assert sql("SELECT count(*) FROM messages") == [(2,)]


def test_a_folder_where_the_file_should_be(hermes, home, is_one_line):
    (home / "state.db").mkdir(parents=True)

    ran = hermes(*CHAT)

    is_one_line(ran, ran.status, "state.db")
    assert ran.status in (74, 78)


# ------------------------------------------------------------------ others at the store

HOLD = """
import sys
import apsw
connection = apsw.Connection(sys.argv[1] + "/state.db")
connection.set_busy_timeout(20_000)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""
TURN = """
import sys
from hermes_core import SessionSource, open_app

source = SessionSource(platform="feishu", chat_id="oc_1", user_id="u")


def agent(turn):
    print("working", flush=True)
    sys.stdin.readline()
    return "done"


times = {"turns.lease_ttl_s": 5, "turns.lease_renew_s": 0.5}
with open_app(sys.argv[1], plugins=False, overrides=times) as app:
    entry = app.get_or_create_session(source)
    print(entry.session_id, flush=True)
    app.ask("first", source, agent=agent)
"""


@pytest.fixture
def lock_holder(hermes, python):
    hermes(*CHAT)
    holder = python(HOLD)
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_lock_that_is_held_too_long_is_told_and_nothing_is_written(hermes, lock_holder, sql, is_one_line):
    ran = hermes(*CHAT, env={"HERMES_STORAGE_BUSY_TIMEOUT_S": "0.5"})
    read = hermes.json("sessions", "list")
    lock_holder.communicate("go\n", timeout=60)

    is_one_line(ran, 75)
    assert [row["message_count"] for row in read] == [2]
    assert sql("SELECT (SELECT count(*) FROM lineages), (SELECT count(*) FROM messages)") == [(1, 2)]
    assert sql("SELECT count(*) FROM inbox WHERE status IN ('pending', 'claimed')") == [(0,)]


def test_a_lock_that_is_held_for_seconds_is_waited_for(hermes, lock_holder):
    process = hermes.start(*CHAT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)

    lock_holder.communicate("go\n", timeout=60)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (0, b"echo 1: hello\n", b"")


@pytest.mark.slow
def test_a_turn_that_runs_elsewhere_is_named_and_the_message_is_taken_back(hermes, python, sql, is_one_line):
    holder = python(TURN)
    session = holder.stdout.readline().strip()
    assert holder.stdout.readline() == "working\n"

    busy = hermes(
        "-r", session, "-q", "too late", "--agent", "echo",
        env={"HERMES_TURN_LEASE_TIMEOUT": "5", "HERMES_TURNS_LEASE_TTL_S": "5", "HERMES_TURNS_LEASE_RENEW_S": "1"},
    )  # fmt: skip
    deleted = hermes("sessions", "delete", session, "--yes")
    holder.communicate("go\n", timeout=60)

    assert busy.status == 75
    assert f"process {holder.pid} on " in busy.err
    assert "Traceback" not in busy.err
    is_one_line(deleted, 75, f"process {holder.pid} on ")
    assert sql("SELECT content FROM messages ORDER BY id") == [("first",), ("done",)]
    assert sql("SELECT text, status FROM inbox ORDER BY id") == [("first", "done"), ("too late", "withdrawn")]


# ------------------------------------------------------------------ pipes


@pytest.mark.parametrize(
    "command", [("sessions", "list"), ("sessions", "export", "-"), ("--help",), ("config", "show")]
)
def test_a_reader_that_left_is_no_fault(hermes, command):
    hermes(*CHAT)
    process = hermes.start(*command)
    process.stdout.close()

    err = process.stderr.read()

    assert process.wait(60) == 141
    assert err == b""


def test_the_beginning_of_a_long_export_may_be_enough(hermes):
    hermes("--agent", "echo", "-q", "-", stdin="long " * 100_000)
    process = hermes.start("sessions", "export", "-")

    head = process.stdout.read(10)
    process.stdout.close()

    assert head == b'{"session_'
    assert process.wait(60) == 141
    assert process.stderr.read() == b""


def test_an_answer_that_nobody_reads_is_kept(hermes):
    process = hermes.start(*CHAT)
    process.stdout.close()

    process.wait(60)

    assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 141
    (listed,) = hermes.json("sessions", "list")
    assert listed["preview"] == "hello"
    turns = hermes.exported()[0]["messages"]
    assert [row["role"] for row in turns][:2] == ["user", "assistant"]


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_closed_is_no_fault(hermes, stream):
    number = ("stdin", "stdout", "stderr").index(stream)

    ran = hermes(*CHAT, preexec_fn=lambda: os.close(number))

    assert ran.status == 0
    assert "Traceback" not in ran.err
    assert hermes.json("sessions", "list")[0]["message_count"] == 2
