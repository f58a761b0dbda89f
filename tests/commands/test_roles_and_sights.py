"""Who may use which command, what stands before one, and the commands that look."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import Begin
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult, UsageReport
from hermes_hookspecs.principal import ADMIN, operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.turns import Usage

ALL = operator()
TERMINAL = SessionSource(platform="cli", chat_id="pts-1")
CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
BOSS = SessionSource(platform="feishu", chat_id="oc_9", user_id="ou_9")
ROOM = SessionSource(platform="feishu", chat_id="oc_5", user_id="ou_1", chat_type="group")


def run(app, text, source=TERMINAL, entry=None):
    return asyncio.run(app.command(text, source, entry))


# ------------------------------------------------------------------ who


def test_what_is_for_admins_is_refused_to_all_others_and_not_to_the_terminal(profile):
    app = profile({"commands.admin_only": ("new", "/stop"), "commands.admins": ("feishu:ou_9", "slack:ou_1")})

    assert run(app, "/new", CHAT).text == "/new is for admins here."
    assert run(app, "/reset", CHAT).text == "/new is for admins here."
    assert run(app, "/stop", CHAT).failed
    assert not run(app, "/new", BOSS).failed
    assert not run(app, "/new", attrs.evolve(CHAT, roles=(ADMIN,))).failed, "a plugin let them in as an admin"
    assert not run(app, "/new").failed
    assert not run(app, "/status", CHAT).failed


@pytest.mark.parametrize("triggers", [("/reset",), ("/reset", "start  over"), ("start over",), ("/neu", "/reset")])
def test_what_resets_is_for_admins_by_whatever_name_it_is_called(profile, triggers):
    app = profile({"commands.admin_only": ("new",), "session_reset.reset_triggers": triggers})

    for trigger in triggers:
        assert run(app, " ".join(trigger.split()), CHAT).text.endswith("is for admins here.")
        assert not run(app, trigger).failed


def test_a_platform_has_its_own_list_and_its_own_admins(tmp_path, profile):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        '[commands]\nadmin_only = ["new"]\n[platforms.feishu]\nadmin_only = ["undo"]\nadmins = ["ou_9"]\n'
    )
    app = profile()
    slack = SessionSource(platform="slack", chat_id="C1", user_id="U1", scope_id="T1")

    assert not run(app, "/new", CHAT).failed
    assert run(app, "/undo", CHAT).text == "/undo is for admins here."
    assert run(app, "/undo", BOSS).text != "/undo is for admins here."
    assert run(app, "/new", slack).text == "/new is for admins here."


def test_an_unknown_command_is_answered_with_what_there_is_and_not_run_as_a_turn(app):
    reply = run(app, "/nwe", CHAT)

    assert reply.failed
    assert "Did you mean /new?" in reply.text
    assert "/undo" in reply.text
    assert app.store.summaries(ALL) == ()


# ------------------------------------------------------------------ what stands before it


@pytest.mark.parametrize(
    ("text", "addressed", "kind"),
    [
        ("<@U0BOT> /new", True, "control"),
        ("@_user_1 /new", True, "control"),
        ("@Bot\u2005/reset", True, "control"),
        ("/new", True, "control"),
        ("/NEW ", True, "control"),
        ("/new@bot", True, "control"),
        ("/root/a.txt 在哪", True, "message"),
        ("ask @Ann to run /new", True, "message"),
        ("@Ann /new", False, "message"),
        ("/new", False, "control"),
    ],
)
def test_h17_a_mention_of_us_does_not_hide_a_command(app, text, addressed, kind):
    """Case H17."""
    event = MessageEvent(source=CHAT, text=text, received_at=1, identities=("om_1",), addressed=addressed)

    (result,) = asyncio.run(app.accept([event]))

    item = app.store.inbox_item(result.id)
    assert (item.kind, item.text) == (kind, text)


# ------------------------------------------------------------------ what is seen


class Works:
    """An agent that calls a tool which fails, and says what it used."""

    name, model, context_tokens = "works", "m", 1000

    async def run(self, turn):
        call = ToolCall(id="c1", name="terminal", arguments='{"command": "make test"}')
        yield AssistantStep(tool_calls=(call,))
        yield ToolResult(call_id="c1", name="terminal", content="Error: exit code 2")
        yield UsageReport(usage=Usage(model="m", input_tokens=500, output_tokens=7, estimated_cost_usd=0.25))
        yield AssistantStep(content="We decided to use SQLite. The tests are fixed. Still to do: the docs.")


@pytest.fixture
def entry(app):
    return app.ask("Please fix the pump in /srv/pump.py", TERMINAL, agent=Works()).entry


def test_a_recap_restores_the_scene_without_a_model(app, entry):
    recap = app.conversations.recap(entry.lineage_id, ALL)
    text = run(app, "/recap", entry=entry).text

    assert recap.goals == ("Please fix the pump in /srv/pump.py",)
    assert recap.commands == ("make test",)
    assert recap.files == ("/srv/pump.py",)
    assert recap.failures == ("terminal: Error: exit code 2",)
    assert any("SQLite" in line for line in recap.decisions)
    assert any("docs" in line for line in recap.open)
    assert (recap.messages, recap.turns, recap.session_id) == (4, 1, entry.session_id)
    for part in ("Goal:", "Commands:", "Failures:", "Decisions:", "Open:", "- make test"):
        assert part in text


QUOTED = [
    ("I kept your message. No earlier session mentions “we decided on X? always”.", "decisions"),
    ('There is nothing about "what is still to do".', "open"),
    ("Nichts zu „wir nehmen statt dessen? Kafka“ gefunden.", "decisions"),
    ("没有找到「我们决定用什么数据库？」的记录。", "decisions"),
]


@pytest.mark.parametrize(("answer", "part"), QUOTED)
def test_what_an_answer_only_quotes_is_no_decision_and_nothing_open(app, answer, part):
    entry = app.ask("Where is the pump?", TERMINAL, agent=lambda turn: answer).entry

    assert getattr(app.conversations.recap(entry.lineage_id, ALL), part) == ()


@pytest.mark.parametrize(
    "said",
    [
        "我们决定把「部署在哪里？」这一节放到最后。",
        "我们决定了：“用哪个数据库？”由老王回答。",
        "We decided to call the page “Who? Where!” for now.",
        "他说「定了！」，我们决定用它。",
    ],
)
def test_a_question_within_a_quote_does_not_end_its_sentence(app, said):
    entry = app.ask(f"{said} 第二句话。", TERMINAL, agent=lambda turn: "ok").entry

    assert said in app.conversations.recap(entry.lineage_id, ALL).decisions


def test_history_shows_the_last_messages_one_a_line(app, entry):
    lines = run(app, "/history", entry=entry).text.splitlines()

    assert lines[0] == "You: Please fix the pump in /srv/pump.py"
    assert lines[1].endswith("[calls terminal]")
    assert lines[2] == "terminal: Error: exit code 2"
    assert len(run(app, "/history 1", entry=entry).text.splitlines()) == 1
    for wrong in ("0", "51", "x", "-1", "²"):
        assert run(app, f"/history {wrong}", entry=entry).failed


def test_usage_says_what_was_reported_here_and_everywhere(app, entry):
    app.get_or_create_session(TERMINAL, force_new=True)
    other = app.ask("again", TERMINAL, agent=Works()).entry

    here, everywhere = run(app, "/usage", entry=other).text.splitlines()

    assert here == "Here: 1 model call, 500 tokens in, 7 tokens out, $0.2500"
    assert everywhere.startswith("All conversations: 2 model calls, 1000 tokens in")


def at_work(app, entry, session_key):
    """Let a turn run in a session, on behalf of a key; return what the operator is told of its process."""
    now = app.clock.now()
    holder = holder_here(Entrance("feishu"), session_key)
    begin = Begin(
        lineage_id=entry.lineage_id, turn_id=new_turn_id(now), holder=holder, now=now, ttl_ms=60_000, maintenance=True
    )
    app.store.apply(begin)
    return holder.describe()


@pytest.mark.parametrize("text", ["/status", "/queue", "/undo", "/branch", "/compress", "/uncompress"])
def test_a_chat_is_not_told_the_process_that_is_at_work_and_the_terminal_is(app, text):
    chat = app.ask("hello", CHAT).entry
    process = at_work(app, chat, None)

    told, shown = run(app, text, CHAT, chat).text, run(app, text, TERMINAL, chat).text

    assert process in shown
    assert "another entrance" in told
    assert "process" not in told
    assert holder_here(Entrance("feishu"), None).host not in told.split()


def test_a_chat_whose_own_turn_runs_is_told_that_it_runs_here(app):
    chat = app.ask("hello", CHAT).entry
    at_work(app, chat, chat.session_key)

    assert run(app, "/queue", CHAT, chat).text == "A turn is running here. Nothing waits."


def test_status_says_how_full_the_context_is_and_when_it_is_compressed(profile):
    app = profile({"compression.context_tokens": 1000})
    entry = app.ask("hello", TERMINAL).entry

    full = app.conversations.fullness(entry.session_id)
    status = run(app, "/status", entry=entry).text

    assert (full.rows, full.window_tokens, full.at_tokens, full.enabled) == (2, 1000, 850, True)
    assert f"about {full.tokens} tokens of 1000" in status
    assert "compressed at 850 tokens or 5000 rows" in status


def test_search_finds_and_says_how_to_go_on(app, entry):
    app.get_or_create_session(TERMINAL, force_new=True)

    found = run(app, "/search pump").text

    assert entry.session_id in found
    assert run(app, "/search").failed
    assert "\x02" not in found
    assert run(app, "/search nowhere").text == "Nothing was found (searched row by row, without an index)."


def test_in_a_room_nobody_finds_what_was_said_in_private(app):
    app.ask("the secret pump", CHAT)

    assert run(app, "/search pump", ROOM).text.startswith("Nothing was found (")


@pytest.mark.parametrize("name", ["undo", "redo", "retry", "branch", "history", "usage", "recap"])
def test_before_the_first_message_there_is_nothing_to_work_on(app, name):
    assert run(app, f"/{name}").text.startswith("There is no session yet")


@pytest.mark.parametrize("wrong", ["0", "x", "-1", "1001", "²"])
def test_undo_takes_a_number_of_turns(app, entry, wrong):
    assert run(app, f"/undo {wrong}", entry=entry).failed
    assert app.store.lineage(entry.lineage_id, ALL).message_count == 4
