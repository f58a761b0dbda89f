"""The key builder: who is in the key, the grammar, and the way back."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_core.routing.key import KEY_LIMIT, LabelledKeyBuilder, build_session_key, decode_value, encode_value
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.source import KeyPolicy, SessionSource

DEFAULT = KeyPolicy()
ROOM = KeyPolicy(group_sessions_per_user=False)
THREADS = KeyPolicy(thread_sessions_per_user=True)
THREADS_OF_ROOMS = KeyPolicy(group_sessions_per_user=False, thread_sessions_per_user=True)
KEYS = LabelledKeyBuilder()


def at(platform, chat_type="dm", **fields):
    return SessionSource(platform=platform, chat_type=chat_type, **fields)


TOPIC = {"chat_id": -100, "thread_id": 17}


@pytest.mark.parametrize(
    ("source", "policy", "key", "shared"),
    [
        # direct messages
        (at("telegram", chat_id=123, user_id=123), DEFAULT, "telegram:dm:chat=123", False),
        (at("telegram", chat_id=123, thread_id=77, user_id=5), DEFAULT, "telegram:dm:chat=123:thread=77", False),
        (at("signal", user_id="+1555", user_id_alt="uuid-9"), DEFAULT, "signal:dm:user=uuid-9", False),
        (at("signal", user_id="+1555", thread_id="t"), DEFAULT, "signal:dm:thread=t:user=+1555", False),
        (at("email", thread_id="t1"), DEFAULT, "email:dm:thread=t1", False),
        (at("weixin", chat_id="wxid_x", user_id="wxid_x"), DEFAULT, "weixin:dm:chat=wxid_x", False),
        (
            at("slack", scope_id="T1", chat_id="D9", thread_id="1700.1"),
            DEFAULT,
            "slack:dm:scope=T1:chat=D9:thread=1700.1",
            False,
        ),
        (at("discord", chat_id="5", prospective_thread_id="9"), DEFAULT, "discord:dm:chat=5", False),
        (
            at("whatsapp", chat_id="15551234567@s.whatsapp.net"),
            DEFAULT,
            "whatsapp:dm:chat=15551234567@s.whatsapp.net",
            False,
        ),
        # groups
        (at("telegram", "group", chat_id=-100, user_id="alice"), DEFAULT, "telegram:group:chat=-100:user=alice", False),
        (at("telegram", "group", chat_id=-100, user_id="bob"), DEFAULT, "telegram:group:chat=-100:user=bob", False),
        (at("telegram", "group", chat_id=-100, user_id="alice"), ROOM, "telegram:group:chat=-100", True),
        (at("telegram", "group", chat_id=-100), DEFAULT, "telegram:group:chat=-100", True),
        (
            at("feishu", "group", chat_id="oc_1", user_id="ou_a", user_id_alt="on_a"),
            DEFAULT,
            "feishu:group:chat=oc_1:user=on_a",
            False,
        ),
        (
            at("weixin", "group", chat_id="r@chatroom", user_id="wxid_x"),
            DEFAULT,
            "weixin:group:chat=r@chatroom:user=wxid_x",
            False,
        ),
        (
            at("slack", "group", scope_id="T1", chat_id="C5", user_id="U1"),
            DEFAULT,
            "slack:group:scope=T1:chat=C5:user=U1",
            False,
        ),
        (at("x", "group", user_id="alice"), DEFAULT, "x:group:user=alice", False),
        # threads
        (at("telegram", "group", **TOPIC, user_id="alice"), DEFAULT, "telegram:group:chat=-100:thread=17", True),
        (at("telegram", "group", **TOPIC, user_id="bob"), ROOM, "telegram:group:chat=-100:thread=17", True),
        (
            at("telegram", "group", **TOPIC, user_id="alice"),
            THREADS,
            "telegram:group:chat=-100:thread=17:user=alice",
            False,
        ),
        (
            at("telegram", "group", **TOPIC, user_id="alice"),
            THREADS_OF_ROOMS,
            "telegram:group:chat=-100:thread=17:user=alice",
            False,
        ),
        (
            at("discord", "thread", chat_id="55", prospective_thread_id="900"),
            DEFAULT,
            "discord:thread:chat=55:thread=900",
            True,
        ),
        # accounts, scopes, profiles
        (at("feishu", chat_id="oc_1", account_id="second"), DEFAULT, "feishu:dm:account=second:chat=oc_1", False),
        (at("feishu", chat_id="oc_1", account_id=""), DEFAULT, "feishu:dm:chat=oc_1", False),
        (
            at("discord", "group", scope_id="G1", chat_id="55", user_id="7"),
            DEFAULT,
            "discord:group:chat=55:user=7",
            False,
        ),
    ],
)
def test_who_is_in_the_key(source, policy, key, shared):
    parts = KEYS.parts(source, policy)

    assert build_session_key(source, policy) == f"agent:main:{key}"
    assert parts.shared is shared


def test_the_profile_is_the_namespace():
    source = at("discord", "group", chat_id="55", user_id="7", profile="coder")

    assert build_session_key(source, DEFAULT) == "agent:coder:discord:group:chat=55:user=7"


def test_isolation_that_could_not_be_had_is_said():
    assert "the session is the room's" in KEYS.parts(at("x", "group", chat_id="c"), DEFAULT).note
    assert "the thread stands for both" in KEYS.parts(at("x", thread_id="t"), DEFAULT).note
    assert KEYS.parts(at("x", "group", chat_id="c"), ROOM).note == ""


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (at("email"), "could be anybody's"),
        (at("x", "group"), "names no chat"),
        (at("x", "channel", account_id="second", scope_id="T1"), "names no chat"),
        (at(""), "needs a platform"),
        (at("x", ""), "a chat type"),
        (at("x", chat_id="1", profile=""), "a profile"),
    ],
)
def test_a_source_that_could_be_anybodys_is_refused(source, complaint):
    with pytest.raises(KeyBuildError, match=complaint):
        build_session_key(source, DEFAULT)


def test_a_key_made_with_the_alternative_id_may_claim_the_one_with_the_plain_id():
    source = at("feishu", "group", chat_id="oc_1", user_id="ou_a", user_id_alt="on_a")

    assert KEYS.alternatives(source, DEFAULT) == ("agent:main:feishu:group:chat=oc_1:user=ou_a",)
    assert KEYS.alternatives(attrs.evolve(source, user_id_alt=None), DEFAULT) == ()
    assert KEYS.alternatives(attrs.evolve(source, user_id=None), DEFAULT) == ()
    assert KEYS.alternatives(source, ROOM) == ()


# ------------------------------------------------------------------ the grammar


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("a:b=c%", "a%3Ab%3Dc%25"),
        ("a b\t\n\x00\x7f\x85\xa0", "a%20b%09%0A%00%7F%C2%85%C2%A0"),
        ("中文-é", "中文-é"),
        ("\u3000", "%E3%80%80"),
        ("\ud83d", "%ED%A0%BD"),
        ("%h" + "0" * 40, "%25h" + "0" * 40),
    ],
)
def test_characters_with_a_meaning_are_encoded(value, encoded):
    assert encode_value(value) == encoded
    assert decode_value(encoded) == value


@pytest.mark.parametrize(
    "text", ["%", "%4", "%zz", "%3a", "%41", "%+1", "%-1", "%FF", "a b", "a:b", "%h", "%h12", "%h" + "G" * 40, "\ud800"]
)
def test_what_no_value_is_encoded_as_is_refused(text):
    with pytest.raises(ValueError):
        decode_value(text)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "agent:main:x",
        "agent::x:dm",
        "person:main:x:dm:chat=1",
        "agent:main:x:dm:chat",
        "agent:main:x:dm:chat=",
        "agent:main:x:dm:room=1",
        "agent:main:x:dm:user=1:chat=2",
        "agent:main:x:dm:chat=1:chat=2",
        "agent:main:x:dm:chat=%3a",
        "agent:main:x:dm:chat=" + "1" * 600,
    ],
)
def test_what_is_no_key_is_not_parsed(key):
    with pytest.raises(ValueError):
        KEYS.parse(key)


def test_ids_are_compared_byte_for_byte():
    ids = ["!AbC:host", "!abc:host", "!abc:host ", "é", "e\u0301", "01", "1"]

    assert len({build_session_key(at("matrix", chat_id=one), DEFAULT) for one in ids}) == len(ids)


def test_a_key_that_would_be_too_long_holds_hashes_of_its_longest_values():
    long = "x" * 5000
    key = build_session_key(at("x", "group", chat_id=long, user_id="bob"), DEFAULT)

    assert len(key) <= KEY_LIMIT
    assert key.endswith(":user=bob")
    parts = KEYS.parse(key)
    assert parts.chat_id.startswith("%h")
    assert len(parts.chat_id) == 42
    assert key != build_session_key(at("x", "group", chat_id=f"{long}y", user_id="bob"), DEFAULT)


IDS = st.none() | st.text(min_size=1, max_size=30) | st.text("a:=%/ .é中\ud83d\x00", min_size=1, max_size=8)
SOURCES = st.builds(
    SessionSource,
    platform=st.sampled_from(["feishu", "slack", "a:b", "x=y"]),
    chat_type=st.sampled_from(["dm", "group", "thread", "a:b"]),
    account_id=st.sampled_from(["default", "second", "a:b"]),
    scope_id=IDS,
    chat_id=IDS,
    thread_id=IDS,
    user_id=IDS,
    user_id_alt=IDS,
    profile=st.sampled_from(["main", "a:b"]),
)
POLICIES = st.builds(KeyPolicy, group_sessions_per_user=st.booleans(), thread_sessions_per_user=st.booleans())


def parts_of(source, policy):
    try:
        parts = KEYS.parts(source, policy)
    except KeyBuildError:
        return None
    return attrs.evolve(parts, shared=False, note="")


@given(SOURCES, POLICIES)
@settings(max_examples=100, deadline=None)
def test_a_key_can_be_parsed_back(source, policy):
    parts = parts_of(source, policy)
    if parts is not None:
        assert KEYS.parse(KEYS.build(source, policy)) == parts


@given(SOURCES, SOURCES, POLICIES)
@settings(max_examples=100, deadline=None)
def test_keys_are_equal_where_their_parts_are_and_nowhere_else(one, other, policy):
    left, right = parts_of(one, policy), parts_of(other, policy)
    if left is not None and right is not None:
        assert (KEYS.build(one, policy) == KEYS.build(other, policy)) == (left == right)


@given(st.lists(st.integers(1, 3000), min_size=5, max_size=5), st.sampled_from("x%中"))
@settings(max_examples=50, deadline=None)
def test_no_key_is_too_long_whatever_is_long_in_it(lengths, letter):
    account, scope, chat, thread, user = (letter * length for length in lengths)
    source = at(
        "slack",
        "thread",
        account_id=account,
        scope_id=scope,
        chat_id=chat,
        thread_id=thread,
        user_id=user,
        profile=chat,
    )

    key = KEYS.build(source, THREADS)

    assert len(key) <= KEY_LIMIT
    assert KEYS.parse(key)
