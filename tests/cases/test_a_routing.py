"""Group A: whose message lands where."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest

from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()


def heard_by(app, source, text):
    """Say ``text`` and return what the agent got to see, as one text a row."""
    seen = []

    def agent(turn):
        seen.extend(row.content for row in turn.messages)
        return f"answer to {text}"

    app.ask(text, source, agent=agent)
    return seen


# ------------------------------------------------------------------ A03


@pytest.mark.parametrize("platform", ["feishu", "weixin", "slack", "webhook", "anything"])
def test_a03_direct_messages_without_a_chat_never_share(app, platform):
    one = SessionSource(platform=platform, user_id="u1")
    two = SessionSource(platform=platform, user_id="u2")
    heard_by(app, one, "my secret is 42")

    seen = heard_by(app, two, "what did I say?")

    assert seen == ["what did I say?"]
    assert app.get_or_create_session(one).session_id != app.get_or_create_session(two).session_id


def test_a03_whoever_can_be_told_apart_is(app):
    sources = [
        SessionSource(platform="feishu", chat_id=chat, user_id=user, user_id_alt=other, thread_id=thread)
        for chat in (None, "u1")
        for user in (None, "u1", "u2")
        for other in (None, "u3")
        for thread in (None, "t1", "u1")
        if chat or user or other or thread
    ]
    keys = [app.session_key(source) for source in sources]

    for (one, first), (two, second) in combinations(zip(sources, keys, strict=True), 2):
        same_place = one.chat_id == two.chat_id and one.thread_id == two.thread_id
        same = same_place and (one.chat_id is not None or one.participant == two.participant)
        assert (first == second) == same, (one, two)


def test_a03_the_more_stable_id_counts_and_the_thread_is_the_last_resort(app):
    both = SessionSource(platform="feishu", user_id="ou_1", user_id_alt="on_1")
    later = SessionSource(platform="feishu", user_id="ou_2", user_id_alt="on_1")
    only_thread = SessionSource(platform="feishu", thread_id="t1")

    assert app.session_key(both) == app.session_key(later)
    assert app.session_key(only_thread) != app.session_key(SessionSource(platform="feishu", user_id="t1"))


@pytest.mark.parametrize("blank", [None, ""])
def test_a03_a_direct_message_of_nobody_is_refused_and_leaves_nothing(app, blank):
    nobody = SessionSource(platform="feishu", chat_id=blank, user_id=blank, user_id_alt=blank, thread_id=blank)

    with pytest.raises(KeyBuildError, match="neither chat nor sender"):
        app.ask("hello", nobody, agent="echo")

    stats = app.store.stats()
    assert (stats.lineages, stats.routes, stats.waiting) == (0, 0, 0)


# ------------------------------------------------------------------ A04


def in_group(user, **more):
    return SessionSource(platform="feishu", chat_type="group", chat_id="oc_g", user_id=user, **more)


def test_a04_members_of_a_group_have_sessions_of_their_own(app):
    heard_by(app, in_group("ann"), "ann one")
    heard_by(app, in_group("ben"), "ben one")

    assert heard_by(app, in_group("ann"), "ann two") == ["ann one", "answer to ann one", "ann two"]
    assert heard_by(app, in_group("ben"), "ben two") == ["ben one", "answer to ben one", "ben two"]


def test_a04_the_switch_makes_one_session_of_the_room(open_home):
    app = open_home(overrides={"routing.group_sessions_per_user": False})
    heard_by(app, in_group("ann", user_name="Ann"), "ann one")

    seen = heard_by(app, in_group("ben", user_name="Ben"), "ben one")

    assert len(seen) == 3
    assert "ann one" in seen[0]
    entry = app.get_or_create_session(in_group("ann"))
    assert entry.shared
    assert entry.session_id == app.get_or_create_session(in_group("ben")).session_id


def test_a04_without_a_sender_it_is_the_rooms_session(app):
    nobody = app.get_or_create_session(in_group(None))

    assert nobody.shared
    assert nobody.session_id == app.get_or_create_session(in_group(None)).session_id
    assert nobody.session_id != app.get_or_create_session(in_group("ann")).session_id
    assert any("sender is not known" in value for _, value in app.explain_route(in_group(None)).lines)


def test_a04_one_rule_for_lookup_commands_and_explanations(app):
    ann, ben = app.get_or_create_session(in_group("ann")), app.get_or_create_session(in_group("ben"))

    asyncio.run(app.command("/new", in_group("ann"), ann))

    assert app.explain_route(in_group("ann")).session_id is None
    assert app.explain_route(in_group("ben")).session_id == ben.session_id
    assert app.get_or_create_session(in_group("ann")).session_id != ann.session_id
    assert app.get_or_create_session(in_group("ben")).session_id == ben.session_id


def test_a04_a_thread_is_shared_by_its_members_unless_the_settings_part_them(app, open_home):
    def thread(user):
        return in_group(user, thread_id="t1")

    parted = open_home(overrides={"routing.thread_sessions_per_user": True, "routing.group_sessions_per_user": False})

    assert app.session_key(thread("ann")) == app.session_key(thread("ben"))
    assert parted.session_key(thread("ann")) != parted.session_key(thread("ben"))


# ------------------------------------------------------------------ A09

TWINS = [
    ("!AbC:host", "!abc:host"),
    ("oc_1", "oc_1 "),
    ("oc_1", " oc_1"),
    ("a:b", "a%3Ab"),
    ("chat=x", "chat%3Dx"),
    ("caf\u00e9", "cafe\u0301"),
    ("\u212b", "\u00c5"),
    ("ss", "\u00df"),
    ("I", "\u0131"),
    ("0", "\u0660"),
    ("a\x00b", "ab"),
    ("x" * 600, "x" * 599 + "y"),
    ("x" * 600, "x" * 601),
]


@pytest.mark.parametrize(("asked", "there"), TWINS)
def test_a09_a_sibling_is_never_taken_for_the_one_that_is_asked_for(app, asked, there):
    def at(chat):
        return SessionSource(platform="matrix", chat_id=chat, user_id="u")

    entry = app.get_or_create_session(at(there))

    assert app.store.route(app.session_key(at(asked))) is None
    assert app.explain_route(at(asked)).lineage is None
    other = app.get_or_create_session(at(asked))
    assert other.created
    assert other.lineage_id != entry.lineage_id


def test_a09_removing_one_leaves_its_sibling_alone(app):
    upper = SessionSource(platform="matrix", chat_id="!AbC:host", user_id="u")
    lower = SessionSource(platform="matrix", chat_id="!abc:host", user_id="u")
    app.ask("upper", upper, agent="echo")
    app.ask("lower", lower, agent="echo")

    app.delete_session(app.get_or_create_session(lower).lineage_id)

    assert heard_by(app, upper, "again") == ["upper", "echo 1: upper", "again"]
    assert app.store.stats().lineages == 1


def test_a09_owners_differ_by_case_too(app):
    app.ask("one", SessionSource(platform="matrix", user_id="Ann"), agent="echo")
    app.ask("two", SessionSource(platform="matrix", user_id="ann"), agent="echo")

    principal = app.principal(SessionSource(platform="matrix", user_id="ann"))

    (summary,) = app.store.summaries(principal)
    assert summary.preview == "two"


# ------------------------------------------------------------------ A16


@pytest.mark.parametrize(
    "caller_key",
    [
        "job-01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "20260102_030405_00c0ffee",
        "L20260102_030405_00c0ffee0001",
        "agent:main:api_server:dm:chat=x",
        "a.b/c:d=e%f",
        "../../etc/passwd",
        "周报/汇总",
        "k" * 200,
        "k" * 5000,
        "\ud83d half",
        "nul\x00inside",
        "%h0123456789",
    ],
)
def test_a16_a_key_that_the_caller_chose_goes_on_at_the_second_turn(app, open_home, caller_key):
    source = SessionSource(platform="api_server", chat_id=caller_key)
    first = app.ask("one", source, agent="echo")
    app.close()

    second = open_home().ask("two", source, agent="echo")

    assert (first.text, second.text) == ("echo 1: one", "echo 2: two")
    assert second.entry.session_id == first.entry.session_id


def test_a16_an_empty_key_is_refused_at_the_first_turn(app):
    with pytest.raises(KeyBuildError):
        app.ask("one", SessionSource(platform="api_server", chat_id=""), agent="echo")

    assert app.store.stats().lineages == 0


# ------------------------------------------------------------------ accounts


def test_a_second_account_does_not_move_the_first(app, open_home):
    first = SessionSource(platform="feishu", chat_id="oc_1", user_id="u")
    for number in range(10):
        before = app.ask(f"message {number}", first, agent="echo")
    app.close()

    again = open_home()
    second = again.ask("hello", SessionSource(platform="feishu", account_id="second", chat_id="oc_1", user_id="u"),
                       agent="echo")  # fmt: skip
    after = again.ask("one more", first, agent="echo")

    assert after.entry.session_id == before.entry.session_id
    assert after.text == "echo 11: one more"
    assert second.entry.session_id != before.entry.session_id
    assert second.text == "echo 1: hello"
    assert len(again.store.summaries(ALL)) == 2
