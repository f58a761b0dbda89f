"""Faults of recovery and upkeep: what is lost with its turn, told too early or swept too soon is caught by its law."""

from __future__ import annotations

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's in-memory store")

from hermes_core.storage.memory import MemoryStore, outbox, turns, upkeep
from hermes_hookspecs import operations as ops
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.messages import KIND_RECOVERY
from hermes_hookspecs.testing.storage import presence, recovery, steering, sweep

# ------------------------------------------------------------------ turns


def _begin_telling_anyway(tables, operation):
    begun = turns.begin(tables, operation)
    outbox.store_deliveries(tables, operation.deliveries, operation.now)
    return begun


def _begin_breaking_off_first(tables, operation):
    """Ends the dead turn before it knows whether anything begins."""
    lease = tables.leases[operation.lineage_id]
    if lease.holder is not None and lease.stamp == operation.presumed_dead:
        revoke = ops.Revoke(
            lineage_id=operation.lineage_id, now=operation.now, reason="", outcome="interrupted", again=operation.again
        )
        turns.revoke(tables, revoke)
    return turns.begin(tables, operation)


def _begin_noting_always(tables, operation):
    there = tables.last_message
    begun = turns.begin(tables, operation)
    noted = any(row.id > there and row.kind == KIND_RECOVERY for row in tables.transcripts[operation.lineage_id])
    if isinstance(begun, ops.Begun) and operation.note is not None and not noted and not operation.maintenance:
        rows = tables.add_rows(
            begun.turn.lineage_id, begun.turn.session_id, begun.turn.id, [operation.note], operation.now
        )
        begun = attrs.evolve(begun, rows=begun.rows + rows)
    return begun


def _begin_passing_over_again(tables, operation):
    wanted = {draft.inbox_id for draft in operation.drafts}
    passed_over = operation.passed_over | (operation.again - wanted)
    return turns.begin(tables, attrs.evolve(operation, passed_over=passed_over))


def _begin_with_nothing_again(tables, operation):
    return turns.begin(tables, attrs.evolve(operation, again=frozenset()))


def _finish_with_nothing_again(tables, operation):
    return turns.finish(tables, attrs.evolve(operation, again=frozenset()))


def _finish_without_the_answer(tables, operation):
    return turns.finish(tables, attrs.evolve(operation, deliveries=()))


def _begin_forgetting_attempts(tables, operation):
    lease = tables.leases[operation.lineage_id]
    if lease.stamp == operation.presumed_dead:
        for inbox_id in operation.again & set(tables.inbox):
            tables.set_item(tables.inbox[inbox_id], attempts=0)
    return turns.begin(tables, operation)


def _append_leaving_the_row(tables, operation):
    before = dict(tables.inbox), dict(tables.settled)
    ids = turns.append(tables, operation)
    tables.inbox, tables.settled = before
    return ids


def _append_taking_anything(tables, operation):
    turn = tables.turns[operation.fence.turn_id]
    for draft in operation.drafts:
        item = tables.inbox.get(draft.inbox_id)
        if item is not None:
            tables.inbox[item.id] = attrs.evolve(item, status=PENDING, lineage_id=turn.lineage_id)
    return turns.append(tables, operation)


def _append_publishing(tables, operation):
    room = tables.lineages[operation.fence.lineage_id].room
    ids = turns.append(tables, operation)
    lineage = tables.lineages[operation.fence.lineage_id]
    tables.lineages[lineage.id] = attrs.evolve(lineage, room=room)
    return ids


# ------------------------------------------------------------------ upkeep


def _serve_anew(tables, operation):
    upkeep.leave_entrances(tables, ops.LeaveEntrances(holders=(operation.holder,), now=operation.now))
    upkeep.serve_entrances(tables, operation)


def _serve_by_key(tables, operation):
    """Takes a process that serves another key for another process."""
    known = dict(tables.servers)
    tables.servers = {place: each for place, each in known.items() if each.holder == operation.holder}
    upkeep.serve_entrances(tables, operation)
    other = {(*place, each.holder.session_key): each for place, each in known.items() if place in tables.servers}
    tables.servers |= {place: each for place, each in (known | other).items() if each.holder != operation.holder}


class WorkOfTheWaiters(MemoryStore):
    def work(self, entrances, *, limit=100):
        found = [item for item in self._tables.pending() if item.lineage_id is not None]
        return tuple(dict.fromkeys(item.lineage_id for item in found))[:limit]


def _sweep_by_acceptance(tables, operation):
    tables.settled = {row: tables.inbox[row].accepted_at for row in tables.settled}
    return upkeep.sweep(tables, operation)


def _sweep_what_waits(tables, operation):
    for item in tables.inbox.values():
        tables.settled.setdefault(item.id, item.accepted_at)
    return upkeep.sweep(tables, operation)


def _sweep_keeping_identities(tables, operation):
    known = dict(tables.identities)
    swept = upkeep.sweep(tables, operation)
    tables.identities = known
    return swept


def _sweep_everything(tables, operation):
    return upkeep.sweep(tables, attrs.evolve(operation, limit=500))


def _sweep_what_is_sent_again(tables, operation):
    for row in tables.deliveries.values():
        tables.deliveries[row.id] = attrs.evolve(row, settled_at=row.settled_at or row.created_at)
    return upkeep.sweep(tables, operation)


FAULTS = {
    "told though nothing began": (
        {ops.Begin: _begin_telling_anyway},
        recovery.RecoveryTests,
        "test_a_begin_that_does_not_begin_writes_nothing",
    ),
    "broken off though nothing began": (
        {ops.Begin: _begin_breaking_off_first},
        recovery.RecoveryTests,
        "test_a_begin_that_does_not_begin_writes_nothing",
    ),
    "every turn noted": ({ops.Begin: _begin_noting_always}, recovery.RecoveryTests, "test_only_a_retry_is_noted"),
    "message lost with its turn": (
        {ops.Begin: _begin_with_nothing_again},
        recovery.RecoveryTests,
        "test_a_message_is_answered_after_all",
    ),
    "retry passed by": (
        {ops.Begin: _begin_passing_over_again},
        recovery.RecoveryTests,
        "test_what_would_wait_again_is_not_passed_by",
    ),
    "attempts forgotten": (
        {ops.Begin: _begin_forgetting_attempts},
        recovery.RecoveryTests,
        "test_each_try_counts_and_stores_its_own_note",
    ),
    "answer lost": (
        {ops.Finish: _finish_without_the_answer},
        recovery.EndingTests,
        "test_the_answer_is_stored_with_the_end",
    ),
    "leaving process takes its messages along": (
        {ops.Finish: _finish_with_nothing_again},
        recovery.EndingTests,
        "test_a_process_that_has_to_leave_lets_its_messages_wait",
    ),
    "steered and answered again": (
        {ops.Append: _append_leaving_the_row},
        steering.SteeringTests,
        "test_a_steered_message_is_stored_and_done",
    ),
    "steered from anywhere": (
        {ops.Append: _append_taking_anything},
        steering.SteeringTests,
        "test_what_does_not_wait_here_is_not_said",
    ),
    "steered in public": (
        {ops.Append: _append_publishing},
        steering.SteeringTests,
        "test_what_is_steered_from_another_place_makes_the_lineage_private",
    ),
    "each beat a beginning": (
        {ops.ServeEntrances: _serve_anew},
        presence.PresenceTests,
        "test_a_sign_of_life_is_a_beat_and_no_new_beginning",
    ),
    "process told by its key": (
        {ops.ServeEntrances: _serve_by_key},
        presence.PresenceTests,
        "test_a_process_is_the_same_at_every_door_and_key",
    ),
    "work of somebody who waits": (
        WorkOfTheWaiters,
        presence.WorkTests,
        "test_what_somebody_waits_for_is_his_own_work",
    ),
    "swept by acceptance": (
        {ops.Sweep: _sweep_by_acceptance},
        sweep.SweepTests,
        "test_age_counts_from_the_end_not_from_acceptance",
    ),
    "swept while it waits": (
        {ops.Sweep: _sweep_what_waits},
        sweep.SweepTests,
        "test_what_waits_runs_or_is_half_applied_stays",
    ),
    "identities outlive their rows": (
        {ops.Sweep: _sweep_keeping_identities},
        sweep.SweepTests,
        "test_identities_go_with_their_rows",
    ),
    "swept before it is sent": (
        {ops.Sweep: _sweep_what_is_sent_again},
        sweep.SweepTests,
        "test_what_is_to_be_sent_stays",
    ),
    "swept without end": (
        {ops.Sweep: _sweep_everything},
        sweep.SweepTests,
        "test_a_step_is_bounded_and_says_that_there_is_more",
    ),
}


@pytest.mark.parametrize(("fault", "part", "law"), FAULTS.values(), ids=FAULTS.keys())
def test_the_law_catches(run_mutant, fault, part, law):
    fates = run_mutant(fault, part, only=law)

    assert {name.partition("[")[0] for name in fates.failed} == {law}
