"""Faults of commands and deliveries: what is applied or said twice, or out of order, is caught by its law."""

from __future__ import annotations

from itertools import count

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's in-memory store")

from hermes_core.storage.memory import inbox, outbox, routes
from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.inbox import APPLIED, CONTROL, PENDING, WITHDRAWN
from hermes_hookspecs.outbox import OPEN_STATES, WAITING
from hermes_hookspecs.testing.storage import controls, joining, sending
from hermes_hookspecs.testing.storage import inbox as inbox_tests
from hermes_hookspecs.testing.storage import outbox as outbox_tests


def _with(handler, **changes):
    """Return a handler whose operation has other fields: values, or functions of the tables and the operation."""

    def run(tables, operation):
        fields = {name: each(tables, operation) if callable(each) else each for name, each in changes.items()}
        return handler(tables, attrs.evolve(operation, **fields))

    return run


def _attempt_of(tables, operation):
    row = tables.deliveries.get(operation.delivery_id)
    return 0 if row is None else row.attempt


# ------------------------------------------------------------------ commands


def _control_again(tables, operation):
    item = tables.inbox.get(operation.inbox_id)
    if item is not None and item.outcome is not None:
        tables.inbox[item.id] = attrs.evolve(item, outcome=None, status=PENDING)
    return inbox.control(tables, operation)


def _control_before_its_effect(tables, operation):
    """Marks the row although the effect failed; the error is shown afterwards, from outside."""
    try:
        return inbox.control(tables, operation)
    except HermesError:
        item = tables.inbox.get(operation.inbox_id)
        if item is not None and item.kind == CONTROL and item.status == PENDING:
            tables.inbox[item.id] = attrs.evolve(item, status=APPLIED)
            return None
        raise


def _control_withdrawn(tables, operation):
    item = tables.inbox.get(operation.inbox_id)
    if item is not None and item.status == WITHDRAWN:
        tables.set_item(item, status=PENDING)
    return inbox.control(tables, operation)


def _bind_without_counting(tables, operation):
    return attrs.evolve(routes.bind_route(tables, operation), superseded=0)


# ------------------------------------------------------------------ outbox

_numbers = count()


def _deliver_every_time(tables, operation):
    fresh = tuple(attrs.evolve(draft, key=f"{draft.key} {next(_numbers)}") for draft in operation.drafts)
    ids = outbox.deliver(tables, attrs.evolve(operation, drafts=fresh))
    for delivery_id, draft in zip(ids, operation.drafts, strict=True):
        tables.deliveries[delivery_id] = attrs.evolve(tables.deliveries[delivery_id], key=draft.key)
    return ids


def _claim_out_of_order(tables, operation):
    everything = tables.deliveries
    tables.deliveries = {key: row for key, row in everything.items() if key == operation.delivery_id}
    claimed = outbox.claim_delivery(tables, operation)
    tables.deliveries = everything | tables.deliveries
    return claimed


def _claim_in_one_queue(tables, operation):
    queue = [row.id for row in tables.deliveries.values() if row.status in OPEN_STATES]
    return outbox.claim_delivery(tables, operation) if queue[:1] == [operation.delivery_id] else None


def _claim_certain(tables, operation):
    claimed = outbox.claim_delivery(tables, operation)
    if claimed is not None:
        claimed = tables.deliveries[claimed.id] = attrs.evolve(claimed, uncertain=False)
    return claimed


def _claim_with_new_keys(tables, operation):
    claimed = outbox.claim_delivery(tables, operation)
    if claimed is not None and claimed.parts:
        parts = tuple(attrs.evolve(part, key=f"{part.key}.{claimed.attempt}") for part in claimed.parts)
        claimed = tables.deliveries[claimed.id] = attrs.evolve(claimed, parts=parts)
    return claimed


def _split_anew(tables, operation):
    row = tables.deliveries.get(operation.delivery_id)
    if row is not None:
        tables.deliveries[row.id] = attrs.evolve(row, parts=())
    return outbox.split_delivery(tables, operation)


def _join_and_leave(tables, operation):
    before = dict(tables.deliveries)
    joined = outbox.join_deliveries(tables, operation)
    for each in operation.joined:
        tables.deliveries[each] = before[each]
    return joined


def _join_across(tables, operation):
    claimed = tables.deliveries.get(operation.delivery_id)
    for each in operation.joined:
        row = tables.deliveries[each]
        tables.deliveries[each] = attrs.evolve(row, lineage_id=claimed.lineage_id)
    return outbox.join_deliveries(tables, operation)


def _mark_next(tables, operation):
    row = tables.deliveries.get(operation.delivery_id)
    unsent = [part.index for part in row.parts if part.sent_at is None] if row is not None else []
    return outbox.mark_sent(tables, attrs.evolve(operation, index=unsent[0] if unsent else operation.index))


def _mark_and_lead(tables, operation):
    if operation.opened is not None:
        tables.routes.pop(operation.opened.key, None)
    return outbox.mark_sent(tables, operation)


def _fail_in_place(tables, operation):
    row = outbox.fail_delivery(tables, operation)
    tables.deliveries[row.id] = attrs.evolve(row, status=WAITING, settled_at=None)
    return tables.deliveries[row.id]


def _accept_waking_all(tables, operation):
    for row in tables.deliveries.values():
        outbox.wake_deliveries(tables, row.target, operation.now)
    return inbox.accept(tables, operation)


def _accept_waking_nobody(tables, operation):
    before = dict(tables.deliveries)
    results = inbox.accept(tables, operation)
    tables.deliveries = before
    return results


def _accept_between_attempts(tables, operation):
    before = tables.answered
    results = inbox.accept(tables, operation)
    tables.answered = before
    return results


def _claim_answered_before(tables, operation):
    before = tables.answered
    claimed = outbox.claim_delivery(tables, operation)
    tables.answered = before
    return claimed


def _accept_by_the_busy(tables, operation):
    drafts = tuple(attrs.evolve(draft, only_if_idle=False) for draft in operation.drafts)
    return inbox.accept(tables, attrs.evolve(operation, drafts=drafts))


COMMANDS = controls.ControlTests
FAULTS = {
    "effect runs again": ({ops.Control: _control_again}, COMMANDS, "test_an_effect_does_not_run_again"),
    "failed effect is applied": (
        {ops.Control: _control_before_its_effect},
        COMMANDS,
        "test_an_effect_that_fails_leaves_everything_as_it_was",
    ),
    "withdrawn command applied": (
        {ops.Control: _control_withdrawn},
        COMMANDS,
        "test_only_a_command_that_waits_is_applied",
    ),
    "reply leaves its command": (
        {ops.Deliver: _with(outbox.deliver, settle=None)},
        COMMANDS,
        "test_the_reply_settles_the_command",
    ),
    "settled rows not counted": (
        {ops.BindRoute: _bind_without_counting},
        inbox_tests.InboxTests,
        "test_bind_without_carrying_settles_the_older_rows",
    ),
    "said twice": (
        {ops.Deliver: _deliver_every_time},
        outbox_tests.OutboxTests,
        "test_a_known_key_is_not_stored_again",
    ),
    "out of order": (
        {ops.ClaimDelivery: _claim_out_of_order},
        outbox_tests.OutboxTests,
        "test_a_younger_row_waits_behind_an_open_one",
    ),
    "one queue for all": (
        {ops.ClaimDelivery: _claim_in_one_queue},
        outbox_tests.OutboxTests,
        "test_another_address_does_not_wait",
    ),
    "claimed twice": (
        {ops.ClaimDelivery: _with(outbox.claim_delivery, expected_attempt=_attempt_of)},
        outbox_tests.OutboxTests,
        "test_a_second_claim_gets_nothing",
    ),
    "living sender robbed": (
        {ops.ClaimDelivery: _with(outbox.claim_delivery, presumed_dead=True)},
        outbox_tests.OutboxTests,
        "test_a_second_claim_gets_nothing",
    ),
    "sent before it is due": (
        {ops.ClaimDelivery: _with(outbox.claim_delivery, now=10**15)},
        outbox_tests.OutboxTests,
        "test_a_row_is_not_sent_before_it_is_due",
    ),
    "failed row holds its place": (
        {ops.FailDelivery: _fail_in_place},
        outbox_tests.OutboxTests,
        "test_a_row_that_has_ended_lets_the_next_one_go",
    ),
    "take-over takes nothing for uncertain": (
        {ops.ClaimDelivery: _claim_certain},
        sending.SendingTests,
        "test_whoever_takes_over_does_not_know_what_went_out",
    ),
    "keys of each attempt": (
        {ops.ClaimDelivery: _claim_with_new_keys},
        sending.SendingTests,
        "test_parts_are_made_once",
    ),
    "cut anew": ({ops.SplitDelivery: _split_anew}, sending.SendingTests, "test_parts_are_made_once"),
    "late mark taken": (
        {ops.MarkSent: _with(outbox.mark_sent, attempt=_attempt_of)},
        sending.SendingTests,
        "test_only_the_attempt_that_sends_may_write",
    ),
    "joined rows stay open": (
        {ops.JoinDeliveries: _join_and_leave},
        joining.JoiningTests,
        "test_those_that_wait_behind_become_parts_of_the_one_in_hand",
    ),
    "conversations joined": (
        {ops.JoinDeliveries: _join_across},
        joining.JoiningTests,
        "test_nothing_is_joined_where_that_cannot_be",
    ),
    "any part marked": ({ops.MarkSent: _mark_next}, sending.SendingTests, "test_parts_are_marked_in_order"),
    "thread taken from its lineage": (
        {ops.MarkSent: _mark_and_lead},
        sending.ThreadTests,
        "test_a_key_that_leads_somewhere_is_left_alone",
    ),
    "everybody woken": (
        {ops.Accept: _accept_waking_all},
        outbox_tests.InboundTests,
        "test_a_message_from_elsewhere_does_not",
    ),
    "nobody woken": (
        {ops.Accept: _accept_waking_nobody},
        outbox_tests.InboundTests,
        "test_a_message_from_its_address_makes_it_due",
    ),
    "message forgotten while it is sent": (
        {ops.Accept: _accept_between_attempts},
        sending.SendingTests,
        "test_a_message_that_came_meanwhile_is_not_awaited",
    ),
    "answered once and for all": (
        {ops.ClaimDelivery: _claim_answered_before},
        sending.SendingTests,
        "test_a_message_counts_for_one_attempt",
    ),
    "dropped while it is sent": (
        {ops.DropDelivery: _with(outbox.drop_delivery, presumed_dead=_attempt_of)},
        outbox_tests.PeopleTests,
        "test_what_is_sent_or_being_sent_is_left_alone",
    ),
    "busy lineage takes more": (
        {ops.Accept: _accept_by_the_busy},
        inbox_tests.InboxTests,
        "test_a_message_for_an_idle_lineage_is_refused_by_a_busy_one",
    ),
}


@pytest.mark.parametrize(("fault", "part", "law"), FAULTS.values(), ids=FAULTS.keys())
def test_the_law_catches(run_mutant, fault, part, law):
    fates = run_mutant(fault, part, only=law)

    assert {name.partition("[")[0] for name in fates.failed} == {law}
