"""What a changed key policy means for the routes: moved where it is safe, refused where it is not, and taken back."""

from __future__ import annotations

import asyncio
from collections import Counter

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_core import open_app
from hermes_core.routing import desk as rekey_desk
from hermes_core.routing.key import LabelledKeyBuilder
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ids import new_lineage_id, new_session_id
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.operations import BindRoute, GetOrCreate
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator, owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.platform import RecordingSender

ALL = operator()
ROOMS = {"routing.group_sessions_per_user": False}


def said(user, chat="oc_1", **fields):
    return SessionSource(platform="feishu", chat_type="group", chat_id=chat, user_id=user, **fields)


@pytest.fixture
def under(profile):
    """Return a function that opens the one store under other settings."""
    first = profile()

    def under(settings):
        app = profile(settings, home="home" if first.store.durable else f"home-{len(settings)}", listens=False)
        if not first.store.durable:
            app._store = first.store
        return app

    under.first = first
    return under


def verdicts(app):
    return {row.route.key: (row.verdict, row.reason) for row in app.rekeying.plan()}


def test_a_session_that_was_said_in_one_room_by_one_person_becomes_the_rooms(under):
    entry = under.first.ask("hello", said("ou_1")).entry
    changed = under(ROOMS)

    report = changed.rekeying.apply()

    (line,) = report.moves
    assert (line.key, line.new_key) == (entry.session_key, "agent:main:feishu:group:chat=oc_1")
    assert line.reason == "all of it was said in that room"
    assert changed.ask("and I?", said("ou_2")).entry.lineage_id == entry.lineage_id
    lineage = changed.store.lineage(entry.lineage_id, changed.principal(said("ou_3")))
    assert (lineage.owner, lineage.shared) == (owner_of(said("ou_1"), shared=True), True)
    assert changed.notices() == []


def test_two_peoples_sessions_never_become_one(under):
    entries = [under.first.ask("hello", said(user)).entry for user in ("ou_1", "ou_2")]
    changed = under(ROOMS)

    report = changed.rekeying.apply()

    assert (report.batch, report.moves, report.left) == ("", (), ())
    assert verdicts(changed) == {entry.session_key: ("refused", "2 sessions would become one") for entry in entries}
    assert changed.ask("hello", said("ou_1")).entry.lineage_id not in {entry.lineage_id for entry in entries}


def test_what_was_said_elsewhere_does_not_come_into_the_room(under):
    private = SessionSource(platform="feishu", chat_id="oc_dm", user_id="ou_1")
    entry = under.first.ask("my secret", private).entry
    handed = under.first.get_or_create_session(said("ou_1"))
    under.first.store.apply(
        BindRoute(
            key=handed.session_key,
            key_version=1,
            source=said("ou_1"),
            policy=under.first.desk.policy(said("ou_1")),
            lineage_id=entry.lineage_id,
            now=under.first.clock.now(),
        )
    )

    assert verdicts(under(ROOMS))["agent:main:feishu:group:chat=oc_1:user=ou_1"] == (
        "refused",
        "the room would hear what was not said in it",
    )


def test_a_rooms_session_becomes_the_only_speakers_and_nobodys_where_several_spoke(profile, under):
    rooms = under(ROOMS)
    alone = rooms.ask("hello", said("ou_1", "oc_1")).entry
    many = rooms.ask("hello", said("ou_1", "oc_2")).entry
    rooms.ask("hello", said("ou_2", "oc_2"))

    report = under.first.rekeying.apply()

    assert [line.lineage_id for line in report.moves] == [alone.lineage_id]
    assert verdicts(under.first)[many.session_key] == ("refused", "several people spoke in it")
    assert under.first.ask("I again", said("ou_1", "oc_1")).entry.lineage_id == alone.lineage_id
    assert under.first.ask("and I", said("ou_2", "oc_1")).entry.lineage_id != alone.lineage_id
    assert rooms.store.lineage(alone.lineage_id, ALL).owner == owner_of(said("ou_1", "oc_1"), shared=False)


def test_who_waits_for_an_answer_has_spoken_too(under):
    rooms = under(ROOMS)
    entry = rooms.ask("hello", said("ou_1")).entry
    accept(rooms, said("ou_2"), "hello?")

    assert verdicts(under.first)[entry.session_key] == ("refused", "several people spoke in it")


def accept(app, source, text):
    event = MessageEvent(source=source, text=text, identities=(text,), received_at=app.clock.now())
    (result,) = asyncio.run(app.accept([event]))
    return result


def test_a_key_that_leads_to_another_session_already_is_not_taken(under):
    old = under.first.ask("hello", said("ou_1")).entry
    changed = under(ROOMS)
    fresh = changed.ask("hello", said("ou_2")).entry

    assert verdicts(changed) == {
        old.session_key: ("refused", "another session is behind the new key already"),
        fresh.session_key: ("untouched", "the same key"),
    }


def test_routes_that_lead_nowhere_and_direct_messages_are_left_alone(under):
    let_go = under.first.ask("hello", said("ou_1")).entry
    under.first.leave_session(said("ou_1"), let_go)
    direct = under.first.ask("hello", SessionSource(platform="feishu", chat_id="oc_dm", user_id="ou_1")).entry

    assert verdicts(under(ROOMS)) == {
        let_go.session_key: ("untouched", "it leads nowhere"),
        direct.session_key: ("untouched", "the same key"),
    }


def test_a_source_that_would_be_refused_today_stays(app, monkeypatch):
    entry = app.ask("hello", SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")).entry
    nobody = SessionSource(platform="feishu")
    route = app.store.route(entry.session_key)
    monkeypatch.setattr(app.store, "submit_read", lambda read: app_reads(app, read, attrs.evolve(route, source=nobody)))

    (row,) = app.rekeying.plan()

    assert (row.verdict, row.new_key) == ("refused", None)


def app_reads(app, read, route):
    """Run a read on a store whose one route is ``route``."""

    class Done:
        def result(self):
            class One:
                def routes(self):
                    return (route,)

            return read(One())

    return Done()


def test_a_dry_run_changes_nothing(under):
    under.first.ask("hello", said("ou_1"))
    changed = under(ROOMS)
    before = (changed.store.routes(), changed.store.change_mark())

    rows = changed.rekeying.plan()

    assert [row.verdict for row in rows] == ["moves"]
    assert before == (changed.store.routes(), changed.store.change_mark())
    assert changed.rekeying.history() == ()


def test_what_waits_is_answered_once_in_the_session_that_moved(under, tmp_path):
    entry = under.first.ask("hello", said("ou_1")).entry
    accept(under.first, said("ou_1"), "are you there?")
    changed = under(ROOMS)
    changed.rekeying.apply()

    served = ServedEntrance(entrance=Entrance("feishu"), sender=RecordingSender(tmp_path / "sent"))
    asyncio.run(changed.work([served], until_idle=True))

    rows = changed.store.messages(entry.lineage_id, ALL)
    assert [row.content for row in rows if row.role == "user"] == ["hello", "are you there?"]
    assert len(changed.store.summaries(ALL)) == 1


def test_undo_brings_back_exactly_what_was_there(under):
    under.first.ask("hello", said("ou_1"))
    before = (under.first.store.routes(), under.first.store.summaries(ALL))
    changed = under(ROOMS)
    report = changed.rekeying.apply()

    back = changed.rekeying.undo()

    assert (changed.store.routes(), changed.store.summaries(ALL)) == before
    assert (back.batch, back.left) == (report.batch, ())
    assert [line.kind for line in changed.rekeying.history()] == ["returned", "moved"]
    for batch in (None, report.batch, "B-unknown"):
        with pytest.raises(HermesError, match="moved"):
            changed.rekeying.undo(batch)


def test_undo_leaves_what_has_gone_on_elsewhere(under):
    entry = under.first.ask("hello", said("ou_1")).entry
    changed = under(ROOMS)
    changed.rekeying.apply()
    changed.leave_session(said("ou_1"), None)
    fresh = changed.ask("new", said("ou_2")).entry

    back = changed.rekeying.undo()

    assert (back.moves, back.left) == ((), (fresh.session_key,))
    assert changed.store.route(fresh.session_key).lineage_id == fresh.lineage_id
    assert changed.store.route(entry.session_key) is None


def test_the_last_of_several_batches_is_undone_first(under):
    one = under.first.ask("hello", said("ou_1", "oc_1")).entry
    changed = under(ROOMS)
    first = changed.rekeying.apply()
    two = under.first.ask("hello", said("ou_2", "oc_2")).entry
    second = changed.rekeying.apply()

    undone = [changed.rekeying.undo().batch, changed.rekeying.undo().batch]

    assert undone == [second.batch, first.batch]
    assert {route.key for route in changed.store.routes()} == {one.session_key, two.session_key}


def test_many_routes_move_in_bounded_steps_under_one_name(under, monkeypatch):
    monkeypatch.setattr(rekey_desk, "STEP", 3)
    for number in range(7):
        under.first.get_or_create_session(said("ou_1", f"oc_{number}"))
    changed = under(ROOMS)
    marks = changed.store.change_mark()

    report = changed.rekeying.apply()

    assert changed.store.change_mark() != marks
    assert len(report.moves) == 7
    assert len(changed.store.route_moves(batch=report.batch)) == 7
    assert len(changed.rekeying.undo().moves) == 7


def test_keys_of_an_older_grammar_move_to_those_of_this_one(app):
    source = SessionSource(platform="slack", scope_id="T1", chat_id="D9", user_id="U5")
    entry = old_route(app, source)

    report = app.rekeying.apply()

    assert [(line.new_key, line.reason) for line in report.moves] == [
        ("agent:main:slack:dm:scope=T1:chat=D9", "the same people under another key")
    ]
    assert app.ask("hello", source).entry.lineage_id == entry.lineage_id


def old_route(app, source, policy=None):
    """Make a session as a builder made it that knew no scopes, or under another policy."""
    builder, now = LabelledKeyBuilder(scoped=frozenset()), app.clock.now()
    policy = policy or app.desk.policy(source)
    return app.store.apply(
        GetOrCreate(
            key=builder.build(source, policy),
            key_version=0,
            source=source,
            owner=owner_of(source, shared=builder.parts(source, policy).shared),
            policy=policy,
            shared=builder.parts(source, policy).shared,
            now=now,
            session_id=new_session_id(now),
            lineage_id=new_lineage_id(now),
        )
    )


POLICIES = st.fixed_dictionaries(
    {
        "routing.group_sessions_per_user": st.booleans(),
        "routing.thread_sessions_per_user": st.booleans(),
    }
)
PLACES = st.sampled_from([("group", "oc_1", None), ("group", "oc_2", None), ("thread", "oc_1", "t1")])
TALK = st.lists(st.tuples(PLACES, st.sampled_from(["ou_1", "ou_2", None])), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(before=POLICIES, after=POLICIES, talk=TALK)
def test_nobody_comes_into_a_session_that_is_not_theirs_and_undo_restores_all(tmp_path_factory, before, after, talk):
    quick = {"storage.backend": "memory", "agent.runner": "echo"}
    home = tmp_path_factory.mktemp("law")
    sources = [
        SessionSource(platform="feishu", chat_type=kind, chat_id=chat, thread_id=thread, user_id=user)
        for (kind, chat, thread), user in talk
    ]
    with (
        open_app(home / "one", overrides=quick | before, plugins=False, environ={}) as old,
        open_app(home / "two", overrides=quick | after, plugins=False, environ={}) as new,
    ):
        said_by = Counter((old.ask("hello", source).entry.lineage_id, source.user_id) for source in sources)
        new._store = old.store
        there = (old.store.routes(), old.store.summaries(ALL))

        moved = new.rekeying.apply()

        for source in sources:
            route = new.store.route(new.session_key(source))
            if route is None:
                continue
            theirs = (route.lineage_id, source.user_id) in said_by
            lineage = new.store.lineage(route.lineage_id, ALL)
            is_the_rooms = lineage.room is not None and lineage.shared
            assert theirs or is_the_rooms
        if moved.moves:
            assert new.rekeying.undo().left == ()
        assert (old.store.routes(), old.store.summaries(ALL)) == there


def test_what_became_of_routes_is_forgotten_when_it_is_old_enough(profile):
    clock = FakeClock()
    app = profile(ROOMS | {"routing.journal_keep_days": 10}, clock=clock)
    old_route(app, said("ou_1"), KeyPolicy())
    app.rekeying.apply()
    clock.advance(9 * 86_400)

    kept = (app.maintain(), app.rekeying.history())[1]
    clock.advance(2 * 86_400)
    swept = app.maintain().swept

    assert [line.kind for line in kept] == ["moved"]
    assert swept >= 1
    assert app.rekeying.history() == ()
    assert app.store.routes()[0].lineage_id == kept[0].lineage_id
