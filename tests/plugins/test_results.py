"""A result of the wrong shape is the failure of the plugin that gave it, by the policy of its hook."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import attrs
import pytest

from hermes_core import open_app
from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.errors import PluginError, TitleError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Claim
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
THING = SimpleNamespace()
NAMELESS = SimpleNamespace(name=None, model=None, run=print, summary="", description="", effect="read", open=print)


async def answer(call):
    return CommandReply(text="done")


SLASH = Command(name="tea", summary="Make tea.", run=answer)
BREW = CliCommand(path=("tea", "brew"), summary="Brew.", run=lambda call: 0)


class Raises:
    @property
    def name(self):
        raise SystemExit(9)


def broken_sequence():
    yield from ()
    raise ValueError("half way")


class Plugin:
    """Implements one hook, with one result."""

    def __init__(self, hook, result):
        arguments = {
            "hermes_legacy_claims": lambda source, policy: result(),
            "hermes_redact_inbound": lambda text: result(),
            "hermes_system_prompt_parts": lambda entry: result(),
        }
        function = arguments.get(hook, result)
        setattr(self, hook, hookimpl(specname=hook)(function))


@pytest.fixture
def app(tmp_path):
    chosen = {"storage.backend": "memory", "agent.runner": "echo"}
    with open_app(tmp_path / "home", overrides=chosen, plugins=False, environ={}) as app:
        yield app


def ask(app, hook):
    """Call what calls the hook."""
    calls = {
        "hermes_agents": app.hooks.agents,
        "hermes_cli_commands": app.hooks.cli_commands,
        "hermes_commands": app.hooks.commands,
        "hermes_key_builder": app.hooks.key_builder,
        "hermes_legacy_claims": lambda: app.hooks.legacy_claims(SOURCE, None),
        "hermes_redact_inbound": lambda: app.hooks.redact_inbound("text", SOURCE),
        "hermes_store_backends": app.hooks.store_backends,
        "hermes_system_prompt_parts": lambda: app.hooks.system_prompt_parts(None),
        "hermes_tools": app.hooks.tools,
    }
    return calls[hook]()


SEQUENCES = ["abc", 3, THING, {"a": 1}, [3], [None], [THING], [NAMELESS], [Raises()]]
SKIPPED = [
    (hook, result)
    for hook in ("hermes_agents", "hermes_cli_commands", "hermes_commands", "hermes_tools")
    for result in [*SEQUENCES, ["abc"]]
] + [("hermes_system_prompt_parts", result) for result in SEQUENCES]
CLOSED = [
    *(("hermes_store_backends", result) for result in [*SEQUENCES, ["abc"]]),
    *(("hermes_legacy_claims", result) for result in [*SEQUENCES, ["abc"], [Claim(key=7)]]),
    *(("hermes_key_builder", result) for result in ["abc", 3, THING, [], NAMELESS]),
    *(("hermes_redact_inbound", result) for result in [3, b"text", ["text"], THING]),
]


@pytest.mark.parametrize(("hook", "result"), SKIPPED)
def test_on_a_skip_hook_it_is_logged_counted_and_left_out(app, caplog, hook, result):
    untouched = ask(app, hook) if hook == "hermes_system_prompt_parts" else None
    app.hooks.host.register("evil", Plugin(hook, lambda: result))

    found = ask(app, hook)

    assert untouched is None or found == untouched
    assert "evil" not in str(found)
    assert app.plugin_rows()[0].failures == 1
    assert f"plugin 'evil' failed in {hook}, skipped: " in caplog.text


@pytest.mark.parametrize("name", ["look up", "a.b", "看", "x" * 65, "look\n"])
def test_a_tool_with_a_name_that_endpoints_refuse_is_told_once_and_the_rest_runs(app, caplog, name):
    odd = FakeTool("odd")
    odd.name = name
    app.hooks.host.register("evil", Plugin("hermes_tools", lambda: [FakeTool("fine"), odd]))
    app.hooks.host.register("good", Plugin("hermes_tools", lambda: [FakeTool("look")]))

    for _ in range(2):
        found = app.hooks.tools()

    assert list(found) == ["look"]
    said = f"{name!r} is no name of a tool: 1 to 64 ASCII letters, digits, _ and -"
    assert caplog.text.count(f"plugin 'evil' failed in hermes_tools, skipped: TypeError: {said}") == 1


@pytest.mark.parametrize(("hook", "result"), CLOSED)
def test_on_a_raise_hook_the_call_fails_and_names_plugin_and_hook(app, hook, result):
    app.hooks.host.register("evil", Plugin(hook, lambda: result))

    with pytest.raises(PluginError, match=f"^plugin 'evil' failed at call: {hook}: "):
        ask(app, hook)

    assert app.plugin_rows()[0].failures == 1


@pytest.mark.parametrize("hook", sorted({hook for hook, _ in SKIPPED + CLOSED}))
def test_nothing_is_a_result_everywhere(app, caplog, hook):
    before = ask(app, hook)
    app.hooks._provided.clear()
    app.hooks.host.register("silent", Plugin(hook, lambda: None))

    after = ask(app, hook)

    assert type(after) is type(before)
    assert hook == "hermes_key_builder" or list(after) == list(before)
    assert (app.plugin_rows()[0].failures, caplog.text) == (0, "")


@pytest.mark.parametrize("hook", ["hermes_agents", "hermes_system_prompt_parts"])
def test_a_sequence_that_breaks_while_it_is_read_and_a_coroutine_are_failures(app, caplog, hook):
    async def later():
        return []

    app.hooks.host.register("one", Plugin(hook, broken_sequence))
    app.hooks.host.register("two", Plugin(hook, later))

    ask(app, hook)

    assert "'one' failed in " + hook + ", skipped: ValueError: half way" in caplog.text
    assert "'two' failed in " + hook + ", skipped: TypeError: returned a coroutine" in caplog.text


@pytest.mark.parametrize(
    "command",
    [
        attrs.evolve(BREW, path=()),
        attrs.evolve(BREW, path="tea"),
        attrs.evolve(BREW, path=("tea", None)),
        attrs.evolve(BREW, summary=None),
        attrs.evolve(BREW, run=None),
        attrs.evolve(BREW, run=""),
        attrs.evolve(BREW, arguments=None),
        attrs.evolve(BREW, arguments=("x",)),
        attrs.evolve(BREW, arguments=(CliArgument(name=None),)),
        attrs.evolve(BREW, options=("--x",)),
        attrs.evolve(BREW, options=(CliOption(names=()),)),
        attrs.evolve(BREW, options=(CliOption(names=("--x",), kind="colour"),)),
    ],
)
def test_a_description_that_no_front_end_could_read_is_left_out(app, caplog, command):
    app.hooks.host.register("evil", Plugin("hermes_cli_commands", lambda: [BREW, command]))

    assert app.cli_commands() == ()
    assert "plugin 'evil' failed in hermes_cli_commands, skipped: TypeError: " in caplog.text


# ------------------------------------------------------------------ commands that fail


def run_brew(app, run):
    app.hooks.host.register("kitchen", Plugin("hermes_cli_commands", lambda: [attrs.evolve(BREW, run=run)]))
    (command,) = app.cli_commands()
    return command.run(None)


def raising(error):
    def run(call):
        raise error

    return run


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (raising(ValueError("boom")), "'tea brew': ValueError: boom"),
        (raising(SystemExit("\x1b[2J")), r"'tea brew': SystemExit: \\x1b\[2J"),
        (raising(GeneratorExit()), "'tea brew': GeneratorExit"),
        (lambda call: "fine", "'tea brew': TypeError: returned a str, not an exit status"),
        ("hermes_no_such:brew", "'tea brew' cannot be run: ModuleNotFoundError: No module named 'hermes_no_such'"),
        ("json:brew", "'tea brew' cannot be run: AttributeError"),
    ],
)
def test_a_command_of_a_plugin_that_fails_names_the_plugin(app, run, why):
    with pytest.raises(PluginError, match=f"^plugin 'kitchen' failed at call: command {why}"):
        run_brew(app, run)


@pytest.mark.parametrize(
    ("run", "status"),
    [(lambda call: 7, 7), (lambda call: None, 0), (raising(SystemExit(3)), 3), (raising(SystemExit()), 0)],
)
def test_a_command_of_a_plugin_gives_its_status_however_it_leaves(app, run, status):
    assert run_brew(app, run) == status


@pytest.mark.parametrize("error", [TitleError("taken"), BrokenPipeError(), KeyboardInterrupt()])
def test_what_is_no_fault_of_a_command_passes_as_it_is(app, error):
    with pytest.raises(type(error)) as raised:
        run_brew(app, raising(error))

    assert raised.value is error
    expected = ["raised by plugin 'kitchen' in command 'tea brew'"] if isinstance(error, TitleError) else []
    assert getattr(error, "__notes__", []) == expected


@pytest.mark.parametrize(
    ("error", "why"),
    [(ValueError("boom"), "ValueError: boom"), (SystemExit(3), "SystemExit: 3"), (None, "TypeError: returned a str")],
)
def test_a_slash_command_that_fails_names_the_plugin(app, error, why):
    async def run(call):
        if error is not None:
            raise error
        return "a text"

    app.hooks.host.register("kitchen", Plugin("hermes_commands", lambda: [attrs.evolve(SLASH, run=run)]))

    with pytest.raises(PluginError, match=f"^plugin 'kitchen' failed at call: command '/tea': {why}"):
        asyncio.run(app.command("/tea", SOURCE, None))


def test_a_slash_command_that_is_cancelled_is_cancelled(app):
    async def run(call):
        asyncio.current_task().cancel()
        await asyncio.sleep(60)

    app.hooks.host.register("kitchen", Plugin("hermes_commands", lambda: [attrs.evolve(SLASH, run=run)]))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(app.command("/tea", SOURCE, None))
