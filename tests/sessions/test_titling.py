"""Titles that nobody gave: found behind the turn, once, and never over what a person wrote."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes_core.sessions import titling
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

PATIENCE_S = 20
ALICE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")


class Titles:
    """A plugin with one titler that answers as its list says, and says when it was asked."""

    name = "titles"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        self.began, self.ended = threading.Event(), threading.Event()
        self.heard = threading.Event()

    @hookimpl
    def hermes_titlers(self):
        return [self]

    @hookimpl
    def hermes_after_title_change(self, title, origin):
        self.told = (title, origin)
        self.heard.set()

    async def title(self, rows):
        self.asked.append([row.content for row in rows])
        self.began.set()
        try:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return await answer if asyncio.isfuture(answer) or asyncio.iscoroutine(answer) else answer
        finally:
            self.ended.set()


def title_of(app):
    return app.store.lineage(app.get_or_create_session(ALICE).lineage_id, operator()).title


def asked_after(app, titles, text="hi"):
    """Say something; return once the titler was asked and its answer taken."""
    titles.ended.clear()
    app.ask(text, ALICE)
    app.hooks.flush()
    assert titles.ended.wait(PATIENCE_S)


def titling_of(app):
    return app.hooks.host.manager.get_plugin("builtin.titles").plugin


def wait_for_try(titled, number):
    with titled._changed:
        assert titled._changed.wait_for(lambda: [*titled._tries.values()] == [number], PATIENCE_S)


def settle(app):
    """Let the thread that finds titles come to rest."""
    titling_of(app).hermes_before_close()


def test_a_conversation_without_a_title_gets_one_from_its_first_rows(profile):
    titles = Titles("  “Rain in Ulm”\nand more")
    app = profile(plugins=[titles])

    asked_after(app, titles, "will it rain?")

    assert titles.heard.wait(PATIENCE_S)
    assert titles.told == ("“Rain in Ulm”", "auto")
    assert title_of(app) == "“Rain in Ulm”"
    assert titles.asked == [["will it rain?", "echo 1: will it rain?"]]


def test_it_is_found_once(profile):
    titles = Titles("Rain", "Snow")
    app = profile(plugins=[titles])
    asked_after(app, titles)
    assert titles.heard.wait(PATIENCE_S)

    app.ask("again", ALICE)
    app.hooks.flush()
    settle(app)

    assert title_of(app) == "Rain"
    assert len(titles.asked) == 1


def test_a_title_that_a_person_gave_is_not_asked_about(profile):
    titles = Titles("Rain")
    app = profile(plugins=[titles])
    entry = app.get_or_create_session(ALICE)
    app.rename_session(entry.lineage_id, "Mine")

    app.ask("hi", ALICE)
    app.hooks.flush()
    settle(app)

    assert (title_of(app), titles.asked) == ("Mine", [])


def test_a_person_who_is_quicker_wins(profile):
    gate = threading.Event()

    async def slow():
        await asyncio.to_thread(gate.wait, PATIENCE_S)
        return "Rain"

    titles = Titles(slow())
    app = profile(plugins=[titles])
    app.ask("hi", ALICE)
    assert titles.began.wait(PATIENCE_S)
    app.rename_session(app.get_or_create_session(ALICE).lineage_id, "Mine")

    gate.set()
    assert titles.ended.wait(PATIENCE_S)
    settle(app)

    assert title_of(app) == "Mine"


def test_one_that_fails_is_asked_again_behind_a_later_turn_but_not_for_ever(profile):
    titles = Titles(RetryLater("busy"), ValueError("x"), None, "late")
    app = profile(plugins=[titles])

    for number in range(1, 4):
        asked_after(app, titles, f"number {number}")
        wait_for_try(titling_of(app), number)
    app.ask("number 4", ALICE)
    app.hooks.flush()
    settle(app)

    assert (title_of(app), len(titles.asked)) == (None, 3)


@pytest.mark.parametrize("long", ["word " * 40, "字" * 300])
def test_a_long_title_is_cut(profile, long):
    titles = Titles(long)
    app = profile(plugins=[titles])

    asked_after(app, titles)

    assert titles.heard.wait(PATIENCE_S)
    assert len(title_of(app)) <= 80
    assert title_of(app).endswith("…")


def test_the_answer_does_not_wait_and_closing_ends_what_takes_too_long(profile, monkeypatch):
    monkeypatch.setattr(titling, "_LEAVING_S", 0.01)

    async def never():
        await asyncio.Event().wait()

    titles = Titles(never())
    app = profile(plugins=[titles])

    assert app.ask("hi", ALICE).text == "echo 1: hi"
    assert titles.began.wait(PATIENCE_S)
    app.close()

    assert titles.ended.wait(PATIENCE_S)
