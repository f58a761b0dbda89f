from __future__ import annotations

import pytest

from hermes_core.config import describe

# (key, value in the home's file, in the profile's, in the environment, as option)
KEY = "agent.runner"


@pytest.mark.parametrize(
    ("layers", "value", "origin"),
    [
        ("", "", "default"),
        ("home", "from-home", "HOME/config.toml"),
        ("home profile", "from-profile", "HOME/profiles/work/config.toml"),
        ("home profile environment", "from-environment", "environment HERMES_AGENT_RUNNER"),
        ("home profile environment option", "from-option", "option --agent"),
        ("home option", "from-option", "option --agent"),
    ],
)
def test_the_nearer_source_wins_and_is_named(load, home, layers, value, origin) -> None:
    given = layers.split()
    settings = load(
        '[agent]\nrunner = "from-home"\n' if "home" in given else None,
        {"HERMES_AGENT_RUNNER": "from-environment"} if "environment" in given else {},
        {KEY: "from-option"} if "option" in given else {KEY: None},
        '[agent]\nrunner = "from-profile"\n' if "profile" in given else None,
    )

    assert settings.agent.runner == value
    assert settings.origins[KEY] == origin.replace("HOME", str(home))


def test_sources_are_mixed_key_by_key(load, home) -> None:
    settings = load(
        "[session_reset]\nat_hour = 1\nidle_minutes = 11\n",
        {"HERMES_SESSION_RESET_MODE": "both"},
        None,
        "[session_reset]\nidle_minutes = 22\n",
    )

    reset = settings.session_reset
    assert (reset.at_hour, reset.idle_minutes, reset.mode, reset.notify) == (1, 22, "both", True)
    assert settings.origins["session_reset.at_hour"] == f"{home}/config.toml"
    assert settings.origins["session_reset.notify"] == "default"


def test_the_tables_of_a_plugin_are_mixed_by_key_too(load) -> None:
    settings = load(
        '[plugins.fts5]\nsize = 1\nname = "a"\n', None, {"plugins.fts5.depth": [3]}, "[plugins.fts5]\nsize = 2\n"
    )

    assert dict(settings.plugin_table("fts5")) == {"size": 2, "name": "a", "depth": (3,)}
    assert settings.origins["plugins.fts5.depth"] == "option --plugins.fts5.depth"
    assert dict(settings.plugin_table("other")) == {}


def test_every_setting_has_an_origin_and_a_row(load) -> None:
    settings = load()

    rows = describe(settings)

    assert {row.origin for row in rows} == {"default"}
    shown = {f"{row.section}.{row.key}" for row in rows}
    assert shown == set(settings.origins) - {"plugins.only"}
    assert {"routing.group_sessions_per_user", "turns.lease_ttl_s", "display.resume_skip_tool_only"} <= shown


def test_platforms_override_the_routing_they_name(load) -> None:
    settings = load(
        "[routing]\ngroup_sessions_per_user = false\n[platforms.slack]\ngroup_sessions_per_user = true\n",
        {"HERMES_PLATFORMS_API_SERVER_THREAD_SESSIONS_PER_USER": "1"},
    )

    slack, server, feishu = (settings.routing_of(name) for name in ("slack", "api_server", "feishu"))
    assert (slack.group_sessions_per_user, slack.thread_sessions_per_user) == (True, False)
    assert (server.group_sessions_per_user, server.thread_sessions_per_user) == (False, True)
    assert (feishu.group_sessions_per_user, feishu.thread_sessions_per_user) == (False, False)
    assert [(row.section, row.key, row.value) for row in describe(settings) if row.section.startswith("platforms")] == [
        ("platforms.api_server", "thread_sessions_per_user", True),
        ("platforms.slack", "group_sessions_per_user", True),
    ]


@pytest.mark.parametrize(
    ("variable", "text", "section", "key", "value"),
    [
        ("HERMES_ROUTING_GROUP_SESSIONS_PER_USER", "False", "routing", "group_sessions_per_user", False),
        ("HERMES_ROUTING_GROUP_SESSIONS_PER_USER", " 1 ", "routing", "group_sessions_per_user", True),
        ("HERMES_TURNS_LEASE_TTL_S", "12.5", "turns", "lease_ttl_s", 12.5),
        ("HERMES_TURN_LEASE_TIMEOUT", "60", "turns", "lease_wait_s", 60.0),
        ("HERMES_INBOX_MAX_WAITING", "7", "inbox", "max_waiting", 7),
        ("HERMES_INBOX_MAX_WAITING", "", "inbox", "max_waiting", 100),
        ("HERMES_PLUGINS_DISABLE", "a, b,", "plugins", "disable", ("a", "b")),
        ("HERMES_SESSION_RESET_RESET_TRIGGERS", "", "session_reset", "reset_triggers", ()),
        ("HERMES_PLUGINS", "", "plugins", "only", ()),
        ("HERMES_PLUGINS_ONLY", "a", "plugins", "only", None),
    ],
)
def test_variables_are_read_by_the_kind_of_the_setting(load, variable, text, section, key, value) -> None:
    settings = load(None, {variable: text})

    found = getattr(getattr(settings, section), key)
    assert (found, type(found)) == (value, type(value))


def test_the_regular_variable_counts_more_than_its_alias(load) -> None:
    environ = {"HERMES_TURNS_LEASE_WAIT_S": "50", "HERMES_TURN_LEASE_TIMEOUT": "60"}

    assert load(None, environ).turns.lease_wait_s == 50


def test_a_misspelt_variable_is_noticed_and_those_of_other_programs_are_not(load) -> None:
    environ = {"HERMES_AGENT_RUNER": "echo", "HERMES_AGENT_BROWSER_URL": "x", "HERMES_HOME": "/x", "PATH": "/bin"}

    notices = load(None, environ).notices

    assert notices == ("environment HERMES_AGENT_RUNER sets nothing; did you mean HERMES_AGENT_RUNNER?",)


def test_settings_and_their_tables_are_frozen(load) -> None:
    settings = load("[plugins.x]\na = {b = [1]}\n")

    for change in (
        lambda: setattr(settings.agent, "runner", "x"),
        lambda: settings.origins.update(a="b"),
        lambda: settings.plugin_table("x").update(a=1),
        lambda: settings.plugin_table("x")["a"].update(b=2),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    assert settings.plugin_table("x")["a"]["b"] == (1,)


def test_secrets_of_plugins_are_masked_wherever_they_stand(load) -> None:
    settings = load(
        '[plugins.x]\napi_token = "s3cret"\ndeep = {client_secret = "s3cret", list = [{password = "s3cret"}]}\n'
    )

    rows = [row for row in describe(settings) if row.section == "plugins.x"]

    assert "s3cret" not in repr(rows)
    assert [row.value for row in rows] == [
        "********",
        {"client_secret": "********", "list": [{"password": "********"}]},
    ]
