"""``hermes routes rekey`` and ``hermes routes history``: shown, done, undone, and why."""

from __future__ import annotations

import json

import pytest

from hermes_core.routing.key import LabelledKeyBuilder
from hermes_hookspecs.ids import new_lineage_id, new_session_id
from hermes_hookspecs.operations import GetOrCreate, ServeEntrances
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.testing.scene import holder_at

SLACK = SessionSource(platform="slack", scope_id="T1", chat_id="D9", user_id="U5")
OLD, NEW = "agent:main:slack:dm:chat=D9", "agent:main:slack:dm:scope=T1:chat=D9"


@pytest.fixture
def old(app):
    """Return a function that makes a route as a key builder made it that knew no scopes."""

    def old(source=SLACK):
        now = app.clock.now()
        return app.store.apply(
            GetOrCreate(
                key=LabelledKeyBuilder(scoped=frozenset()).build(source, KeyPolicy()),
                key_version=0,
                source=source,
                owner=owner_of(source, shared=False),
                policy=KeyPolicy(),
                shared=False,
                now=now,
                session_id=new_session_id(now),
                lineage_id=new_lineage_id(now),
            )
        )

    return old


def test_nothing_is_changed_unless_it_is_asked_for(hermes, app, old, say):
    old()
    say("hello")

    shown = hermes("routes", "rekey")
    also = hermes("routes", "rekey", "--dry-run", "--json")

    assert shown.status == also.status == 0
    assert shown.out.splitlines()[1].split(maxsplit=3) == ["moves", OLD, NEW, "the same people under another key"]
    assert shown.err == "1 can move, 0 are refused, 1 keep their key; nothing was changed (--apply moves)\n"
    (record,) = json.loads(also.out)
    assert (record["verdict"], record["session_key"], record["new_session_key"]) == ("moves", OLD, NEW)
    assert app.store.route(OLD) is not None
    assert hermes("routes", "history").err == "No route was claimed, refused or moved.\n"


def test_what_is_applied_is_named_listed_and_undone(hermes, app, old):
    entry = old()

    applied = hermes("routes", "rekey", "--apply")
    (line,) = app.store.route_moves()
    listed = hermes("routes", "history")
    assert app.store.route(NEW).lineage_id == entry.lineage_id
    undone = hermes("routes", "rekey", "--undo", line.batch)

    assert applied.err == f"1 route was moved under the name {line.batch}\n"
    assert applied.out == listed.out
    assert listed.out.splitlines()[1].split(maxsplit=4)[1:4] == ["moved", OLD, NEW]
    assert undone.err == f"1 route was moved back under the name {line.batch}\n"
    assert app.store.route(OLD).lineage_id == entry.lineage_id
    records = json.loads(hermes("routes", "history", "--json").out)
    assert [(one["kind"], one["batch"]) for one in records] == [("returned", line.batch), ("moved", line.batch)]
    assert hermes("routes", "history", "-n", "1").err == "more (--limit shows more)\n"


def test_undo_without_a_name_takes_the_last_and_says_when_there_is_none(hermes, old):
    nothing = hermes("routes", "rekey", "--undo")
    old()
    hermes("routes", "rekey", "--apply")

    undone = hermes("routes", "rekey", "--undo", "--json")
    again = hermes("routes", "rekey", "--undo", "B-unknown")

    assert nothing.status == again.status == 1
    assert "no routes were moved" in nothing.err
    assert "'B-unknown'" in again.err
    assert [one["kind"] for one in json.loads(undone.out)["moves"]] == ["returned"]


def test_refused_routes_and_processes_with_older_settings_are_told(hermes, app, old, say):
    old()
    taken = SessionSource(platform="slack", scope_id="T1", chat_id="D8", user_id="U5")
    old(taken)
    say("hello", source=taken)
    served = ServeEntrances(entrances=(Entrance("slack"),), holder=holder_at(), now=app.clock.now())
    app.store.apply(served)

    shown, applied = hermes("routes", "rekey"), hermes("routes", "rekey", "--apply")

    assert "another session is behind the new key already" in shown.out
    assert applied.status == 0
    assert "1 is refused (--dry-run shows them and why)" in applied.err
    assert "restart it" in applied.err


def test_what_leads_elsewhere_by_now_is_left_and_the_status_says_so(hermes, app, old):
    old()
    hermes("routes", "rekey", "--apply")
    app.leave_session(SLACK, None)

    undone = hermes("routes", "rekey", "--undo")

    assert undone.status == 1
    assert f"left, since it leads elsewhere by now: {NEW}" in undone.err


def test_the_options_exclude_each_other(hermes, app, old):
    old()

    ran = hermes("routes", "rekey", "--apply", "--dry-run")

    assert ran.status != 0
    assert "exclude each other" in ran.err
    assert app.store.route(OLD) is not None


@pytest.mark.parametrize("width", [80, 140])
def test_the_journal_fits_the_screen(hermes, old, monkeypatch, width):
    old(SessionSource(platform="slack", scope_id="T1", chat_id="D" + "0123456789" * 8, user_id="U5"))
    hermes("routes", "rekey", "--apply")
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: width)

    ran = hermes("routes", "history")

    assert all(len(line) <= width for line in ran.out.splitlines())
    assert "moved" in ran.out
