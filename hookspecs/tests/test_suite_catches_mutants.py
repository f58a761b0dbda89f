"""A suite that nothing fails is worthless: each planted fault is caught by the part of the suite that is about it."""

from __future__ import annotations

import time

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's in-memory store")

from hermes_core.storage.memory import MemoryStore, inbox, plugin_state, routes, titles, turns
from hermes_core.storage.memory.reads import MemoryReader
from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.testing.storage import concurrency, finishes, leases, lineages, state, texts, transcripts
from hermes_hookspecs.testing.storage import inbox as inbox_tests
from hermes_hookspecs.testing.storage import routes as route_tests
from hermes_hookspecs.testing.storage import turns as turn_tests
from hermes_hookspecs.turns import ACTIVE


def _unfenced(tables, operation):
    """Append without the check."""
    turn = tables.turns[operation.fence.turn_id]
    rows = tables.add_rows(turn.lineage_id, turn.session_id, turn.id, operation.drafts, operation.now)
    tables.bump(turn.lineage_id)
    return tuple(row.id for row in rows)


class CheckedTooEarly(MemoryStore):
    """Checks the fence, lets go of the lock, and writes: the fault that the fence is there for."""

    def apply(self, operation):
        if not isinstance(operation, ops.Append):
            return super().apply(operation)
        lease, turn = self.lease(operation.fence.lineage_id), self.turn(operation.fence.turn_id)
        if lease.token != operation.fence.token or turn.outcome != ACTIVE:
            raise LeaseLost(operation.fence.lineage_id, operation.fence.token)
        time.sleep(0.001)  # the time in which another process revokes
        self._run = dict(self._run) | {ops.Append: _unfenced}
        return super().apply(operation)


class OwnersForgotten(MemoryStore):
    def lineage(self, lineage_id, principal):
        return self._tables.lineages.get(lineage_id)


class OrderedByTime(MemoryStore):
    def messages(self, *args, **kwargs):
        return tuple(sorted(super().messages(*args, **kwargs), key=lambda row: row.timestamp))


class LimitBeforeAccess(MemoryStore):
    def summaries(self, principal, *, where=None, limit=20):
        reader = MemoryReader(self._tables, self._instance)
        found = MemoryStore.summaries(
            self, attrs.evolve(principal, roles=frozenset({"operator"})), where=where, limit=limit
        )
        return tuple(row for row in found if reader.lineage(row.lineage_id, principal) is not None)


class NumberedCursors(MemoryStore):
    def changes(self, after, *, limit=1000):
        found, cursor = super().changes(None if after is None else f"{self._instance}.{int(after)}", limit=limit)
        return found, cursor.rpartition(".")[2]


class HalfWritten(MemoryStore):
    """Keeps what a failed operation had done until it failed."""

    def apply(self, operation):
        with self._lock:
            self._mark += 1
            return self._run[type(operation)](self._tables, operation)


class SurrogatesKept(MemoryStore):
    def apply(self, operation):
        with self._lock:
            tables = self._tables.copy()
            result = self._run[type(operation)](tables, operation)
            self._tables = tables
        return result


def _accept_all(tables, operation):
    drafts = tuple(attrs.evolve(draft, identities=()) for draft in operation.drafts)
    return inbox.accept(tables, attrs.evolve(operation, drafts=drafts))


def _rename_anyway(tables, operation):
    return titles._write(tables, tables.lineage(operation.lineage_id), operation.title, operation)


def _append_counting_once(tables, operation):
    result = turns.append(tables, operation)
    lineage = tables.lineages[operation.fence.lineage_id]
    tables.lineages[lineage.id] = attrs.evolve(lineage, message_count=lineage.message_count - len(result) + 1)
    return result


def _append_anything(tables, operation):
    turns.check_fence(tables, operation.fence)
    return _unfenced(tables, operation)


def _begin_always(tables, operation):
    lease = tables.leases.get(operation.lineage_id)
    return turns.begin(tables, attrs.evolve(operation, presumed_dead=None if lease is None else lease.stamp))


def _begin_out_of_turn(tables, operation):
    wanted = {draft.inbox_id for draft in operation.drafts}
    others = {item.id for item in tables.pending(lineage_id=operation.lineage_id)} - wanted
    return turns.begin(tables, attrs.evolve(operation, passed_over=frozenset(others) if wanted else frozenset()))


def _finish_with_open_calls(tables, operation):
    turn = turns.check_fence(tables, operation.fence)
    rows = tables.add_rows(turn.lineage_id, turn.session_id, turn.id, operation.drafts, operation.now)
    done = turns.finish(tables, attrs.evolve(operation, drafts=()))
    return attrs.evolve(done, message_ids=tuple(row.id for row in rows))


def _force_again(tables, operation):
    route = tables.routes.get(operation.key)
    seen = None if route is None else route.lineage_id
    return routes.get_or_create(tables, attrs.evolve(operation, observed=seen))


def _claim_any_scope(tables, operation):
    claims = [
        attrs.evolve(claim, scope_id=tables.routes[claim.key].source.scope_id)
        for claim in operation.claims
        if claim.key in tables.routes
    ]
    return routes.get_or_create(tables, attrs.evolve(operation, claims=tuple(claims)))


def _touch_always(tables, operation):
    return routes.get_or_create(tables, attrs.evolve(operation, touch=True))


def _release_everything(tables, operation):
    return routes.release_route(tables, attrs.evolve(operation, control_id=None))


def _revoke_without_growing(tables, operation):
    token = tables.leases[operation.lineage_id].token
    ended = turns.revoke(tables, operation)
    tables.leases[operation.lineage_id] = attrs.evolve(tables.leases[operation.lineage_id], token=token)
    return ended


def _put_always(tables, operation):
    updates = tuple(attrs.evolve(update, expected_version=None) for update in operation.updates)
    return plugin_state.put_state(tables, attrs.evolve(operation, updates=updates))


MUTANTS = {
    "fence left out": ({ops.Append: _unfenced}, leases.LeaseTests),
    "fence checked outside the transaction": (CheckedTooEarly, concurrency.ConcurrencyTests),
    "token does not grow": ({ops.Revoke: _revoke_without_growing}, leases.LeaseTests),
    "lease of a living holder taken": ({ops.Begin: _begin_always}, turn_tests.BeginTests),
    "younger rows first": ({ops.Begin: _begin_out_of_turn}, turn_tests.BeginTests),
    "open calls left open": ({ops.Finish: _finish_with_open_calls}, finishes.FinishTests),
    "legality left out": ({ops.Append: _append_anything}, transcripts.LegalityTests),
    "duplicates stored": ({ops.Accept: _accept_all}, inbox_tests.InboxTests),
    "younger rows superseded": ({ops.ReleaseRoute: _release_everything}, inbox_tests.InboxTests),
    "half a batch kept": (HalfWritten, inbox_tests.InboxTests),
    "owner forgotten": (OwnersForgotten, transcripts.AccessTests),
    "limit before access": (LimitBeforeAccess, transcripts.AccessTests),
    "titles not unique": ({ops.Rename: _rename_anyway}, lineages.TitleTests),
    "counters wrong": ({ops.Append: _append_counting_once}, finishes.FinishTests),
    "ordered by time": (OrderedByTime, transcripts.TranscriptTests),
    "two sessions forced": ({ops.GetOrCreate: _force_again}, route_tests.RouteTests),
    "claim across tenants": ({ops.GetOrCreate: _claim_any_scope}, route_tests.RouteTests),
    "internal events move the clock": ({ops.GetOrCreate: _touch_always}, route_tests.RouteTests),
    "state not compared": ({ops.PutState: _put_always}, state.StateTests),
    "cursors are numbers": (NumberedCursors, state.FeedTests),
    "half pairs stored": (SurrogatesKept, texts.TextTests),
}


@pytest.mark.parametrize(("fault", "part"), MUTANTS.values(), ids=MUTANTS.keys())
def test_the_suite_catches(run_mutant, fault, part):
    fates = run_mutant(fault, part)

    assert fates.failed, f"{len(fates.passed)} tests passed"


@pytest.mark.parametrize("part", [finishes.FinishTests, state.FeedTests], ids=lambda part: part.__name__)
def test_a_sound_store_is_not_blamed(run_mutant, part):
    fates = run_mutant({}, part)

    assert fates.failed == []
    assert len(fates.passed) > 5
