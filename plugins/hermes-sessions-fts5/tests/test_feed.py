"""What the change feed says reaches the index, whoever wrote it and whoever dies in between."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hermes_hookspecs.operations import Delete
from hermes_hookspecs.testing.scene import ALL

SOON_S = 30
INDEXING = """
import sys
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.store import StoreOptions

store = SqliteBackend().open(StoreOptions(path=sys.argv[1], durability="normal"))
index = Fts5Source(Fts5Config()).open(store)
print("ready", flush=True)
sys.stdin.readline()
while index.catch_up(budget_s=0.02):
    print("more", flush=True)
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def start(path):
    running = []

    def start_one():
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        process = subprocess.Popen(
            [sys.executable, "-c", INDEXING, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start_one
    for process in running:
        process.kill()
        process.communicate(timeout=SOON_S)


def _go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def _indexed(store):
    """Ids that the index holds, whether or not they are rows of the store."""
    with store.sqlite_access().read() as reader:
        return [row[0] for row in reader.all("SELECT id FROM messages_fts_docsize ORDER BY id")]


def _asked(store, table, expression):
    with store.sqlite_access().read() as reader:
        return [row[0] for row in reader.all(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (expression,))]


def test_a_redacted_text_is_not_found_any_more_and_the_new_one_is(store, say, redact, found, caught_up):
    """B13 · NousResearch/hermes-agent#114169: what is taken out is what was put in, also of a long row."""
    _, (row,) = say("one", "token abcsecret " + "filling words " * 3000)
    caught_up()

    redact(store, row, "token [redacted]")
    behind = found("abcsecret"), found("redacted")
    caught_up()

    assert behind == ([], [row])
    assert (found("abcsecret"), found("redacted")) == ([], [row])
    assert _asked(store, "messages_fts", "abcsecret") == []
    assert _asked(store, "fts5_marks", "sfilling") == []


def test_a_row_that_was_taken_back_leaves_the_index_and_returns_when_it_is_shown(
    store, say, take_back, found, caught_up
):
    _, (row,) = say("one", "部署完成")
    caught_up()

    take_back(store, row)
    caught_up()
    gone = found("部署"), _indexed(store)
    take_back(store, row, hidden=False)
    caught_up()

    assert gone == ([], [])
    assert found("部署") == [row]


def test_a_deleted_conversation_leaves_no_rows_in_the_index(store, scene, say, found, caught_up, index):
    """I06 · NousResearch/hermes-agent#87928."""
    gone, rows = say("one", *(f"needle {number}" for number in range(600)))
    _, kept = say("two", "needle")
    caught_up()

    scene.run(Delete(lineage_id=gone, now=scene.now))
    caught_up()

    assert set(_indexed(store)).isdisjoint(rows)
    assert found("needle") == list(kept)
    assert list(index.verify()) == []


def test_a_process_without_the_plugin_is_followed(store, open_store, say, redact, found, caught_up):
    _, (first, second) = say("one", "alpha", "beta")
    caught_up()
    other = open_store()

    redact(other, first, "gamma")
    caught_up()

    assert (found("alpha"), found("gamma"), found("beta")) == ([], [first], [second])


def test_history_from_before_the_plugin_is_found_while_it_is_indexed(store, say, open_index, found):
    _, rows = say("one", *(f"message {number} 部署" for number in range(700)))
    index = open_index(store)
    index.catch_up(budget_s=0.0)

    while left := index.catch_up(budget_s=0.005):
        newest = found("部署", of=index, sort="newest")
        assert newest == [rows[-1]], left
        assert found("message 3", of=index) == [rows[3]]

    assert found("部署", of=index, sort="oldest") == [rows[0]]


def test_killed_while_indexing_nothing_is_lost_and_nothing_doubled(store, say, start, index, caught_up):
    for number in range(6):
        say(f"c{number}", *(f"row {number} {at} 部署 word{at}" for at in range(300)))
    for _ in range(4):
        process = start()
        _go(process)
        process.stdout.readline()
        process.kill()
        process.wait(SOON_S)

    caught_up()

    with store.sqlite_access().read() as reader:
        rows = [row[0] for row in reader.all("SELECT id FROM messages WHERE content <> '' ORDER BY id")]
    assert _indexed(store) == rows
    assert sorted(_asked(store, "messages_fts", '"部署"')) == rows[-len(_asked(store, "messages_fts", '"部署"')) :]
    assert list(index.verify()) == []
    assert store.integrity() == []


def test_two_processes_index_at_once(store, say, start, index):
    for number in range(6):
        say(f"c{number}", *(f"row {number} {at} 部署" for at in range(300)))
    processes = [start(), start()]
    for process in processes:
        _go(process)
    for process in processes:
        while (line := process.stdout.readline()) == "more\n":
            continue
        assert line == "done\n"

    assert index.catch_up(budget_s=1.0) == 0
    assert len(_asked(store, "messages_fts", '"部署"')) == 1800
    assert list(index.verify()) == []
    assert len(store.summaries(ALL)) == 6
