"""The kit itself: what it demands of a suite, its clock, its agents, its look at a plugin."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import MessageDraft
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.source import KeyPolicy, SessionSource
from hermes_hookspecs.testing import FakeClock, ScriptedAgent, assert_signatures
from hermes_hookspecs.testing.agents import (
    FakeTool,
    Gate,
    ask_for,
    call,
    count,
    echo,
    fail,
    pause,
    recite,
    say,
    spend,
    stream,
)
from hermes_hookspecs.testing.completeness import CompleteSuite
from hermes_hookspecs.testing.plugins import PluginSuite
from hermes_hookspecs.testing.storage.state import StateTests

PATIENCE_S = 30


# ------------------------------------------------------------------ completeness


class Kit(StateTests, CompleteSuite):
    pass


def test_a_suite_that_is_left_alone_is_complete():
    Kit().test_kit_is_complete()


@pytest.mark.parametrize("replacement", [None, lambda self: None])
def test_a_test_that_is_silenced_is_named(replacement):
    class Thinned(Kit):
        test_versions_grow_with_every_write = replacement

    with pytest.raises(AssertionError, match="test_versions_grow_with_every_write"):
        Thinned().test_kit_is_complete()


@pytest.mark.parametrize(
    ("mark", "is_complete"),
    [
        (pytest.mark.xfail(strict=True, reason="no versions here"), True),
        (pytest.mark.skip(reason="no versions here"), True),
        (pytest.mark.skip, False),
        (pytest.mark.xfail(strict=True), False),
        (pytest.mark.skipif(True, reason="when nobody looks"), False),
    ],
)
def test_a_gap_is_declared_with_a_reason(mark, is_complete):
    class Gap(Kit):
        @mark
        def test_versions_grow_with_every_write(self):
            pass

    if is_complete:
        Gap().test_kit_is_complete()
    else:
        with pytest.raises(AssertionError):
            Gap().test_kit_is_complete()


def test_the_kit_is_imported_without_pytest():
    program = """
import sys
sys.modules["pytest"] = None
import hermes_hookspecs.testing.agents
import hermes_hookspecs.testing.clock
"""

    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


# ------------------------------------------------------------------ clock


def test_a_fake_clock_moves_when_it_is_told_to():
    clock = FakeClock(now=1000, monotonic=5.0)

    clock.advance(1.5)
    clock.set_now(7)

    assert (clock.now(), clock.monotonic()) == (7, 6.5)


def test_time_does_not_run_backwards():
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)


# ------------------------------------------------------------------ agents


def _turn(text="hello", rows=(), tools=()):
    return SimpleNamespace(text=text, messages=rows, tools={tool.name: tool for tool in tools})


async def _collect(agent, turn):
    return [event async for event in agent.run(turn)]


def _answers(agent, turn=None):
    events = asyncio.run(_collect(agent, turn or _turn()))
    return [event.content for event in events if isinstance(event, AssistantStep)]


def test_a_scripted_agent_follows_its_script():
    agent = ScriptedAgent(say("one"), echo(), stream("a", "b"), spend(3, 4))

    events = asyncio.run(_collect(agent, _turn("hello")))

    assert [event.content for event in events if isinstance(event, AssistantStep)] == ["one", "hello", "ab"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]
    assert [event.usage.output_tokens for event in events if isinstance(event, UsageReport)] == [4]
    assert (agent.finished, agent.closed, len(agent.turns)) == (1, 0, 1)


def test_turns_may_have_scripts_of_their_own():
    agent = ScriptedAgent(say("first")).then(say("second"))

    assert [_answers(agent) for _ in range(3)] == [["first"], ["second"], ["second"]]


def test_an_agent_recites_and_counts_what_it_was_given():
    rows = (
        MessageDraft(role="user", content="a", timestamp=1),
        MessageDraft(role="assistant", content="b", timestamp=1),
        MessageDraft(role="user", content="c", timestamp=1),
    )

    assert _answers(ScriptedAgent(recite(), count()), _turn(rows=rows)) == ["user: a\nassistant: b\nuser: c", "step 2"]


def test_an_agent_calls_tools():
    tool = FakeTool("look", lambda arguments: f"saw {arguments['at']}", effect="idempotent")
    agent = ScriptedAgent(call("look", "c1", '{"at": "sky"}'), call("gone", "c2", result="none"), ask_for())

    events = asyncio.run(_collect(agent, _turn(tools=[tool])))

    results = [(event.call_id, event.content) for event in events if isinstance(event, ToolResult)]
    asked = [event.tool_calls[0] for event in events if isinstance(event, AssistantStep) and event.tool_calls]
    assert results == [("c1", "saw sky"), ("c2", "none")]
    assert [(each.name, each.effect) for each in asked] == [("look", "idempotent"), ("gone", "write")]
    assert tool.calls == [{"at": "sky"}]


def test_no_tool_runs_in_an_agent_that_is_closed_before():
    async def scenario():
        tool = FakeTool("look")
        agent = ScriptedAgent(call("look", "c1"))
        running = agent.run(_turn(tools=[tool]))
        await anext(running)
        await running.aclose()
        return agent, tool

    agent, tool = asyncio.run(scenario())

    assert tool.calls == []
    assert (agent.finished, agent.closed) == (0, 1)


def test_a_slow_agent_waits_at_its_gate_until_another_thread_opens_it():
    gate = Gate()
    agent = ScriptedAgent(pause(gate), say("at last"))
    found = []
    thread = threading.Thread(target=lambda: found.extend(_answers(agent)))
    thread.start()

    assert gate.reached.wait(PATIENCE_S)
    assert found == []
    gate.open()
    thread.join(PATIENCE_S)

    assert found == ["at last"]
    assert _answers(agent) == ["at last"]


def test_an_agent_that_is_cancelled_at_its_gate_says_so():
    async def scenario():
        gate = Gate()
        agent = ScriptedAgent(pause(gate))
        task = asyncio.create_task(_collect(agent, _turn()))
        assert await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open()
        return agent

    assert asyncio.run(scenario()).closed == 1


def test_a_raising_agent_raises_what_it_was_given():
    agent = ScriptedAgent(say("before"), fail(LookupError("no model")))

    with pytest.raises(LookupError, match="no model"):
        _answers(agent)

    assert (agent.finished, agent.closed) == (0, 0)


# ------------------------------------------------------------------ plugins


class SoundPlugin:
    """What a plugin of somebody else looks like."""

    colour = "blue"

    @hookimpl
    def hermes_legacy_claims(self, source: SessionSource) -> None:
        return None

    @hookimpl(specname="hermes_redact_inbound")
    def clean(self, text: str, source: SessionSource) -> str | None:
        return None

    def helper(self, anything):
        return anything


def test_hooks_that_are_written_as_specified_pass():
    assert_signatures(SoundPlugin)
    assert_signatures(SoundPlugin())


def _faulty(name, function):
    return type("FaultyPlugin", (), {name: function})


@hookimpl
def _unknown_hook(self):
    return None


@hookimpl
def _wrong_type(self, source: str, policy: KeyPolicy):
    return None


@hookimpl
def _wrong_name(self, origin: SessionSource):
    return None


def _unmarked(self):
    return None


@pytest.mark.parametrize(
    ("name", "function", "fault"),
    [
        ("hermes_legacy_claim", _unknown_hook, "hermes_legacy_claim is no hook"),
        ("hermes_legacy_claims", _wrong_type, "takes source: str, specified is SessionSource"),
        ("hermes_legacy_claims", _wrong_name, "takes 'origin', which its specification does not have"),
        ("hermes_legacy_claims", _unmarked, "hermes_legacy_claims lacks @hookimpl"),
    ],
)
def test_a_hook_that_does_not_fit_is_named(name, function, fault):
    with pytest.raises(AssertionError, match=fault):
        assert_signatures(_faulty(name, function))


PLUGIN = """
from __future__ import annotations
{imports}
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.markers import hookimpl


class PlantedPlugin:
    def __init__(self, config=None):
        for key in config or ():
            {refusal}

    @hookimpl
    def hermes_agents(self):
        return ()
"""


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Return a function that installs a plugin for this process and its children, and returns its suite."""

    def install(name, imports="", refusal='raise ConfigError(f"{key} is unknown", key=key)'):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "plugin.py").write_text(PLUGIN.format(imports=imports, refusal=refusal), encoding="utf-8")
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        points = f"[hermes.plugins.v1]\nplanted = {name}.plugin:PlantedPlugin\n"
        (info / "entry_points.txt").write_text(points, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        class Suite(PluginSuite):
            distribution = name
            entry_point = "planted"

        return Suite()

    return install


def test_a_sound_plugin_passes_its_suite(plant):
    suite = plant("x_sound")

    suite.test_the_entry_point_names_the_plugin_class()
    suite.test_the_hooks_are_written_as_specified()
    suite.test_the_plugin_implements_a_hook()
    suite.test_the_plugin_is_imported_quickly_and_without_the_core()
    suite.test_an_unknown_setting_is_refused_by_name()
    suite.test_kit_is_complete()


@pytest.mark.parametrize("imports", ["import asyncio", "import hermes_core"])
def test_a_plugin_that_imports_too_much_is_caught(plant, imports):
    suite = plant(f"x_{imports.split()[1]}", imports)

    with pytest.raises(AssertionError):
        suite.test_the_plugin_is_imported_quickly_and_without_the_core()


def test_a_plugin_that_swallows_unknown_settings_is_caught(plant):
    suite = plant("x_lenient", refusal="pass")

    with pytest.raises(pytest.fail.Exception, match=ConfigError.__name__):
        suite.test_an_unknown_setting_is_refused_by_name()
