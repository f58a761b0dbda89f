"""Group F: queries that are wrong, hostile or strange get a clear answer each, by the API, the tool and the script."""

from __future__ import annotations

import json

import pytest

from hermes_core import open_app
from hermes_hookspecs.source import SessionSource

TEXTS = [
    "a whale and a red one",
    "^(a+)+$ is slow where backtracking is",
    "'; DROP TABLE messages; -- said little Bobby",
    "NEAR(a b, 5) and content:secret are of FTS5",
    "three * * * stars",
    "the sign ( alone",
]
MISTAKES = {
    "a quote that is not closed": ('"open phrase', "the quote at character 1 is never closed"),
    "a NUL alone": ("\x00", "the query is empty"),
    "a group that is not closed": ("(a OR b", r'the "\(" at character 1 is never closed'),
    "OR alone": ("OR", "operators only"),
    "AND alone": ("AND", "operators only"),
    "NOT alone": ("NOT", "operators only"),
    "operators alone": ("OR NOT AND", "operators only"),
    "an exclusion alone": ("-whale", "only says what to leave out"),
    "10 kB of one word": ("x" * 10_000, "10000 characters; at most 4096"),
    "10 kB of Chinese": ("鲸" * 10_000, "10000 characters; at most 4096"),
    "10 kB of ORs": ("a OR " * 2000 + "a", "10001 characters; at most 4096"),
    "very many words": ("word " * 800, "at most 64"),
    "groups in groups": ("(" * 2000 + "a" + ")" * 2000, "group"),
}
TEXT = {
    "a regex": ("^(a+)+$", TEXTS[1]),
    "SQL": ("'; DROP TABLE messages; --", TEXTS[2]),
    "a call of FTS5": ("NEAR(a b, 5)", TEXTS[3]),
    "a column of FTS5": ("content:secret", TEXTS[3]),
    "stars alone": ("* * *", TEXTS[4]),
    "a parenthesis alone": ("(", None),
    "control characters": ("\x07\x1b[31mred", None),
    "a NUL in a word": ("wh\x00ale", None),
    "a quote alone": ('"', None),
    "half a surrogate": ("\ud800", None),
    "marks of hits": ("\x02whale\x03", None),
}


@pytest.fixture(scope="module", params=["scan", "fts5"])
def profile(request, tmp_path_factory):
    """A profile with some texts, searched row by row or by the index; the tests only read."""
    options = {"plugins": False}
    if request.param == "fts5":
        pytest.importorskip("hermes_fts5", reason="the index is a plugin")
        options = {"overrides": {"plugins.only": ("fts5",)}}
    with open_app(tmp_path_factory.mktemp("home"), environ={}, **options) as app:
        for number, text in enumerate(TEXTS):
            source = SessionSource(platform="feishu", chat_id=f"oc_{number}", user_id="ou_alice")
            app.ask(text, source, agent=lambda turn: "noted")
        app.search_index.catch_up(budget_s=5.0)
        yield app


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_and_not_taken_for_nothing_found(profile, by_tool, name):
    query, said = MISTAKES[name]

    with pytest.raises(ValueError, match=said) as told:
        profile.session_search(query, budget_s=5.0)
    answer = by_tool(profile, query=query)

    assert 10 < len(str(told.value)) < 300
    assert str(told.value).isprintable()
    assert (answer["success"], answer["error"]) == (False, str(told.value))


@pytest.mark.parametrize("name", TEXT)
def test_what_is_no_mistake_is_text(profile, by_tool, name):
    query, text = TEXT[name]

    answer = profile.session_search(query, budget_s=5.0)

    assert answer.complete
    if text is not None:
        assert [row.content for one in answer.results for row in one.messages if row.anchor] == [text]
    assert by_tool(profile, query=query)["success"]
    assert len(profile.session_search("whale").results) == 1
    assert profile.store.integrity() == []


@pytest.mark.parametrize("name", ["a quote that is not closed", "operators alone", "10 kB of Chinese"])
def test_the_script_tells_a_mistake_in_one_line_and_by_its_status(profile, hermes, name):
    query, said = MISTAKES[name]

    ran = hermes("--home", profile.home, "sessions", "search", "--", query)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["a regex", "SQL", "control characters"])
def test_the_script_takes_everything_else_for_text(profile, hermes, name):
    query, text = TEXT[name]

    ran = hermes("--home", profile.home, "sessions", "search", "--json", "--", query)

    assert ran.status in {0, 1}
    assert json.loads(ran.out)["count"] == (0 if ran.status else 1)
    assert text is None or ran.status == 0
    assert ran.out.isascii() or ran.out.replace("\n", "").isprintable()


def test_an_index_of_a_newer_version_is_told_left_alone_and_can_be_dropped(hermes, sql):
    pytest.importorskip("hermes_fts5", reason="the index is a plugin")
    hermes("--agent", "echo", stdin="a whale\n")
    hermes("search", "index", "rebuild")
    sql("UPDATE plugin_schema SET version = 99")

    found = hermes("sessions", "search", "whale")
    rebuilt = hermes("search", "index", "rebuild")
    after = sql("SELECT version FROM plugin_schema")
    dropped = hermes("search", "index", "drop", "fts5")
    again = hermes("sessions", "search", "whale")

    assert (found.status, ">>>whale<<<" in found.out) == (0, True)
    (told,) = (line for line in found.err.splitlines() if "version 99" in line)
    assert "hermes search index drop fts5" in told
    assert (rebuilt.status, after) == (1, [(99,)])
    assert (dropped.status, dropped.err) == (0, "")
    assert (again.status, again.out, again.err) == (0, found.out, "")
    assert sql("SELECT version FROM plugin_schema") == [(2,)]
