"""Events: who said what, where, and whether to us; and nothing that comes makes the reader fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_hookspecs.inbox import MessageEvent
from hermes_slack.config import SlackConfig
from hermes_slack.events import Reader
from hermes_slack.testing.payloads import message
from hermes_slack.workspaces import Workspace, scope_of

US = Workspace(scope_id="T1", team_id="T1", user_id="U0BOT", bot_id="B0BOT", api=None, token="")
NOW = 1_790_000_000_000
TS = "1790000000.000100"


class NoThreads:
    def is_ours(self, source):
        return False


def reader(**config):
    return Reader(account_id="default", config=SlackConfig.of(config), threads=NoThreads())


def event(text="hello", channel="C1", **more):
    inner = message(channel, "U1", text, TS, **{"channel_type": "channel"} | more)
    return reader().event({"event": inner, "api_app_id": "A1"}, US, NOW)


@pytest.mark.parametrize(
    ("channel", "kind", "chat_type"),
    [
        ("D1", "im", "dm"),
        ("D1", None, "dm"),
        ("G1", "mpim", "group"),
        ("C1", "mpim", "group"),
        ("C1", "group", "group"),
    ],
)
def test_a_group_chat_of_several_people_is_a_channel(channel, kind, chat_type):
    found = event(channel=channel, channel_type=kind)

    assert (found.source.chat_type, found.addressed) == (chat_type, chat_type == "dm")


def test_the_root_of_a_thread_stands_at_the_top():
    found = event("<@U0BOT> go", thread_ts=TS)

    assert (found.source.thread_id, found.source.prospective_thread_id) == (None, TS)


@pytest.mark.parametrize(
    ("more", "sender", "is_bot"),
    [
        ({}, "U1", False),
        ({"bot_id": "B7"}, "U1", True),
        ({"bot_id": "B7", "user": None, "subtype": "bot_message"}, "B7", True),
        ({"user": "USLACKBOT"}, "USLACKBOT", True),
    ],
)
def test_other_bots_are_known_as_bots(more, sender, is_bot):
    source = event("<@U0BOT> hi", **more).source

    assert (source.user_id, source.is_bot) == (sender, is_bot)


@pytest.mark.parametrize(
    ("more", "addressed"),
    [
        ({"text": "<@U0BOT> hi"}, True),
        ({"text": "hi <@U0BOT|hermes>"}, True),
        ({"text": "hi <@U0BOTHER>"}, False),
        ({"text": "hi", "channel": "CFREE"}, True),
        ({"text": "hi", "thread_ts": "1.1", "parent_user_id": "U0BOT"}, True),
        ({"text": "hi", "thread_ts": "1.1", "parent_user_id": "U2"}, False),
    ],
)
def test_in_a_channel_it_is_said_who_is_meant(more, addressed):
    inner = message("C1", "U1", "", TS, channel_type="channel") | more

    assert reader(free_channels=["CFREE"]).event({"event": inner}, US, NOW).addressed is addressed


def test_a_time_that_is_none_or_far_away_is_now():
    for ts in ("x", "", "9999999999.000100", "1.1"):
        found = reader().event({"event": message("C1", "U1", "hi", ts or "y")}, US, NOW)
        assert found.received_at == NOW
    assert event().received_at == NOW


@pytest.mark.parametrize(
    ("payload", "scope"),
    [
        ({"team_id": "T9", "authorizations": [{"team_id": "T1", "enterprise_id": "E1"}]}, "T1"),
        ({"team_id": "T9", "authorizations": [{"team_id": "T1", "enterprise_id": "E1", "is_enterprise_install": True}]},
         "E1"),
        ({"team_id": "T9", "authorizations": []}, "T9"),
        ({"team_id": "T9", "enterprise_id": "E9", "is_enterprise_install": "true"}, "E9"),
        ({"team_id": "T9", "enterprise_id": "E9", "is_enterprise_install": "false"}, "T9"),
        ({"event": {"team": "T9"}}, ""),
    ],
)  # fmt: skip
def test_the_scope_is_that_of_the_installation(payload, scope):
    assert scope_of(payload) == scope


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just("\ud800")
VALUE = ODD | st.lists(ODD | st.dictionaries(st.sampled_from(["id", "text", "type", "ts"]), ODD), max_size=3)
NAMES = (
    "subtype", "channel", "channel_type", "user", "ts", "thread_ts", "text", "blocks", "files",
    "attachments", "bot_id", "hidden", "deleted_ts", "previous_message", "parent_user_id", "username", "app_id",
)  # fmt: skip
INNER = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "app_mention"])}, optional=dict.fromkeys(NAMES, VALUE)
)


@settings(deadline=None)
@given(
    INNER | VALUE, st.dictionaries(st.sampled_from(["command", "text", "channel_id", "user_id", "trigger_id"]), VALUE)
)
def test_whatever_comes_is_a_message_with_an_identity_or_nothing(inner, command):
    payload = {"event": inner}
    for found in (
        reader().event(payload, US, NOW),
        reader().command(command, US, NOW, is_direct=True),
        reader().event(command, US, NOW),
    ):
        assert found is None or (isinstance(found, MessageEvent) and all(found.identities))
    scope_of({"authorizations": inner, **command})
