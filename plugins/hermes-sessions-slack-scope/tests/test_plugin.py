"""The plugin in a profile: found by its name, with its command."""

from __future__ import annotations

import io
import json

import pytest

from hermes_hookspecs.cli import CliCall
from hermes_hookspecs.testing.plugins import PluginSuite
from hermes_slack_scope.forecast import run
from hermes_slack_scope.testing import old_key, slack_source

pytest.importorskip("hermes_core")


class TestSlackScopePlugin(PluginSuite):
    distribution = "hermes-sessions-slack-scope"
    entry_point = "slack-scope"


@pytest.fixture
def forecast(app):
    """Return a function that runs the command; gives data, talk."""

    def forecast(**values):
        out, err = io.StringIO(), io.StringIO()
        call = CliCall(app=app, values={"json": False} | values, out=out, err=err, width=None)
        assert run(call) == 0
        return out.getvalue(), err.getvalue()

    return forecast


def test_the_command_is_there(app):
    assert [command.path for command in app.cli_commands()] == [("slack-scope",)]


def test_a_store_without_such_routes_says_so(app, forecast):
    app.ask("hello", slack_source("T1"))

    assert forecast() == ("", "No Slack route without a workspace is live.\n")


def test_each_route_is_told_what_becomes_of_it_and_nothing_is_changed(app, old, forecast):
    mine, nobodys = slack_source("T1", "D1"), slack_source(None, "D2")
    channel, taken = slack_source(None, "C3", "channel"), slack_source("T1", "C4", "channel")
    for source in (mine, nobodys, channel, taken):
        old(source)
    app.store.apply(_entering(app, taken))
    before = (app.store.routes(), app.store.change_mark())

    data, talk = forecast()
    records = {one["session_key"]: one for one in json.loads(forecast(json=True)[0])}

    assert talk == "1 moves, 1 first, 1 stays, 1 refused; nothing was changed\n"
    assert f"refused       {old_key(channel)}  no workspace is recorded; it could be another tenant's\n" in data
    assert {key: one["verdict"] for key, one in records.items()} == {
        old_key(mine): "moves",
        old_key(nobodys): "first",
        old_key(channel): "refused",
        old_key(taken): "stays",
    }
    assert records[old_key(mine)]["new_session_key"] == app.session_key(mine)
    assert records[old_key(channel)]["new_session_key"] is None
    assert before == (app.store.routes(), app.store.change_mark())


def _entering(app, source):
    """Begin a conversation of the key of today, as a program without the plugin did."""
    from hermes_hookspecs.ids import new_lineage_id, new_session_id
    from hermes_hookspecs.operations import GetOrCreate
    from hermes_hookspecs.principal import owner_of
    from hermes_hookspecs.source import KeyPolicy

    now = app.clock.now()
    return GetOrCreate(
        key=app.session_key(source),
        key_version=1,
        source=source,
        owner=owner_of(source, shared=False),
        policy=KeyPolicy(),
        shared=False,
        now=now,
        session_id=new_session_id(now),
        lineage_id=new_lineage_id(now),
    )


def test_what_the_forecast_says_comes_true(app, old, forecast):
    sources = [slack_source("T1", *place) for place in (("D1", "dm"), ("C2", "channel"), ("C3", "group"))]
    for source in sources:
        old(source)
    promised = {one["session_key"]: one["verdict"] for one in json.loads(forecast(json=True)[0])}

    for source in sources:
        app.ask("hello", source)

    done = {line.key: line.kind for line in app.rekeying.history()}
    assert promised == dict.fromkeys(done, "moves")
    assert set(done.values()) == {"claimed"}
    assert forecast()[0] == ""


def test_routes_that_other_settings_made_are_told_apart(open_app, app, old):
    old(slack_source("T1", "C3", "channel"))
    rooms = open_app(**{"routing.group_sessions_per_user": False})
    out, err = io.StringIO(), io.StringIO()

    run(CliCall(app=rooms, values={"json": False}, out=out, err=err, width=None))

    assert out.getvalue().startswith("out of reach  agent:main:slack:channel:chat=C3:user=U5  other settings")
