"""Chat without a terminal: one question, or lines from a pipe. The installed script, a store on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest


def listed(script):
    return json.loads(script("sessions", "list", "--json").out)


def test_each_line_is_answered_and_a_session_goes_on_by_its_title(script):
    first = script("--agent", "echo", stdin="hello\n\n/title plan\n  second\n")
    second = script("-c", "plan", "-q", "again", "--agent", "echo")

    assert first.status == 0
    assert [line for line in first.out.splitlines() if "hello" in line or "second" in line]
    assert first.err == ""
    assert second.status == 0
    assert "again" in second.out
    assert second.err.startswith("hermes: going on with plan (")
    (row,) = listed(script)
    assert (row["title"], row["message_count"], row["source"]) == ("plan", 6, "cli")


def test_one_shot_with_resume_appends_to_that_session(script):
    """NousResearch/hermes-agent#106313."""
    script("-q", "remember 42")
    session_id = listed(script)[0]["session_id"]

    answer = script("-q", "which number?", "--resume", session_id)

    assert answer.status == 0
    (row,) = listed(script)
    assert (row["session_id"], row["message_count"]) == (session_id, 4)


def test_where_no_agent_with_a_model_is_configured_one_line_on_stderr_says_how(script):
    pytest.importorskip("hermes_openai", reason="an agent with a model says what it lacks")
    asked = script("-q", "hello", "--json")
    piped = script(stdin="/status\n/status\n")

    for ran in (asked, piped):
        assert ran.status == 0
        assert ran.err.startswith("hermes: for answers by a model, set [plugins.openai] model")
        assert ran.err.count("\n") == 1, "it is said once, on one line"
    assert json.loads(asked.out)["outcome"] == "done"


def test_nothing_is_said_of_models_where_one_is_configured_or_an_agent_was_chosen(script, tmp_path):
    pytest.importorskip("hermes_openai", reason="an agent with a model says what it lacks")
    chosen = script("-q", "/status", "--agent", "recall")
    (tmp_path / "home" / "config.toml").write_text(
        '[plugins.openai]\nmodel = "small"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    configured = script("-q", "/status")

    assert (chosen.status, chosen.err) == (0, "")
    assert (configured.status, configured.err) == (0, "")


def test_a_locale_without_utf_8_prints_and_exports_all_the_same(script):
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}

    ran = script("--agent", "echo", stdin="周报\n", env=env)
    record = script("sessions", "export", env=env)

    assert (ran.status, record.status) == (0, 0)
    assert json.loads(record.out)["messages"][0]["content"] == "周报"


def test_an_agent_that_fails_is_one_line_and_exit_1(script, toys):
    ran = script("--agent", "toy-raising", "-q", "hello", env=toys)

    assert (ran.status, ran.out) == (1, "")
    assert "no model today" in ran.err
    assert "Traceback" not in ran.err


def test_an_unknown_agent_is_refused_and_leaves_nothing(script):
    ran = script("--agent", "nobody", "-q", "hello")

    assert ran.status != 0
    assert "nobody" in ran.err
    assert ran.err.count("\n") == 1


def test_an_answer_in_pieces_is_printed_once_and_what_came_before_a_tool_too(script, toys):
    ran = script("--agent", "toy-pieces", "-q", "sky?", env=toys)

    assert (ran.status, ran.out, ran.err) == (0, "Let me look.\nIt is blue.\n", "")


def test_a_reader_that_leaves_ends_the_program_quietly_and_the_answer_is_kept(script, start):
    child = start("-q", "hello", "--agent", "echo")
    child.stdout.close()

    assert child.wait(60) == 141
    assert child.stderr.read() == b""
    assert listed(script)[0]["message_count"] == 2


def test_a_reader_that_has_left_is_no_fault_of_the_agent(script, start, toys):
    child = start("-q", "hello", "--agent", "toy-pieces", env=toys)
    child.stdout.close()

    assert child.wait(60) == 141
    assert json.loads(script("sessions", "export").out)["messages"][-1]["content"] == "It is blue."


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line(script, start):
    script("-q", "hello")
    with open("/dev/full", "w") as full:
        child = start("sessions", "list", stdout=full)

    assert child.wait(60) == 74
    assert child.stderr.read().decode() == "hermes: No space left on device\n"


def test_an_interrupt_stops_the_turn_and_is_130(script, start, toys):
    child = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert child.stdout.readline() == b"begun\n"

    child.send_signal(signal.SIGINT)

    assert child.wait(60) == 130
    assert b"Traceback" not in child.stderr.read()
    record = json.loads(script("sessions", "export").out)
    assert record["messages"][-1]["kind"] == "closing"
    assert script("-c", "-q", "still there?").status == 0


def test_show_says_who_runs_a_turn(script, start, toys):
    holder = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert holder.stdout.readline() == b"begun\n"

    session_id = listed(script)[0]["session_id"]
    shown = script("sessions", "show", session_id)
    deleted = script("sessions", "delete", session_id, "--yes")

    assert f"(process {holder.pid} on " in shown.out
    assert "running" in script("sessions", "list").out.splitlines()[1]
    assert (deleted.status, str(holder.pid) in deleted.err) == (75, True)
    assert script("sessions", "delete", session_id, "--yes", "--force").status == 0
    assert listed(script) == []


def test_a_turn_whose_process_was_killed_is_told_as_interrupted_until_the_message_is_sent_again(script, start, toys):
    holder = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert holder.stdout.readline() == b"begun\n"
    holder.kill()
    holder.wait(60)
    (row,) = listed(script)
    session_id = row["session_id"]

    shown = script("sessions", "show", session_id)
    table = script("sessions", "list")
    record = json.loads(script("sessions", "show", session_id, "--json").out)
    again = script("-r", session_id, "-q", "hello", "--agent", "echo")

    assert "turn      interrupted in cli/default/run-" in shown.out
    assert "its process is gone" in shown.out
    assert shown.err == "The last turn was interrupted; send the message again to have it answered.\n"
    assert table.out.splitlines()[1].endswith("  interrupted")
    assert row["turn_state"].startswith("interrupted in ")
    assert (record["running"], record["turn_state"]) == (None, row["turn_state"])
    assert "hermes: The last turn was interrupted; send the message again" in again.err
    after = script("sessions", "show", session_id)
    assert (after.err, "interrupted in" in after.out) == ("", False)
    assert "STATE" not in script("sessions", "list").out


def test_a_quick_command_loads_nothing_that_it_does_not_draw_with(script, environment):
    script("-q", "hello")
    program = (
        "import sys; sys.argv = ['hermes', 'sessions', 'list']\n"
        "from hermes_core.main import main\n"
        "status = main()\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(status)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
    )

    loaded = set(done.stderr.splitlines()[-1].split())
    assert done.returncode == 0
    assert "hello" in done.stdout
    assert not loaded & {
        "click",
        "rich",
        "prompt_toolkit",
        "asyncio",
        "json",
        "logging",
        "wcwidth",
        "shutil",
        "difflib",
    }
    assert not loaded & {"hermes_cli.chat", "hermes_cli.conversation", "hermes_cli.help_text", "hermes_cli.recap"}
