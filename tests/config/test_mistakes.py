from __future__ import annotations

import os

import attrs
import pytest

from hermes_core.config.faults import Layer
from hermes_core.config.listing import MASK
from hermes_core.config.rules import Rule, rules_of
from hermes_core.config.sections import SECTIONS
from hermes_hookspecs.errors import ConfigError


def _refused(load, *arguments, **more) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        load(*arguments, **more)
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[session_reset]\nidle_minuts = 5\n",
            '2: [session_reset] there is no key "idle_minuts"; did you mean "idle_minutes"?',
        ),
        ("[routing]\n\nat_hour = 4\n", '3: [routing] there is no key "at_hour"; it belongs in [session_reset]'),
        ("idle_minutes = 5\n", '1: there is no key "idle_minutes"; it belongs in [session_reset]'),
        (
            "[agent]\n[agent.routing]\na = 1\n",
            '2: [agent] there is no key "routing"; [routing] is a section of its own',
        ),
        ("[sesion_reset]\n", "1: [sesion_reset] is no section; did you mean [session_reset]?"),
        ("[telegraph]\n", "1: [telegraph] is no section; valid are storage, routing, agent"),
        ("[inbox]\nqqq = 1\n", '2: [inbox] there is no key "qqq"; valid are max_waiting'),
        ("[plugins]\nstrikt = true\n", '2: [plugins] there is no key "strikt"; did you mean "strict"?'),
        ("[plugins]\nonly = []\n", '2: [plugins] there is no key "only"'),
        ("[platforms.slack]\nat_hour = 1\n", '2: [platforms.slack] there is no key "at_hour"; it belongs in [session_'),
        ("[platforms.Slack]\n", "1: [platforms.Slack] platform names are lower case; did you mean [platforms.slack]?"),
        (
            "[platforms]\ngroup_sessions_per_user = true\n",
            "2: [platforms] group_sessions_per_user belongs in [routing]",
        ),
        ("routing = 1\n", "1: routing is a section; write it as a table, [routing]"),
        ("[[agent]]\n", "1: agent is a section; write it as a table, [agent]"),
        ("platforms = 1\n", "1: platforms is a section; write [platforms.<name>]"),
        ("session_reset.at_hour = 25\n", "1: [session_reset] at_hour = 25 is out of range"),
    ],
)
def test_what_is_not_known_is_named_with_line_and_the_nearest_name(load, home, text, line) -> None:
    error = _refused(load, text)

    assert str(error).startswith(f"{home}/config.toml:{line}")
    assert error.origin == f"{home}/config.toml"


@pytest.mark.parametrize(
    ("section", "assignment", "sentence"),
    [
        ("session_reset", "at_hour = 25", "at_hour = 25 is out of range; allowed is a whole number from 0 to 23"),
        (
            "session_reset",
            "idle_minutes = -1",
            "idle_minutes = -1 is out of range; allowed is a whole number from 1 to",
        ),
        ("session_reset", "idle_minutes = 0", "is out of range"),
        (
            "session_reset",
            'idle_minutes = "60"',
            'idle_minutes = "60" is text; write a whole number from 1 to 525600 wit',
        ),
        (
            "session_reset",
            "idle_minutes = 60.0",
            "idle_minutes = 60.0 is a number with a fraction; write a whole number",
        ),
        ("session_reset", "idle_minutes = true", "idle_minutes = true is a switch; write a whole number"),
        ("session_reset", 'mode = "Idle"', 'mode = "Idle" is no name of lower-case letters'),
        ("session_reset", 'mode = "Idle"', 'did you mean "idle"?'),
        ("session_reset", 'mode = ""', 'mode = "" is empty; write a name'),
        ("session_reset", "mode = false", "mode = false is a switch; write a text in quotes"),
        ("session_reset", 'timezone = "Mars/Base"', 'timezone = "Mars/Base" is no time zone known to this host'),
        ("session_reset", 'timezone = "../etc/passwd"', "is no time zone"),
        ("session_reset", 'timezone = "Europe"', "is no time zone"),
        ("session_reset", "notify = 1", "notify = 1 is a whole number; write true or false"),
        ("session_reset", 'reset_triggers = "/new"', 'reset_triggers = "/new" is text; write a list of texts'),
        ("session_reset", 'reset_triggers = ["/new", ""]', 'holds ""; every item must be a text'),
        (
            "routing",
            'group_sessions_per_user = "false"',
            'group_sessions_per_user = "false" is text; write true or false w',
        ),
        ("storage", 'durability = "Full"', 'durability = "Full" is not one of full, normal; did you mean "full"?'),
        ("storage", 'backend = "../x"', 'backend = "../x" is no name'),
        ("storage", "busy_timeout_s = nan", "busy_timeout_s = nan is out of range"),
        ("storage", "busy_timeout_s = inf", "busy_timeout_s = inf is out of range"),
        ("storage", "busy_timeout_s = 600.1", "allowed is a number from 0.1 to 600"),
        ("turns", "lease_ttl_s = 4.9", "lease_ttl_s = 4.9 is out of range; allowed is a number from 5 to 600"),
        ("inbox", "max_waiting = 0", "allowed is a whole number from 1 to 100000"),
        ("gateway", "recovery_attempts = 11", "allowed is a whole number from 0 to 10"),
        ("gateway", "recovery_attempts = {a = 1}", "is a table; write a whole number"),
        ("gateway", "recovery_attempts = 2026-01-01", "is a date; write a whole number"),
    ],
)
def test_a_wrong_value_is_named_with_file_line_section_key_and_what_is_allowed(
    load, home, section, assignment, sentence
) -> None:
    key = assignment.split(" ")[0]

    error = _refused(load, f"# a comment\n[{section}]\n# {key} = 1\n{assignment}\n")

    assert str(error).startswith(f"{home}/config.toml:4: [{section}] {key} = ")
    assert sentence in str(error)
    assert (error.section, error.key, error.exit_code) == (section, key, 2)


def test_a_mistake_is_reported_even_where_an_option_covers_it(load) -> None:
    error = _refused(load, "[inbox]\nmax_waiting = 0\n", None, {"inbox.max_waiting": 5})

    assert error.key == "max_waiting"


def test_the_ends_of_a_range_are_allowed(load) -> None:
    settings = load("[session_reset]\nat_hour = 23\nidle_minutes = 525600\n[storage]\nbusy_timeout_s = 600\n")

    assert (settings.session_reset.at_hour, settings.storage.busy_timeout_s) == (23, 600.0)


def test_a_policy_of_a_plugin_and_a_zone_are_accepted(load) -> None:
    settings = load('[session_reset]\nmode = "work-hours"\ntimezone = "Asia/Shanghai"\n')

    assert settings.session_reset.mode == "work-hours"


@pytest.mark.parametrize("value", ["0", "-1", "29"])
def test_waiting_shorter_than_a_lease_lives_is_refused_under_the_name_that_was_used(load, value) -> None:
    error = _refused(load, None, {"HERMES_TURN_LEASE_TIMEOUT": value})

    assert str(error).startswith("environment HERMES_TURN_LEASE_TIMEOUT: [turns] lease_wait_s = ")
    assert error.key == "lease_wait_s"


def test_a_lease_longer_than_the_wait_is_blamed_on_what_was_set(load, home) -> None:
    error = _refused(load, "[turns]\nlease_ttl_s = 8\n")

    assert str(error).startswith(f"{home}/config.toml: [turns] lease_renew_s = 10 is not below lease_ttl_s = 8;")
    assert error.key == "lease_ttl_s"


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("HERMES_ROUTING_GROUP_SESSIONS_PER_USER", "yes", "is not one of true, false, 1, 0"),
        ("HERMES_INBOX_MAX_WAITING", "many", "is no number; write a whole number from 1 to 100000"),
        ("HERMES_INBOX_MAX_WAITING", "1.5", "is a number with a fraction"),
        ("HERMES_INBOX_MAX_WAITING", "0", "is out of range"),
        ("HERMES_STORAGE_BUSY_TIMEOUT_S", "nan", "is out of range"),
    ],
)
def test_a_wrong_variable_is_named(load, variable, text, sentence) -> None:
    error = _refused(load, None, {variable: text})

    assert str(error).startswith(f"environment {variable}: [")
    assert sentence in str(error)


@pytest.mark.parametrize(
    ("dotted", "value", "sentence"),
    [
        ("agent.runner", "Echo", 'option --agent: [agent] runner = "Echo" is no name'),
        ("inbox.max_waiting", 0, "option --inbox.max_waiting: [inbox] max_waiting = 0 is out of range"),
        ("inbox.waiting", 1, 'option --inbox.waiting: [inbox] there is no key "waiting"; did you mean "max_waiting"?'),
        ("nowhere.x", 1, "option --nowhere.x: [nowhere] is no section"),
        ("runner", "echo", 'option --runner: there is no key "runner"; it belongs in [agent]'),
    ],
)
def test_a_wrong_option_is_named(load, dotted, value, sentence) -> None:
    assert str(_refused(load, None, None, {dotted: value})).startswith(sentence)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("a = [1\n", "config.toml: is not valid TOML: "),
        ("[agent]\nrunner = echo\n", "is not valid TOML: Invalid value (at line 2, column 10)"),
        ("[agent]\n[agent]\n", "is not valid TOML: Cannot declare ('agent',) twice (at line 2"),
        ("just a note", "is not valid TOML: "),
        ('{"agent": {}}', "is not valid TOML: "),
        ("x = " + "[" * 5000, "is not valid TOML: "),
        ("[inbox]\nmax_waiting = " + "9" * 5000, "is not valid TOML: "),
        ("[agent]\n# caf\xe9\n".encode("latin-1"), "config.toml:2: is not UTF-8; save it as UTF-8"),
        ("[agent]\n".encode("utf-16"), "config.toml:1: is not UTF-8 (it looks like UTF-16)"),
        (b"#" * (4 * 1024 * 1024 + 1), "config.toml: is larger than 4 MiB"),
    ],
    ids=["cut", "bare word", "twice", "prose", "json", "deep", "huge number", "latin-1", "utf-16", "huge"],
)
def test_an_unreadable_file_is_one_line(load, home, raw, sentence) -> None:
    error = _refused(load, raw)

    assert str(error).startswith(f"{home}/config.toml:")
    assert sentence in str(error)


@pytest.mark.parametrize(
    "text", ["", "\n# nothing\n", "[agent]\n[routing]\n[plugins]\n[platforms.slack]\n", b"\xef\xbb\xbf"]
)
def test_nothing_given_means_the_defaults(load, text) -> None:
    settings = load(text)

    assert set(settings.origins.values()) == {"default"}
    assert settings.routing.group_sessions_per_user is True


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(load) -> None:
    assert load(b'\xef\xbb\xbf[agent]\r\nrunner = "echo"\r\n').agent.runner == "echo"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_without_waiting_for_it(load, home, make) -> None:
    make(home / "config.toml")

    assert str(_refused(load)) == f"{home}/config.toml: is no regular file"


def test_a_home_that_is_a_file_is_one_line(load, home) -> None:
    home.rmdir()
    home.write_text("", encoding="utf-8")

    assert str(_refused(load)) == f"{home}/config.toml: cannot be read: Not a directory"


def test_text_from_a_file_cannot_steer_the_terminal(load) -> None:
    error = _refused(load, '[agent]\nrunner = "\\u001b[2Jx\\u202e"\n')

    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert "\\u001b[2Jx\\u202e" in str(error)


def test_a_secret_setting_is_not_repeated_in_its_error() -> None:
    with pytest.raises(ConfigError) as raised:
        Layer("file").checked("x", "token", Rule("name", secret=True), "S3CRET")

    assert MASK in str(raised.value)
    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize("section", list(SECTIONS))
def test_every_default_keeps_its_own_rule(section) -> None:
    kind = SECTIONS[section]
    values = kind()

    for key, rule in rules_of(kind).items():
        if rule.in_file:
            assert Layer("default").checked(section, key, rule, getattr(values, key)) == getattr(values, key)
    assert [field.name for field in attrs.fields(kind)] == list(rules_of(kind))
