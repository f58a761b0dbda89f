"""Group B at the index: what befalls it concerns no message, and what is gone from the store is gone from it."""

from __future__ import annotations

import json

import pytest

from hermes_core import open_app
from hermes_hookspecs.source import SessionSource

fts5 = pytest.importorskip("hermes_fts5", reason="the index is a plugin")

INDEXED = {"environ": {}, "overrides": {"plugins.only": ("fts5",)}}
INDEX_ROWS = "SELECT count(*) FROM messages_fts_docsize"
TELL = """
    INSERT INTO changes (kind, lineage_no, message_id, at) SELECT 'change', lineage_no, id, 0 FROM messages WHERE id = ?
"""
MESSAGES = "SELECT count(*) FROM messages WHERE hidden = 0"


def chat(number):
    return SessionSource(platform="feishu", chat_id=f"oc_{number}", user_id="ou_alice")


def caught_up(app):
    while app.search_index.catch_up(budget_s=5.0):
        continue


def texts(app, query):
    answer = app.session_search(query, limit=100, budget_s=30.0, role_filter=("user", "assistant", "tool"))
    assert answer.complete
    return sorted(row.content for one in answer.results for row in one.messages if row.anchor)


# ------------------------------------------------------------------ B11


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM messages_fts_data WHERE id > 10",
        "DELETE FROM messages_fts_docsize",
        "DELETE FROM fts5_marks_docsize",
        "DELETE FROM fts5_terms WHERE term = 'whale'",
        "DROP TABLE messages_fts_trigram_data",
    ],
)
def test_a_damaged_index_is_told_apart_from_sound_messages_and_made_anew(hermes, sql, damage):
    """B11 · NousResearch/hermes-agent#33865."""
    for text in ("a whale\n", "a shark\n"):
        hermes("--agent", "echo", stdin=text)
    hermes("search", "index", "rebuild")
    sql(damage)

    told = hermes("search", "index", "verify", "--json")
    seen = json.loads(hermes("doctor", "--json").out)
    appended = hermes("--agent", "echo", stdin="another whale\n")
    found = hermes("sessions", "search", "whale")
    rebuilt = hermes("search", "index", "rebuild")

    assert told.status == 1
    assert {one["kind"] for one in json.loads(told.out)} == {"search-index"}
    assert "search-index" in json.dumps(seen)
    assert "integrity" not in {one["kind"] for one in seen.get("findings", [])}
    assert appended.status == found.status == rebuilt.status == 0
    assert found.out.count(">>>whale<<<") == 2
    assert sql(INDEX_ROWS) == sql(MESSAGES)
    assert hermes("search", "index", "verify").out == "the index is sound\n"


# ------------------------------------------------------------------ B12


@pytest.mark.parametrize(
    "damage", ["DROP TABLE messages_fts_idx", "DROP TABLE fts5_state", "DELETE FROM fts5_marks_data"]
)
def test_an_index_that_takes_nothing_in_costs_no_turn_and_no_message(tmp_path, home, sql, damage):
    """B12 · NousResearch/hermes-agent#97794."""
    with open_app(home, **INDEXED) as app:
        app.ask("a whale", chat(1), agent=lambda turn: "noted")
        caught_up(app)
        sql(damage)

        told = app.ask("another whale", chat(2), agent=lambda turn: "noted, too")
        around = texts(app, "whale")
        caught_up(app)

        assert told.text == "noted, too"
        assert around == texts(app, "whale") == ["a whale", "another whale"]
        assert app.session_search("whale").note == ""
        assert list(app.search_index.verify()) == []


# ------------------------------------------------------------------ B13


def test_a_long_row_leaves_nothing_behind_though_the_bounds_of_its_parts_have_moved(home, sql, monkeypatch):
    """B13 · NousResearch/hermes-agent#114169."""
    long = "abcsecret " + " ".join(f"word{number}" for number in range(900)) + " hunter2"
    with open_app(home, **INDEXED) as app:
        monkeypatch.setattr("hermes_fts5.documents.TOKENS_OF_PART", 100)
        app.ask(long, chat(1), agent=lambda turn: "noted")
        caught_up(app)
        assert len(texts(app, "hunter2")) == 1
        assert list(app.search_index.verify()) == []
        ((row,),) = sql("SELECT id FROM messages WHERE role = 'user'")

        monkeypatch.setattr("hermes_fts5.documents.TOKENS_OF_PART", 333)
        sql("UPDATE messages SET content = ? WHERE id = ?", long.replace("abcsecret", "").replace("hunter2", "x"), row)
        sql(TELL, row)
        caught_up(app)
        assert texts(app, "abcsecret") == texts(app, "hunter2") == texts(app, '"word899 hunter2"') == []
        assert len(texts(app, "word899")) == 1
        assert list(app.search_index.verify()) == []

        app.delete_session(app.get_or_create_session(chat(1)).lineage_id)
        caught_up(app)
        assert texts(app, "word899") == []
        assert list(app.search_index.verify()) == []
        assert sql(INDEX_ROWS) == [(0,)]


# ------------------------------------------------------------------ I06


def test_deleted_conversations_leave_the_store_the_index_and_the_file(home, sql):
    """I06 · NousResearch/hermes-agent#87928."""
    with open_app(home, **INDEXED) as app:
        for number in range(30):
            app.ask(f"whale {number} " + "krill and plankton " * 300, chat(number), agent=lambda turn: "noted")
        caught_up(app)
        before = sql("SELECT count(*) FROM messages")

        for number in range(29):
            app.delete_session(app.get_or_create_session(chat(number)).lineage_id)
        caught_up(app)

        assert before == [(60,)]
        assert sql("SELECT count(*) FROM messages") == sql(INDEX_ROWS) == [(2,)]
        assert len(texts(app, "whale")) == 1
        assert texts(app, '"whale 3"') == []
        assert list(app.search_index.verify()) == []
        app.search_index.rebuild()
        ((used,),) = sql("SELECT sum(pgsize) FROM dbstat WHERE name GLOB 'messages*' OR name GLOB 'fts5*'")
        assert used < 29 * 3000
    assert sql("PRAGMA integrity_check") == [("ok",)]
