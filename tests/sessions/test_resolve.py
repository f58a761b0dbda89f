"""What a reference means: exact id, else exact title, else unique beginning of an id; the same for everybody."""

from __future__ import annotations

import attrs
import pytest

from hermes_core.sessions.resolve import resolve
from hermes_hookspecs.errors import AmbiguousReference, SessionNotFound
from hermes_hookspecs.operations import GetOrCreate
from hermes_hookspecs.principal import operator, owner_of
from hermes_hookspecs.sessions import Lineage, Session
from hermes_hookspecs.source import KeyPolicy, SessionSource

ALL = operator()
OTHER = SessionSource(platform="feishu", chat_id="oc_9", user_id="ou_9")


def put(app, session_id, *, title=None, source=None, lineage_id=None):
    """Store a session with an id of the test's choice."""
    source = source or SessionSource(platform="cli", chat_id=session_id)
    entry = app.store.apply(
        GetOrCreate(
            key=app.session_key(source),
            key_version=1,
            source=source,
            owner=owner_of(source, shared=False),
            policy=KeyPolicy(),
            shared=False,
            now=app.clock.now(),
            session_id=session_id,
            lineage_id=lineage_id or f"L{session_id}",
        )
    )
    if title is not None:
        app.rename_session(entry.lineage_id, title)
    return entry


def found(app, reference, principal=ALL):
    resolved = app.resolve(reference, principal)
    assert resolved.session.lineage_id == resolved.lineage.id
    return resolved.session.id, resolved.by


def test_an_exact_id_goes_before_a_title_and_a_title_before_a_beginning(app):
    put(app, "2026_aa")
    put(app, "2026_aab", title="2026_aa")
    put(app, "2026_bbb", title="2026_aab_")
    put(app, "2026_aab_c")

    assert found(app, "2026_aa") == ("2026_aa", "id")
    assert found(app, "2026_aab_") == ("2026_bbb", "title")
    assert found(app, " 2026_aab_c ") == ("2026_aab_c", "id")
    assert found(app, "2026_b") == ("2026_bbb", "prefix")


@pytest.mark.parametrize("reference", ["", "   ", "\n", "nothing like it", "2026_aax"])
def test_what_nothing_answers_to_is_not_found_even_if_there_is_only_one_session(app, reference):
    put(app, "2026_aa")

    with pytest.raises(SessionNotFound):
        app.resolve(reference, ALL)


def test_several_candidates_are_listed_and_nothing_is_guessed(app):
    for number in range(10):
        put(app, f"2026_a{number}", title=f"title {number}")

    with pytest.raises(AmbiguousReference, match="and 2 more; give more of the id") as caught:
        app.resolve("2026_a", ALL)

    assert caught.value.exit_code == 2
    assert set(caught.value.candidates) == {(f"2026_a{number}", f"title {number}") for number in range(10)}


@pytest.mark.parametrize("pattern", ["%", "_", "2026_%", "____", "*", "2026?", "[0-9]", "\\"])
def test_a_beginning_is_text_and_no_pattern(app, pattern):
    put(app, "2026_aa")
    put(app, "2026xbb")

    with pytest.raises(SessionNotFound):
        app.resolve(pattern, ALL)
    assert found(app, "2026_") == ("2026_aa", "prefix")


def test_ids_and_titles_differ_by_case(app):
    put(app, "2026_aa", title="Plan")

    for reference in ("2026_AA", "plan"):
        with pytest.raises(SessionNotFound):
            app.resolve(reference, ALL)


def test_what_is_not_yours_does_not_exist_for_you(app):
    put(app, "2026_aa", title="mine", source=OTHER)
    put(app, "2026_ab", title="theirs")
    me = app.principal(OTHER)

    assert found(app, "2026_a", me) == ("2026_aa", "prefix")
    for reference in ("2026_ab", "theirs"):
        with pytest.raises(SessionNotFound, match="no session answers to"):
            app.resolve(reference, me)


def test_one_title_of_two_owners_is_ambiguous_for_the_operator_and_clear_for_them(app):
    put(app, "2026_aa", title="plan", source=OTHER)
    put(app, "2026_ab", title="plan")

    with pytest.raises(AmbiguousReference) as caught:
        app.resolve("plan", ALL)

    assert {session for session, _ in caught.value.candidates} == {"2026_aa", "2026_ab"}
    assert found(app, "plan", app.principal(OTHER)) == ("2026_aa", "title")


class Chain:
    """A lineage of several segments, as compression will leave it: the part of a store that resolving reads."""

    def __init__(self, count=3):
        made = SessionSource(platform="cli", chat_id="pts-1")
        self.sessions = [
            Session(id=f"2026_a{number:03}", lineage_id="L1", source="cli", started_at=number)
            for number in range(count)
        ]
        self.whole = Lineage(
            id="L1",
            tip=self.sessions[-1].id,
            owner=owner_of(made, shared=False),
            source=made,
            shared=False,
            title="plan",
            title_origin="user",
            pinned=False,
            archived=False,
            created_at=0,
            last_activity=0,
            message_count=0,
            turn_count=0,
            segments=count,
            preview="",
            version=1,
        )

    def session(self, session_id, principal):
        return next((one for one in self.sessions if one.id == session_id), None)

    def lineage(self, lineage_id, principal):
        return self.whole

    def lineages_by_title(self, title, principal):
        return [self.whole] if title == "plan" else []

    def sessions_by_prefix(self, prefix, principal, *, limit=20):
        return [one for one in reversed(self.sessions) if one.id.startswith(prefix)][:limit]


@pytest.mark.parametrize(
    ("reference", "session", "by"),
    [
        ("2026_a000", "2026_a000", "id"),
        ("plan", "2026_a002", "title"),
        ("2026_a", "2026_a002", "prefix"),
        ("2026_a00", "2026_a002", "prefix"),
    ],
)
def test_a_title_or_a_beginning_of_one_lineage_means_its_tip_and_an_id_its_segment(reference, session, by):
    resolved = resolve(Chain(), reference, ALL)

    assert (resolved.session.id, resolved.by) == (session, by)


def test_a_long_chain_does_not_hide_that_another_lineage_has_the_same_beginning():
    chain = Chain(count=60)
    chain.sessions.insert(0, Session(id="2026_a", lineage_id="L2", source="cli", started_at=0))

    with pytest.raises(AmbiguousReference):
        resolve(chain, "2026_", ALL)


def test_a_lineage_that_goes_while_it_is_resolved_is_not_found():
    chain = Chain()
    chain.lineage = lambda lineage_id, principal: None
    with pytest.raises(SessionNotFound):
        resolve(chain, "2026_a000", ALL)

    chain = Chain()
    chain.whole = attrs.evolve(chain.whole, tip="gone")
    with pytest.raises(SessionNotFound):
        resolve(chain, "plan", ALL)
