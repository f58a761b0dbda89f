"""Group I: titles."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes_hookspecs.errors import AmbiguousReference, SessionNotFound, TitleError
from hermes_hookspecs.operations import Rename
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()


def at_terminal(number):
    return SessionSource(platform="cli", chat_id=f"pts-{number}", user_id="me", user_name="me")


@pytest.fixture
def talk(app):
    """Return a function that begins a conversation at a terminal of one person and returns its entry."""
    return lambda number=1, text="hello": app.ask(text, at_terminal(number), agent="echo").entry


def auto(app, entry, title, **more):
    operation = Rename(lineage_id=entry.lineage_id, title=title, origin="auto", now=app.clock.now(), **more)
    return app.store.apply(operation)


def titles(app):
    return sorted(summary.title or "" for summary in app.store.summaries(ALL))


# ------------------------------------------------------------------ I15


def test_i15_the_same_automatic_title_gets_a_number(app, talk):
    told = [auto(app, talk(number), "Greeting") for number in range(4)]

    assert told == ["Greeting", "Greeting #2", "Greeting #3", "Greeting #4"]
    assert titles(app) == sorted(told)


def test_i15_the_smallest_free_number_is_taken_and_a_persons_title_stays(app, talk):
    first, second = talk(1), talk(2)
    app.rename_session(first.lineage_id, "Greeting")
    app.rename_session(second.lineage_id, "Greeting #3")

    told = [auto(app, talk(number), "Greeting") for number in (3, 4)]

    assert told == ["Greeting #2", "Greeting #4"]
    assert titles(app) == ["Greeting", "Greeting #2", "Greeting #3", "Greeting #4"]


def test_i15_titling_at_once_gives_each_a_title_of_its_own(app, talk):
    entries = [talk(number) for number in range(12)]

    with ThreadPoolExecutor(12) as threads:
        told = list(threads.map(lambda entry: auto(app, entry, "Greeting"), entries))

    assert sorted(told) == sorted(["Greeting", *(f"Greeting #{number}" for number in range(2, 13))])


def test_i15_a_title_for_a_conversation_that_is_gone_is_said(app, talk):
    entry = talk()
    app.delete_session(entry.lineage_id)

    with pytest.raises(SessionNotFound):
        auto(app, entry, "Greeting")
    with pytest.raises(SessionNotFound):
        app.rename_session(entry.lineage_id, "Greeting")

    assert titles(app) == []


# ------------------------------------------------------------------ I16


def test_i16_a_title_of_another_conversation_is_refused_and_named(app, talk):
    first, second = talk(1), talk(2)
    app.rename_session(first.lineage_id, "demo")

    with pytest.raises(TitleError, match=first.session_id):
        app.rename_session(second.lineage_id, "demo")

    assert titles(app) == ["", "demo"]


def test_i16_a_conversation_may_have_its_own_title_again(app, talk):
    entry = talk()
    for title in ("demo", "demo", "demo #2", "demo"):
        assert app.rename_session(entry.lineage_id, title) == title

    assert app.resolve("demo", ALL).session.id == entry.session_id


def test_i16_a_title_that_was_given_back_is_free(app, talk):
    first, second = talk(1), talk(2)
    app.rename_session(first.lineage_id, "demo")
    app.rename_session(first.lineage_id, None)

    assert app.rename_session(second.lineage_id, "demo") == "demo"
    app.delete_session(second.lineage_id)
    assert app.rename_session(first.lineage_id, "demo") == "demo"


def test_i16_the_same_title_of_two_owners_is_shown_not_guessed(app, talk, alice):
    mine, theirs = talk(1), app.ask("hello", alice, agent="echo").entry
    app.rename_session(mine.lineage_id, "demo")
    app.rename_session(theirs.lineage_id, "demo")

    with pytest.raises(AmbiguousReference) as raised:
        app.resolve("demo", ALL)

    assert {session for session, _ in raised.value.candidates} == {mine.session_id, theirs.session_id}
    assert app.resolve("demo", app.principal(alice)).session.id == theirs.session_id


# ------------------------------------------------------------------ I17


def test_i17_an_automatic_title_never_replaces_a_persons(app, talk):
    entry = talk()
    app.rename_session(entry.lineage_id, "mine")

    assert auto(app, entry, "Automatic") == "mine"
    assert titles(app) == ["mine"]
    assert app.store.lineage(entry.lineage_id, ALL).title_origin == "user"


def test_i17_nor_one_that_is_there_already(app, talk):
    entry = talk()
    auto(app, entry, "First")

    assert auto(app, entry, "Second") == "First"


def test_i17_a_late_job_titles_the_session_it_was_for_and_no_other(app, talk):
    old = talk(1, "the old one")
    asyncio.run(app.command("/new", at_terminal(1), old))
    new = talk(1, "the new one")

    auto(app, old, "About the old one", session_id=old.session_id)
    auto(app, new, "Not mine", session_id=old.session_id)

    assert app.store.lineage(new.lineage_id, ALL).title is None
    assert app.store.lineage(old.lineage_id, ALL).title == "About the old one"


def test_i17_a_person_may_replace_both_kinds(app, talk):
    entry = talk()
    auto(app, entry, "Automatic")

    app.rename_session(entry.lineage_id, "mine")
    app.rename_session(entry.lineage_id, "mine, too")

    assert titles(app) == ["mine, too"]


# ------------------------------------------------------------------ the title that /new is given


def test_a_title_given_to_new_is_that_of_the_next_session(app, talk):
    old = talk()

    reply = asyncio.run(app.command("/new the plan", at_terminal(1), old))
    new = talk(1, "first words")

    assert reply.released
    assert app.store.lineage(new.lineage_id, ALL).title == "the plan"
    assert app.store.lineage(new.lineage_id, ALL).title_origin == "user"
    assert app.store.lineage(old.lineage_id, ALL).title is None


def test_a_taken_title_given_to_new_changes_nothing(app, talk):
    app.rename_session(talk(2).lineage_id, "the plan")
    here = talk(1)

    reply = asyncio.run(app.command("/new the plan", at_terminal(1), here))

    assert reply.failed
    assert not reply.released
    assert talk(1, "again").session_id == here.session_id
