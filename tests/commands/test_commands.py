"""Slash commands: what is one, who may use it, and what each of the built-in ones does."""

from __future__ import annotations

import asyncio
from threading import get_ident

import pytest

from hermes_core.commands.parse import parse_command
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

TERMINAL = SessionSource(platform="cli", chat_id="pts-1")
CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
OTHER = SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_2")


def run(app, text, source=TERMINAL, entry=None):
    return asyncio.run(app.command(text, source, entry))


def talk(app, text, source=TERMINAL, *, new=False):
    if new:
        app.get_or_create_session(source, force_new=True)
    return app.ask(text, source).entry


# ------------------------------------------------------------------ what is a command


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/new", ("new", "")),
        ("  /New  My Plan ", ("new", "My Plan")),
        ("/new@our_bot plan", ("new", "plan")),
        ("<@U0BOT> /new", ("new", "")),
        ("<@U0BOT|hermes>/new plan", ("new", "plan")),
        ("@_user_1 /new", ("new", "")),
        ("@Bot\u2005/reset", ("reset", "")),
        ("@Bot @Ann /title a", ("title", "a")),
        ("@Bot hello", None),
        ("@Bot", None),
        ("ask @Ann to run /new", None),
        ("/root/a.txt 在哪", None),
        ("@Bot /root/a.txt", None),
        ("/title a\nb", ("title", "a\nb")),
        ("/title\nb", ("title", "b")),
        ("/set-model x", ("set-model", "x")),
        ("/статус", ("статус", "")),
        ("/usr/bin/env", None),
        ("/ hello", None),
        ("/\thello", None),
        ("/", None),
        ("//new", None),
        ("/2", None),
        ("/new@our bot/x", ("new", "bot/x")),
        ("/new@our-bot x", None),
        ("／new plan", ("new", "plan")),
        ("／ｎｅｗ", ("new", "")),
        ("@Bot ／new", ("new", "")),
        ("\ufeff/new", ("new", "")),
        ("/new\u200b", ("new", "")),
        ("／root／a.txt", None),
        ("\u200b", None),
        ("/" + "x" * 33, None),
        ("hello /new", None),
        ("", None),
    ],
)
def test_only_a_slash_a_name_and_its_arguments_at_the_very_beginning(text, parsed):
    assert parse_command(text) == parsed


def test_what_is_in_full_width_or_begins_unseen_is_a_command_where_it_is_meant_for_us(app):
    for text in ("／status", "\ufeff/status"):
        assert app.command_book.is_command(text, addressed=False)
    assert not app.command_book.is_command("@Bot ／status", addressed=False)


@pytest.mark.parametrize("name", ["/history", "/undo", "/queue", "/resume"])
@pytest.mark.parametrize("typed", ["9" * 10_000, "x \x1b[31m" + "y" * 5000, "z" * 61])
def test_a_refusal_repeats_the_beginning_of_what_was_typed_alone(app, name, typed):
    entry = talk(app, "hello")

    reply = run(app, f"{name} {typed}", entry=entry)

    assert reply.failed
    assert len(reply.text) < 200
    assert "…" in reply.text
    assert reply.text.isprintable()


def test_other_text_is_no_command(app):
    assert run(app, "hello") is None
    assert run(app, "/usr/bin/env says") is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [("/titel x", "Did you mean /title?"), ("/rest", "Did you mean /reset?"), ("/xyzzy", "/help lists what there is.")],
)
def test_an_unknown_name_is_answered_with_the_nearest_one(app, text, hint):
    reply = run(app, text)

    assert reply.failed
    assert reply.text.startswith("There is no command /")
    assert hint in reply.text


# ------------------------------------------------------------------ plugins' commands


class Brings:
    def __init__(self, *commands):
        self.commands = commands

    @hookimpl
    def hermes_commands(self):
        return list(self.commands)


def saying(name, **fields):
    async def answer(call):
        return CommandReply(text=f"{call.name} {call.arguments}".strip())

    return Command(name=name, summary=f"says {name}", run=answer, **fields)


def test_a_command_of_a_plugin_goes_before_a_built_in_one_and_its_name_before_an_alias(profile):
    app = profile(plugins=[Brings(saying("status"), saying("reset"), saying("deploy", aliases=("ship",)))])

    assert run(app, "/status now").text == "status now"
    assert run(app, "/reset").text == "reset"
    assert run(app, "/ship it").text == "deploy it"


def test_a_command_exists_on_its_platforms_only(profile):
    app = profile(plugins=[Brings(saying("paste", platforms=("cli",)))])

    assert run(app, "/paste").text == "paste"
    assert run(app, "/paste", CHAT).failed
    assert "paste" in [command.name for command in app.commands("cli")]
    assert "paste" not in run(app, "/help", CHAT).text


def test_a_command_with_roles_is_for_those_who_have_them(profile):
    app = profile(plugins=[Brings(saying("drain", roles=("admin",)))])

    assert run(app, "/drain").text == "drain"
    refused = run(app, "/drain", CHAT)
    assert refused == CommandReply(text="/drain is not for you.", failed=True)


# ------------------------------------------------------------------ help, status, sessions


def test_help_lists_every_command_aligned_with_what_may_stand_behind_it(app):
    lines = run(app, "/help").text.splitlines()

    listed = [line for line in lines if line.startswith("  /")]
    by_name = {command.name: command for command in app.commands("cli")}
    names = [line.split()[0].removeprefix("/") for line in listed]
    assert sorted(names) == sorted(by_name)
    assert len({line.index(by_name[name].summary) for name, line in zip(names, listed, strict=True)}) == 1
    assert any("/resume [NUMBER|ID|TITLE]" in line for line in listed)


def test_help_lists_what_is_about_this_conversation_first_and_the_rest_of_plugins_last(profile):
    app = profile(plugins=[Brings(saying("ship", group="Deploying"), saying("paste"))])

    lines = run(app, "/help").text.splitlines()

    headings = [line for line in lines if not line.startswith(" ")]
    assert headings == ["This conversation:", "All conversations:", "Deploying:", "More:"]
    after = {line.split()[0]: place for place, line in enumerate(lines)}
    assert (
        after["/undo"] < lines.index("All conversations:") < after["/new"] < lines.index("Deploying:") < after["/ship"]
    )
    assert lines.index("More:") < after["/paste"]


def test_status_says_where_one_is_before_and_in_a_session(app):
    before = run(app, "/status").text
    entry = talk(app, "hello")
    app.rename_session(entry.lineage_id, "plan")

    said = dict(line.split(None, 1) for line in run(app, "/status", entry=entry).text.splitlines())

    assert "none yet; your next message begins one" in before
    assert said["session"] == entry.session_id
    assert said["title"] == "plan"
    assert said["key"] == entry.session_key
    assert said["model"] == "echo"
    assert said["messages"] == "2"
    assert said["turn"] == "none"
    assert said["entrance"] == "cli / default"


def test_status_tells_no_chat_where_the_store_is(app):
    assert app.store.location in run(app, "/status").text
    assert app.store.location not in run(app, "/status", CHAT).text


@pytest.mark.parametrize("text", ["/title plan", "/new", "/stop"])
def test_a_command_that_writes_leaves_the_loop_to_the_others(app, monkeypatch, text):
    entry, threads = talk(app, "hello"), set()
    apply = app.store.apply
    monkeypatch.setattr(app.store, "apply", lambda operation: (threads.add(get_ident()), apply(operation))[1])

    assert not run(app, text, entry=entry).failed

    assert threads - {get_ident()}
    assert get_ident() not in threads


def test_status_in_a_session_without_messages_or_that_is_gone(app):
    entry = app.get_or_create_session(TERMINAL)
    assert "none yet" in run(app, "/status", entry=entry).text

    app.delete_session(entry.lineage_id)
    assert "none" in run(app, "/status", entry=entry).text


def test_status_names_who_is_at_work(app):
    entry = app.get_or_create_session(TERMINAL)
    seen = []

    async def agent(turn):
        seen.append((await app.command("/status", TERMINAL, entry)).text)
        return "ok"

    app.ask("go", TERMINAL, agent=agent)

    assert "running in cli/default/pts-1 (process" in seen[0]


def test_sessions_lists_the_latest_ones_with_title_or_beginning_and_the_place_one_is_in(profile, clock):
    app = profile(clock=clock)
    assert run(app, "/sessions").text == "There is no earlier session."
    for number in range(12):
        clock.advance(60)
        entry = talk(app, f"message number {number}", new=True)
    app.rename_session(entry.lineage_id, "the last")

    lines = run(app, "/sessions", entry=entry).text.splitlines()

    assert lines[0] == "Latest sessions:"
    assert len(lines) == 11
    assert lines[1] == f" 1. {entry.session_id}  the last  (here)"
    assert lines[2].endswith("“message number 10”")


# ------------------------------------------------------------------ new


def test_new_lets_go_and_keeps_and_the_next_message_begins_another(app):
    entry = talk(app, "hello")

    reply = run(app, "/new", entry=entry)

    assert reply.released
    assert reply.text == f"Left {entry.session_id}; it is kept. Your next message begins a new session."
    assert talk(app, "again").session_id != entry.session_id
    assert app.store.lineage(entry.lineage_id, operator()).message_count == 2


def test_new_with_a_title_names_the_session_to_come(app):
    entry = talk(app, "hello")
    app.rename_session(entry.lineage_id, "old")

    reply = run(app, "/reset  the \u202e next one ", entry=entry)

    assert reply.text == (
        f"Left 'old' ({entry.session_id}); it is kept. Your next message begins a new session called 'the next one'."
    )
    assert talk(app, "again").title == "the next one"


def test_new_before_the_first_message_has_nothing_to_leave(app):
    assert run(app, "/new").text == "Your next message begins a new session."


@pytest.mark.parametrize(("title", "complaint"), [("taken", "is taken by"), ("x" * 101, "at most 100 characters")])
def test_new_with_a_title_that_cannot_be_changes_nothing(app, title, complaint):
    entry = talk(app, "hello")
    app.rename_session(entry.lineage_id, "taken")

    reply = run(app, f"/new {title}", entry=entry)

    assert reply.failed
    assert complaint in reply.text
    assert talk(app, "still here").session_id == entry.session_id


# ------------------------------------------------------------------ title


def test_title_shows_sets_and_refuses(app):
    assert run(app, "/title plan").failed
    entry = talk(app, "hello")
    other = talk(app, "other", CHAT)

    assert "has no title" in run(app, "/title", entry=entry).text
    assert run(app, "/title  The  Plan ", entry=entry).text == "Title: The Plan"
    assert run(app, "/title", entry=entry).text == "Title: The Plan"
    assert run(app, "/title The Plan", CHAT, other).text == "Title: The Plan"
    second = talk(app, "second", new=True)
    refused = run(app, "/title The Plan", entry=second)
    assert refused.failed
    assert "The Plan" in refused.text
    assert run(app, "/title \u200b", entry=entry).text == "The title is gone."


def test_title_of_a_session_that_is_gone_or_not_yours_is_not_shown(app):
    entry = talk(app, "hello", OTHER)
    app.rename_session(entry.lineage_id, "secret")

    assert "secret" not in run(app, "/title", CHAT, entry).text


# ------------------------------------------------------------------ resume


@pytest.fixture
def three(profile, clock):
    """An app and its three sessions, latest first; the first one is titled ``plan``."""
    app = profile(clock=clock)
    entries = []
    for text in ("one", "two", "three"):
        clock.advance(60)
        entries.insert(0, talk(app, text, new=True))
    app.rename_session(entries[2].lineage_id, "plan")
    return app, entries


def test_resume_without_a_reference_lists(three):
    app, entries = three

    lines = run(app, "/resume", entry=entries[0]).text.splitlines()

    assert [line.split()[1] for line in lines[1:]] == [entry.session_id for entry in entries]


@pytest.mark.parametrize("form", ["{id}", "<{id}>", "3", "plan", "“plan”", "[plan]", "'plan'", "{id:.17}"])
def test_resume_takes_a_number_an_id_a_title_or_the_beginning_of_an_id(profile, clock, form):
    app = profile(clock=clock)
    first = talk(app, "one")
    app.rename_session(first.lineage_id, "plan")
    for text in ("two", "three"):
        clock.advance(60)
        here = talk(app, text, new=True)

    reply = run(app, f"/resume {form.format(id=first.session_id)}", entry=here)

    assert not reply.failed
    back, scene = reply.text.split("\n\n")
    assert back == f"Back in 'plan' ({first.session_id}), 2 messages."
    assert "You asked last: one" in scene
    assert reply.entry.session_id == first.session_id
    assert talk(app, "and on").session_id == first.session_id


def test_a_title_goes_before_what_its_quotes_would_mean_and_before_a_number(three):
    app, entries = three
    app.rename_session(entries[1].lineage_id, "[draft] x")
    assert run(app, "/resume [draft] x", entry=entries[0]).entry.session_id == entries[1].session_id

    app.rename_session(entries[0].lineage_id, "2")
    assert run(app, "/resume 2", entry=entries[2]).entry.session_id == entries[0].session_id


def test_a_number_of_the_list_goes_before_the_beginning_of_the_only_id(app):
    entry = talk(app, "one")
    other = app.get_or_create_session(CHAT)

    assert run(app, "/resume 1", CHAT, other).failed
    assert run(app, "/resume 1", TERMINAL, other).entry.session_id == entry.session_id
    assert entry.session_id.startswith("2")
    assert run(app, "/resume 2", TERMINAL, other).failed


@pytest.mark.parametrize("reference", ["nowhere", "0", "9", "9999", "<>", "20"])
def test_resume_of_nothing_or_of_many_changes_nothing(three, reference):
    app, entries = three

    reply = run(app, f"/resume {reference}", entry=entries[0])

    assert reply.failed
    assert reply.entry is None
    assert talk(app, "still here").session_id == entries[0].session_id


def test_resume_of_the_session_one_is_in_says_so(three):
    app, entries = three

    reply = run(app, "/resume 1", entry=entries[0])

    assert reply.text == "You are in that session already."
    assert reply.entry == entries[0]


def test_on_a_shared_platform_one_resumes_ones_own(app):
    mine, theirs = talk(app, "mine", CHAT), talk(app, "theirs", OTHER)
    app.rename_session(theirs.lineage_id, "secret plan")

    for reference in (theirs.session_id, "secret plan", "2"):
        reply = run(app, f"/resume {reference}", CHAT, mine)
        assert reply.failed
        assert "No session answers to" in reply.text
    assert "secret" not in run(app, "/sessions", CHAT, mine).text
