"""Faults that one law alone is about: each is caught by that law, which the other tests of its part do not replace."""

from __future__ import annotations

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's in-memory store")

from hermes_core.storage.memory import MemoryStore, routes, turns
from hermes_core.storage.memory import lineages as memory_lineages
from hermes_core.storage.memory.text import clean_text
from hermes_hookspecs import operations as ops
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.messages import KIND_INTERRUPTED
from hermes_hookspecs.principal import operator, room_of
from hermes_hookspecs.testing.storage import deletion, leases, rooms, transcripts
from hermes_hookspecs.testing.storage import turns as turn_tests


def _append_to_any_lineage(tables, operation):
    fence, turn = operation.fence, tables.turns.get(operation.fence.turn_id)
    lease = tables.leases.get(fence.lineage_id)
    if turn is not None and lease is not None and lease.token == fence.token:
        operation = attrs.evolve(operation, fence=attrs.evolve(fence, lineage_id=turn.lineage_id))
    return turns.append(tables, operation)


def _begin_known_by_turn_id(tables, operation):
    if operation.turn_id in tables.turns:
        operation = attrs.evolve(operation, holder=tables.leases[operation.lineage_id].holder)
    return turns.begin(tables, operation)


def _begin_storing_again(tables, operation):
    there = {row.inbox_id for row in tables.transcripts[operation.lineage_id]}
    begun = turns.begin(tables, operation)
    again = [draft for draft in operation.drafts if draft.inbox_id in there]
    if isinstance(begun, ops.Begun):
        tables.add_rows(begun.turn.lineage_id, begun.turn.session_id, begun.turn.id, again, operation.now)
    return begun


def _begin_waiting_again(tables, operation):
    begun = turns.begin(tables, operation)
    if isinstance(begun, ops.Begun) and begun.interrupted is not None:
        for inbox_id in begun.interrupted.inbox_ids:
            tables.set_item(tables.inbox[inbox_id], status=PENDING)
    return begun


def _append_storing_again(tables, operation):
    there = {row.inbox_id for row in tables.transcripts.get(operation.fence.lineage_id, ())}
    drafts = tuple(attrs.evolve(each, inbox_id=None) if each.inbox_id in there else each for each in operation.drafts)
    return turns.append(tables, attrs.evolve(operation, drafts=drafts))


def _append_late_results(tables, operation):
    """Synthetic results answer nothing, and the calls of all turns are one."""
    turn = turns.check_fence(tables, operation.fence)
    rows = tables.transcripts[turn.lineage_id]
    answered = {row.tool_call_id for row in rows if row.kind != KIND_INTERRUPTED}
    asked = {call.id for row in rows for call in row.tool_calls}
    if all(draft.tool_call_id in asked - answered for draft in operation.drafts):
        stored = tables.add_rows(turn.lineage_id, turn.session_id, turn.id, operation.drafts, operation.now)
        return tuple(row.id for row in stored)
    return turns.append(tables, operation)


def _append_without_a_sign_of_life(tables, operation):
    leases_before = dict(tables.leases)
    ids = turns.append(tables, operation)
    tables.leases = leases_before
    return ids


def _delete_whatever_is_presumed(tables, operation):
    if operation.presumed_dead is not None:
        operation = attrs.evolve(operation, presumed_dead=tables.leases[operation.lineage_id].stamp)
    return memory_lineages.delete(tables, operation)


def _delete_by_token(tables, operation):
    stamp = tables.leases[operation.lineage_id].stamp
    if operation.presumed_dead is not None and operation.presumed_dead.token == stamp.token:
        operation = attrs.evolve(operation, presumed_dead=stamp)
    return memory_lineages.delete(tables, operation)


class RoomsForgotten(MemoryStore):
    def lineage(self, lineage_id, principal):
        return super().lineage(lineage_id, attrs.evolve(principal, room=None))


class RoomsInsteadOfOwners(MemoryStore):
    def lineage(self, lineage_id, principal):
        found = super().lineage(lineage_id, operator())
        heard = found is not None and principal.room is not None and found.room == principal.room
        return found if heard else super().lineage(lineage_id, principal)


class OwnersJoined(MemoryStore):
    """Compares owners as text that an id can imitate."""

    separator = "\x1f"

    def told(self, owner):
        return owner.kind, self.separator.join(attrs.astuple(owner)[1:])

    def lineage(self, lineage_id, principal):
        found = super().lineage(lineage_id, operator())
        if found is None or principal.sees_all:
            return found
        return found if self.told(found.owner) in {self.told(each) for each in principal.owners} else None


class OwnersCleaned(OwnersJoined):
    """Compares owners as they look when half pairs are replaced."""

    def told(self, owner):
        return clean_text(repr(attrs.astuple(owner)).encode().decode("unicode_escape", "surrogatepass"))


class RoomsOfOneChat(MemoryStore):
    """Takes a thread for its chat."""

    def lineage(self, lineage_id, principal):
        found = super().lineage(lineage_id, operator())
        if found is None or found.room is None or principal.room is None:
            return super().lineage(lineage_id, principal)
        chats = {attrs.evolve(each, thread_id="") for each in (found.room, principal.room)}
        return found if found.owner in principal.owners and len(chats) == 1 else None


def _keeping_room(handler):
    """Return a handler that lets a lineage keep its room whatever is said elsewhere."""

    def keep(tables, operation):
        before = tables.lineages.get(operation.lineage_id)
        result = handler(tables, operation)
        now = tables.lineages[operation.lineage_id]
        tables.lineages[now.id] = attrs.evolve(now, room=before.room)
        return result

    return keep


def _bind_publishing(tables, operation):
    entry = routes.bind_route(tables, operation)
    lineage = tables.lineages[entry.lineage_id]
    tables.lineages[lineage.id] = attrs.evolve(lineage, room=room_of(operation.source))
    return entry


LAWS = {
    "fence of another lineage": (
        {ops.Append: _append_to_any_lineage},
        leases.LeaseTests,
        "test_a_fence_names_the_turn_of_its_own_lineage",
    ),
    "worker taken for dead": (
        {ops.Append: _append_without_a_sign_of_life},
        leases.LeaseTests,
        "test_a_step_shows_that_the_holder_lives",
    ),
    "begin answered to somebody else": (
        {ops.Begin: _begin_known_by_turn_id},
        turn_tests.BeginTests,
        "test_a_begin_run_again_by_somebody_else_is_busy",
    ),
    "user row stored again": (
        {ops.Begin: _begin_storing_again},
        turn_tests.BeginTests,
        "test_a_user_row_that_is_there_already_is_not_stored_again",
    ),
    "broken message waits again": (
        {ops.Begin: _begin_waiting_again},
        turn_tests.BeginTests,
        "test_a_message_whose_turn_broke_off_does_not_wait_again",
    ),
    "accepted message stored again": (
        {ops.Append: _append_storing_again},
        transcripts.TranscriptTests,
        "test_an_accepted_message_is_stored_once",
    ),
    "call of an earlier turn answered": (
        {ops.Append: _append_late_results},
        transcripts.LegalityTests,
        "test_a_call_of_an_earlier_turn_is_not_open",
    ),
    "deleted by any stamp": (
        {ops.Delete: _delete_whatever_is_presumed},
        deletion.DeletionTests,
        "test_delete_with_the_stamp_of_another_moment_is_refused",
    ),
    "deleted in spite of a renewal": (
        {ops.Delete: _delete_by_token},
        deletion.DeletionTests,
        "test_delete_with_the_stamp_of_another_moment_is_refused",
    ),
    "rooms forgotten": (
        RoomsForgotten,
        rooms.RoomTests,
        "test_in_a_group_a_person_reaches_only_what_was_said_in_that_group",
    ),
    "rooms instead of owners": (
        RoomsInsteadOfOwners,
        rooms.RoomTests,
        "test_a_shared_room_reaches_its_own_and_nobodys_else",
    ),
    "threads taken for their chat": (
        RoomsOfOneChat,
        rooms.RoomTests,
        "test_in_a_group_a_person_reaches_only_what_was_said_in_that_group",
    ),
    "bound elsewhere and still heard": (
        {ops.BindRoute: _keeping_room(routes.bind_route)},
        rooms.RoomTests,
        "test_a_lineage_that_is_bound_at_another_place_is_private",
    ),
    "said elsewhere and still heard": (
        {ops.Begin: _keeping_room(turns.begin)},
        rooms.RoomTests,
        "test_a_message_from_another_place_makes_a_lineage_private",
    ),
    "made public by a group": (
        {ops.BindRoute: _bind_publishing},
        rooms.RoomTests,
        "test_what_was_private_once_stays_private",
    ),
    "owners joined": (OwnersJoined, rooms.StrangerTests, "test_who_looks_like_the_owner_is_a_stranger"),
    "owners cleaned": (OwnersCleaned, rooms.StrangerTests, "test_who_looks_like_the_owner_is_a_stranger"),
}


@pytest.mark.parametrize(("fault", "part", "law"), LAWS.values(), ids=LAWS.keys())
def test_the_law_catches(run_mutant, fault, part, law):
    fates = run_mutant(fault, part, only=law)

    assert {name.partition("[")[0] for name in fates.failed} == {law}
