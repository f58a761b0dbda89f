"""Whatever was stored is found by every part of it: the index against reading everything.

``make laws ARGS="plugins/hermes-sessions-fts5"`` runs a thousand cases and says how many queries were compared.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_fts5 import documents
from hermes_fts5.config import Fts5Config
from hermes_fts5.sieve import may_hold
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, Scene, key_of, saying, source_at
from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import matches, required

HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x4E40)
CJK = st.one_of(
    HAN,
    st.characters(min_codepoint=0x3042, max_codepoint=0x3060),
    st.characters(min_codepoint=0xAC00, max_codepoint=0xAC20),
    st.characters(min_codepoint=0xFF71, max_codepoint=0xFF9D),
    st.characters(min_codepoint=0x20000, max_codepoint=0x20010),
)
LATIN = st.text(st.sampled_from("abcdeABCéößıxyz0129"), min_size=3, max_size=14)
PIECES = st.one_of(
    st.text(CJK, min_size=1, max_size=14), LATIN, st.sampled_from([" ", "，", ". ", "-", "\n", "/", '"'])
)
TEXTS = st.lists(PIECES, min_size=1, max_size=30).map("".join)
RUNS = re.compile("[\u3042-\u3060\u4e00-\u4e40\uac00-\uac20\uff71-\uff9d\U00020000-\U00020010]+|[a-zA-Z0-9éößı]{3,}")


@st.composite
def cases(draw):
    """Some texts, and parts of runs of them, 1 to 12 characters of CJK or at least 3 of a word."""
    texts = draw(st.lists(TEXTS, min_size=3, max_size=8))
    parts = []
    for run in [run for text in texts for run in RUNS.findall(text)][:8]:
        least = 3 if run[0] < "\u3000" else 1
        begin = draw(st.integers(0, len(run) - least))
        parts.append(run[begin : begin + draw(st.integers(least, 12))])
    return texts, parts


def _ids(index, text, **fields):
    named = {"text": text, "limit": 100, "budget_s": 30.0} | fields
    found = index.search(SearchQuery(**named), ALL)
    assert found.complete
    return sorted(hit.message_id for hit in found.hits)


@pytest.fixture(scope="module")
def tally():
    """Counts of all examples of the law."""
    return dict.fromkeys(("messages", "in parts", "queries", "rows that hold it", "of these found", "others found"), 0)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), tokens_of_part=st.sampled_from([40, 2000]))
def test_every_part_of_every_text_finds_what_reading_everything_finds(
    tmp_path_factory, tally, record_property, case, tokens_of_part
):
    if not tally["queries"]:
        record_property("recall", tally)
    texts, parts = case
    store = SqliteBackend().open(StoreOptions(path=tmp_path_factory.mktemp("recall") / "state.db", durability="normal"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "TOKENS_OF_PART", tokens_of_part)
        try:
            index = Fts5Source(Fts5Config()).open(store)
            rows = _told(store, index, texts)
            tally["messages"] += len(rows)
            tally["in parts"] += _parts(store)
            for part in parts:
                _compare(index, rows, part, tally)
        finally:
            store.close()

    assert tally["of these found"] == tally["rows that hold it"]
    assert tally["others found"] == 0


def _told(store, index, texts):
    """Store each text in a conversation of its own, and index every other time; return the texts by their rows."""
    scene = Scene(store)
    rows = {}
    for number, text in enumerate(texts):
        entry = scene.enter(key_of(f"c{number}"), source_at(f"c{number}"))
        begun = scene.begin(entry.lineage_id, scene.accept("", entry.session_key, lineage_id=entry.lineage_id))
        (row,) = scene.append(begun, saying(text))
        scene.finish(begun)
        rows[row] = text
        if number % 2:
            index.catch_up(budget_s=1.0)
    return rows


def _parts(store):
    with store.sqlite_access().read() as reader:
        return reader.one("SELECT count(*) FROM messages_fts_docsize WHERE id >= ?", (documents.PARTS_FROM,))[0]


def _compare(index, rows, part, tally):
    wanted = {row for row, text in rows.items() if matches(parse(part), text)}
    assert wanted
    for sort in ("relevance", "oldest"):
        found = set(_ids(index, part, sort=sort))
        tally["queries"] += 1
        tally["rows that hold it"] += len(wanted)
        tally["of these found"] += len(wanted & found)
        tally["others found"] += len(found - wanted)
        assert found == wanted


@pytest.fixture(scope="module")
def sieve(tmp_path_factory):
    path = tmp_path_factory.mktemp("sieve") / "state.db"
    store = SqliteBackend().open(StoreOptions(path=path, durability="normal"))
    yield store
    store.close()


@settings(max_examples=200, deadline=None)
@given(
    TEXTS,
    st.sampled_from(["=>", "。.", "($)", "a.b", "…", "!?", "%", "ab", "c/d", '"', "服务", "か", "a服", "x 数"]),
    st.integers(0, 3),
)
def test_the_sieve_lets_everything_through_that_matches(sieve, text, needle, place):
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in needle)
    full = text[:place] + (wide if place % 2 else needle) + text[place:]
    query = required(parse(f'"{needle}"' if needle != '"' else needle))
    condition, bindings = may_hold(query)

    sql = (
        "WITH m(content, tool_name, tool_calls, attachments) AS (SELECT ?, NULL, NULL, NULL) "
        f"SELECT 1 FROM m WHERE {condition}"
    )
    with sieve.sqlite_access().read() as reader:
        passed = reader.one(sql, (full, *bindings)) is not None

    assert passed or not matches(query, full)
