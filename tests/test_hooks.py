"""The typed facade of the hooks: who is asked, how often, in which order, and what a failure means."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes_core import hooks as hooks_module
from hermes_hookspecs.cli import CliCommand
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
PATIENCE_S = 20


class Named:
    """An agent or a backend, by name only."""

    model = None

    def __init__(self, name):
        self.name = name

    def run(self, turn):
        raise NotImplementedError

    def open(self, options):
        raise NotImplementedError


@pytest.fixture
def backend():
    """Hooks do not ask which store it is."""
    return "memory"


# ------------------------------------------------------------------ loading


def test_opening_and_listing_load_no_plugin(profile):
    app = profile(listens=False)

    app.store.summaries(operator())
    app.store.stats()
    app.setting_rows()

    assert not app.hooks.loaded
    app.agent_names()
    assert app.hooks.loaded


def test_closing_an_app_that_needed_no_plugin_loads_none(profile):
    app = profile(listens=False)
    app.store.stats()

    app.close()

    assert not app.hooks.loaded


def test_plugins_are_loaded_once_whoever_comes_first():
    loads, start = [], threading.Barrier(8)
    hooks = hooks_module.Hooks(lambda: loads.append(1) or object())

    def ask():
        start.wait(PATIENCE_S)
        return hooks.host

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert loads == [1]


# ------------------------------------------------------------------ providers


def test_providers_are_asked_once(profile):
    asked = []

    class Provides:
        @hookimpl
        def hermes_agents(self):
            asked.append("agents")
            return [Named("mine")]

        @hookimpl
        def hermes_commands(self):
            asked.append("commands")

        @hookimpl
        def hermes_cli_commands(self):
            asked.append("cli")
            return [CliCommand(path=("x",), summary="", run=print)]

        @hookimpl
        def hermes_key_builder(self):
            asked.append("keys")

    app = profile(plugins=[Provides()])

    for _ in range(3):
        assert app.hooks.agents()["mine"].name == "mine"
        assert app.hooks.commands()["help"]
        assert [one.path for one in app.cli_commands()] == [("x",)]
        assert app.hooks.key_builder().version == 1

    assert sorted(asked) == ["agents", "cli", "commands", "keys"]


def test_two_backends_of_one_name_are_refused(profile):
    class Brings:
        @hookimpl
        def hermes_store_backends(self):
            return [Named("toy")]

    one = profile(plugins=[Brings()], home="one")
    two = profile(plugins=[Brings(), Brings()], home="two")

    assert list(one.hooks.store_backends()) == ["toy"]
    with pytest.raises(PluginError, match="two plugins give 'toy' to hermes_store_backends"):
        two.hooks.store_backends()


# ------------------------------------------------------------------ redaction


class Redacts:
    def __init__(self, old, new):
        self.old, self.new = old, new

    @hookimpl
    def hermes_redact_inbound(self, text):
        return text.replace(self.old, self.new)


def test_redaction_is_a_chain_each_plugin_gets_what_the_one_before_left(profile):
    app = profile(plugins=[Redacts("b", "c"), Redacts("a", "b")])

    assert app.hooks.redact_inbound("abc", SOURCE) == "ccc"


def test_a_redaction_that_says_nothing_leaves_the_text(profile):
    class Silent:
        @hookimpl
        def hermes_redact_inbound(self, text, source):
            return None

    app = profile(plugins=[Silent()])

    assert app.hooks.redact_inbound("abc", SOURCE) == "abc"


def test_everything_behind_the_door_sees_the_redacted_text(profile):
    app = profile(plugins=[Redacts("4711", "[number]")])

    result = app.ask("my number is 4711", SOURCE)

    assert result.text == "echo 1: my number is [number]"
    rows = app.store.messages(result.entry.lineage_id, operator())
    assert "4711" not in str(rows)
    assert "4711" not in app.store.inbox_item(1).text


def test_a_failing_redaction_refuses_the_message(profile):
    class Broken:
        @hookimpl
        def hermes_redact_inbound(self, text, source):
            raise ValueError("no rules")

    app = profile(plugins=[Broken()])

    with pytest.raises(PluginError, match="no rules"):
        app.ask("hello", SOURCE)

    assert app.store.inbox_item(1) is None


def test_redaction_takes_no_wrapper(profile):
    class Wraps:
        @hookimpl(wrapper=True)
        def hermes_redact_inbound(self, text, source):
            return (yield)

    app = profile(plugins=[Wraps()])

    with pytest.raises(PluginError, match="redaction takes no wrappers"):
        app.hooks.redact_inbound("abc", SOURCE)


def test_system_prompt_parts_of_all_plugins_are_joined_and_a_failing_one_is_left_out(profile):
    class Part:
        def __init__(self, *texts):
            self.texts = texts

        @hookimpl
        def hermes_system_prompt_parts(self, entry):
            if not self.texts:
                raise ValueError("no")
            return list(self.texts)

    app = profile(plugins=[Part("one"), Part(), Part("two", "three")])

    assert app.hooks.system_prompt_parts(app.get_or_create_session(SOURCE)) == ("two", "three", "one")


# ------------------------------------------------------------------ events


def test_events_are_told_in_order_and_off_the_caller(app, ear):
    entry = app.get_or_create_session(SOURCE)
    app.ask("hello", SOURCE)
    app.leave_session(SOURCE, entry)
    app.close()

    assert ear.names() == [
        "after_session_start",
        "after_open",
        "after_turn_start",
        "after_turn_finish",
        "after_session_end",
        "before_close",
    ]


def test_asynchronous_listeners_are_awaited_and_one_that_fails_keeps_nobody(profile, ear, caplog):
    heard = []

    class Asynchronous:
        def __init__(self, fails):
            self.fails = fails

        @hookimpl
        async def hermes_after_session_start(self, entry):
            await asyncio.sleep(0)
            if self.fails:
                raise ValueError("no")
            heard.append(entry.session_id)

    app = profile(plugins=[Asynchronous(False), Asynchronous(True), Asynchronous(False)])

    entry = app.get_or_create_session(SOURCE)

    app.hooks.flush()
    assert heard == [entry.session_id] * 2
    assert len(ear.told("after_session_start")) == 1
    assert "failed in hermes_after_session_start" in caplog.text


def test_a_stuck_listener_delays_nobody_longer_than_the_limit(profile, ear, monkeypatch):
    monkeypatch.setattr(hooks_module, "EVENT_LIMIT_S", 0.05)
    release = threading.Event()

    class Stuck:
        @hookimpl
        def hermes_after_session_start(self, entry):
            release.wait(PATIENCE_S)

    app = profile(plugins=[Stuck()])

    result = app.ask("hello", SOURCE)
    app.close()

    assert result.text == "echo 1: hello"
    assert "after_turn_finish" in ear.names()
    release.set()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(9), asyncio.CancelledError(), BaseException("no")])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_failing_listener_is_nobodys_fault(profile, ear, error, asynchronous):
    class Broken:
        @hookimpl
        def hermes_after_turn_start(self, turn):
            if asynchronous:
                return self.later()
            raise error

        async def later(self):
            raise error

    app = profile(plugins=[Broken()])

    assert app.ask("hello", SOURCE).text == "echo 1: hello"
    app.hooks.flush()
    assert "after_turn_finish" in ear.names()
    assert app.plugin_rows()[1].failures == 1


def test_nothing_is_told_after_closing_and_nobody_listening_starts_no_thread(profile, ear):
    app = profile(listens=False)
    app.get_or_create_session(SOURCE)
    assert app.hooks._events is None
    app.hooks.flush()

    app.close()
    app.hooks.host.register("late", ear)
    app.hooks.fire("hermes_before_erase", lineage_id="L1")

    assert app.hooks._events is None
    assert ear.heard == []


def test_the_end_of_a_turn_is_told_once_however_many_notice_it(app, ear):
    first, second = (app.ask(text, SOURCE).turn for text in ("one", "two"))

    for turn in (first, second, first):
        app.hooks.turn_ended(turn)
    app.hooks.flush()

    assert [told["turn"].id for told in ear.told("after_turn_finish")] == [first.id, second.id]
