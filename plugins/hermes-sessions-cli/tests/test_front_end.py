"""From the command line to an exit status."""

from __future__ import annotations

import json
import sys

import pytest

from hermes_cli.front_end import CliFrontEnd
from hermes_cli.plugin import CliPlugin
from hermes_hookspecs.cli import CliCommand, CliOption
from hermes_hookspecs.errors import ConfigError, StoreBusy


def failing_app(error):
    def open_app(**options):
        raise error

    return open_app


def test_the_plugin_brings_the_front_end():
    front_end = CliPlugin().hermes_front_end()

    assert isinstance(front_end, CliFrontEnd)
    assert front_end.name == "cli"


def test_options_reach_the_app(app):
    seen = {}

    def open_app(**options):
        seen.update(options)
        raise StoreBusy("locked")

    CliFrontEnd().main(
        ["--home", "/h", "--db=/d", "--profile", "p", "--no-plugins", "-q", "x", "--agent", "a"], open_app
    )

    assert seen == {
        "home": "/h",
        "db": "/d",
        "profile": "p",
        "plugins": False,
        "overrides": {"agent.runner": "a"},
    }


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (StoreBusy("the lock is held by process 7"), 75, "hermes: the lock is held by process 7\n"),
        (ConfigError("x.toml: [a] b\nis wrong \x1b[2J"), 2, "hermes: x.toml: [a] b is wrong ␛[2J\n"),
        (OSError(28, "No space left on device", "/x"), 74, "hermes: No space left on device: /x\n"),
        (
            ZeroDivisionError("by zero"),
            70,
            "hermes: this should not happen: ZeroDivisionError: by zero (HERMES_DEBUG=1 shows where)\n",
        ),
    ],
)
def test_every_error_is_one_line_and_its_own_exit_status(capsys, error, status, line):
    assert CliFrontEnd().main(["sessions", "list"], failing_app(error)) == status

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", line)


def test_a_traceback_is_shown_to_who_asks(capsys, monkeypatch):
    monkeypatch.setenv("HERMES_DEBUG", "1")
    monkeypatch.setattr("hermes_cli.front_end._log_to_stderr", lambda: None)

    CliFrontEnd().main(["sessions", "list"], failing_app(ZeroDivisionError("by zero")))

    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130_and_silent(capsys):
    assert CliFrontEnd().main(["sessions", "list"], failing_app(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sesions"], "`hermes` has no command 'sesions'; did you mean sessions?"),
        (["sessions", "lst"], "`hermes sessions` has no command 'lst'; did you mean list?"),
        (["sessions", "list", "--limt", "3"], "`hermes sessions list` has no option --limt; did you mean --limit?"),
        (["--querry", "x"], "`hermes chat` has no option --querry; did you mean --query?"),
        (["-q", " "], "there is nothing to ask"),
        (["chat", "--json"], "option --json needs --query"),
    ],
)
def test_a_mistyped_line_is_exit_2_with_the_nearest_name(hermes, arguments, said):
    ran = hermes(*arguments)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_group_without_a_command_shows_what_there_is(hermes):
    ran = hermes("sessions")

    assert (ran.status, ran.out) == (2, "")
    assert "  list " in ran.err


def test_help_is_on_stdout_and_needs_no_working_configuration(capsys):
    assert CliFrontEnd().main(["--help"], failing_app(ConfigError("broken"))) == 0

    captured = capsys.readouterr()
    assert "sessions list" in captured.out
    assert captured.err == "hermes: without the commands of plugins: broken\n"


@pytest.mark.parametrize("arguments", [["sessions", "list", "-h"], ["-h", "sessions", "list"]])
def test_help_of_a_command_names_its_options(hermes, arguments):
    out = hermes(*arguments).out

    assert out.startswith("usage: hermes sessions list [OPTIONS]\n")
    assert "-n, --limit N" in out
    assert "--home DIR" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_version_names_the_distributions(hermes):
    ran = hermes("--version")

    assert ran.status == 0
    assert ran.out.startswith("hermes-sessions-core ")


# ------------------------------------------------------------------ commands of plugins


def toy(call):
    print(json.dumps({"shout": call.values["shout"], "width": call.width}), file=call.out)
    return 7


TOY = CliCommand(
    path=("sessions", "toy"), summary="Play.", run=toy, options=(CliOption(names=("--shout",), kind="flag"),)
)  # fmt: skip
IMPOSTOR = CliCommand(path=("sessions", "list"), summary="Impostor.", run=toy)


def test_a_command_of_a_plugin_runs_and_gives_its_status(hermes, app, monkeypatch):
    monkeypatch.setattr(app, "cli_commands", lambda: [TOY, IMPOSTOR])

    ran = hermes("sessions", "toy", "--shout")

    assert (ran.status, json.loads(ran.out)) == (7, {"shout": True, "width": None})
    assert "did you mean --shout" in hermes("sessions", "toy", "--shuot").err


def test_help_lists_the_commands_of_plugins_and_ours_win(hermes, app, monkeypatch):
    monkeypatch.setattr(app, "cli_commands", lambda: [TOY, IMPOSTOR])

    assert "sessions toy" in hermes("--help").out
    assert "Play." in hermes("sessions", "--help").out
    assert "Play." in hermes("sessions", "toy", "--help").out
    assert "Impostor" not in hermes("--help").out


def test_ours_do_not_ask_plugins(hermes, app, monkeypatch):
    def fail():
        raise AssertionError("asked")

    monkeypatch.setattr(app, "cli_commands", fail)

    assert hermes("sessions", "list").status == 0


def test_notices_go_to_stderr_once(hermes, app, monkeypatch):
    notices = [["plugin x is broken\x1b[2J"], []]
    monkeypatch.setattr(app, "notices", lambda: notices.pop(0) if notices else [])

    assert hermes("agents").err == "hermes: plugin x is broken␛[2J\n"
    assert hermes("agents").err == ""


# ------------------------------------------------------------------ the other lists


def test_routes_are_listed_with_what_they_lead_to(hermes, say, app):
    assert hermes("routes", "list").err.startswith("No routes yet")
    result = say("hello")
    app.rename_session(result.entry.lineage_id, "plan")

    ran = hermes("routes", "list")
    (record,) = json.loads(hermes("routes", "list", "--json").out)

    assert ran.out.splitlines()[1].split()[:2] == [result.entry.session_key, result.entry.session_id]
    assert (record["session_key"], record["session_id"], record["title"]) == (
        result.entry.session_key,
        result.entry.session_id,
        "plan",
    )
    assert record["chat_id"] == "oc_1"


def test_a_route_is_explained_by_key_and_by_source(hermes, say):
    entry = say("hello").entry

    by_key = json.loads(hermes("routes", "explain", entry.session_key, "--json").out)
    by_source = json.loads(
        hermes("routes", "explain", "--platform", "feishu", "--chat", "oc_1", "--user", "ou_ming", "--json").out
    )
    text = hermes("routes", "explain", entry.session_key).out

    assert by_key == by_source
    assert by_key["session_id"] == entry.session_id
    assert by_key["reasons"]
    assert entry.session_key in text
    assert entry.session_id in text


def test_an_unknown_key_is_refused(hermes):
    ran = hermes("routes", "explain", "agent:main:none")

    assert (ran.status, ran.out) == (1, "")
    assert "no route has the key" in ran.err


def test_this_terminal_is_explained_without_arguments(hermes):
    assert "run-" in hermes("routes", "explain").out


def test_plugins_and_agents_are_listed(hermes):
    assert "builtin" in hermes("plugins", "list").out
    rows = json.loads(hermes("plugins", "list", "--json").out)
    assert {"name", "stage", "reason", "version"} <= set(rows[0])
    assert "echo" in hermes("agents").out.splitlines()
    assert {"name": "echo"} in json.loads(hermes("agents", "--json").out)


def test_settings_are_shown_with_their_origin(hermes):
    plain, origins = hermes("config", "show").out, hermes("config", "show", "--origin").out

    assert '[storage]\nbackend = "sqlite"\n' in plain
    assert "idle_minutes = 1440" in plain
    assert next(line for line in origins.splitlines() if line.startswith("idle_minutes")).endswith("# default")
    rows = json.loads(hermes("config", "show", "--json").out)
    assert {"section": "session_reset", "key": "idle_minutes", "value": "1440", "origin": "default"} in rows


def test_stdin_that_is_closed_ends_a_chat_at_once(app, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)

    class Open:
        def __enter__(self):
            return app

        def __exit__(self, *_):
            return None

    assert CliFrontEnd().main([], lambda **_: Open()) == 0
    assert capsys.readouterr().out == ""
