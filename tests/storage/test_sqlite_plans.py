"""Hot statements find their rows by an index and give them in its order, at any size of the store."""

from __future__ import annotations

import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_core.storage.sqlite.handlers.registry import prepare
from hermes_core.storage.sqlite.reads import PinnedReads
from hermes_hookspecs.ids import DeliveryId, InboxId, TurnId
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import (
    Accept,
    Append,
    Attach,
    Claim,
    ClaimDelivery,
    Control,
    DeferDelivery,
    Delete,
    Deliver,
    DropDelivery,
    FailDelivery,
    Finish,
    GetOrCreate,
    JoinDeliveries,
    LeaveEntrances,
    MarkSent,
    MoveRoutes,
    Rekey,
    ReleaseRoute,
    Renew,
    RetryDelivery,
    Revoke,
    SplitDelivery,
    Sweep,
    Withdraw,
)
from hermes_hookspecs.outbox import DeliveryDraft, OpenedThread, PartDraft
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.principal import Principal, owner_of
from hermes_hookspecs.sessions import SessionFilter
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    Scene,
    asking,
    fence_of,
    holder_at,
    key_of,
    result,
    saying,
    source_at,
)
from hermes_hookspecs.turns import Usage

DOORS = (Entrance("feishu"), Entrance("slack", "second"))


class Planning:
    """Runs every statement on the real thing and notes the plan that SQLite has for it."""

    def __init__(self, inner):
        self.inner = inner
        self.plans = []

    def _note(self, sql, bindings):
        rows = self.inner.all(f"EXPLAIN QUERY PLAN {sql}", bindings)
        self.plans += [f"{row[3]} <- {' '.join(sql.split())}" for row in rows]

    def all(self, sql, bindings=()):
        self._note(sql, bindings)
        return self.inner.all(sql, bindings)

    def one(self, sql, bindings=()):
        self._note(sql, bindings)
        return self.inner.one(sql, bindings)

    def run(self, sql, bindings=()):
        self._note(sql, bindings)
        return self.inner.run(sql, bindings)

    def insert(self, sql, bindings=()):
        self._note(sql, bindings)
        return self.inner.insert(sql, bindings)

    def run_many(self, sql, rows):
        for row in rows:
            self.run(sql, row)

    @property
    def slow(self):
        found = []
        for plan in self.plans:
            step = plan.partition(" <- ")[0]
            # A constant row and a bounded subquery are no tables.
            if step.startswith("SCAN") and step not in {"SCAN CONSTANT ROW", "SCAN (subquery-1)", "SCAN sqlite_schema"}:
                found.append(plan)
            if "TEMP B-TREE" in step or "AUTOMATIC" in step:
                found.append(plan)
        return found


@pytest.fixture
def scene(tmp_path):
    store = SqliteBackend().open(StoreOptions(path=tmp_path / "state.db"))
    yield Scene(store)
    store.close()


@pytest.fixture
def entry(scene):
    entry = scene.enter()
    scene.talk(entry)
    return entry


def _plans_of_write(scene, operation):
    def work(tx):
        planning = Planning(tx)
        prepare(operation)(planning)
        return planning

    return scene.store._database.apply(work)


def _plans_of_read(scene, read):
    with scene.store._database.read() as reader:
        planning = Planning(reader)
        read(PinnedReads(scene.store.path, planning))
    return planning


def _writes(scene, entry):
    begun = scene.begin(entry.lineage_id, scene.accept("q", lineage_id=entry.lineage_id))
    fence = fence_of(begun)
    yield Append(fence=fence, drafts=(saying("a"),), now=1)
    yield Append(fence=fence, drafts=(saying("a"), asking("1", "2")), now=1)
    yield Append(fence=fence, drafts=(result("1"),), now=1)
    yield Renew(fence=fence, now=1, ttl_ms=5)
    yield scene.beginning(entry.lineage_id, InboxId(1))
    yield Finish(fence=fence, outcome="done", now=2, drafts=(result("2"), saying("b")), usage=(Usage(input_tokens=1),))
    yield Accept(drafts=(scene.incoming(identities=("a", "b")), scene.incoming()), now=1)
    waiting = [item.id for item in scene.store.waiting(entry.lineage_id)]
    yield scene.beginning(entry.lineage_id, *waiting)
    yield Revoke(lineage_id=entry.lineage_id, now=3, reason="x")
    yield scene.wanting(now=scene.now + 10_000)
    yield scene.wanting("agent:main:feishu:dm:chat=new", source_at("new"))
    yield scene.wanting(force_new=True, observed=entry.lineage_id)
    yield ReleaseRoute(key=KEY, now=5, reason="session_reset", title="next")
    yield scene.wanting()
    yield Withdraw(ids=(InboxId(1),), now=1)
    yield Attach(inbox_id=InboxId(1), attachments=(), now=1)


def test_no_hot_write_reads_a_whole_table(scene, entry):
    seen, slow = set(), []

    for operation in _writes(scene, entry):
        planning = _plans_of_write(scene, operation)
        assert planning.plans, operation
        seen.add(type(operation).__name__)
        slow += planning.slow

    assert slow == []
    assert seen >= {"Append", "Begin", "Finish", "Accept", "GetOrCreate", "Renew", "Revoke"}


def _answers(scene, entry):
    """Writes of the outbox, of its entrances, and of turns that bring deliveries or rows that wait again."""
    lineage_id = entry.lineage_id
    answer = [
        DeliveryDraft(key=f"{n}", target=source_at(), text="a", session_key=KEY, lineage_id=lineage_id)
        for n in range(4)
    ]
    dead = scene.ask(entry)
    again = frozenset(dead.turn.inbox_ids)
    note = MessageDraft(role=USER, content="once more", timestamp=1, kind="recovery")
    retry = scene.beginning(
        lineage_id, *again, presumed_dead=dead.lease.stamp, again=again, note=note, deliveries=tuple(answer[:1])
    )
    yield retry
    yield retry
    fence = fence_of(scene.begin(lineage_id, *again, presumed_dead=scene.lease(lineage_id).stamp, again=again))
    steered = scene.accept("steered", lineage_id=lineage_id)
    yield Append(
        fence=fence, drafts=(MessageDraft(role=USER, content="x", timestamp=1, inbox_id=steered),), now=scene.now
    )
    yield Finish(fence=fence, outcome="stopped", now=2, deliveries=tuple(answer[1:2]), again=again)
    yield Accept(drafts=(scene.incoming(only_if_idle=True), scene.incoming(kind="control")), now=1)
    (command,) = scene.store.controls(DOORS)
    yield Control(inbox_id=command.id, effect=None, now=1)
    yield Deliver(drafts=tuple(answer), now=3, settle=command.id)
    yield from _attempts(scene, DeliveryId(1))
    yield FailDelivery(delivery_id=DeliveryId(2), attempt=1, now=scene.now, error="x")
    yield RetryDelivery(delivery_id=DeliveryId(2), now=scene.now)
    yield DropDelivery(delivery_id=DeliveryId(2), now=scene.now)
    yield LeaveEntrances(holders=(holder_at(),), now=1)
    yield Delete(lineage_id=lineage_id, now=9, force=True)
    yield Sweep(now=scene.now, inbox_before=scene.now + 1, outbox_before=scene.now + 1)


def _attempts(scene, delivery_id):
    def claim(attempts, of=delivery_id):
        return ClaimDelivery(delivery_id=of, owner=holder_at(), expected_attempt=attempts, now=scene.now)

    later = {"delivery_id": delivery_id, "attempt": 1, "now": scene.now}
    yield claim(0)
    yield SplitDelivery(**later, parts=(PartDraft(text="a"), PartDraft(text="b")))
    yield MarkSent(**later, index=0)
    yield JoinDeliveries(**later, joined=(DeliveryId(3),), text="x", parts=(PartDraft(text="x"),))
    yield DeferDelivery(**later, due_at=scene.now, error="x", awaits_inbound=True)
    yield Accept(drafts=(scene.incoming(),), now=scene.now)
    yield claim(1)
    opened = OpenedThread(key=key_of("thread"), key_version=1, source=source_at("t"), policy=scene.policy)
    yield MarkSent(**later | {"attempt": 2}, index=1, opened=opened)
    yield claim(0, DeliveryId(2))


def test_no_write_of_the_outbox_or_of_recovery_reads_a_whole_table(scene, entry):
    seen, slow = set(), []

    for operation in _answers(scene, entry):
        planning = _plans_of_write(scene, operation)
        assert planning.plans, operation
        seen.add(type(operation).__name__)
        slow += planning.slow

    assert slow == []
    assert seen >= {
        "Control",
        "Deliver",
        "ClaimDelivery",
        "MarkSent",
        "DeferDelivery",
        "FailDelivery",
        "JoinDeliveries",
        "Sweep",
    }


def test_no_claim_and_no_move_of_a_route_reads_a_whole_table(scene, entry):
    other = scene.enter(key_of("old"))
    move = Rekey(
        key=KEY,
        new_key=key_of("new"),
        expected=entry.lineage_id,
        key_version=2,
        policy=scene.policy,
        owner=owner_of(source_at("oc_7", "ou_7"), shared=False),
        shared=True,
    )
    claims = (Claim(key=other.session_key, scope_id="T1"), Claim(key=other.session_key))
    scoped = source_at(scope_id="T1")

    moved = _plans_of_write(scene, MoveRoutes(moves=(move,), batch="B1", now=9))
    refused = _plans_of_write(scene, scene.wanting(key_of("a"), scoped, claims=claims[:1]))
    claimed = _plans_of_write(scene, scene.wanting(key_of("b"), scoped, claims=claims))

    assert moved.slow == refused.slow == claimed.slow == []
    assert [line.kind for line in scene.store.route_moves()] == ["claimed", "refused", "moved"]


@pytest.mark.parametrize(
    ("name", "read"),
    {
        "route": lambda r, e: r.route(KEY),
        "routes": lambda r, e: r.routes(limit=20),
        "routes of a lineage": lambda r, e: r.route(e.session_key),
        "lineage": lambda r, e: r.lineage(e.lineage_id, ALL),
        "session": lambda r, e: r.session(e.session_id, ALL),
        "segments": lambda r, e: r.segments(e.lineage_id, ALL),
        "prefix": lambda r, e: r.sessions_by_prefix("2026", ALL),
        "list": lambda r, e: r.summaries(ALL),
        "list of somebody": lambda r, e: r.summaries(_principal()),
        "list of both": lambda r, e: r.summaries(ALL, where=SessionFilter(archived=None)),
        "list of a platform": lambda r, e: r.summaries(ALL, where=SessionFilter(source="feishu", empty=False)),
        "next page": lambda r, e: r.summaries(ALL, where=SessionFilter(before=(5, e.lineage_id))),
        "messages": lambda r, e: r.messages(e.lineage_id, ALL),
        "messages behind": lambda r, e: r.messages(e.lineage_id, ALL, after=5, limit=10),
        "last messages": lambda r, e: r.last_messages(e.lineage_id, ALL, count=50),
        "turn": lambda r, e: r.turn(TurnId("x")),
        "turns": lambda r, e: r.turns(e.lineage_id, ALL),
        "usage": lambda r, e: r.usage(TurnId("x")),
        "lease": lambda r, e: r.lease(e.lineage_id),
        "waiting": lambda r, e: r.waiting(e.lineage_id),
        "waiting of a key": lambda r, e: r.waiting_of_key(KEY),
        "item": lambda r, e: r.inbox_item(InboxId(1)),
        "active turn": lambda r, e: r.active_turn(e.lineage_id),
        "open calls": lambda r, e: r.open_calls(e.lineage_id),
        "work": lambda r, e: r.work(DOORS),
        "unrouted": lambda r, e: r.unrouted(DOORS),
        "controls": lambda r, e: r.controls(DOORS),
        "controls of a key": lambda r, e: r.controls_of_key(KEY),
        "attended": lambda r, e: r.attended(),
        "quarantined": lambda r, e: r.quarantined(),
        "delivery": lambda r, e: r.delivery(DeliveryId(1)),
        "delivery by key": lambda r, e: r.delivery_by_key("k"),
        "deliveries": lambda r, e: r.deliveries(),
        "deliveries in a state": lambda r, e: r.deliveries(statuses=("failed", "sent")),
        "next deliveries": lambda r, e: r.next_deliveries(DOORS),
        "state": lambda r, e: r.state("p", "k", now=1),
        "states": lambda r, e: r.states("p", now=1, prefix="k"),
        "changes": lambda r, e: r.changes(None),
    }.items(),
)
def test_no_hot_read_sorts_or_reads_a_whole_table(scene, entry, name, read):
    planning = _plans_of_read(scene, lambda reads: read(reads, entry))

    assert planning.plans
    assert [plan for plan in planning.slow if not _walks_an_index_in_order(plan)] == []


def test_a_scan_begins_with_the_newest_rows_and_sorts_nothing(scene, entry):
    planning = _plans_of_read(scene, lambda reads: reads.scan(["hello"], ALL, limit=5))

    assert planning.plans[0].startswith("SCAN m <-")
    assert [plan for plan in planning.slow if "TEMP B-TREE" in plan] == []


def _principal():
    return Principal(owners=frozenset({owner_of(source_at(), shared=False)}))


def _walks_an_index_in_order(plan):
    """A list of all routes has no condition: it walks its index and stops at the limit. So does a list of deliveries,
    by their numbers. The cursor of the feed asks SQLite's own table of sequences, which has a row for each of a handful
    of tables. What somebody waits for is looked for among what waits. The heads of the outbox are rows of the
    statement itself, one for each address.
    """
    ordered = (
        "SCAN routes USING INDEX routes_by_use",
        "SCAN inbox USING INDEX inbox_pending",
        "SCAN outbox <-",
        "SCAN sqlite_sequence",
        "SCAN heads",
        "SCAN inbox USING INDEX inbox_quarantined",
    )
    return plan.startswith(ordered)


def test_an_accepted_message_looks_for_deliveries_that_await_it_and_at_no_others(scene, entry):
    planning = _plans_of_write(scene, Accept(drafts=(scene.incoming(),), now=1))

    assert [plan.partition(" <- ")[0] for plan in planning.plans if " outbox " in plan] == [
        "SEARCH outbox USING INDEX outbox_listening (address=?)"
    ]


@pytest.mark.parametrize("queue", [1, 300])
def test_a_long_queue_at_one_address_is_stepped_over(scene, entry, queue):
    drafts = [
        DeliveryDraft(key=f"{n}", target=source_at("oc_1"), text="a", session_key=KEY, lineage_id=entry.lineage_id)
        for n in range(queue)
    ]
    other = DeliveryDraft(key="other", target=source_at("oc_2"), text="b", session_key=KEY)
    scene.run(Deliver(drafts=(*drafts, other), now=scene.now))
    steps = 0

    def count():
        nonlocal steps
        steps += 1
        return False

    with scene.store._database.read() as reader:
        reader._connection.set_progress_handler(count, 1)
        found = PinnedReads(scene.store.path, reader).next_deliveries(DOORS)
        reader._connection.set_progress_handler(None)

    assert [delivery.key for delivery in found] == ["0", "other"]
    assert steps < 1_000


def test_a_step_of_a_turn_is_two_statements(scene, entry):
    begun = scene.ask(entry)
    statements = []

    class Counting(Planning):
        def _note(self, sql, bindings):
            statements.append(sql)

    operation = Append(fence=fence_of(begun), drafts=(saying("a"),), now=1)
    scene.store._database.apply(lambda tx: prepare(operation)(Counting(tx)))

    assert len(statements) == 2


def test_a_routing_hit_is_one_statement_of_two_look_ups(scene, entry):
    statements = []

    class Counting(Planning):
        def _note(self, sql, bindings):
            statements.append(sql)
            super()._note(sql, bindings)

    from hermes_core.storage.sqlite.queries.routes import entry_of_key

    with scene.store._database.read() as reader:
        counting = Counting(reader)
        found = entry_of_key(counting, KEY)

    assert found is not None
    assert len(statements) == 1
    assert [plan.split()[0] for plan in counting.plans] == ["SEARCH", "SEARCH"]
    assert isinstance(scene.wanting(), GetOrCreate)
