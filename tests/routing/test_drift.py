"""A changed policy is said once, with what keeps the routes; and explain says why a message lands where it lands."""

from __future__ import annotations

import attrs
import pytest

from hermes_core.routing.drift import note_policy
from hermes_core.routing.policy import key_profile
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.source import KeyPolicy, SessionSource

GROUP = SessionSource(platform="feishu", chat_type="group", chat_id="oc_1", user_id="ou_1", user_name="Al")
DM = SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_1")
ROOMS = {"routing.group_sessions_per_user": False}


def note(app):
    return note_policy(app.store, app.settings, app.hooks.key_builder(), app.clock.now())


@pytest.fixture
def reopened(profile, tmp_path):
    """Return a function that opens one store under other settings."""
    first = profile()

    def reopen(settings):
        app = profile(settings, home="home" if first.store.durable else f"home-{len(settings)}", listens=False)
        if not first.store.durable:
            app._store = first.store
        return app

    reopen.first = first
    return reopen


def test_a_fresh_store_and_an_unchanged_policy_say_nothing(app):
    app.get_or_create_session(GROUP)

    assert note(app) is None
    assert note(app) is None


def test_a_change_that_strands_routes_is_said_once_with_their_number_and_what_keeps_them(reopened):
    first = reopened.first
    for number in range(3):
        first.get_or_create_session(
            SessionSource(platform="feishu", chat_type="group", chat_id=f"oc_{number}", user_id="ou_1")
        )
    first.get_or_create_session(DM)
    note(first)
    changed = reopened(ROOMS)

    said, again = note(changed), note(changed)

    assert said.startswith("the routing settings changed: 3 of 4 routes are out of reach")
    assert "`hermes sessions list`" in said
    assert "the old settings bring all back" in said
    assert again is None


def test_released_routes_and_routes_in_reach_are_not_counted(reopened):
    first = reopened.first
    first.get_or_create_session(DM)
    entry = first.get_or_create_session(GROUP)
    first.leave_session(GROUP, entry)
    note(first)

    assert note(reopened(ROOMS)) is None


def test_a_setting_of_one_platform_counts_where_it_differs(reopened):
    first = reopened.first
    first.get_or_create_session(GROUP)
    note(first)

    assert note(reopened({"platforms.slack.group_sessions_per_user": False})) is None
    said = note(
        reopened({"platforms.feishu.group_sessions_per_user": False, "routing.thread_sessions_per_user": False})
    )
    assert said.startswith("the routing settings changed: 1 of 1 routes")


def test_a_route_whose_source_would_be_refused_today_is_out_of_reach(app, monkeypatch):
    app.get_or_create_session(DM)
    note(app)

    class Strict:
        version = 2

        def build(self, source, policy):
            raise KeyBuildError("no")

    said = note_policy(app.store, app.settings, Strict(), app.clock.now())

    assert "1 of 1 routes" in said


def test_the_first_turn_of_a_process_brings_the_notice(reopened):
    reopened.first.ask("hi", GROUP)
    changed = reopened(ROOMS)

    changed.ask("hi", DM)

    assert [line for line in changed.notices() if "out of reach" in line] != []
    assert changed.notices() == []


# ------------------------------------------------------------------ explain


def test_explain_says_how_the_key_came_about_and_changes_nothing(profile):
    app = profile({"platforms.feishu.thread_sessions_per_user": True})

    explained = app.explain_route(GROUP)

    lines = dict(explained.lines)
    assert explained.key == lines["key"] == "agent:main:feishu:group:chat=oc_1:user=ou_1"
    assert lines["  user"] == "ou_1"
    assert lines["group_sessions_per_user"] == "true (default)"
    assert lines["thread_sessions_per_user"].startswith("true (option")
    assert lines["shared"] == "no"
    assert lines["owner"] == "person ou_1"
    assert lines["route"] == "none yet; the next message makes a session"
    assert (explained.lineage, explained.session_id) == (None, None)
    assert app.store.route(explained.key) is None


def test_explain_follows_the_route_to_its_session(app):
    entry = app.get_or_create_session(GROUP)
    app.rename_session(entry.lineage_id, "plan")

    explained = app.explain_route(GROUP)

    lines = dict(explained.lines)
    assert explained.session_id == lines["session"] == entry.session_id
    assert lines["lineage"] == entry.lineage_id
    assert lines["title"] == "plan"
    assert lines["route"] == f"leads to {entry.lineage_id}"


def test_explain_says_what_is_shared_let_go_or_would_be_claimed(app):
    room = SessionSource(platform="feishu", chat_type="group", chat_id="oc_9")
    shared = dict(app.explain_route(room).lines)
    assert shared["shared"].startswith("yes")
    assert "the session is the room's" in shared["note"]

    entry = app.get_or_create_session(GROUP)
    both = SessionSource(platform="feishu", chat_type="group", chat_id="oc_1", user_id="ou_1", user_id_alt="on_1")
    assert dict(app.explain_route(both).lines)["would claim"] == entry.session_key

    scoped = attrs.evolve(both, scope_id="T1")
    assert dict(app.explain_route(scoped).lines)["not its own"] == (
        f"{entry.session_key}: recorded without a scope, asked for by 'T1'; it could be somebody else's"
    )

    app.leave_session(GROUP, entry, title="next")
    assert dict(app.explain_route(GROUP).lines)["route"].startswith("let go; the next message makes a session, to be")
    app.leave_session(GROUP, None)


# ------------------------------------------------------------------ the policy of a platform


def test_a_platform_may_differ_from_the_general_policy(profile):
    app = profile({"routing.group_sessions_per_user": False, "platforms.feishu.group_sessions_per_user": True})

    assert app.session_key(GROUP).endswith(":user=ou_1")
    other = SessionSource(platform="weixin", chat_type="group", chat_id="oc_1", user_id="ou_1")
    assert app.session_key(other) == "agent:main:weixin:group:chat=oc_1"
    assert app.store.route(app.session_key(other)) is None
    app.get_or_create_session(other)
    assert app.store.route(app.session_key(other)).policy == KeyPolicy(group_sessions_per_user=False)


def test_no_profile_shares_the_namespace_of_the_homes_own():
    assert key_profile("default") == "main"
    assert key_profile("main") == "main~"
    assert key_profile("coder") == "coder"


def test_a_profile_has_its_own_keys_and_a_source_may_name_another_one(profile):
    coder = profile(profile="coder")
    named = SessionSource(platform="feishu", chat_id="oc_1", profile="writer")

    assert coder.session_key(DM) == "agent:coder:feishu:dm:chat=oc_2"
    assert coder.session_key(named) == "agent:writer:feishu:dm:chat=oc_1"
