"""From the command line to an exit status."""

from __future__ import annotations

import json
import os
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


@pytest.fixture
def opened_with():
    """Return a function that gives the options with which a command line opens the app."""

    def opened_with(*arguments):
        seen = {}

        def open_app(**options):
            seen.update(options)
            raise StoreBusy("locked")

        CliFrontEnd().main(arguments, open_app)
        return seen

    return opened_with


def test_options_reach_the_app(opened_with):
    seen = opened_with("--home", "/h", "--db=/d", "--profile", "p", "--no-plugins", "-q", "x", "--agent", "a")

    assert seen == {
        "home": "/h",
        "db": "/d",
        "profile": "p",
        "plugins": False,
        "overrides": {"agent.runner": "a"},
        "create": True,
    }


def test_only_a_chat_may_make_what_is_not_there(opened_with):
    chats = ([], ["-q", "x"], ["chat"], ["--agent", "echo"])
    others = (["sessions", "list"], ["plugins", "list"], ["config", "show"], ["tea", "brew"], ["--help"])

    assert [opened_with(*words)["create"] for words in chats] == [True] * 4
    assert [opened_with(*words)["create"] for words in others] == [False] * 5


@pytest.mark.parametrize("option", ["--home", "--profile", "--db"])
def test_reading_makes_nothing_where_a_name_is_mistyped(script, tmp_path, option):
    script("-q", "hello")
    before = sorted(each.name for each in tmp_path.rglob("*"))
    place = "wrok" if option == "--profile" else str(tmp_path / "wrok")

    ran = script(option, place, "sessions", "list")

    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "wrok" in ran.err
    assert sorted(each.name for each in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("option", ["--home", "--profile", "--db"])
@pytest.mark.parametrize("value", [[], [""], [" "]])
def test_a_place_without_a_name_is_one_line_and_exit_2(script, tmp_path, monkeypatch, option, value):
    monkeypatch.chdir(tmp_path)

    ran = script(option, *value)

    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("hermes: ")
    assert "should not happen" not in ran.err


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


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("hermes_no_such:brew", "ModuleNotFoundError: No module named 'hermes_no_such'"),
        ("json:brew", "AttributeError: module 'json' has no attribute 'brew'"),
    ],
)
def test_a_command_of_a_plugin_that_cannot_be_imported_is_named(hermes, app, monkeypatch, run, why):
    monkeypatch.setattr(app, "cli_commands", lambda: [CliCommand(path=("tea", "brew"), summary="", run=run)])

    ran = hermes("tea", "brew")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == f"hermes: command 'tea brew' cannot be run: {why}\n"


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


def test_plugins_and_agents_are_listed(hermes):
    assert "builtin" in hermes("plugins", "list").out
    rows = json.loads(hermes("plugins", "list", "--json").out)
    assert {"name", "stage", "reason", "version"} <= set(rows[0])
    assert hermes("agents").out == "echo    default\nrecall\n"
    assert json.loads(hermes("agents", "--json").out) == [
        {"name": "echo", "default": True},
        {"name": "recall", "default": False},
    ]


def test_the_default_agent_is_the_one_that_answers(script):
    assert script("agents", "--no-plugins").out == "echo\nrecall  default\n"


def test_a_plugin_that_fails_is_told_once_by_the_list_and_in_one_line_elsewhere(script, broken):
    table = script("plugins", "list", env=broken)
    asked = script("-q", "hello", "--agent", "echo", env=broken)

    assert (table.status, table.err) == (0, "")
    assert table.out.count("no tea today") == 1
    assert asked.status == 0
    assert asked.err == "hermes: plugin 'tea' failed at import: RuntimeError: no tea today\n"


@pytest.fixture
def broken(tmp_path):
    """Return variables with which the script finds a plugin ``tea`` that cannot be imported."""
    folder = tmp_path / "broken"
    info = folder / "hermes_tea-0.1.dist-info"
    info.mkdir(parents=True)
    (folder / "hermes_tea.py").write_text("raise RuntimeError('no tea today')\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-tea\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[hermes.plugins.v1]\ntea = hermes_tea:TeaPlugin\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


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


def test_a_store_that_was_moved_away_alone_is_missed(script, tmp_path):
    script("-q", "hello")
    (tmp_path / "home" / "state.db").rename(tmp_path / "elsewhere.db")

    ran, again = script("sessions", "list"), script("sessions", "list")

    assert ran.err.startswith(f"hermes: {tmp_path}/home/state.db is gone, though state.db-open says that there was one")
    assert "is gone" not in again.err


def test_the_help_keeps_the_commands_of_one_word_together(hermes):
    shown = hermes("--help").out.splitlines()

    lines = [line.split() for line in shown if line.startswith("  ") and not line.startswith("   ")]
    of_sessions = [at for at, words in enumerate(lines) if words[:1] == ["sessions"]]
    assert ["sessions", "search"] in [words[:2] for words in lines]
    assert of_sessions == list(range(of_sessions[0], of_sessions[-1] + 1))
