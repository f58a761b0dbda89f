"""Cases E03, E07, E13, A05, A11, A12, J08: what a reset may touch, and which conversation a command is about.

The others of their kind stand where the thing itself is tested: E01, E04, E06, E08, E10, E11 and E12 under
``tests/resets``, E02 in ``tests/resets/test_what_goes.py``, H17 in ``tests/commands/test_roles_and_sights.py``.
"""

from __future__ import annotations

import asyncio
from threading import Event

import attrs
import pytest

from hermes_core import open_app
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 60
DAY_S = 86_400
ALL = operator()
ROOM = SessionSource(platform="slack", scope_id="T1", chat_id="C1", chat_type="group", user_id="U_ann")
BEN = attrs.evolve(ROOM, user_id="U_ben")


@pytest.fixture
def clock():
    return FakeClock(1_772_416_800_000)


@pytest.fixture
def opened(home, clock):
    """Return a function that opens the home with settings, and closes what it had open before."""
    apps = []

    def open_(config="", **settings):
        while apps:
            apps.pop().close()
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config, encoding="utf-8")
        chosen = {"storage.durability": "normal", "agent.runner": "echo", "inbox.batch_window_s": 0}
        apps.append(open_app(home, overrides=chosen | settings, plugins=False, environ={}, clock=clock))
        return apps[-1]

    yield open_
    while apps:
        apps.pop().close()


def rows(app, lineage_id):
    return [row.content for row in app.store.messages(lineage_id, ALL)]


def test_e03_what_a_job_comes_to_goes_to_the_session_that_began_it_and_never_into_the_new_one(opened, alice):
    app = opened()
    done = Event()

    async def work():
        await asyncio.to_thread(done.wait, PATIENCE_S)
        return "the secret of the first conversation"

    async def agent(turn):
        await turn.jobs.start(work, kind="build", label="build it")
        return "begun"

    first = app.ask("build it", alice, agent=agent).entry
    app.leave_session(alice, first)
    second = app.ask("hello", alice).entry
    done.set()
    _until(lambda: not app.store.jobs(ALL, running=True))

    third = app.ask("anything new?", alice).entry

    (job,) = app.store.jobs(ALL)
    assert (job.status, job.session_id, job.lineage_id) == ("done", first.session_id, first.lineage_id)
    assert third.lineage_id == second.lineage_id
    assert "secret" not in " ".join(rows(app, second.lineage_id))


def test_e03_after_a_compression_it_follows_the_conversation(opened, alice):
    app = opened()
    done = Event()

    async def work():
        await asyncio.to_thread(done.wait, PATIENCE_S)
        return "it is built"

    async def agent(turn):
        await turn.jobs.start(work, kind="build", label="build it")
        return "begun"

    for number in range(8):
        entry = app.ask(f"{number} " + "word " * 400, alice).entry
    app.ask("build it", alice, agent=agent)
    report = asyncio.run(app.compress_session(entry.lineage_id, alice))
    done.set()
    _until(lambda: not app.store.jobs(ALL, running=True))

    seen = []
    app.ask("and?", alice, agent=lambda turn: seen.extend(turn.messages) or "ok")

    assert not report.refusal
    assert any("it is built" in row.content for row in seen)


def test_e07_a_conversation_that_a_crash_left_open_does_not_come_back_behind_later_ones(opened, alice, clock):
    app = opened()
    terminal = SessionSource(platform="cli", chat_id="pts-1", user_id="ou_alice")
    crashed = app.get_or_create_session(alice)
    app.ask("weeks ago", alice)
    app.resume_session(terminal, crashed.lineage_id)  # what keeps it open
    app.leave_session(alice, None)
    clock.advance(26 * DAY_S)
    ended = set()
    for text in ("one", "two", "three"):
        ended.add(app.ask(text, alice).entry.lineage_id)
        app.leave_session(alice, None)
    app = opened()
    app.maintain()

    entry = app.ask("hello", alice).entry

    assert entry.lineage_id not in {crashed.lineage_id, *ended}
    assert rows(app, entry.lineage_id)[0] == "hello"


def test_e13_three_failed_starts_throw_no_history_away(opened, alice):
    def failing(_turn):
        raise RuntimeError("stuck")

    app = opened()
    first = app.ask("before", alice).entry
    for number in range(3):
        with pytest.raises(Exception, match="stuck"):
            app.ask(f"try {number}", alice, agent=failing)
        app = opened()
        app.maintain()

    after = app.ask("after", alice)

    assert after.entry.lineage_id == first.lineage_id
    assert [text for text in rows(app, first.lineage_id) if text in {"before", "try 0", "try 1", "try 2", "after"}] == [
        "before",
        "try 0",
        "try 1",
        "try 2",
        "after",
    ]
    assert app.store.session(first.session_id, ALL).end_reason is None


def test_a05_a_command_is_about_the_session_that_a_message_of_the_same_person_goes_into(opened, chats):
    app = opened()
    ann, ben = app.ask("hello from Ann", ROOM).entry, app.ask("hello from Ben", BEN).entry
    left = chats.event(app, "/new", "1", ROOM)

    async def scene():
        await app.accept([left])
        await app.work([ServedEntrance(entrance=Entrance("slack"), sender=RecordingSender())], until_idle=True)

    asyncio.run(scene())

    assert ann.session_key != ben.session_key
    assert app.store.route(ann.session_key).lineage_id is None
    assert app.store.route(ben.session_key).lineage_id == ben.lineage_id
    assert app.ask("still here", BEN).entry.lineage_id == ben.lineage_id


def test_a11_switching_isolation_hides_nothing_and_switching_back_finds_everything(opened):
    app = opened(**{"routing.group_sessions_per_user": False})
    shared = app.ask("said by all", ROOM).entry
    app = opened()
    own = app.ask("said by Ann", ROOM).entry
    listed = [one.lineage_id for one in app.store.summaries(ALL)]
    resumed = app.resume_session(SessionSource(platform="cli", chat_id="pts-1"), shared.lineage_id)
    app = opened(**{"routing.group_sessions_per_user": False})

    back = app.ask("and on", ROOM).entry

    assert own.lineage_id != shared.lineage_id
    assert set(listed) == {own.lineage_id, shared.lineage_id}
    assert resumed.session_id == shared.session_id
    assert back.lineage_id == shared.lineage_id
    assert app.store.lineage(own.lineage_id, ALL).source.chat_id == "C1"


def test_a12_what_a_provider_says_of_the_group_stands_beside_the_persons_own_history(opened):
    from hermes_hookspecs.markers import hookimpl
    from hermes_hookspecs.ports.services import ContextPiece

    class Background:
        name = "group"

        async def pieces(self, opening, *, budget_tokens):
            return [ContextPiece(label="group", text="Ben asked about the valve.")]

    class Plugin:
        @hookimpl
        def hermes_context_providers(self):
            return [Background()]

    app = opened()
    app.hooks.host.register("test.group", Plugin())
    for text in ("one", "two"):
        app.ask(text, ROOM)

    seen = []
    app.ask("three", ROOM, agent=lambda turn: seen.extend(turn.messages) or "ok")

    assert [row.content for row in seen if row.role == "assistant"] == ["echo 1: one", "echo 2: two"]
    asked = [row.content for row in seen if row.role == "user"]
    assert len(asked) == 3
    for text, content in zip(("one", "two", "three"), asked, strict=True):
        assert text in content
        assert "Ben asked about the valve." in content


CONFIG = """
[session_reset]
mode = "idle"
idle_minutes = 60
[session_reset.chat_types.group]
idle_minutes = 30
[platforms.slack.session_reset]
mode = "daily"
at_hour = 5
[platforms.slack.chat_types.dm.session_reset]
at_hour = 6
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1"), ("idle", "60", "4")),
        (SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", chat_type="group"), ("idle", "30", "4")),
        (ROOM, ("daily", "30", "5")),
        (attrs.evolve(ROOM, chat_type="dm"), ("daily", "60", "6")),
    ],
)
def test_j08_what_the_file_says_reaches_what_uses_it_and_is_shown_with_its_origin(opened, home, source, expected):
    app = opened(CONFIG)
    entry = app.ask("hello", source).entry

    explained = app.explain_reset(entry.session_key)

    values = {one.key: one for one in explained.values}
    assert tuple(values[key].value.strip('"') for key in ("mode", "idle_minutes", "at_hour")) == expected
    assert values["mode"].origin.startswith(str(home / "config.toml"))
    assert values["notify"].origin == "default"
    assert explained.next_at is not None


def _until(condition):
    """Wait for what another thread does, with the machine's patience."""
    tick = Event()
    for _ in range(PATIENCE_S * 100):
        if condition():
            return
        tick.wait(0.01)
    raise AssertionError("that did not happen in time")
