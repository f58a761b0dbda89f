"""The plugin of the index comes, goes and returns: the store works, and what was taken away stays away."""

from __future__ import annotations

import pytest

from hermes_core import open_app
from hermes_hookspecs.messages import ROLES
from hermes_hookspecs.operations import Hide
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.scene import Scene, fence_of

pytest.importorskip("hermes_fts5", reason="the index is a plugin")

DAY_S = 86_400
REDACT = "UPDATE messages SET content = '[redacted]' WHERE id = ?"
TELL = """
    INSERT INTO changes (kind, lineage_no, message_id, at)
    SELECT 'change', lineage_no, id, (SELECT max(at) FROM changes) FROM messages WHERE id = ?
"""


@pytest.fixture
def clock():
    return FakeClock(now=1_790_000_000_000)


@pytest.fixture
def profile(tmp_path, clock):
    """Return a function that opens the profile of the test with the plugin, or without it."""

    def profile(*, indexed):
        options = {"overrides": {"plugins.only": ("fts5",)}} if indexed else {"plugins": False}
        return open_app(tmp_path / "home", environ={}, clock=clock, **options)

    return profile


def _say(app, number, text):
    """Say a text in a chat of its own; return the conversation and the id of the row."""
    source = SessionSource(platform="feishu", chat_id=f"oc_{number}", user_id="ou_alice")
    lineage_id = app.ask(text, source, agent=lambda turn: "noted").entry.lineage_id
    return lineage_id, app.store.messages(lineage_id, operator())[-2].id


def _index(app):
    while app.search_index.catch_up(budget_s=5.0):
        continue


def _found(app, query):
    answer = app.session_search(query, limit=100, budget_s=30.0, role_filter=ROLES)
    assert answer.complete
    return sorted(row.content for one in answer.results for row in one.messages if row.anchor)


def _ids(app, query):
    """What the tables hold, whether or not it is shown."""
    with app.store.sqlite_access().read() as reader:
        return [row[0] for row in reader.all("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?", (query,))]


def _changes(app):
    return list(app.store.changes(None, limit=1000)[0])


def _hide(app, lineage_id):
    scene = Scene(app.store)
    begun = scene.run(scene.beginning(lineage_id, maintenance=True, touch=False))
    first = app.store.messages(lineage_id, operator())[0].id
    scene.run(Hide(fence=fence_of(begun), first=first, now=scene.now, finish=True))


def _redact(app, row):
    def work(writer):
        writer.run(REDACT, (row,))
        writer.run(TELL, (row,))

    app.store.sqlite_access().apply(work)


@pytest.fixture
def left_alone(profile):
    """Conversations that were indexed, then hidden, redacted, deleted and added to without the plugin."""
    with profile(indexed=True) as app:
        kept, hidden, redacted, gone = (_say(app, number, f"needle number{number}") for number in range(4))
        _index(app)
        assert len(_ids(app, "needle")) == 4
    with profile(indexed=False) as app:
        _hide(app, hidden[0])
        _redact(app, redacted[1])
        app.delete_session(gone[0])
        _say(app, 5, "a later needle")
    return kept


def test_without_the_plugin_the_store_works_and_search_is_right(profile, left_alone):
    with profile(indexed=False) as app:
        assert _found(app, "needle") == ["a later needle", "needle number0"]
        assert app.maintain().more is False
        assert app.store.integrity() == []


def test_a_plugin_that_returns_is_right_at_once_and_clears_its_tables(profile, left_alone):
    with profile(indexed=True) as app:
        assert _found(app, "needle") == ["a later needle", "needle number0"]
        assert _found(app, "number1 OR number2 OR number3") == []

        _index(app)

        assert len(_ids(app, "needle")) == 2
        assert [_ids(app, f"number{number}") for number in range(4)] == [[left_alone[1]], [], [], []]
        assert _found(app, "needle") == ["a later needle", "needle number0"]
        assert list(app.search_index.verify()) == []


def test_a_feed_is_kept_for_a_plugin_that_is_behind(profile, left_alone, clock):
    """Old changes go once every watermark has passed them; before, a deletion would never reach the index."""
    clock.advance(20 * DAY_S)
    with profile(indexed=False) as app:
        app.maintain()
        kinds = [change.kind for change in _changes(app)]
    assert "delete-lineage" in kinds

    with profile(indexed=True) as app:
        _index(app)
        assert _ids(app, "number3") == []
        assert list(app.search_index.verify()) == []
        app.maintain()
        assert _changes(app) == []


def test_after_a_month_the_tables_of_an_absent_plugin_go_and_so_does_the_feed(profile, left_alone, clock):
    clock.advance(40 * DAY_S)
    with profile(indexed=False) as app:
        while app.maintain().more:
            continue
        app.maintain()
        assert app.store.sqlite_access().plugins() == ()
        assert _changes(app) == []

    with profile(indexed=True) as app:
        assert _found(app, "needle") == ["a later needle", "needle number0"]
        _index(app)
        assert len(_ids(app, "needle")) == 2
        assert list(app.search_index.verify()) == []


def test_a_plugin_that_comes_after_the_feed_was_cut_indexes_everything(profile, clock):
    with profile(indexed=False) as app:
        for number in range(3):
            _say(app, number, f"an old needle {number}")
        gone, _ = _say(app, 3, "an old needle that is deleted")
        app.delete_session(gone)
        clock.advance(10 * DAY_S)
        while app.maintain().more:
            continue
        assert _changes(app) == []
        _say(app, 4, "a new needle")

    with profile(indexed=True) as app:
        expected = ["a new needle", *(f"an old needle {number}" for number in range(3))]
        assert _found(app, "needle") == expected
        _index(app)
        assert len(_ids(app, "needle")) == 4
        assert dict(app.search_index.status())["state"] == "complete"
        assert list(app.search_index.verify()) == []
