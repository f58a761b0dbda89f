"""The examples of the pages do what the pages say, found as an installer would have left them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from docs_pages import EXAMPLES, install, write_metadata

from hermes_core import SessionSource, open_app
from hermes_hookspecs.principal import operator

SINGLE = {
    "card-numbers": "card_numbers:CardNumbersPlugin",
    "renamed-account": "renamed_account:RenamedAccountPlugin",
    "turn-log": "turn_log:TurnLogPlugin",
    "word-count": "word_count:WordCountPlugin",
}
CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Return a function that opens a profile with one example plugin and a ``config.toml``."""
    apps = []

    def open_with(name, config=""):
        site = tmp_path / "site"
        group = f"[hermes.plugins.v1]\n{name} = {SINGLE[name]}\n"
        monkeypatch.syspath_prepend(write_metadata(site, f"x-{name}", "1.0", group))
        monkeypatch.syspath_prepend(EXAMPLES)
        home = tmp_path / "home"
        home.mkdir()
        (home / "config.toml").write_text(config, encoding="utf-8")
        apps.append(open_app(home, environ={"HERMES_PLUGINS": name}, overrides={"storage.backend": "memory"}))
        return apps[-1]

    yield open_with
    for app in apps:
        app.close()
    for value in SINGLE.values():
        sys.modules.pop(value.partition(":")[0], None)


def test_a_card_number_never_reaches_the_store(opened):
    app = opened("card-numbers")

    result = app.ask("mine is 4111 1111 1111 1111, thanks", CHAT, agent="echo")

    stored = [row.content for row in app.sessions.load_transcript(result.entry.session_id)]
    assert stored == ["mine is [card number], thanks", "echo 1: mine is [card number], thanks"]


def test_a_conversation_goes_on_under_the_new_name_of_an_account(opened):
    app = opened("renamed-account")
    before = app.get_or_create_session(SessionSource(platform="feishu", chat_id="oc_1", account_id="helpdesk"))

    after = app.get_or_create_session(SessionSource(platform="feishu", chat_id="oc_1", account_id="desk"))
    other = app.get_or_create_session(SessionSource(platform="feishu", chat_id="oc_2", account_id="desk"))

    assert after.lineage_id == before.lineage_id
    assert after.claimed == before.session_key
    assert app.store.route(before.session_key) is None
    assert other.lineage_id != before.lineage_id


def test_each_turn_that_ends_leaves_a_line_in_the_log(opened, tmp_path):
    log = tmp_path / "turns.log"
    app = opened("turn-log", f'[plugins.turn-log]\nfile = "{log}"\n')

    result = app.ask("hello", CHAT, agent="echo")
    app.close()

    assert log.read_text(encoding="utf-8") == f"{result.turn.id} {result.turn.session_id} feishu done\n"


def test_a_log_that_cannot_be_written_costs_nobody_an_answer(opened, tmp_path):
    app = opened("turn-log", f'[plugins.turn-log]\nfile = "{tmp_path}"\n')

    answers = [app.ask(text, CHAT, agent="echo").text for text in ("one", "two")]
    app.close()

    assert answers == ["echo 1: one", "echo 2: two"]
    assert [row.failures for row in app.plugin_rows() if row.name == "turn-log"] == [2]


def test_a_missing_setting_is_a_row_that_names_it(opened):
    app = opened("turn-log")

    (row,) = [row for row in app.plugin_rows() if row.name == "turn-log"]

    assert row.stage.startswith("failed")
    assert "file is missing" in row.reason


def test_a_call_is_stored_before_its_result_and_its_answer(opened):
    app = opened("word-count")

    result = app.ask("one two three", CHAT, agent="counting")

    rows = app.store.messages(result.entry.lineage_id, operator())
    assert [(row.role, row.content) for row in rows] == [
        ("user", "one two three"),
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", "Words: 3"),
    ]
    assert rows[1].tool_calls[0].effect == "read"


def test_the_worked_plugin_passes_its_own_tests(tmp_path):
    project = EXAMPLES / "hermes-sessions-shout"
    path = os.pathsep.join((str(install(project, tmp_path / "site")), str(project / "src")))
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(project)]

    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *options, str(project / "tests")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "HERMES_SESSIONS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_copy_made_while_the_store_is_open_holds_what_was_said(home, tmp_path):
    target = tmp_path / "copy.db"

    with open_app(home, environ={}) as app:
        app.ask("Is it open?", CHAT, agent="echo")
        command = [sys.executable, str(EXAMPLES / "backup.py"), str(target)]
        subprocess.run(command, env=os.environ | {"HERMES_SESSIONS_HOME": str(home)}, check=True, timeout=60)

    assert target.stat().st_mode & 0o777 == 0o600
    with open_app(tmp_path / "elsewhere", db=target, environ={}) as copy:
        assert copy.store.stats().messages == 6
