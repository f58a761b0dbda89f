"""``hermes sessions search`` and ``hermes search index`` over a real store."""

from __future__ import annotations

import io
import json

import pytest
from wcwidth import wcswidth

from hermes_cli.parser import parse
from hermes_cli.search_table import SEARCH_COMMANDS
from hermes_core.search.desk import SearchDesk
from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.cli import CliCall
from hermes_hookspecs.errors import ConfigError, SessionError, SessionNotFound
from hermes_hookspecs.ports.care import Finding

COMMANDS = {command.path: command for command in SEARCH_COMMANDS}


class Damaged(ScanIndex):
    name = "toy"

    def verify(self):
        return (Finding(kind="search-index", subject="toy", text="3 rows \x1b[31mare missing", severity="error"),)

    def rebuild(self, *, progress=None):
        progress(1, 2)
        return 2


class Source:
    name = "toy"
    backends = ()

    def open(self, store):
        return Damaged(store)


class Sound(Source):
    def open(self, store):
        index = ScanIndex(store)
        index.name = "toy"
        return index


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def run(app):
    """Return a function that runs one search command: its words, then its tokens; gives status, stdout and stderr."""

    def run(path, *tokens, sources=(), width=None):
        command = COMMANDS[tuple(path.split())]
        desk = SearchDesk(lambda: app.store, lambda: sources, lambda line: None)
        out, err = io.StringIO(), Terminal() if width else io.StringIO()
        module, _, name = command.run.partition(":")
        function = getattr(__import__(module, fromlist=[name]), name)
        desk.store = app.store
        status = function(CliCall(app=desk, values=parse(command, tokens), out=out, err=err, width=width))
        return status, out.getvalue(), err.getvalue()

    return run


def test_a_hit_is_shown_with_its_session_and_a_marked_snippet(run, say):
    said = say("昨天的数据库迁移", "fine")

    status, out, err = run("sessions search", "数据库")

    assert status == 0
    assert said.entry.session_id in out
    assert "昨天的>>>数据库<<<迁移" in out
    assert "row by row" in err


def test_on_a_terminal_hits_are_coloured_and_escapes_are_not(run, say):
    say("a needle \x1b[2J and ESC")

    _status, out, _err = run("sessions search", "needle", width=80)

    assert "\x1b[1;33mneedle\x1b[0m" in out
    assert "\x1b[2J" not in out


def test_on_a_terminal_no_line_is_longer_than_the_screen_and_no_word_of_the_header_is_broken(run, say, app):
    entry = say("前面的话 " * 12 + "needle " + "数据库迁移" * 20).entry
    app.rename_session(entry.lineage_id, "数据库迁移与回滚" * 6)

    lines = run("sessions search", "needle", width=80)[1].splitlines()

    plain = [line.replace("\x1b[1;33m", "").replace("\x1b[0m", "") for line in lines]
    assert max(wcswidth(line) for line in plain) <= 80
    assert plain[0].startswith(f"{entry.session_id}  数据库迁移")
    assert plain[0].endswith(" messages)")
    assert "\x1b[1;33mneedle\x1b[0m" in "".join(lines)


def test_a_hit_that_a_line_ends_in_is_coloured_on_both_lines(run, say):
    say("前" * 30 + "数据库" * 20)

    lines = run("sessions search", "数据库" * 20, width=60)[1].splitlines()

    coloured = [line for line in lines if "\x1b[1;33m" in line]
    assert len(coloured) > 1
    assert all(line.count("\x1b[1;33m") == line.count("\x1b[0m") for line in coloured)


@pytest.mark.parametrize("width", [None, 80])
def test_a_conversation_without_a_title_is_named_by_its_beginning_in_quotes(run, say, width):
    entry = say("alpha beta").entry

    line = run("sessions search", width=width)[1].splitlines()[0]

    assert line.startswith(f'{entry.session_id}  "alpha beta"  (feishu, ')


def test_words_are_joined_and_all_must_be_there(run, say):
    say("alpha and beta")

    assert run("sessions search", "alpha", "beta")[0] == 0
    assert run("sessions search", "alpha", "gamma")[0] == 1
    assert run("sessions search", "--", "--dry-run")[0] == 1


def test_nothing_found_is_said_on_stderr(run, say):
    say("alpha")

    status, out, err = run("sessions search", "gamma")

    assert (status, out) == (1, "")
    assert "nothing was found" in err


def test_json_has_the_names_of_the_original(run, say):
    say("alpha 部署")

    status, out, _err = run("sessions search", "部署", "--json", "--limit", "3", "--sort", "newest")

    data = json.loads(out)
    assert (status, data["success"], data["mode"], data["count"]) == (0, True, "discover", 1)
    assert data["results"][0]["snippet"] == "alpha >>>部署<<<"


def test_around_and_session_scroll_and_read(run, say):
    say("one")
    say("two\n  second line")
    (found,) = json.loads(run("sessions search", "two", "--json")[1])["results"]

    read = run("sessions search", "--session", found["session_id"])[1]
    around = run(
        "sessions search", "--session", found["session_id"], "--around", str(found["match_message_id"]), "--window", "1"
    )[1]

    assert "user> one" in read
    assert f"> [{found['match_message_id']}] user> two\n          second line" in around
    assert "1 message before" in around


def test_without_a_query_conversations_are_listed(run, say):
    said = say("alpha")

    status, out, _err = run("sessions search")

    assert status == 0
    assert said.entry.session_id in out
    assert len(out.splitlines()) == 1


def test_a_list_without_conversations_says_so_on_stderr(run, say):
    assert run("sessions search") == (0, "", "there are no such conversations\n")
    say("alpha")
    assert run("sessions search", "--source", "slack") == (0, "", "there are no such conversations\n")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_text_without_blanks_is_broken_where_lines_are_full_and_nothing_comes_in_between(run, say, width):
    text = "数据库迁移的步骤是什么？先停止写入，备份文件，运行迁移脚本，核对行数，最后恢复服务。" * 3 + "then go on"
    said = say(text)

    out = run("sessions search", "--session", said.entry.session_id, width=width)[1]

    lines = out.splitlines()
    shown = [line for line in lines if "user> " in line or line.startswith(" " * 8)]
    assert max(wcswidth(line) for line in lines) <= width
    assert wcswidth(shown[0]) >= width - 2
    assert "".join(line.strip() for line in shown).startswith(f"[1] user> {text}".replace("go on", "")[:-1])


def test_filters_reach_the_search(run, say):
    say("alpha", "an answer with omega")

    assert run("sessions search", "omega", "--role", "user")[0] == 1
    assert run("sessions search", "omega", "--role", "user", "--role", "assistant")[0] == 0
    assert run("sessions search", "alpha", "--source", "slack")[0] == 1
    assert run("sessions search", "alpha", "--since", "1d")[0] == 0
    assert run("sessions search", "alpha", "--until", "1d")[0] == 1
    assert run("sessions search", "alpha", "--since", "2020-01-01", "--until", "2199-01-01T10:00")[0] == 0
    assert run("sessions search", "alpha", "--until", "2020-01-01")[0] == 1


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (('"open',), "never closed"),
        (("NOT", "x"), "leave out"),
        (("x", "--since", "soon"), "--since wants a date"),
        (("x", "--around", "3"), "wants --session"),
        (("x", "--session", "bread"), "--session reads that one: give one of the two"),
        (("x", "--session", "bread", "--around", "3"), "give one of the two"),
        (("x", "--since", "2026-09-02", "--until", "2026-09-01"), "2026-09-02 is not before --until 2026-09-01"),
        (("--since", "1d", "--until", "2d"), "--since 1d is not before --until 2d"),
    ],
)
def test_a_mistake_is_a_usage_error(run, tokens, said):
    with pytest.raises(ConfigError, match=said) as caught:
        run("sessions search", *tokens)

    assert caught.value.exit_code == 2


def test_unknown_sessions_and_rows_are_errors(run, say):
    said = say("alpha")

    with pytest.raises(SessionNotFound):
        run("sessions search", "--session", "nobody")
    with pytest.raises(SessionError):
        run("sessions search", "--session", said.entry.session_id, "--around", "99999")


def test_the_index_tells_of_itself(run):
    plain, as_json = run("search index status")[1], run("search index status", "--json")[1]

    assert plain.startswith("index  none")
    assert json.loads(as_json)["index"].startswith("none")


def test_a_damaged_index_is_told_and_rebuilt_with_progress(run):
    status, out, _err = run("search index verify", sources=[Source()])
    rebuilt = run("search index rebuild", sources=[Source()], width=80)
    as_json = run("search index verify", "--json", sources=[Source()])

    assert status == as_json[0] == 1
    assert "error: 3 rows" in out
    assert "\x1b" not in out
    assert (rebuilt[0], rebuilt[1]) == (0, "the index toy holds 2 messages\n")
    assert json.loads(as_json[1])[0]["severity"] == "error"


def test_a_sound_index_is_sound(run):
    assert run("search index verify", sources=[Sound()]) == (0, "the index is sound\n", "")


def test_tables_of_an_index_can_be_dropped_by_the_name_of_its_plugin(run, app):
    access = app.store.sqlite_access()
    access.migrate("toy", ("CREATE TABLE toy_words (word TEXT)",))

    with pytest.raises(ConfigError, match="no tables of 'other' to drop: there are those of toy"):
        run("search index drop", "other")
    status, out, err = run("search index drop", "toy")

    assert (status, err) == (0, "")
    assert "the tables of toy are deleted" in out
    assert access.plugins() == ()
    with pytest.raises(ConfigError, match="this store has no such tables"):
        run("search index drop", "toy")


def test_where_there_is_no_index_that_is_said_plainly(run):
    none = "there is no search index; every search reads the rows one by one\n"

    assert run("search index verify") == (0, "", none)
    assert run("search index rebuild") == (1, "", none)
    assert json.loads(run("search index verify", "--json")[1]) == []
    assert json.loads(run("search index rebuild", "--json")[1]) == {"index": None, "messages": 0}
