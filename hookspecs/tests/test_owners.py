"""Owners and rooms: who may read what, and that no id makes somebody into somebody else."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hermes_hookspecs.encoding import decode_text, encode_text
from hermes_hookspecs.principal import Owner, Principal, may_read, operator, owner_of, principal_of, room_of
from hermes_hookspecs.source import SessionSource

PIECES = ("a", "A", "%", ":", "=", " ", "%3A", "%", "3A", "\n", "\x1f", "\x00", "\x7f", "\u0085", "\u2028", "\u00a0")
LETTERS = ("é", "e\u0301", "日", "\U00010000", "\ud800", "\udc00", "\ufffd", "room", "person", "dm")

hostile = st.lists(st.sampled_from(PIECES + LETTERS), max_size=4).map("".join)
texts = st.one_of(hostile, st.text(st.characters(exclude_categories=()), max_size=6))
ids = st.one_of(st.none(), texts)
kinds = st.sampled_from(["person", "dm", "room"])
owners = st.builds(Owner, kinds, texts, texts, texts, texts, texts, texts)
sources = st.builds(
    SessionSource,
    platform=st.sampled_from(["feishu", "slack"]),
    chat_type=st.sampled_from(["dm", "group", "channel", "thread"]),
    account_id=st.sampled_from(["default", "second"]),
    scope_id=ids,
    chat_id=ids,
    thread_id=ids,
    prospective_thread_id=ids,
    user_id=ids,
    user_id_alt=ids,
    profile=st.sampled_from(["main", "other"]),
)
few_ids = st.sampled_from([None, "a", "b", "a\nb"])
neighbours = st.builds(
    SessionSource,
    platform=st.just("feishu"),
    chat_type=st.sampled_from(["dm", "group", "thread"]),
    scope_id=st.sampled_from([None, "T"]),
    chat_id=few_ids,
    thread_id=few_ids,
    prospective_thread_id=few_ids,
    user_id=few_ids,
    user_id_alt=st.sampled_from([None, None, "a"]),
    profile=st.sampled_from(["main", "other"]),
)
"""Sources that are alike so often that they meet."""


def _place(source):
    return (source.profile, source.platform, source.account_id, source.scope_id or "")


# ------------------------------------------------------------------ the stored form


@given(owners, owners)
def test_different_owners_have_different_text(one, other):
    assert (str(one) == str(other)) is (one == other)


@given(owners)
def test_an_owner_comes_back_from_its_text(owner):
    assert Owner.parse(str(owner)) == owner


@given(owners)
def test_the_text_of_an_owner_can_be_stored_and_shown(owner):
    text = str(owner)

    assert text.encode().decode() == text
    assert not any(c.isspace() or ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in text)


@given(st.one_of(texts, st.lists(texts, min_size=6, max_size=8).map(":".join), owners.map(lambda each: f"{each}%")))
def test_a_text_that_no_owner_has_is_refused(text):
    try:
        owner = Owner.parse(text)
    except ValueError:
        return

    assert str(owner) == text


@pytest.mark.parametrize("text", ["", "person", "person:main:feishu:default::", "a:b:c:d:e:f:g:h", "%61:b:c:d:e:f:g"])
def test_half_an_owner_is_refused(text):
    with pytest.raises(ValueError, match="is no"):
        Owner.parse(text)


@pytest.mark.parametrize("text", ["%", "%4", "%GG", "%3a", "%61", "%ED%A0", "%C3%28", "% 1", "a b", "a:b", "\ud800"])
def test_a_text_that_was_not_encoded_is_not_decoded(text):
    with pytest.raises(ValueError):
        decode_text(text)


@given(texts)
def test_encoded_text_comes_back(text):
    assert decode_text(encode_text(text)) == text


# ------------------------------------------------------------------ owners and rooms of sources


@given(neighbours, neighbours, st.booleans(), st.booleans())
def test_one_owner_means_one_person_or_one_place(one, other, one_shared, other_shared):
    mine, theirs = owner_of(one, shared=one_shared), owner_of(other, shared=other_shared)
    same_place = _place(one) == _place(other)

    if mine.kind == theirs.kind == "person":
        same = same_place and one.participant == other.participant
    elif mine.kind == theirs.kind == "room":
        same = room_of(one) == room_of(other)
    elif mine.kind == theirs.kind:
        same = same_place and one.chat_id == other.chat_id and (one.chat_id is not None or mine == theirs)
    else:
        same = False
    assert (mine == theirs) is same


@given(neighbours, neighbours)
def test_one_room_means_one_chat_and_one_thread(one, other):
    assume("dm" not in {one.chat_type, other.chat_type})

    def where(source):
        return (*_place(source), source.chat_id, source.thread_id or source.prospective_thread_id)

    assert (room_of(one) == room_of(other)) is (where(one) == where(other))


@given(sources)
def test_only_a_direct_message_is_said_in_no_room(source):
    room = room_of(source)

    assert (room is None) is (source.chat_type == "dm")
    assert room is None or (room.kind, room.id) == ("room", source.chat_id or "")


@pytest.mark.parametrize(
    ("source", "shared", "kind", "own_id"),
    [
        (SessionSource(platform="p", chat_id="c", user_id="u"), False, "person", "u"),
        (SessionSource(platform="p", chat_id="c", user_id="u", user_id_alt="alt"), False, "person", "alt"),
        (SessionSource(platform="p", chat_id="c"), False, "dm", "c"),
        (SessionSource(platform="p", chat_type="group", chat_id="c", user_id="u"), False, "person", "u"),
        (SessionSource(platform="p", chat_type="group", chat_id="c", user_id="u"), True, "room", "c"),
        (SessionSource(platform="p", chat_type="group", chat_id="c"), False, "room", "c"),
    ],
)
def test_a_lineage_belongs_to_whom_its_first_source_names(source, shared, kind, own_id):
    owner = owner_of(source, shared=shared)

    assert (owner.kind, owner.id) == (kind, own_id)


# ------------------------------------------------------------------ who may read


@given(sources, st.booleans())
def test_who_speaks_may_read_what_was_said_there(source, shared):
    principal = principal_of(source, shared=shared)

    assert may_read(principal, owner_of(source, shared=shared), room_of(source))


@given(neighbours, neighbours, st.booleans(), st.booleans())
def test_in_a_room_nothing_else_is_read(here, there, here_shared, there_shared):
    principal = principal_of(here, shared=here_shared)
    assume(principal.room is not None and principal.room != room_of(there))

    assert not may_read(principal, owner_of(there, shared=there_shared), room_of(there))
    assert not may_read(principal, owner_of(here, shared=here_shared), None)


@given(neighbours, neighbours)
def test_nobody_reads_what_another_person_said(mine, theirs):
    forms = {mine.user_id, mine.user_id_alt} - {None}
    assume(theirs.participant is not None)
    assume(_place(mine) != _place(theirs) or theirs.participant not in forms)

    principal = principal_of(mine, shared=False)

    assert not may_read(principal, owner_of(theirs, shared=False), room_of(theirs))


@given(sources)
def test_a_shared_room_speaks_for_no_person(source):
    assume(source.chat_type != "dm")
    principal = principal_of(source, shared=True)

    assert {owner.kind for owner in principal.owners} == {"room"}


@given(sources, texts.filter(bool), texts.filter(bool))
def test_a_person_is_known_by_every_id(source, user_id, user_id_alt):
    source = attrs.evolve(source, user_id=user_id, user_id_alt=user_id_alt)
    plain = attrs.evolve(source, user_id_alt=None)

    principal = principal_of(source, shared=False)

    assert may_read(principal, owner_of(plain, shared=False), room_of(plain))


@given(owners, st.one_of(st.none(), owners))
def test_the_operator_reads_everything_and_nobody_nothing(owner, room):
    assert may_read(operator(), owner, room)
    assert not may_read(Principal(), owner, room)
    assert not may_read(Principal(room=room), owner, room)
