"""The script ``hermes``: it finds the front end that the settings leave in, and hands the command line over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from hermes_core import main as script
from hermes_hookspecs.errors import ConfigError, PluginError


class FrontEnd:
    name = "fake"

    def __init__(self):
        self.arguments = None
        self.app = None
        self.raises = None

    def main(self, arguments, open_app):
        if self.raises is not None:
            raise self.raises
        self.arguments = list(arguments)
        with open_app(home=self.home, overrides={"agent.runner": "echo"}, plugins=False) as app:
            self.app = app
            return 7


@pytest.fixture
def front_end(monkeypatch, tmp_path):
    """Let the script find a front end of the test's own; what it was asked for is written down."""
    made = FrontEnd()
    made.home = str(tmp_path / "home")
    made.seen = []

    def find(settings, cache_folder, environ, **rest):
        made.seen.append(settings)
        return SimpleNamespace(name="fake")

    monkeypatch.setattr("hermes_core.plugins.find_front_end", find)
    monkeypatch.setattr("hermes_core.plugins.import_plugin", lambda candidate: lambda: None)
    plugin = SimpleNamespace(hermes_front_end=lambda: made)
    monkeypatch.setattr("hermes_core.plugins.stages.create", lambda name, factory, settings: plugin)
    made.plugin = plugin
    return made


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    """Keep the interpreter and the environment as they were."""
    before = sys.getswitchinterval()
    monkeypatch.setenv("HERMES_SESSIONS_HOME", str(tmp_path / "from-environment"))
    yield
    sys.setswitchinterval(before)
    gc.unfreeze()


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["hermes", *arguments])
    return script.main()


def test_the_front_end_gets_the_command_line_and_a_way_to_open_an_app(front_end, monkeypatch):
    status = run(monkeypatch, "sessions", "list", "--json")

    assert status == 7
    assert front_end.arguments == ["sessions", "list", "--json"]
    assert front_end.app.setting("agent", "runner") == "echo"
    assert sys.getswitchinterval() == pytest.approx(0.0005)


def test_without_a_front_end_it_says_how_to_install_one(front_end, monkeypatch, capsys):
    monkeypatch.setattr("hermes_core.plugins.find_front_end", lambda *given, **rest: None)

    assert run(monkeypatch) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert "pip install hermes-sessions-cli" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("plugin", [SimpleNamespace(), SimpleNamespace(hermes_front_end=lambda: None)])
def test_a_plugin_of_that_name_that_is_no_front_end_is_none(front_end, monkeypatch, capsys, plugin):
    monkeypatch.setattr("hermes_core.plugins.stages.create", lambda name, factory, settings: plugin)

    assert run(monkeypatch) == 1
    assert "no front end is installed" in capsys.readouterr().err


def test_a_wrong_configuration_is_one_line_and_status_2(front_end, monkeypatch, capsys, tmp_path):
    (tmp_path / "config.toml").write_text("[storage]\ndurability = 'sometimes'\n", encoding="utf-8")

    status = run(monkeypatch, "--home", str(tmp_path))

    out, err = capsys.readouterr()
    assert status == ConfigError.exit_code == 2
    assert out == ""
    assert err.startswith("hermes: ")
    assert "durability" in err
    assert err.count("\n") == 1
    assert front_end.arguments is None


def test_a_front_end_that_cannot_be_made_is_one_line_and_status_1(front_end, monkeypatch, capsys):
    def fails(name, factory, settings):
        raise PluginError(name, "create", "no luck")

    monkeypatch.setattr("hermes_core.plugins.stages.create", fails)

    assert run(monkeypatch) == 1
    assert capsys.readouterr().err == "hermes: plugin 'fake' failed at create: no luck\n"


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], None),
        (["--home", "x"], "x"),
        (["--home=x"], "x"),
        (["--home="], None),
        (["sessions", "list", "--home", "x", "--json"], "x"),
        (["--home", "x", "--home=y"], "y"),
        (["--", "--home", "x"], None),
        (["-q", "hi", "--home"], None),
        (["--homestead", "x"], None),
    ],
)
def test_options_that_say_where_the_settings_are_may_stand_anywhere(arguments, value):
    assert script._option(arguments, "--home") == value


def test_home_profile_and_database_are_heeded_before_the_front_end_is_looked_for(front_end, monkeypatch, tmp_path):
    home = str(tmp_path / "here")

    run(monkeypatch, "--home", home, "--profile=coder", "--db", str(tmp_path / "own.db"))
    run(monkeypatch, "sessions", "list")

    first, second = front_end.seen
    assert str(first.home) == home
    assert first.profile == "coder"
    assert first.db_path == tmp_path / "own.db"
    assert str(second.home) == str(tmp_path / "from-environment")


# ------------------------------------------------------------------ what nobody else catches


@pytest.mark.parametrize(
    ("offer", "why"),
    [
        (lambda: "abc", "TypeError: a str is no front end: it has no 'name'"),
        (
            lambda: SimpleNamespace(name="x", main=None),
            "TypeError: a SimpleNamespace is no front end: its 'main' is None",
        ),
        (lambda: sys.exit(9), "SystemExit: 9"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_hook_that_gives_no_front_end_names_the_plugin(front_end, monkeypatch, capsys, offer, why):
    front_end.plugin.hermes_front_end = offer

    assert run(monkeypatch) == 1
    assert capsys.readouterr().err == f"hermes: plugin 'fake' failed at call: hermes_front_end: {why}\n"


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file"), GeneratorExit(), SystemExit("\x1b[2J")])
@pytest.mark.parametrize("where", ["before", "behind"])
def test_an_exception_that_nobody_caught_is_one_line_and_status_70(front_end, monkeypatch, capsys, error, where):
    def fails(*given, **rest):
        raise error

    if where == "before":
        monkeypatch.setattr("hermes_core.plugins.find_front_end", fails)
    front_end.raises = error

    status = run(monkeypatch)

    out, err = capsys.readouterr()
    assert (status, out) == (70, "")
    assert err.startswith(f"hermes: this should not happen: {type(error).__name__}")
    assert err.endswith("(HERMES_DEBUG=1 shows where)\n")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_debugging_shows_where(front_end, monkeypatch, capsys):
    monkeypatch.setenv("HERMES_DEBUG", "1")
    front_end.raises = ValueError("boom")

    assert run(monkeypatch) == 70

    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("hermes: this should not happen: ValueError: boom\n")


@pytest.mark.parametrize("stream", [None, "closed"])
def test_nobody_to_tell_is_the_same_status(front_end, monkeypatch, tmp_path, stream):
    if stream == "closed":
        stream = (tmp_path / "err").open("w")
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    front_end.raises = ValueError("boom")

    assert run(monkeypatch) == 70


def test_the_persons_interrupt_is_status_130_without_a_word(front_end, monkeypatch, capsys):
    front_end.raises = KeyboardInterrupt()

    assert run(monkeypatch) == 130
    assert capsys.readouterr() == ("", "")


def test_a_front_end_may_leave_with_a_number(front_end, monkeypatch):
    front_end.raises = SystemExit(3)

    with pytest.raises(SystemExit):
        run(monkeypatch)


def test_a_working_folder_that_was_deleted_is_one_line(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    code = f"import os; os.rmdir({str(folder)!r}); from hermes_core.main import main; raise SystemExit(main())"
    environment = {"HERMES_SESSIONS_HOME": "relative", "PATH": os.environ["PATH"]}

    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (ran.returncode, ran.stdout) == (70, "")
    assert ran.stderr.startswith("hermes: this should not happen: FileNotFoundError: ")
    assert ran.stderr.count("\n") == 1
