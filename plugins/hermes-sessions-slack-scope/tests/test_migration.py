"""The migration, end to end: S1 to S7 of the original's, and case A01."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender
from hermes_slack_scope.testing import old_session
from hermes_slack_scope.testing import slack_source as slack

hermes_core = pytest.importorskip("hermes_core")

ALL = operator()


def heard(app, source, text="what did I say?"):
    """Say something; return what the agent saw before it, and the session that it was said in."""
    seen = []

    def agent(turn):
        seen.extend(row.content for row in turn.messages if row.role == "user")
        return "noted"

    result = app.ask(text, source, agent=agent)
    return seen[:-1], result.entry


def journal(app):
    return [(line.kind, line.key, line.reason) for line in app.rekeying.history()]


@pytest.mark.parametrize("kind", ["dm", "channel", "group"])
def test_s1_what_was_recorded_for_a_workspace_goes_on_there(app, old, kind):
    entry = old(slack("T1", chat_type=kind))

    seen, went_on = heard(app, slack("T1", chat_type=kind))

    assert (seen, went_on.lineage_id) == (["alpha"], entry.lineage_id)
    assert app.store.route(entry.session_key) is None
    assert journal(app) == [("claimed", entry.session_key, "recorded for 'T1'")]


@pytest.mark.parametrize("kind", ["dm", "channel", "group"])
def test_s2_what_was_recorded_for_another_workspace_is_refused_and_untouched(app, old, kind):
    entry = old(slack("T1", chat_type=kind))
    before = (app.store.route(entry.session_key), app.store.summary(entry.lineage_id, ALL))

    seen, fresh = heard(app, slack("T2", chat_type=kind))

    assert seen == []
    assert fresh.lineage_id != entry.lineage_id
    assert (app.store.route(entry.session_key), app.store.summary(entry.lineage_id, ALL)) == before
    reason = "recorded for 'T1', asked for by 'T2'; it could be somebody else's"
    assert journal(app) == [("refused", entry.session_key, reason)]


def test_s3_s4_a_direct_message_of_nobodys_workspace_is_claimed_once_by_the_first(app, old):
    entry = old(slack(None))

    first, went_on = heard(app, slack("T1"))
    second, fresh = heard(app, slack("T2"))

    assert (first, second) == (["alpha"], [])
    assert went_on.lineage_id == entry.lineage_id != fresh.lineage_id
    reason = "recorded without a scope; first asked for by 'T1'"
    assert journal(app) == [("claimed", entry.session_key, reason)]


def test_s3_what_was_another_persons_waits_for_them_whoever_comes_first(app, old):
    entry = old(slack(None))

    first, fresh = heard(app, slack("T2", user_id="U7"))
    theirs, went_on = heard(app, slack("T1"))

    assert (first, theirs) == ([], ["alpha"])
    assert went_on.lineage_id == entry.lineage_id != fresh.lineage_id
    assert journal(app) == [
        ("claimed", entry.session_key, "recorded without a scope; first asked for by 'T1'"),
        (
            "refused",
            entry.session_key,
            "recorded without a scope, for 'U5', asked for by 'U7' of 'T2'; it could be somebody else's",
        ),
    ]


def test_s3_where_no_person_is_recorded_the_first_workspace_gets_it(app, old):
    entry = old(slack(None, user_id=""))

    first, went_on = heard(app, slack("T2", user_id="U7"))

    assert (first, went_on.lineage_id) == (["alpha"], entry.lineage_id)


def test_what_explain_says_of_another_persons_conversation_is_that_it_is_not_theirs(app, old):
    old(slack(None))

    lines = dict(app.explain_route(slack("T2", user_id="U7")).lines)

    assert lines["not its own"].endswith("for 'U5', asked for by 'U7' of 'T2'; it could be somebody else's")
    assert dict(app.explain_route(slack("T1")).lines)["would claim"]


def test_s3_who_claimed_it_finds_it_again_and_nobody_of_another_workspace_does(app, old):
    entry = old(slack(None))
    heard(app, slack("T1"))
    app.rename_session(entry.lineage_id, "plan")

    found = app.resolve("plan", app.principal(slack("T1")))

    assert found.lineage.id == entry.lineage_id
    for other in (slack("T2"), slack(None)):
        with pytest.raises(SessionNotFound):
            app.resolve("plan", app.principal(other))


@pytest.mark.parametrize("kind", ["channel", "group", "mpim"])
def test_s5_a_scopeless_channel_entry_is_not_migrated_and_stays_searchable(app, old, kind):
    entry = old(slack(None, chat_id="C9", chat_type=kind))

    seen, fresh = heard(app, slack("T1", chat_id="C9", chat_type=kind))

    assert seen == []
    assert fresh.lineage_id != entry.lineage_id
    reason = "recorded without a scope, asked for by 'T1'; it could be somebody else's"
    assert journal(app) == [("refused", entry.session_key, reason)]
    assert {row.lineage_id for row in app.store.scan(["alpha"], ALL)} == {entry.lineage_id}
    with pytest.raises(SessionNotFound):
        app.resolve(entry.session_id, app.principal(slack("T1", chat_id="C9", chat_type=kind)))


def test_s5_is_told_once_not_with_every_message(app, old):
    old(slack(None, chat_id="C9", chat_type="channel"))

    for _ in range(3):
        heard(app, slack("T1", chat_id="C9", chat_type="channel"))

    assert len(journal(app)) == 1


def test_s6_a_forced_new_session_claims_nothing(app, old):
    entry = old(slack("T1"))

    forced = app.get_or_create_session(slack("T1"), force_new=True)

    assert forced.lineage_id != entry.lineage_id
    assert app.store.route(entry.session_key).lineage_id == entry.lineage_id
    assert journal(app) == []


def test_s6_new_ends_the_old_conversation_and_the_next_message_does_not_bring_it_back(app, old):
    entry = old(slack("T1"))

    left = app.leave_session(slack("T1"), None)
    seen, fresh = heard(app, slack("T1"))

    assert left.summary.session_id == entry.session_id
    assert seen == []
    assert fresh.lineage_id != entry.lineage_id


@pytest.mark.parametrize("run", range(3))
def test_s7_of_workspaces_that_race_exactly_one_wins(open_app, app, old, run):
    entry = old(slack(None))
    teams = [f"T{number}" for number in range(6)]
    apps = [app, open_app()]
    start = Barrier(len(teams))

    def enter(number):
        start.wait(30)
        return apps[number % 2].get_or_create_session(slack(teams[number]))

    with ThreadPoolExecutor(len(teams)) as threads:
        entries = list(threads.map(enter, range(len(teams))))

    assert [one.lineage_id for one in entries].count(entry.lineage_id) == 1
    assert len({one.lineage_id for one in entries}) == len(teams)
    assert [kind for kind, *_ in journal(app)] == ["claimed"]


def test_a_message_that_a_platform_delivers_goes_on_in_the_old_conversation(app, old, tmp_path):
    entry = old(slack(None))
    event = MessageEvent(source=slack("T1"), text="and on", identities=("e1",), received_at=app.clock.now())
    served = ServedEntrance(entrance=Entrance("slack"), sender=RecordingSender(tmp_path / "sent"))

    asyncio.run(app.accept([event]))
    asyncio.run(app.work([served], until_idle=True))

    rows = app.store.messages(entry.lineage_id, ALL)
    assert [row.content for row in rows if row.role == "user"] == ["alpha", "and on"]
    assert app.store.stats().lineages == 1


def test_a_thread_goes_on_where_its_workspace_is_recorded(app, old):
    where = {"chat_id": "C9", "chat_type": "thread", "thread_id": "17.5"}
    mine, theirs = old(slack("T1", **where)), old(slack(None, **(where | {"chat_id": "C8"})))

    assert heard(app, slack("T1", **where))[1].lineage_id == mine.lineage_id
    assert heard(app, slack("T1", **(where | {"chat_id": "C8"})))[1].lineage_id != theirs.lineage_id


def test_without_the_plugin_nothing_is_claimed(open_app, old):
    entry = old(slack("T1"))

    assert heard(open_app(plugins=""), slack("T1"))[1].lineage_id != entry.lineage_id


def test_a01_two_workspaces_with_the_same_ids_share_nothing(app):
    sources = [
        slack(team, chat_id=chat, chat_type=kind)
        for team in ("T1", "T2")
        for chat, kind in (("C9", "channel"), ("D9", "dm"))
    ]

    entries = [heard(app, source, f"alpha {source.scope_id} {source.chat_id}") for source in sources]
    again = [heard(app, source)[0] for source in sources]

    assert len({entry.lineage_id for _, entry in entries}) == 4
    assert [seen for seen, _ in entries] == [[]] * 4
    assert again == [[f"alpha {source.scope_id} {source.chat_id}"] for source in sources]


def test_a01_other_platforms_keys_and_routes_are_left_as_they_are(app, old):
    source = attrs.evolve(slack(None), platform="feishu")
    key = app.session_key(source)

    assert app.session_key(attrs.evolve(source, scope_id="T1")) == key
    assert heard(app, source)[1].session_key == key
    assert journal(app) == []


KINDS = st.sampled_from(["dm", "channel", "group"])
CHATS = st.sampled_from(["X1", "X2"])
PEOPLE = st.sampled_from(["U5", "U7"])
# One conversation a key, as an old store held them; every message of today names its workspace.
THERE = st.lists(
    st.tuples(st.sampled_from(["T1", "T2", None]), KINDS, CHATS, PEOPLE | st.just("")),
    max_size=5,
    unique_by=lambda place: (place[1:3], place[3] if place[1] != "dm" else ""),
)
TALK = st.lists(st.tuples(st.sampled_from(["T1", "T2", "T3"]), KINDS, CHATS, PEOPLE), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(there=THERE, talk=TALK)
def test_no_order_of_messages_lets_a_transcript_cross_between_workspaces_or_people(tmp_path_factory, there, talk):
    options = {"storage.backend": "memory", "agent.runner": "echo"}
    home, environ = tmp_path_factory.mktemp("law"), {"HERMES_PLUGINS": "slack-scope"}
    with hermes_core.open_app(home, overrides=options, environ=environ) as app:
        for team, kind, chat, person in there:
            if person or kind == "dm":
                old_session(app, slack(team, chat_id=chat, chat_type=kind, user_id=person), f"{team} {kind} {person}")
        owners = {}
        for team, kind, chat, person in talk:
            source = slack(team, chat_id=chat, chat_type=kind, user_id=person)
            known = len(owners)
            seen, entry = heard(app, source, f"{team} {kind} {person}")
            is_first = owners.setdefault(entry.lineage_id, team) == team and len(owners) > known
            for said_in, said_as, said_by in (words.split(" ") for words in seen):
                assert said_as == kind
                assert said_in == team or (said_in == "None" and kind == "dm")
                assert kind == "dm" or said_by == person
                if said_in == "None" and is_first:
                    assert said_by in (person, "")
            assert owners[entry.lineage_id] == team or owners[entry.lineage_id] is None
