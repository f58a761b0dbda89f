"""What the state machine plays with: two stores, the time, and what was mentioned so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
from hypothesis.stateful import RuleBasedStateMachine, invariant

from hermes_hookspecs import operations as ops
from hermes_hookspecs.ids import DeliveryId, LineageId, SessionId, TurnId
from hermes_hookspecs.inbox import MESSAGE, InboxDraft
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.outbox import DeliveryDraft
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy
from hermes_hookspecs.testing.agreement import Known, Side
from hermes_hookspecs.testing.scene import ALL, holder_at
from hermes_hookspecs.testing.strategies import ENTRANCES, KEYS, TITLES, USERS
from hermes_hookspecs.turns import Fence, LeaseStamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_hookspecs.ids import InboxId, SessionKey
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.testing.strategies import Answer
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["Play"]


class Play(RuleBasedStateMachine):
    """Two stores that get the same operations; after each step every read of the port must agree."""

    knows_records: ClassVar[bool] = True
    """Whether both do what :class:`~hermes_hookspecs.testing.storage.RecordsSuite` asks."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Known(
            keys=KEYS,
            users=USERS,
            titles=TITLES,
            needles=("log", "日志", "\x00"),
            entrances=ENTRANCES,
            records=self.knows_records,
        )
        self.sides = (Side(self.new_store()), Side(self.new_oracle()))
        self.fences: list[Fence] = []
        self.last: Callable[[Side], ops.Operation[object]] | None = None
        self.made = 0

    def new_store(self) -> Store:
        """Return the store under test, open and empty."""
        raise NotImplementedError("a subclass gives new_store")

    def new_oracle(self) -> Store:
        """Return the store that is believed, open and empty."""
        raise NotImplementedError("a subclass gives new_oracle")

    def teardown(self) -> None:
        """Close both stores."""
        for side in self.sides:
            side.store.close()

    @invariant()
    def nobody_can_tell_them_apart(self) -> None:
        """Every read agrees."""
        under_test, oracle = (side.everything(self.known) for side in self.sides)
        for name, value in oracle.items():
            assert under_test[name] == value, f"{name}: {under_test[name]} is not {value}"
        self.known.looks += 1

    # how operations are made and run
    def run(self, build: Callable[[Side], ops.Operation[object]]) -> object:
        """Run an operation on both sides; return what both answered."""
        self.last = build
        under_test, oracle = (side.run(build(side)) for side in self.sides)
        assert under_test == oracle, f"{build(self.sides[1])} answered {under_test}, not {oracle}"
        return oracle

    @property
    def now(self) -> int:
        """The machine's time, UTC milliseconds."""
        return self.known.now

    @property
    def oracle(self) -> Store:
        """The store that is believed."""
        return self.sides[1].store

    def fresh(self) -> str:
        """Return an id that was not used before."""
        self.made += 1
        return f"20260101_{self.made:06d}_0000000{self.made % 10}"

    def some_lineage(self, number: int) -> LineageId:
        """Return one of the lineages that were ever made, or one that never was."""
        if not self.known.lineages or number == 7:
            return LineageId("L-nowhere")
        return self.known.lineages[-1 - number % len(self.known.lineages)]

    def stamp_of(self, lineage_id: LineageId, *, exact: bool) -> LeaseStamp | None:
        """Return the stamp of a lease as it is, or one that it does not have."""
        lease = self.oracle.lease(lineage_id)
        if lease is None or exact:
            return None if lease is None else lease.stamp
        return LeaseStamp(lease.token, lease.renewals + 1)

    def enter_with(self, *, source: SessionSource, shared: bool = False, **fields: object) -> None:
        """Run a get-or-create with fresh ids; remember what it made."""
        number = self.fresh()
        lineage_id, session_id = LineageId(f"L{number}"), SessionId(number)
        base = ops.GetOrCreate(
            key=KEYS[0],
            key_version=1,
            source=source,
            owner=owner_of(source, shared=shared),
            policy=KeyPolicy(),
            shared=shared,
            now=self.now,
            session_id=session_id,
            lineage_id=lineage_id,
        )
        operation = attrs.evolve(base, **fields)  # type: ignore[arg-type]  # the rules name fields of the operation
        self.run(lambda _side: operation)
        if self.oracle.lineage(lineage_id, ALL) is not None:
            self.known.lineages.append(lineage_id)
            self.known.sessions.append(session_id)

    def expected_of(self, key: SessionKey, *, check: bool | None) -> LineageId | None:
        """Return what a key leads to, or, where ``check`` is false, something else."""
        route = self.oracle.route(key)
        current = None if route is None else route.lineage_id
        return current if check or check is None else LineageId("L-nowhere")

    def begin_with(
        self,
        lineage_id: LineageId,
        drafts: Callable[[Side], tuple[MessageDraft, ...]],
        *,
        dead: bool | None = None,
        over: list[int] | None = None,
        again: Mapping[Side, frozenset[InboxId]] | None = None,
        **fields: object,
    ) -> None:
        """Run a begin with a fresh id; remember its fence."""
        turn_id = TurnId(f"T{self.fresh()}")
        stamp = None if dead is None else self.stamp_of(lineage_id, exact=dead)
        made = {side: drafts(side) for side in self.sides}
        now = self.now

        def build(side: Side) -> ops.Begin:
            operation = ops.Begin(
                lineage_id=lineage_id,
                turn_id=turn_id,
                holder=holder_at(),
                now=now,
                ttl_ms=30_000,
                drafts=made[side],
                passed_over=frozenset(side.inbox_id(each) for each in over or ()),
                presumed_dead=stamp,
                again=frozenset() if again is None else again[side],
            )
            return attrs.evolve(operation, **fields)  # type: ignore[arg-type]  # as above

        self.run(build)
        turn = self.oracle.turn(turn_id)
        if turn is not None:
            self.known.turns.append(turn_id)
            self.fences.append(Fence(lineage_id, turn_id, turn.token))

    def again_of(self, turn_id: TurnId | None, which: str) -> Mapping[Side, frozenset[InboxId]]:
        """Return for each side messages of a turn: all, some and one of another turn, or none."""
        found: dict[Side, frozenset[InboxId]] = {}
        for side in self.sides:
            turn = None if turn_id is None else side.store.turn(turn_id)
            ids = () if turn is None or which == "none" else turn.inbox_ids
            found[side] = frozenset(ids if which == "all" else (*ids[::2], side.inbox_id(0)) if ids else ())
        return found

    def oldest(
        self, lineage_id: LineageId, again: Mapping[Side, frozenset[InboxId]], count: int
    ) -> Callable[[Side], tuple[MessageDraft, ...]]:
        """Return what names the oldest messages of a lineage on each side, those that wait again among them."""

        def drafts(side: Side) -> tuple[MessageDraft, ...]:
            ids = {item.id for item in side.store.waiting(lineage_id)} | again[side]
            return tuple(
                MessageDraft(role=USER, content="x", timestamp=0, inbox_id=each) for each in sorted(ids)[:count]
            )

        return drafts

    def answer_one(
        self, key: SessionKey, source: SessionSource, text: str, *, which: str, holder: LeaseHolder
    ) -> LineageId | None:
        """Accept a message and begin a turn with the oldest one of its lineage, whoever runs one there.

        :param which: what of the turn that runs there waits again, see :meth:`again_of`.
        :returns: the lineage, ``None`` where the key leads nowhere.
        """
        self.enter_with(key=key, source=source)
        self.accept_one(key, source, text)
        route = self.oracle.route(key)
        if route is None or route.lineage_id is None:
            return None
        lineage_id = route.lineage_id
        active = self.oracle.active_turn(lineage_id)
        again = self.again_of(None if active is None else active.id, which)
        self.begin_with(lineage_id, self.oldest(lineage_id, again, 1), dead=True, again=again, holder=holder)
        return lineage_id

    def accept_one(self, key: SessionKey, source: SessionSource, text: str, kind: str = MESSAGE) -> None:
        """Accept one message."""
        draft = InboxDraft(
            session_key=key,
            source=source,
            entrance=Entrance(source.platform),
            text=text,
            accepted_at=self.now,
            kind=kind,
        )
        self.run(lambda _side: ops.Accept(drafts=(draft,), now=self.now))

    def some_delivery(self, number: int) -> Delivery | None:
        """Return one of the deliveries that are there, the newest for 0, as the oracle has it."""
        there = self.oracle.deliveries()
        return there[number % len(there)] if there and number != 7 else None

    def row_of(self, delivery: Delivery | None) -> Callable[[Side], DeliveryId]:
        """Return how each side calls a delivery of the oracle; a number that none has for ``None``."""
        if delivery is None:
            return lambda _side: DeliveryId(1_000_000_000)
        place = self.sides[1].delivery_place(delivery.id)
        return lambda side: side.delivery_id(place)

    def drafts_of(self, chosen: list[Answer], number: int) -> tuple[DeliveryDraft, ...]:
        """Return what is to be delivered, of a lineage that is there or of none."""
        lineage_id = self.some_lineage(number)
        known = self.oracle.lineage(lineage_id, ALL) is not None
        return tuple(
            DeliveryDraft(
                key=key,
                target=target,
                text=text,
                session_key=KEYS[0],
                lineage_id=lineage_id if known else None,
                kind=kind,
                files=files,
            )
            for key, target, text, kind, files in chosen
        )

    def some_fence(self, back: int) -> Fence:
        """Return the fence of the last turn, or of one before it."""
        return self.fences[-1 - back % len(self.fences)]
