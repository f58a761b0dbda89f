"""A backend of a stranger, built as its own wheel and found by its entry point, carries a conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hermes_core.main", reason="needs the core")
pytest.importorskip("hermes_cli", reason="needs the terminal entrance")

SOURCE = Path(__file__).parent.parent
HERMES = [sys.executable, "-c", "import sys; from hermes_core.main import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder that holds the unpacked wheel, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("toy-wheel")
    pip = [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "-w", str(folder), str(SOURCE)]
    built = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=300)
    if built.returncode:
        pytest.skip(f"its wheel cannot be built here: {built.stderr.strip().splitlines()[-1:]}")
    (wheel,) = folder.glob("hermes_toy_store-*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


@pytest.fixture
def hermes(installed, tmp_path):
    """Return a function that runs the program with the toy backend in a home of its own."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[storage]\nbackend = "toy"\n', encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
    environment |= {"HERMES_SESSIONS_HOME": str(home), "PYTHONPATH": str(installed), "PYTHONIOENCODING": "utf-8"}

    def run(*arguments, typed=""):
        done = subprocess.run(
            [*HERMES, *arguments],
            input=typed,
            capture_output=True,
            encoding="utf-8",
            env=environment,
            cwd=tmp_path,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.home = home
    return run


def test_a_conversation_survives_in_the_toy_store(hermes):
    hermes("chat", typed="hello 日志\n/title plan\n")
    hermes("-c", "plan", "-q", "again")

    (listed,) = json.loads(hermes("sessions", "list", "--json"))

    assert listed["title"] == "plan"
    assert listed["message_count"] == 4
    assert list(hermes.home.glob("*.toy"))
    assert not list(hermes.home.glob("*.db"))


def test_the_plugin_is_found_by_its_entry_point(hermes):
    assert "toy" in hermes("plugins", "list")
