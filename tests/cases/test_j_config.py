"""Group J: settings that are misspelt, misplaced or out of range."""

from __future__ import annotations

import pytest

INPUTS = [
    ("[session_reset]\nidle_minuts = 5\n", ':2: [session_reset] there is no key "idle_minuts"', '"idle_minutes"?'),
    ("[routing]\nsession_reset = {idle_minutes = 5}\n", ':2: [routing] there is no key "session_reset"', "section"),
    ("[session_reset.idle]\nidle_minutes = 5\n", "[session_reset]", "idle"),
    ("[agent]\nidle_minutes = 5\n", ':2: [agent] there is no key "idle_minutes"', "it belongs in [session_reset]"),
    ("idle_minutes = 5\n", ':1: there is no key "idle_minutes"', "it belongs in [session_reset]"),
    ("[session_reset]\nat_hour = 25\n", ":2: [session_reset] at_hour = 25 is out of range", "from 0 to 23"),
    ("[session_reset]\nidle_minutes = -1\n", ":2: [session_reset] idle_minutes = -1 is out of range", "from 1 to"),
    ('[session_reset]\nidle_minutes = "60"\n', ':2: [session_reset] idle_minutes = "60" is text', "without quotes"),
    ('[session_reset]\nmode = "Idle"\n', ':2: [session_reset] mode = "Idle"', 'did you mean "idle"?'),
    ("[session_reset]\nmode: Idle\n", "is not valid TOML", "line 2"),
    ('[routing]\ngroup_sessions_per_user = "false"\n', ':2: [routing] group_sessions_per_user = "false" is text', ""),
    ('[platforms.feishu]\ngroup_sessions_per_user = "false"\n', ":2: [platforms.feishu] group_sessions_per_user", ""),
    ("[platforms.Feishu]\n", "[platforms.Feishu]", "[platforms.feishu]"),
    ("[sesion_reset]\n", ":1: [sesion_reset] is no section", "[session_reset]?"),
    ("[storage]\nbackend = 1\n", ":2: [storage] backend = 1", ""),
    ("[turns]\nlease_wait_s = 6\n", "[turns] lease_wait_s = 6 is below lease_ttl_s", ""),
    ("[agent\n", "is not valid TOML", "line 1"),
    ("[agent]\nrunner = 'a'\nrunner = 'b'\n", "is not valid TOML", "line 3"),
]
COMMANDS = [("-q", "hello"), ("sessions", "list")]


@pytest.fixture
def configured(home):
    """Return a function that writes the home's configuration."""

    def write(content):
        home.mkdir()
        (home / "config.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
        return home / "config.toml"

    return write


@pytest.mark.parametrize(("text", "place", "hint"), INPUTS)
def test_j09_a_mistake_is_one_line_with_place_and_cure_and_nothing_is_run(hermes, configured, home, text, place, hint):
    path = configured(text)

    ran = hermes("-q", "hello")

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"hermes: {path}")
    assert place in ran.err
    assert hint in ran.err
    assert ran.err.count("\n") == 1
    assert not list(home.glob("state.db*"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\xff\xfe[\x00a\x00]\x00", "is not UTF-8 (it looks like UTF-16)"),
        (b"[agent]\nrunner = '\xe4\xbd'\n", ":2: is not UTF-8"),
        (b"\x00\x01\x02", "is not valid TOML"),
        (b"[]", "is not valid TOML"),
        (b"a = " + b"[" * 5000, "is not valid TOML"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_j09_a_file_of_the_wrong_encoding_or_shape_is_one_line(hermes, configured, content, what, command):
    configured(content)

    ran = hermes(*command)

    assert (ran.status, ran.out) == (2, "")
    assert what in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["", "\n", "[storage]\n", "# only words\n", "\ufeff[agent]\n", "[agent]\r\nrunner = 'echo'\r\n"]
)
def test_j09_nothing_said_is_the_default(hermes, configured, text):
    configured(text)

    ran = hermes("config", "show")

    assert (ran.status, ran.err) == (0, "")
    assert "idle_minutes = 1440" in ran.out


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("HERMES_ROUTING_GROUP_SESSIONS_PER_USER", "maybe", "group_sessions_per_user"),
        ("HERMES_SESSION_RESET_AT_HOUR", "25", "from 0 to 23"),
        ("HERMES_TURN_LEASE_TIMEOUT", "3", "below lease_ttl_s"),
        ("HERMES_STORAGE_DURABILITY", "Full", 'did you mean "full"?'),
    ],
)
def test_j09_a_variable_is_checked_like_a_file(hermes, name, value, what):
    ran = hermes("-q", "hello", env={name: value})

    assert (ran.status, ran.out) == (2, "")
    assert what in ran.err
    assert name in ran.err
    assert ran.err.count("\n") == 1


def test_j09_text_that_says_false_in_a_variable_is_false(hermes):
    ran = hermes("config", "show", "--origin", env={"HERMES_ROUTING_GROUP_SESSIONS_PER_USER": "false"})

    (line,) = [line for line in ran.out.splitlines() if line.startswith("group_sessions_per_user")]
    assert line.startswith("group_sessions_per_user = false")
    assert "environment HERMES_ROUTING_GROUP_SESSIONS_PER_USER" in line


def test_j09_a_plugins_own_keys_are_not_unknown(hermes, configured, site):
    site("mine", "class Plugin:\n    def __init__(self, config):\n        pass\n")
    configured("[plugins.mine]\ncolour = 'red'\n")

    ran = hermes("plugins", "list", env=site.env)

    assert (ran.status, ran.err) == (0, "")


def test_j09_a_table_of_a_plugin_that_is_not_there_is_said_and_harmless(hermes, configured):
    configured("[plugins.absent]\ncolour = 'red'\n")

    ran = hermes("-q", "hello", "--agent", "echo")

    assert (ran.status, ran.out) == (0, "echo 1: hello\n")
    assert "names 'absent', which is not installed" in ran.err


def test_j09_an_agent_that_does_not_exist_is_said_before_anything_is_kept(hermes):
    ran = hermes("-q", "hello", "--agent", "nobody")

    assert (ran.status, ran.out) == (2, "")
    assert "there is no agent 'nobody'" in ran.err
    assert "echo" in ran.err
    assert ran.err.count("\n") == 1
    assert hermes("sessions", "list", "--all", "--json").out == "[]\n"
