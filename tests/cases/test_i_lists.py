"""Group I: lists, counts and files that people work with."""

from __future__ import annotations

import asyncio
import json

import pytest

from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ids import LineageId, SessionId
from hermes_hookspecs.operations import GetOrCreate, SetFlags
from hermes_hookspecs.principal import operator, owner_of
from hermes_hookspecs.source import KeyPolicy, SessionSource

# The terminal measures its tables; where it is missing, as in the core alone, there are none.
wcswidth = pytest.importorskip("wcwidth", reason="comes with the terminal entrance").wcswidth
ALL = operator()


def person(number, platform="feishu"):
    return SessionSource(platform=platform, chat_id=f"oc_{number}", user_id=f"ou_{number}")


# ------------------------------------------------------------------ I13

OUTSIDE = [
    "../../x",
    "..",
    ".",
    "/etc/x",
    "C:\\x",
    "C:x",
    "a/b",
    "a\\b",
    "a_b",
    "a b",
    "a:b",
    "A_B",
    "会话一",
    "会话二",
    "x" * 180,
    "x" * 179 + "y",
    "con",
    "nul",
    "-rf",
    "~root",
    "a\nb",
    "a\x1b[2Jb",
    "e\u0301",
    "\u00e9",
    "$(id)",
    "x.jsonl",
]


def store_under(app, session_id, source):
    now = app.clock.now()
    app.store.apply(
        GetOrCreate(
            key=app.session_key(source),
            key_version=1,
            source=source,
            owner=owner_of(source, shared=False),
            policy=KeyPolicy(),
            shared=False,
            now=now,
            session_id=SessionId(session_id),
            lineage_id=LineageId(f"L{session_id}"),
        )
    )
    app.ask(f"I am {session_id!r}", source, agent="echo")


def test_i13_ids_from_outside_become_one_file_each_inside_the_folder(open_home, hermes, tmp_path):
    with open_home() as app:
        for number, session_id in enumerate(OUTSIDE):
            store_under(app, session_id, person(number))
    folder = tmp_path / "deep" / "export"
    folder.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}

    ran = hermes("sessions", "export", str(folder))

    assert ran.status == 0, ran.err
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.parent for path in made if "home" not in path.parts} == {folder}
    files = sorted(folder.iterdir())
    assert len({path.name.lower() for path in files}) == len(OUTSIDE)
    assert {json.loads(path.read_text("utf-8"))["session_id"] for path in files} == set(OUTSIDE)
    assert max(len(path.name.encode()) for path in files) <= 200
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def test_i13_the_same_id_has_the_same_file_again(open_home, hermes, tmp_path):
    with open_home() as app:
        store_under(app, "../../x", person(1))
    folder = tmp_path / "export"
    folder.mkdir()

    names = []
    for _ in range(2):
        hermes("sessions", "export", str(folder))
        names.append([path.name for path in folder.iterdir()])

    assert names[0] == names[1]
    assert len(names[0]) == 1


@pytest.mark.parametrize("session_id", ["../../x", "/etc/passwd", "a/b", "会话一", "x" * 300, "a\x00b", "\udcff"])
def test_i13_an_id_that_does_not_exist_is_refused_in_one_line(app, hermes, session_id):
    with pytest.raises(HermesError):
        app.resolve(session_id, ALL)
    with pytest.raises(HermesError):
        app.export_session(SessionId(session_id))

    if "\x00" not in session_id:
        ran = hermes("sessions", "show", session_id)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.count("\n") == 1


# ------------------------------------------------------------------ I18

TITLES = [
    "周报汇总 v2",
    "emoji 👩‍💻 x",
    "flag 🇩🇪 and 👍🏽",
    "ｆｕｌｌ width",
    "combining e\u0301e\u0301e\u0301",
    "한국어 제목",
    "a long title of plain words that goes on and on until no terminal is wide enough for it",
    "长" * 60,
    "x",
]


@pytest.fixture
def titled(open_home):
    with open_home() as app:
        for number, title in enumerate(TITLES):
            entry = app.ask(f"text {number}", person(number), agent="echo").entry
            app.rename_session(entry.lineage_id, title)
        return [summary.session_id for summary in app.store.summaries(ALL)]


def columns_of(line, words):
    """Return the display column at which each of ``words`` begins."""
    return [wcswidth(line[: line.rindex(word)]) for word in words]


@pytest.mark.parametrize("columns", [80, 120, 40, None])
def test_i18_columns_stand_in_line_by_display_width_and_ids_are_whole(home, titled, spawn, hermes, columns):
    if columns is None:
        lines = hermes("sessions", "list").out.splitlines()
    else:
        lines = spawn("sessions", "list", columns=columns).read().replace("\r\n", "\n").splitlines()
    rows = [line for line in lines if any(session in line for session in titled)]

    assert len(rows) == len(TITLES)
    assert {wcswidth(line[: line.index("feishu")]) for line in rows} == {wcswidth(lines[0][: lines[0].index("SOURCE")])}
    if columns is None:
        assert {title for title in TITLES if any(title in row for row in rows)} == set(TITLES)
    elif columns >= 80:
        assert max(wcswidth(line) for line in rows) <= columns
    assert not any("\ufffd" in row for row in rows)
    assert not any(row.split("…")[0].endswith("\u200d") for row in rows)


def test_i18_json_has_the_whole_titles(titled, hermes):
    listed = json.loads(hermes("sessions", "list", "--json").out)

    assert {row["title"] for row in listed} == set(TITLES)


# ------------------------------------------------------------------ I19


@pytest.fixture
def inventory(open_home):
    """Make conversations of every kind: three platforms, archived, ended, without a message."""
    with open_home() as app:
        for platform, number in (("feishu", 1), ("feishu", 2), ("slack", 3), ("webhook", 4)):
            app.ask(f"text {number}", person(number, platform), agent="echo")
        ended = app.ask("ended", person(5), agent="echo").entry
        asyncio.run(app.command("/new", person(5), ended))
        archived = app.ask("archived", person(6), agent="echo").entry
        app.store.apply(SetFlags(lineage_id=archived.lineage_id, archived=True, now=app.clock.now()))
        app.get_or_create_session(person(7))


def test_i19_list_stats_and_export_count_the_same(inventory, hermes):
    listed = json.loads(hermes("sessions", "list", "--json").out)
    everything = json.loads(hermes("sessions", "list", "--all", "--json").out)
    stats = json.loads(hermes("sessions", "stats", "--json").out)
    exported = [json.loads(line) for line in hermes("sessions", "export", "-").out.splitlines()]

    assert len(everything) == len(exported) == stats["lineages"] == 7
    assert {row["session_id"] for row in everything} == {one["session_id"] for one in exported}
    assert len(listed) == stats["lineages"] - stats["archived"] - stats["empty"] == 5
    assert sum(row["message_count"] for row in everything) == stats["messages"] == 12
    assert sum(len(one["messages"]) for one in exported) == 12
    by_platform = {row["source"]: (row["lineages"], row["messages"]) for row in stats["platforms"]}
    for platform, (lineages, messages) in by_platform.items():
        mine = [row for row in everything if row["source"] == platform]
        assert (len(mine), sum(row["message_count"] for row in mine)) == (lineages, messages)
        of_platform = hermes("sessions", "export", "-", "--source", platform).out.splitlines()
        assert len(of_platform) == lineages
    assert sum(lineages for lineages, _ in by_platform.values()) == 7


def test_i19_what_a_list_leaves_out_is_a_number_that_adds_up(inventory, hermes):
    ran = hermes("sessions", "list")
    shown = len(ran.out.splitlines()) - 1
    words = (ran.out + ran.err).lower()

    assert shown == 5
    assert "1 archived" in words
    assert "1 without a message" in words or "1 empty" in words
