"""Group J: plugins that are broken, silent, or too eager."""

from __future__ import annotations

import asyncio
import inspect
import json

import attrs
import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.specs import ALL_SPECS

ALL = operator()

SOUND = """
from hermes_hookspecs.ports.agent import AssistantStep


class Shout:
    name, model = "shout", None

    async def run(self, turn):
        yield AssistantStep(content=turn.text.upper())


class Plugin:
    @hookimpl
    def hermes_agents(self):
        return (Shout(),)
"""

BROKEN = {
    "import": "raise RuntimeError('no way')\n",
    "missing": "import a_package_that_nobody_has\n",
    "exit": "raise SystemExit(3)\n",
    "syntax": "def broken(:\n",
    "absent": "x = 1\n",
    "create": "class Plugin:\n    def __init__(self):\n        raise ValueError('half made')\n",
    "half": (
        "class Plugin:\n    @hookimpl\n    def hermes_agents(self):\n        return ()\n"
        "    @hookimpl\n    def hermes_after_trun_finish(self, turn):\n        pass\n"
    ),
    "arguments": "class Plugin:\n    @hookimpl\n    def hermes_after_turn_finish(self, turm):\n        pass\n",
    "unmarked": "class Plugin:\n    def hermes_after_turn_finish(self, turn):\n        pass\n",
}
STAGES = {
    "import": "failed at import",
    "missing": "failed at import",
    "exit": "failed at import",
    "syntax": "failed at import",
    "absent": "failed at import",
    "create": "failed at create",
    "half": "failed at register",
    "arguments": "failed at register",
    "unmarked": "failed at register",
}


def rows_of(hermes, env, *options):
    ran = hermes("plugins", "list", "--json", *options, env=env)
    return {row["name"]: row for row in json.loads(ran.out)}, ran


# ------------------------------------------------------------------ J01


@pytest.mark.parametrize("kind", BROKEN)
def test_j01_a_broken_plugin_is_a_row_and_a_line_and_all_else_works(hermes, site, kind):
    site("broken", BROKEN[kind])
    site("sound", SOUND)

    rows, listed = rows_of(hermes, site.env)
    helped = hermes("--help", env=site.env)
    asked = hermes("-q", "hello", "--agent", "shout", env=site.env)

    assert (listed.status, helped.status, asked.status) == (0, 0, 0)
    assert asked.out == "HELLO\n"
    assert rows["broken"]["stage"] == STAGES[kind]
    assert rows["broken"]["reason"]
    assert rows["broken"]["hooks"] == []
    assert rows["sound"]["stage"] == "loaded"
    for ran in (listed, asked):
        assert "'broken'" in ran.err
        assert "Traceback" not in ran.err
        assert len(ran.err.splitlines()) == 1
    assert "sessions list" in helped.out


def test_j01_a_quick_command_does_not_even_meet_the_broken_one(hermes, site):
    site("broken", BROKEN["import"])

    ran = hermes("sessions", "list", env=site.env)

    assert (ran.status, "broken" in ran.err) == (0, False)


def test_j01_strict_makes_it_the_end_of_the_program(hermes, site):
    site("broken", BROKEN["import"])

    ran = hermes("-q", "hello", env={**site.env, "HERMES_PLUGINS_STRICT": "true"})

    assert ran.status == 1
    assert ran.out == ""
    assert "plugin 'broken' failed at import" in ran.err
    assert "Traceback" not in ran.err


def test_j01_the_way_out_of_a_broken_one_is_to_leave_it_out(hermes, site, home):
    site("broken", BROKEN["import"])
    home.mkdir()
    (home / "config.toml").write_text('[plugins]\nstrict = true\ndisable = ["broken"]\n')

    rows, listed = rows_of(hermes, site.env)

    assert (listed.status, listed.err) == (0, "")
    assert rows["broken"]["stage"] == "blocked"
    assert hermes("-q", "hello", "--agent", "echo", env=site.env).out == "echo 1: hello\n"


FAILING_HOOKS = """
class Plugin:
    @hookimpl
    def hermes_agents(self):
        raise RuntimeError("no agents")

    @hookimpl
    def hermes_commands(self):
        raise RuntimeError("no commands")

    @hookimpl
    def hermes_after_turn_finish(self, turn):
        raise RuntimeError("not heard")

    @hookimpl
    def hermes_after_session_start(self, entry):
        raise RuntimeError("not heard")
"""


def test_j01_hooks_that_fail_are_left_out_and_told_without_a_traceback(hermes, site):
    site("failing", FAILING_HOOKS)

    ran = hermes("-q", "hello", "--agent", "echo", env=site.env)

    assert (ran.status, ran.out) == (0, "echo 1: hello\n")
    assert "'failing'" in ran.err
    assert "Traceback" not in ran.err


# ------------------------------------------------------------------ J03


class Recorder:
    """Has an implementation of every event of the contract, and writes each call down."""

    def __init__(self):
        self.calls = []

    def names(self):
        return [name for name, _ in self.calls]


def events():
    """Return the event hooks that something of this version fires."""
    from hermes_hookspecs.markers import hook_options

    found = {}
    for module in ALL_SPECS:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("hermes_"):
                options = hook_options(function)
                if options.kind == "event" and not options.pending:
                    found[name] = tuple(inspect.signature(function).parameters)
    return found


def recorder():
    """Return a plugin that listens to every event."""
    made = Recorder()

    def listener(name, parameters):
        def hear(*arguments):
            made.calls.append((name, dict(zip(parameters, arguments, strict=True))))

        source = f"lambda {', '.join(parameters)}: hear({', '.join(parameters)})"
        function = eval(source, {"hear": hear})  # argument names are how the manager knows a hook
        function.__name__ = name
        return hookimpl(function)

    for name, parameters in events().items():
        setattr(made, name, listener(name, parameters))
    return made


@pytest.fixture
def told(home):
    """Return an app and a plugin that hears everything."""
    with open_app(home, plugins=False, overrides={"inbox.max_waiting": 1}) as app:
        plugin = recorder()
        app.hooks.host.register("recorder", plugin)
        yield app, plugin


def test_j03_every_event_of_a_conversation_is_told_once_with_its_session(told, alice, bob):
    app, plugin = told

    first = app.ask("hello", alice, agent="echo").entry
    app.rename_session(first.lineage_id, "plan")
    asyncio.run(app.command("/new", alice, first))
    second = app.ask("again", alice, agent="echo").entry
    app.resume_session(alice, first.lineage_id)
    app.delete_session(second.lineage_id)
    app.close()

    assert plugin.names() == [
        "hermes_after_open",
        "hermes_after_session_start",
        "hermes_after_turn_start",
        "hermes_after_turn_finish",
        "hermes_after_title_change",
        "hermes_after_session_end",
        "hermes_after_reset",
        "hermes_after_session_start",
        "hermes_after_turn_start",
        "hermes_after_turn_finish",
        "hermes_after_session_end",
        "hermes_before_erase",
        "hermes_before_close",
    ]
    heard = dict(enumerate(values for _, values in plugin.calls))
    assert heard[1]["entry"].session_id == first.session_id
    assert {heard[place]["turn"].session_id for place in (2, 3)} == {first.session_id}
    assert heard[2]["turn"].outcome == "active"
    assert heard[3]["turn"].outcome == "done"
    assert (heard[4]["lineage_id"], heard[4]["title"], heard[4]["origin"]) == (first.lineage_id, "plan", "user")
    assert (heard[5]["session_id"], heard[5]["reason"]) == (first.session_id, "session_reset")
    assert (heard[10]["session_id"], heard[10]["reason"]) == (second.session_id, "session_switch")
    assert heard[11]["lineage_id"] == second.lineage_id


def test_j03_a_session_that_another_one_replaces_is_told(told, alice):
    app, plugin = told
    first = app.get_or_create_session(alice)

    app.get_or_create_session(alice, force_new=True)
    app.hooks.flush()

    ends = [values for name, values in plugin.calls if name == "hermes_after_session_end"]
    assert [(end["session_id"], end["reason"]) for end in ends] == [(first.session_id, "new_session")]


def test_j03_each_way_in_which_a_turn_ends_is_told_once(told, alice):
    app, plugin = told

    def fail(turn):
        raise ZeroDivisionError

    with pytest.raises(Exception, match="failed"):
        app.ask("try", alice, agent=fail)
    app.ask("again", alice, agent="echo")
    app.hooks.flush()

    outcomes = [values["turn"].outcome for name, values in plugin.calls if name == "hermes_after_turn_finish"]
    assert outcomes == ["failed", "done"]


def test_j03_what_listeners_get_cannot_change_what_is_stored(told, alice):
    app, plugin = told
    entry = app.ask("hello", alice, agent="echo").entry
    app.hooks.flush()

    for _, values in plugin.calls:
        for value in values.values():
            if attrs.has(type(value)):
                for field in attrs.fields(type(value)):
                    with pytest.raises(attrs.exceptions.FrozenInstanceError):
                        setattr(value, field.name, None)
    assert app.store.lineage(entry.lineage_id, ALL).message_count == 2


def test_j03_every_event_that_is_not_pending_is_told_by_something():
    """The events that no test above sees are told where their rule is tested; a new one must find its place here."""
    seen_above = {
        "hermes_after_open",
        "hermes_before_close",
        "hermes_after_session_start",
        "hermes_after_session_end",
        "hermes_after_reset",
        "hermes_after_title_change",
        "hermes_after_turn_start",
        "hermes_after_turn_finish",
        "hermes_before_erase",
    }
    elsewhere = {
        "hermes_after_compression",
        "hermes_after_delivery",
        "hermes_after_inbox_overflow",
        "hermes_after_lease_contention",
        "hermes_after_message_refused",
        "hermes_after_repair",
        "hermes_after_tool_call",
    }

    assert set(events()) == seen_above | elsewhere


def test_j03_an_overflow_is_told_and_refused(told, alice):
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    from hermes_hookspecs.errors import InboxOverflow

    app, plugin = told
    app.get_or_create_session(alice)
    working, may_end = Event(), Event()

    def slow(turn):
        working.set()
        assert may_end.wait(60)
        return "done"

    with ThreadPoolExecutor() as threads:
        running = threads.submit(app.ask, "first", alice, agent=slow)
        assert working.wait(60)
        waiting = threads.submit(app.ask, "second", alice, agent="echo")
        lineage = app.get_or_create_session(alice).lineage_id
        while not app.store.waiting(lineage):
            Event().wait(0.005)
        with pytest.raises(InboxOverflow):
            app.ask("third", alice, agent="echo")
        may_end.set()
        running.result(60)
        waiting.result(60)
    app.hooks.flush()

    told_about = [values for name, values in plugin.calls if name == "hermes_after_inbox_overflow"]
    assert [values["session_key"] for values in told_about] == [app.session_key(alice)]
    texts = [row.content for row in app.store.messages(lineage, ALL)]
    assert texts == ["first", "done", "second", "echo 2: second"]


def test_j03_a_hook_that_does_not_exist_is_an_error_with_the_nearest_name(app):
    class Plugin:
        @hookimpl
        def hermes_after_trun_finish(self, turn):
            pass

    with pytest.raises(PluginError, match="did you mean 'hermes_after_turn_finish'"):
        app.hooks.host.register("mistyped", Plugin())
