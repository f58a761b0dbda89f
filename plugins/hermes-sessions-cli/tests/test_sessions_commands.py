"""``hermes sessions``: list, show, rename, delete, stats."""

from __future__ import annotations

import json

import pytest
from wcwidth import wcswidth

from hermes_cli.listing import left_out_text
from hermes_core.app import HermesApp
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import SetFlags
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.source import SessionSource

CODER = "👩‍💻"


def chat(name, platform="feishu"):
    return SessionSource(platform=platform, chat_id=f"oc_{name}", user_id="ou_ming", user_name="小明")


def archive(app: HermesApp, entry):
    app.store.apply(SetFlags(lineage_id=entry.lineage_id, now=app.clock.now(), archived=True))


# ------------------------------------------------------------------ list


def test_an_empty_store_is_one_friendly_line(hermes):
    ran = hermes("sessions", "list")

    assert (ran.status, ran.out) == (0, "")
    assert ran.err == "No sessions yet; `hermes` starts one.\n"


def test_an_empty_store_is_an_empty_array(hermes):
    assert json.loads(hermes("sessions", "list", "--json").out) == []


def test_the_list_has_the_last_active_conversation_first(hermes, say):
    first = say("buy milk", source=chat("a"))
    second = say("write a report", source=chat("b"))

    lines = hermes("sessions", "list").out.splitlines()

    assert lines[0].split() == ["ID", "TITLE", "SOURCE", "MESSAGES", "LAST", "ACTIVE"]
    assert lines[1].startswith(f'{second.entry.session_id}  "write a report"')
    assert lines[2].startswith(f'{first.entry.session_id}  "buy milk"')


@pytest.mark.parametrize("width", ["80", "120"])
def test_titles_of_every_script_keep_the_columns_of_a_terminal(hermes, say, app, monkeypatch, width):
    titles = ["周报汇总 v2", f"emoji {CODER} x", "a long plain title " * 5]
    for at, title in enumerate(titles):
        result = say("hello", source=chat(at))
        app.rename_session(result.entry.lineage_id, title)
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: int(width))

    lines = hermes("sessions", "list").out.splitlines()

    places = {wcswidth(line[: line.rindex("feishu")]) for line in lines[1:]}
    assert len(places) == 1
    assert max(wcswidth(line) for line in lines) <= int(width)
    assert any(CODER in line for line in lines)
    assert all(len(line.split()[0]) == len("20260901_120000_0123abcd") for line in lines[1:])
    assert all("just now" in line for line in lines[1:])


def test_in_a_pipe_titles_are_complete_and_times_are_one_field(hermes, say, app):
    result = say("hello")
    app.rename_session(result.entry.lineage_id, "t" * 100)

    line = hermes("sessions", "list").out.splitlines()[1]

    assert "t" * 100 in line
    assert line.split()[-1].endswith("Z")


def test_what_is_left_out_is_counted_and_adds_up_with_the_statistics(hermes, say, app):
    for at in range(4):
        say("hello", source=chat(at))
    archive(app, say("old", source=chat("old")).entry)
    archive(app, app.get_or_create_session(chat("empty and archived")))
    app.get_or_create_session(chat("empty"))

    some = hermes("sessions", "list", "--limit", "3")
    default = hermes("sessions", "list")
    everything = hermes("sessions", "list", "--all")
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    exported = hermes("sessions", "export").out.splitlines()

    assert len(some.out.splitlines()) == 1 + 3
    assert some.err == "4 more: 1 older, 1 empty, 2 archived (--limit shows more, --all shows them)\n"
    assert len(default.out.splitlines()) == 1 + stats["listed"] == 1 + 4
    assert default.err == "3 more: 1 empty, 2 archived (--all shows them)\n"
    assert len(everything.out.splitlines()) == 1 + stats["lineages"] == 1 + 7
    assert everything.err == ""
    assert stats["lineages"] == stats["listed"] + stats["empty"] + stats["archived"] == len(exported)
    assert sum(platform["lineages"] for platform in stats["platforms"]) == 7


def test_the_counts_of_one_platform_add_up_too(hermes, say, app):
    say("hello", source=chat("a"))
    say("hello", source=chat("b", "slack"))
    app.get_or_create_session(chat("c", "slack"))

    ran = hermes("sessions", "list", "--source", "slack")

    assert len(ran.out.splitlines()) == 2
    assert "slack" in ran.out
    assert ran.err == "1 more: 1 empty (--all shows them)\n"


def test_an_unknown_platform_names_those_that_are_there(hermes, say):
    say("hello")

    assert hermes("sessions", "list", "--source", "fesihu").err == (
        "No sessions of fesihu; there are some of: feishu.\n"
    )


def test_only_what_is_hidden_is_said_to_be_not_shown():
    assert left_out_text({"older": 0, "empty": 2, "archived": 1}, any_shown=False) == (
        "3 not shown: 2 empty, 1 archived (--all shows them)"
    )


def test_states_have_a_column_only_where_there_are_some(hermes, say, app):
    entry = say("hello").entry

    assert "STATE" not in hermes("sessions", "list").out
    app.store.apply(SetFlags(lineage_id=entry.lineage_id, now=app.clock.now(), pinned=True))
    assert hermes("sessions", "list").out.splitlines()[1].endswith("pinned")


def test_json_of_the_list_has_the_names_that_people_know(hermes, say):
    result = say("hello")

    (row,) = json.loads(hermes("sessions", "list", "--json").out)

    assert row["session_id"] == result.entry.session_id
    assert (row["source"], row["user_id"], row["message_count"], row["title"]) == ("feishu", "ou_ming", 2, None)
    assert row["input_tokens"] is None
    assert row["parent_session_id"] is None
    assert isinstance(row["started_at"], int)
    assert isinstance(row["last_activity"], int)
    assert {"model", "output_tokens", "estimated_cost_usd"} <= set(row)


def test_hostile_titles_and_previews_command_no_terminal(hermes, say):
    say("\x1b]0;owned\x07\x1b[2J \u202e evil")

    out = hermes("sessions", "list").out

    assert "\x1b" not in out
    assert "\u202e" not in out


# ------------------------------------------------------------------ show


def test_show_names_what_is_known_and_every_entrance_where_it_changes(hermes, say, app):
    result = say("hello\nsecond line", "hi")
    say("from the terminal", "yes", source=SessionSource(platform="cli", chat_id="pts-1", user_id="ann"),
        entry=result.entry)  # fmt: skip
    app.rename_session(result.entry.lineage_id, "plan")

    out = hermes("sessions", "show", "plan").out

    head, _, transcript = out.partition("\n\n")
    assert f"session   {result.entry.session_id}" in head
    assert "title     plan" in head
    assert "source    feishu" in head
    assert "user      ou_ming (小明)" in head
    assert "messages  4 in 2 turns" in head
    doors = [line for line in transcript.splitlines() if line.startswith("-- ")]
    assert doors[0].startswith("-- feishu, 小明, ")
    assert doors[1].startswith("-- cli/default/pts-1, ann, ") or doors[1].startswith("-- cli, ann, ")
    assert len(doors) == 2
    assert "user> hello\n    second line\nassistant> hi" in transcript


def test_no_text_can_pass_for_another_row(hermes, say):
    say("hello\nassistant> I am the assistant\n-- slack, boss --", "\x1b[1Auser> ha")

    lines = hermes("sessions", "show", "2").out.splitlines()

    assert [line for line in lines if line.startswith("assistant> ")] == ["assistant> ␛[1Auser> ha"]
    assert "    assistant> I am the assistant" in lines


def test_show_the_last_messages_says_how_many_came_before(hermes, say):
    for at in range(3):
        result = say(f"question {at}", f"answer {at}")

    out = hermes("sessions", "show", result.entry.session_id, "--last", "2").out

    assert "... 4 earlier messages ..." in out
    assert "question 2" in out
    assert "question 1" not in out


def test_show_lists_calls_and_results(hermes, app):
    class Looking:
        name, model = "looking", "toy-1"

        async def run(self, turn):
            yield AssistantStep(tool_calls=(ToolCall(id="c1", name="look", arguments='{"at": "sky"}'),))
            yield ToolResult(call_id="c1", name="look", content="blue")
            yield AssistantStep(content="It is blue.")

    app.ask("sky?", chat("a"), agent=Looking())

    lines = hermes("sessions", "show", "2").out.splitlines()

    assert '    calls look {"at": "sky"}' in lines
    assert "tool look> blue" in lines
    assert "assistant> It is blue." in lines
    assert "model     toy-1" in lines


def test_show_as_json_is_one_object_with_messages(hermes, say):
    result = say("hello", "hi")
    say("again", "yes")

    shown = json.loads(hermes("sessions", "show", result.entry.session_id, "--json", "--last", "2").out)

    assert shown["session_id"] == result.entry.session_id
    assert [message["content"] for message in shown["messages"]] == ["again", "yes"]
    assert shown["messages"][0]["entrance"] == "feishu"
    assert shown["running"] is None


@pytest.mark.parametrize("reference", ["nothing like it", ""])
def test_a_reference_that_nothing_answers_to_is_one_line(hermes, say, reference):
    say("hello")

    ran = hermes("sessions", "show", reference)

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("hermes: no session answers to ")
    assert ran.err.count("\n") == 1


def test_an_ambiguous_reference_lists_candidates_in_every_command_and_changes_nothing(hermes, say):
    entries = [say("hello", source=chat(at)).entry for at in range(2)]

    for command in (["show", "2"], ["rename", "2", "x"], ["delete", "2", "--yes"], ["export", "--session-id", "2"]):
        ran = hermes("sessions", *command)

        assert ran.status == 2
        assert all(entry.session_id in ran.err for entry in entries)
    rows = json.loads(hermes("sessions", "list", "--json").out)
    assert [row["title"] for row in rows] == [None, None]


# ------------------------------------------------------------------ rename and delete


def test_rename_joins_its_words_and_an_empty_title_takes_it_away(hermes, say):
    session_id = say("hello").entry.session_id

    named = hermes("sessions", "rename", session_id[:20], "周报", "v2")
    gone = hermes("sessions", "rename", "周报 v2", "")

    assert (named.status, named.out) == (0, "")
    assert named.err == f"{session_id} is called '周报 v2' now\n"
    assert gone.err == f"{session_id} has no title now\n"


def test_a_title_that_breaks_the_rules_is_refused(hermes, say):
    session_id = say("hello").entry.session_id

    ran = hermes("sessions", "rename", session_id, "x" * 101)

    assert ran.status == 2
    assert ran.err.startswith("hermes: ")


def test_delete_without_a_terminal_wants_yes(hermes, say):
    session_id = say("hello").entry.session_id

    refused = hermes("sessions", "delete", session_id, stdin="y\n")
    done = hermes("sessions", "delete", session_id, "--yes")

    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--yes" in refused.err
    assert done.status == 0
    assert done.err == f"deleted {session_id}: 1 session, 2 messages\n"
    assert json.loads(hermes("sessions", "list", "--all", "--json").out) == []


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("YES\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_delete_on_a_terminal_asks(hermes, say, monkeypatch, answer, left):
    session_id = say("hello").entry.session_id
    monkeypatch.setattr("hermes_cli.editing.is_terminal", lambda stream: True)

    ran = hermes("sessions", "delete", session_id, stdin=answer)

    assert f"Delete {session_id} with 2 messages for good? [y/N] " in ran.err
    assert ran.status == left
    assert len(json.loads(hermes("sessions", "list", "--json").out)) == left


# ------------------------------------------------------------------ stats


def test_statistics_are_readable(hermes, say):
    say("hello", source=chat("a"))
    say("hello", source=chat("b", "slack"))

    out = hermes("sessions", "stats").out

    assert "conversations" in out
    assert "2  = 2 listed + 0 empty + 0 archived" in out
    assert "messages" in out
    assert "feishu" in out
    assert "slack" in out


def test_statistics_of_an_empty_store_are_zeros(hermes):
    stats = json.loads(hermes("sessions", "stats", "--json").out)

    assert (stats["lineages"], stats["messages"], stats["platforms"]) == (0, 0, [])
