"""Plugins that come and go: what they made stays readable, what is broken is told, what is left out is not met."""

from __future__ import annotations

import shutil

import pytest

AGENT = """
from hermes_hookspecs.ports.agent import AssistantStep


class Shout:
    name, model = "shout", "loud-1"

    async def run(self, turn):
        yield AssistantStep(content=turn.text.upper())


class Plugin:
    @hookimpl
    def hermes_agents(self):
        return (Shout(),)
"""
BROKEN = "raise RuntimeError('no way')\n"


def stages(hermes, env, *options):
    return {row["name"]: row["stage"] for row in hermes.json("plugins", "list", *options, env=env)}


def test_a_conversation_made_with_a_plugin_that_is_gone_is_all_there(hermes, site, tmp_path):
    session = hermes.json("-q", "hello", "--agent", "shout", env=site_with(site))["session_id"]
    shutil.rmtree(tmp_path / "site")

    (listed,) = hermes.json("sessions", "list", env=site.env)
    shown = hermes("sessions", "show", session, env=site.env)
    (exported,) = hermes.exported()
    again = hermes("-r", session, "-q", "again", "--agent", "echo", env=site.env)
    missing = hermes("-r", session, "-q", "again", "--agent", "shout", env=site.env)

    assert (listed["model"], listed["message_count"]) == ("loud-1", 2)
    assert "HELLO" in shown.out
    assert [row["content"] for row in exported["messages"]] == ["hello", "HELLO"]
    assert (again.status, again.out) == (0, "echo 2: again\n")
    assert missing.status == 2
    assert "there is no agent 'shout'" in missing.err
    assert [one["message_count"] for one in hermes.json("sessions", "list")] == [4]


def site_with(site):
    site("shout", AGENT)
    return site.env


def test_a_conversation_of_a_platform_that_nobody_has_is_all_there(hermes, home):
    from hermes_core import SessionSource, open_app

    source = SessionSource(platform="carrier_pigeon", account_id="grey", chat_id="loft", user_id="p", user_name="Paul")
    with open_app(home, plugins=False) as app:
        entry = app.ask("coo", source, agent="echo").entry
        app.rename_session(entry.lineage_id, "pigeon")

    (listed,) = hermes.json("sessions", "list")
    shown = hermes("sessions", "show", "pigeon").out
    explained = hermes("routes", "explain", entry.session_key)
    again = hermes("-c", "pigeon", "-q", "again", "--agent", "echo")

    assert (listed["source"], listed["account_id"]) == ("carrier_pigeon", "grey")
    assert "carrier_pigeon/grey" in shown
    assert explained.status == 0
    assert again.out == "echo 2: again\n"
    entrances = [row["entrance"] for row in hermes.exported()[0]["messages"]]
    assert entrances[:2] == ["carrier_pigeon/grey"] * 2
    assert entrances[2].startswith("cli/")


def test_the_configured_agent_of_a_plugin_that_is_gone_is_told_and_reading_works(hermes, home):
    hermes("-q", "hello", "--agent", "echo")
    (home / "config.toml").write_text('[agent]\nrunner = "shout"\n')

    asked = hermes("-q", "again")

    assert asked.status == 2
    assert "there is no agent 'shout'" in asked.err
    assert asked.err.count("\n") == 1
    assert [row["message_count"] for row in hermes.json("sessions", "list", "--all")] == [2]
    assert hermes("-c", "-q", "again", "--agent", "echo").out == "echo 2: again\n"


def test_the_list_says_what_is_wrong_with_a_broken_one(hermes, site):
    site("shout", AGENT)
    site("broken", BROKEN)

    ran = hermes("plugins", "list", env=site.env)

    (row,) = [line for line in ran.out.splitlines() if line.startswith("broken")]
    assert ran.status == 0
    assert "failed at import" in row
    assert "RuntimeError: no way" in row
    assert "x-broken" in row
    assert ran.err == ""  # the row says it
    assert stages(hermes, site.env)["shout"] == "loaded"


@pytest.mark.parametrize(
    ("env", "options", "config", "loaded"),
    [
        ({}, (), "", {"one", "two"}),
        ({"HERMES_PLUGINS": "one"}, (), "", {"one"}),
        ({"HERMES_PLUGINS": "one,two"}, (), '[plugins]\ndisable = ["one"]\n', {"one", "two"}),
        ({"HERMES_PLUGINS": "x-two"}, (), "", {"two"}),
        ({"HERMES_PLUGINS": ""}, (), "", set()),
        ({}, ("--no-plugins",), "", set()),
        ({"HERMES_PLUGINS": "one"}, ("--no-plugins",), "", set()),
        ({}, (), '[plugins]\nenable = ["two"]\n', {"two"}),
        ({}, (), '[plugins]\ndisable = ["two"]\n', {"one"}),
        ({}, (), '[plugins]\ndisable = ["X_Two"]\n', {"one"}),
        ({}, (), '[plugins]\nenable = ["one", "two"]\ndisable = ["two"]\n', {"one"}),
    ],
)
def test_which_plugins_run_is_in_the_hand_of_the_person(hermes, home, site, env, options, config, loaded):
    for name in ("one", "two"):
        site(name, AGENT.replace('"shout"', f'"{name}"'))
    home.mkdir()
    (home / "config.toml").write_text(config)

    rows = stages(hermes, {**site.env, **env}, *options)

    assert {name for name in ("one", "two") if rows[name] == "loaded"} == loaded
    assert {rows[name] for name in {"one", "two"} - loaded} <= {"blocked"}


def test_what_is_left_out_is_not_even_imported(hermes, site):
    site("broken", BROKEN)

    for env, options in (({}, ("--no-plugins",)), ({"HERMES_PLUGINS": "cli"}, ())):
        ran = hermes("-q", "hello", "--agent", "echo", *options, env={**site.env, **env})
        assert (ran.status, ran.out, ran.err) == (0, "echo 1: hello\n", "")


def test_strict_makes_a_broken_plugin_the_end(hermes, home, site):
    site("broken", BROKEN)
    home.mkdir()
    (home / "config.toml").write_text("[plugins]\nstrict = true\n")

    asked = hermes("-q", "hello", "--agent", "echo", env=site.env)
    listed = hermes("sessions", "list", env=site.env)
    without = hermes("-q", "hello", "--agent", "echo", "--no-plugins", env=site.env)

    assert (asked.status, asked.out) == (1, "")
    assert asked.err == "hermes: plugin 'broken' failed at import: RuntimeError: no way\n"
    assert listed.status == 0
    assert without.status == 0


def test_a_name_that_is_not_installed_is_told_with_the_nearest(hermes, home, site):
    site("shout", AGENT)
    home.mkdir()
    (home / "config.toml").write_text('[plugins]\nenable = ["shuot"]\n')

    ran = hermes("-q", "hello", "--agent", "echo", env=site.env)

    assert ran.status == 0
    assert "'shuot', which is not installed; did you mean 'shout'?" in ran.err


def test_a_plugin_that_was_installed_meanwhile_is_there_at_the_next_start(hermes, site):
    before = stages(hermes, site.env)
    site("shout", AGENT)

    after = stages(hermes, site.env)

    assert "shout" not in before
    assert after["shout"] == "loaded"
