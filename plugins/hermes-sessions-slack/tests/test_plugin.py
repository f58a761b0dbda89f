"""The plugin: found by its name, light to import, and strict about its settings."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.testing.plugins import PluginSuite
from hermes_slack.config import SlackConfig
from hermes_slack.credentials import credentials_of


class TestSlackPlugin(PluginSuite):
    distribution = "hermes-sessions-slack"
    entry_point = "slack"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"acounts": []}, "acounts is unknown; there are accounts"),
        ({"accounts": "default"}, "is no list"),
        ({"accounts": ["Default"]}, "'Default' is no alias"),
        ({"accounts": ["a-b", "a_b"]}, "names one twice"),
        ({"mode": "websocket"}, "neither socket nor http"),
        ({"replies": True}, "neither thread nor channel"),
        ({"listen": "8080"}, "no host and port"),
        ({"listen": "localhost:99999"}, "no host and port"),
        ({"base_url": "slack.com"}, "no address"),
        ({"bang_commands": "yes"}, "neither true nor false"),
        ({"chunk_characters": 99}, "not between 100 and 8000"),
        ({"chunk_characters": 100.5}, "no whole number"),
        ({"ping_s": 30, "silence_s": 30}, "silence_s = 30 is not more than ping_s"),
        ({"slash_commands": ["/hermes"]}, "without its slash"),
    ],
)
def test_a_setting_that_is_wrong_is_named(table, said):
    with pytest.raises(ConfigError, match=said) as wrong:
        SlackConfig.of(table)
    assert wrong.value.key in table


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "SLACK_BOT_TOKEN_SECOND_ONE is not set"),
        ({"SLACK_BOT_TOKEN_SECOND_ONE": "xoxp-secret"}, "is not a bot token"),
        ({"SLACK_BOT_TOKEN_SECOND_ONE": "xoxb-1, xoxb-1"}, "one token twice"),
        ({"SLACK_BOT_TOKEN_SECOND_ONE": "xoxb-1\u200b"}, "characters that no secret"),
        ({"SLACK_BOT_TOKEN_SECOND_ONE": "xoxb-1"}, "SLACK_APP_TOKEN_SECOND_ONE is not set"),
        ({"SLACK_BOT_TOKEN_SECOND_ONE": "xoxb-1", "SLACK_APP_TOKEN_SECOND_ONE": "xoxb-2"}, "is not an app-level token"),
    ],
)
def test_a_secret_that_is_wrong_is_named_and_never_shown(environ, said):
    with pytest.raises(ConfigError, match=said) as wrong:
        credentials_of("second-one", "socket", environ)
    assert not any(value in str(wrong.value) for value in environ.values())


def test_each_mode_needs_its_own_secret():
    both = {"SLACK_BOT_TOKEN": "xoxb-1,xoxb-2", "SLACK_APP_TOKEN": "xapp-1", "SLACK_SIGNING_SECRET": "s"}

    socket, http = (credentials_of("default", mode, both) for mode in ("socket", "http"))

    assert socket.bot_tokens == ("xoxb-1", "xoxb-2")
    assert (socket.app_token, socket.signing_secret) == ("xapp-1", "")
    assert (http.app_token, http.signing_secret) == ("", "s")
