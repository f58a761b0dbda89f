"""What the plugin brings, and what is said where something is missing."""

from __future__ import annotations

import tomllib

import pytest

from hermes_demo import entrances
from hermes_demo.command import run
from hermes_demo.house import toml_of
from hermes_demo.plugin import DemoPlugin
from hermes_hookspecs.cli import CliCall
from hermes_hookspecs.errors import ConfigError


def test_hook_hermes_agents_brings_the_agent_only_where_it_is_asked_for():
    assert DemoPlugin({}).hermes_agents() is None
    assert [agent.name for agent in DemoPlugin({"agent": True}).hermes_agents()] == ["demo"]


def test_hook_hermes_cli_commands_brings_the_command():
    assert [command.path for command in DemoPlugin({}).hermes_cli_commands()] == [("demo",)]


@pytest.mark.parametrize("config", [{"agent": "yes"}, {"pace": 1}])
def test_another_setting_is_refused(config):
    with pytest.raises(ConfigError, match="there is only agent"):
        DemoPlugin(config)


def test_a_platform_that_is_not_installed_is_named_with_the_command_that_helps(monkeypatch):
    monkeypatch.setattr(entrances, "entry_points", lambda **_: [])

    with pytest.raises(ConfigError, match="pip install hermes-sessions-slack hermes-sessions-weixin"):
        entrances.find_fakes(("slack", "weixin"))


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").touch()
    call = CliCall(app=None, values={"folder": str(tmp_path), "svg": None}, out=None, err=None, width=None)

    with pytest.raises(ConfigError, match="not empty"):
        run(call)


def test_tables_are_written_as_toml_reads_them():
    tables = {
        "agent": {"runner": "demo"},
        "plugins": {
            "demo": {"agent": True},
            "x": {"names": ["a", 'b"'], "accounts": {"default": {"id": "中", "n": 1}}},
        },
        "gateway": {"retry_first_s": 0.05},
    }

    assert tomllib.loads(toml_of(tables)) == tables
