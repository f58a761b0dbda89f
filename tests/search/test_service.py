"""``session_search``: discover, scroll, read, browse."""

from __future__ import annotations

import attrs
import pytest

from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.errors import SessionError, SessionNotFound
from hermes_hookspecs.messages import USER, MessageDraft, ToolCall
from hermes_hookspecs.operations import Delete, Rename, SetFlags
from hermes_hookspecs.ports.search import BROWSE, DISCOVER, READ, SCROLL, SearchHit, SearchResult
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.testing.scene import ALL, asking, key_of, result, saying, source_at
from hermes_hookspecs.text.parsing import QueryError


def talk(scene, chat, *texts, user="ou_1"):
    """Store a conversation: question and answer in turns; return its entry."""
    scene.clock.advance(1)
    entry = scene.enter(key_of(chat), source_at(chat, user))
    for text in texts:
        scene.talk(entry, text, f"answer to {text}")
    return entry


def contents(rows):
    return [row.content for row in rows]


# --- discover


def test_a_hit_comes_with_its_neighbourhood_and_both_ends_of_its_conversation(scene, ask):
    entry = talk(scene, "one", *(f"text {number}" for number in range(20)), "the needle", *"abcdefghij")

    answer = ask("needle", role_filter=(USER,), window=2)

    (found,) = answer.results
    assert (answer.mode, found.session_id, found.lineage_id) == (DISCOVER, entry.session_id, entry.lineage_id)
    assert contents(found.messages) == ["text 18", "text 19", "the needle", "a", "b"]
    assert [row.anchor for row in found.messages] == [False, False, True, False, False]
    assert found.match_message_id == found.messages[2].message_id
    assert (found.messages_before, found.messages_after) == (18, 8)
    assert contents(found.bookend_start) == ["text 0", "text 1", "text 2"]
    assert contents(found.bookend_end) == ["h", "i", "j"]
    assert "\x02needle\x03" in found.snippet


def test_one_result_per_conversation_up_to_the_limit(scene, ask):
    for number in range(5):
        talk(scene, f"c{number}", "needle", "needle again")

    answer = ask("needle", limit=3)

    assert len({found.lineage_id for found in answer.results}) == len(answer.results) == 3


def test_every_id_that_is_returned_can_be_scrolled(scene, ask):
    archived = talk(scene, "archived", "needle in the archive")
    scene.run(SetFlags(lineage_id=archived.lineage_id, archived=True, now=scene.now))
    talk(scene, "other", "one", "needle", "two")

    found = ask("needle", limit=10).results

    assert len(found) == 2
    for one in found:
        ids = [row.message_id for row in (*one.messages, *one.bookend_start, *one.bookend_end)]
        for message_id in (one.match_message_id, *ids):
            scrolled = ask(session_id=one.session_id, around_message_id=message_id)
            assert scrolled.mode == SCROLL
            assert message_id in [row.message_id for row in scrolled.results[0].messages]


def test_the_callers_own_conversation_is_left_out(scene, ask):
    mine, other = talk(scene, "mine", "needle"), talk(scene, "other", "needle")

    answer = ask("needle", own=mine.lineage_id)

    assert [found.lineage_id for found in answer.results] == [other.lineage_id]


def test_what_a_compression_left_behind_is_found_by_its_own_child(scene, ask):
    entry = talk(scene, "one", "the code word", "kept", "live")
    rows = scene.rows(entry.lineage_id)
    asked = []

    class Compressed:
        """The store as it is behind a compression that kept everything from the third row on."""

        def __getattr__(self, name):
            return getattr(scene.store, name)

        def session(self, session_id, principal):
            session = scene.store.session(session_id, principal)
            return attrs.evolve(session, parent_session_id=session_id, kept_from=rows[2].id)

        def messages(self, lineage_id, principal, *, session_id=None, **fields):
            found = scene.store.messages(lineage_id, principal, **fields)
            return found if session_id is None else found[4:5]

    class Noting(ScanIndex):
        def search(self, query, principal):
            asked.append(query)
            return super().search(query, principal)

    from hermes_core.search.service import SearchRequest, SessionSearch

    store = Compressed()
    search = SessionSearch(store, Noting(store), ALL)

    gone, kept = (search.answer(SearchRequest(query=word, own=entry.lineage_id)) for word in ("code", "kept"))

    assert [found.match_message_id for found in gone.results] == [rows[0].id]
    assert kept.results == ()
    assert {query.exclude_from for query in asked} == {rows[2].id}


def test_a_hit_that_was_deleted_meanwhile_is_left_out(scene, store, ask):
    entry = talk(scene, "one", "needle")
    row = scene.rows(entry.lineage_id)[0]

    class Late:
        name = "late"

        def search(self, query, principal):
            store.apply(Delete(lineage_id=entry.lineage_id, now=scene.now))
            hit = SearchHit(
                lineage_id=entry.lineage_id, session_id=entry.session_id, message_id=row.id, score=1, snippet=""
            )
            return SearchResult(hits=(hit,), complete=True)

    assert ask("needle", index=Late()).results == ()


def test_many_results_are_shown_in_less_detail(scene, ask):
    for number in range(4):
        talk(scene, f"c{number}", "a", "b", f"needle {'long ' * 1000}", "c", "d")

    few, many, full = ask("needle", limit=1), ask("needle", limit=4), ask("needle", limit=4, detail="full")

    def size(answer):
        return max(sum(len(row.content) for row in found.messages) for found in answer.results)

    assert size(many) < size(few) <= size(full)
    assert all(row.cut for found in many.results for row in found.messages if row.anchor)


def test_big_rows_are_cut_with_a_mark(scene, ask):
    entry = scene.enter(key_of("one"), source_at("one"))
    begun = scene.ask(entry, "needle")
    call = ToolCall(id="c1", name="write", arguments="x" * 1_000_000)
    (row_id,) = scene.append(begun, MessageDraft(role="assistant", timestamp=1, tool_calls=(call,)))
    scene.append(begun, result("c1", "y" * 1_000_000))

    answer = ask(session_id=entry.session_id, around_message_id=row_id, role_filter=("assistant", "tool"))

    shown = answer.results[0].messages
    assert [row.cut for row in shown] == [True, True]
    assert max(len(shown[0].tool_calls[0][1]), len(shown[1].content)) < 2_200
    assert "998000 characters left out" in shown[1].content


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"query": "x", "sort": "sideways"}, "sorted by"),
        ({"query": "x", "role_filter": ("robot",)}, "no role 'robot'"),
        ({"query": "x", "detail": "all"}, "adaptive or full"),
        ({"around_message_id": 3}, "name its session"),
        ({"query": "x", "session_id": "y"}, "give one of the two"),
        ({"query": "x", "since": 5, "until": 5}, "since is not before until"),
        ({"since": 5, "until": 4}, "since is not before until"),
        ({"query": "NOT x"}, "leave out"),
    ],
)
def test_a_mistake_is_told(ask, fields, said):
    with pytest.raises(ValueError, match=said):
        ask(**fields)


def test_numbers_out_of_range_are_brought_into_it(scene, ask):
    talk(scene, "one", *(f"needle {number}" for number in range(30)))

    none, many = ask("needle", limit=0, window=-5), ask("needle 15", limit=10**9, window=10**9)

    assert len(none.results[0].messages) <= 3
    assert len(many.results[0].messages) <= 41


# --- scroll


def test_scrolling_shows_the_rows_around_and_says_where_it_ends(scene, ask):
    entry = talk(scene, "one", *(f"text {number}" for number in range(4)))
    rows = scene.rows(entry.lineage_id)

    first, middle, last = (
        ask(session_id=entry.session_id, around_message_id=rows[at].id, window=1) for at in (0, 4, -1)
    )

    assert contents(first.results[0].messages) == ["text 0", "answer to text 0"]
    assert first.note == "the conversation begins here"
    assert contents(middle.results[0].messages) == ["answer to text 1", "text 2", "answer to text 2"]
    assert (middle.results[0].messages_before, middle.results[0].messages_after, middle.note) == (3, 2, "")
    assert last.note == "the conversation ends here"


def test_scrolling_keeps_to_the_roles_and_shows_the_row_itself(scene, ask):
    entry = scene.enter(key_of("one"), source_at("one"))
    begun = scene.ask(entry, "question")
    _asking, tool_row = scene.append(begun, asking("c1"), result("c1", "tool says"))
    scene.finish(begun, saying("the answer"))

    plain = ask(session_id=entry.session_id, around_message_id=tool_row, role_filter=(USER,))

    assert contents(plain.results[0].messages) == ["question", "tool says"]


def test_scrolling_reaches_far_between_the_rows_of_others(scene, ask):
    entry = talk(scene, "one", "first")
    other = scene.enter(key_of("other"), source_at("other"))
    begun = scene.ask(other, "much")
    scene.append(begun, *(saying(f"row {number}") for number in range(700)))
    scene.talk(entry, "last", "end")
    row = scene.rows(entry.lineage_id)[2]

    answer = ask(session_id=entry.session_id, around_message_id=row.id)

    assert contents(answer.results[0].messages) == ["first", "answer to first", "last", "end"]


def test_a_row_of_another_conversation_is_not_in_this_one(scene, ask):
    one, two = talk(scene, "one", "a"), talk(scene, "two", "b")
    foreign = scene.rows(two.lineage_id)[0].id

    for message_id in (foreign, 10**9, 0, -1):
        with pytest.raises(SessionError, match="is not in session"):
            ask(session_id=one.session_id, around_message_id=message_id)


# --- read


def test_a_short_session_is_read_whole(scene, ask):
    entry = talk(scene, "one", *(f"t{number}" for number in range(15)))

    answer = ask(session_id=entry.session_id)

    assert (answer.mode, answer.truncated, len(answer.results[0].messages)) == (READ, False, 30)


def test_a_long_session_is_read_from_both_ends(scene, ask):
    entry = talk(scene, "one", *(f"t{number}" for number in range(31)))

    answer = ask(session_id=entry.session_id, role_filter=(USER,))

    assert answer.truncated
    assert contents(answer.results[0].messages) == [f"t{number}" for number in (*range(20), *range(21, 31))]


def test_a_session_is_read_by_its_title(scene, ask):
    entry = talk(scene, "one", "a")
    scene.run(Rename(lineage_id=entry.lineage_id, title="the plan", origin="user", now=scene.now))

    assert ask(session_id="the plan").results[0].session_id == entry.session_id


# --- browse


def test_browsing_lists_conversations_last_active_first(scene, ask):
    old, new, empty = talk(scene, "old", "a"), talk(scene, "new", "b"), talk(scene, "empty")
    scene.clock.advance(10)
    scene.talk(old, "again", "yes")

    answer = ask(limit=10)

    assert answer.mode == BROWSE
    assert [found.lineage_id for found in answer.results] == [old.lineage_id, new.lineage_id]
    assert empty.lineage_id not in [found.lineage_id for found in answer.results]
    assert (answer.results[0].message_count, answer.results[0].preview) == (4, "a")


def test_browsing_filters_before_the_limit(scene, ask):
    entries = [talk(scene, f"c{number}", "a") for number in range(60)]
    times = [scene.lineage(entry.lineage_id).last_activity for entry in entries]

    answer = ask(limit=1, until=times[1], own=None)
    between = ask(limit=10, since=times[2], until=times[5], own=entries[3].lineage_id)

    assert [found.lineage_id for found in answer.results] == [entries[0].lineage_id]
    assert [found.lineage_id for found in between.results] == [entries[4].lineage_id, entries[2].lineage_id]
    assert ask(source="slack").results == ()


# --- access


def test_nobody_reads_somebody_elses_history_in_any_mode(scene, ask):
    mine = talk(scene, "mine", "nothing")
    theirs = talk(scene, "theirs", "the secret 秘密", user="ou_2")
    scene.run(Rename(lineage_id=theirs.lineage_id, title="secret plan", origin="user", now=scene.now))
    row = scene.rows(theirs.lineage_id)[0].id
    me = principal_of(source_at("mine"), shared=False)

    assert ask("secret", principal=me).results == ask("秘", principal=me).results == ()
    assert [found.lineage_id for found in ask(principal=me, limit=50).results] == [mine.lineage_id]
    for reference in (theirs.session_id, "secret plan", theirs.session_id[:-1] + "9"):
        with pytest.raises(SessionNotFound):
            ask(session_id=reference, principal=me)
        with pytest.raises(SessionNotFound):
            ask(session_id=reference, around_message_id=row, principal=me)
    with pytest.raises(SessionError):
        ask(session_id=mine.session_id, around_message_id=row, principal=me)


def test_a_mistake_in_a_query_has_its_own_class(ask):
    with pytest.raises(QueryError):
        ask('"open')
