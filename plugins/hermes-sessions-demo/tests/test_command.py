"""The command as people run it: the whole story, the same story over a product that forgot a rule, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from rich.cells import cell_len

if not {"feishu", "slack", "weixin"} <= {point.name for point in entry_points(group="hermes.fakes.v1")}:
    pytest.skip("the story needs three platforms", allow_module_level=True)

PATIENCE_S = 240
# What was started in the background of a shell inherits that SIGINT is ignored.
HEARS_SIGNALS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
FORGET_DEAD_TURNS = """
import hermes_core.turns.recovery as recovery
recovery.verdict_on = lambda *_: recovery.Verdict()
"""


def program():
    script = Path(sys.executable).with_name("hermes")
    return [str(script)] if script.exists() else [sys.executable, "-m", "hermes_core.main"]


def environment(tmp_path, forget=""):
    site = tmp_path / "site"
    site.mkdir()
    if forget:
        (site / "sitecustomize.py").write_text(forget, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "COLUMNS"))}
    return kept | {"HERMES_SESSIONS_HOME": str(tmp_path / "own"), "PYTHONPATH": str(site), "LC_ALL": "C.UTF-8"}


def demo(tmp_path, *, forget=""):
    return subprocess.run(
        [*program(), "demo", "--folder", str(tmp_path / "demo"), "--svg", str(tmp_path / "demo.svg")],
        env=environment(tmp_path, forget),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_the_story_holds_and_leaves_a_store_to_explore(tmp_path):
    ran = demo(tmp_path)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert "15 of 15 messages, 0 lost" in ran.stdout
    assert "6 sessions for 6 conversations, 12 messages" in ran.stdout
    assert re.search(r"kill -9 \d+: so far 小明 can read “先把", ran.stdout)
    lines = ran.stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert [line for line in lines if cell_len(line) > 100 and "--home" not in line] == []
    assert [line for line in lines if line[:1].isalpha() and "--home" not in line and len(line) > 80] == []
    assert "http" not in re.sub(r"xmlns\S+|<!--.*?-->", "", (tmp_path / "demo.svg").read_text(encoding="utf-8"))
    listed = subprocess.run(
        [*program(), "--home", str(tmp_path / "demo"), "sessions", "list"],
        env=os.environ | {"HERMES_PLUGINS": "cli"}, capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert "周六的面包" in listed.stdout
    assert [found.name for found in (tmp_path / "own").iterdir()] == ["cache"]  # nothing is said in one's own home


@pytest.mark.slow
def test_a_product_that_forgets_the_messages_of_dead_turns_does_not_pass(tmp_path):
    ran = demo(tmp_path, forget=FORGET_DEAD_TURNS)

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "lost: 小明 (feishu): “请一步一步告诉我怎么烤。”" in ran.stdout
    assert "NOT all of it holds" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_interrupts_it_leaves_no_process_behind(tmp_path, number, status):
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_SIGNALS, *program(), "demo", "--folder", str(tmp_path / "demo")],
        env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        found = next(found for line in process.stdout if (found := re.search(r"process (\d+) runs", line)))
        process.send_signal(number)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.communicate()

    assert process.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[1]), 0)
