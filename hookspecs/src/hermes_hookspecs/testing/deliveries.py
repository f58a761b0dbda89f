"""What the state machine does with the outbox: deliver, send as a sender would, write as nobody should, retry, drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule

from hermes_hookspecs import operations as ops
from hermes_hookspecs.outbox import ANSWER, OpenedThread, address_of
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.testing.play import Play
from hermes_hookspecs.testing.scene import holder_at
from hermes_hookspecs.testing.strategies import (
    ENTRANCES,
    KEYS,
    answers,
    flags,
    keys,
    maybe_flags,
    numbers,
    part_lists,
    places,
    sources,
    tries,
    updates,
)

if TYPE_CHECKING:
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.outbox import Delivery, PartDraft
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.testing.agreement import Side
    from hermes_hookspecs.testing.strategies import Answer

__all__ = ["DeliveryRules"]


class DeliveryRules(Play):
    """Rules about deliveries."""

    @rule(chosen=answers, number=numbers, control=st.none() | numbers)
    def deliver(self, *, chosen: list[Answer], number: int, control: int | None) -> None:
        """Store deliveries, perhaps as the reply to a command."""
        drafts = self.drafts_of(chosen, number)
        self.run(
            lambda side: ops.Deliver(
                drafts=drafts, now=self.now, settle=None if control is None else side.inbox_id(control)
            )
        )

    @rule(
        number=numbers,
        place=places,
        parts=part_lists,
        marks=st.sampled_from([0, 0, 0, 1, 2, 3]),
        tries=st.lists(tries, min_size=1, max_size=2),
    )
    def send(
        self,
        *,
        number: int,
        place: SessionSource,
        parts: tuple[PartDraft, ...],
        marks: int,
        tries: list[tuple[str, bool, bool, bool]],
    ) -> None:
        """Take what comes next from whoever has it, send some parts, and come to some end or none; perhaps once more.

        tries: how each ends, and whether a part may have gone out, it counts as a failure, and a message comes from
        where it goes.
        """
        if number > 3 or not self.oracle.next_deliveries(ENTRANCES):
            drafts = self.drafts_of([(f"d{self.fresh()}", place, "answer", ANSWER, ())], number)
            self.run(lambda _side: ops.Deliver(drafts=drafts, now=self.now))
        heads = self.oracle.next_deliveries(ENTRANCES)
        head = heads[number % len(heads)]
        for end, maybe_sent, failed, meanwhile in tries:
            claimed, attempt = self._take(head, parts)
            for index in range(marks):
                self._mark(claimed, index, attempt=attempt)
            if meanwhile:
                self.accept_one(KEYS[0], head.target, "meanwhile")
            if end in {"defer", "await"}:
                self._defer(claimed, attempt, awaits=end == "await", maybe_sent=maybe_sent, failed=failed)
            elif end:
                self._fail(claimed, attempt, maybe_sent=maybe_sent)

    def _take(self, head: Delivery, parts: tuple[PartDraft, ...]) -> tuple[Delivery | None, int]:
        """Claim a delivery from whoever has it and split it; return it and the attempt, as far as it succeeded."""
        seen = self.oracle.delivery(head.id)
        self._claim(head, expected=self._attempt(seen, 0), dead=True)
        claimed = self.oracle.delivery(head.id)
        row, attempt = self.row_of(head), 0 if claimed is None else claimed.attempt
        self.run(lambda side: ops.SplitDelivery(delivery_id=row(side), attempt=attempt, parts=parts, now=self.now))
        return claimed, attempt

    def _claim(self, delivery: Delivery | None, *, expected: int, dead: bool) -> None:
        row = self.row_of(delivery)
        owner = holder_at("sender")
        self.run(
            lambda side: ops.ClaimDelivery(
                delivery_id=row(side), owner=owner, expected_attempt=expected, now=self.now, presumed_dead=dead
            )
        )

    def _mark(self, delivery: Delivery | None, index: int, *, attempt: int) -> None:
        row = self.row_of(delivery)
        self.run(lambda side: ops.MarkSent(delivery_id=row(side), attempt=attempt, index=index, now=self.now))

    def _defer(self, delivery: Delivery | None, attempt: int, *, awaits: bool, maybe_sent: bool, failed: bool) -> None:
        row, due_at = self.row_of(delivery), self.now + (700 if failed else 0)
        self.run(
            lambda side: ops.DeferDelivery(
                delivery_id=row(side),
                attempt=attempt,
                now=self.now,
                due_at=due_at,
                error="later",
                awaits_inbound=awaits,
                failed=failed,
                maybe_sent=maybe_sent,
            )
        )

    def _fail(self, delivery: Delivery | None, attempt: int, *, maybe_sent: bool) -> None:
        row = self.row_of(delivery)
        self.run(
            lambda side: ops.FailDelivery(
                delivery_id=row(side), attempt=attempt, now=self.now, error="refused", maybe_sent=maybe_sent
            )
        )

    def _attempt(self, delivery: Delivery | None, off: int) -> int:
        return off if delivery is None else delivery.attempt + off

    @rule(number=numbers, off=st.sampled_from([0, 0, 0, -1]), dead=flags)
    def claim(self, *, number: int, off: int, dead: bool) -> None:
        """Claim any delivery."""
        delivery = self.some_delivery(number)
        self._claim(delivery, expected=self._attempt(delivery, off), dead=dead)

    @rule(
        number=numbers,
        off=st.sampled_from([0, 0, 0, -1]),
        index=st.integers(0, 2),
        state=st.lists(updates, max_size=1).map(tuple),
        opened=st.none() | keys,
        source=sources,
        repeated=flags,
    )
    def mark_anyhow(
        self,
        *,
        number: int,
        off: int,
        index: int,
        state: tuple[StateUpdate, ...],
        opened: SessionKey | None,
        source: SessionSource,
        repeated: bool,
    ) -> None:
        """Mark any part of any delivery."""
        delivery = self.some_delivery(number)
        row, attempt = self.row_of(delivery), self._attempt(delivery, off)
        thread = None
        if opened is not None:
            thread = OpenedThread(key=opened, key_version=1, source=source, policy=KeyPolicy())

        def build(side: Side) -> ops.MarkSent:
            return ops.MarkSent(
                delivery_id=row(side),
                attempt=attempt,
                index=index,
                now=self.now,
                platform_message_id="om_1",
                possible_repeat=repeated,
                state=state,
                opened=thread,
            )

        self.run(build)

    @rule(
        number=numbers,
        off=st.sampled_from([0, 0, 0, -1]),
        write=st.sampled_from(["split", "defer", "fail"]),
        parts=part_lists,
        awaits=flags,
        maybe_sent=flags,
        failed=flags,
    )
    def write_anyhow(
        self,
        *,
        number: int,
        off: int,
        write: str,
        parts: tuple[PartDraft, ...],
        awaits: bool,
        maybe_sent: bool,
        failed: bool,
    ) -> None:
        """Write to any delivery."""
        delivery = self.some_delivery(number)
        row, attempt = self.row_of(delivery), self._attempt(delivery, off)
        if write == "split":
            self.run(lambda side: ops.SplitDelivery(delivery_id=row(side), attempt=attempt, parts=parts, now=self.now))
        elif write == "defer":
            self._defer(delivery, attempt, awaits=awaits, maybe_sent=maybe_sent, failed=failed)
        else:
            self._fail(delivery, attempt, maybe_sent=maybe_sent)

    @rule(number=numbers, off=st.sampled_from([0, 0, 0, 1]), count=st.integers(0, 3), parts=part_lists, claim=flags)
    def join(self, *, number: int, off: int, count: int, parts: tuple[PartDraft, ...], claim: bool) -> None:
        """Let some of those that wait behind a delivery go out with it."""
        delivery = self.some_delivery(number)
        if claim:
            self._claim(delivery, expected=self._attempt(delivery, 0), dead=False)
        row, attempt = self.row_of(delivery), self._attempt(self.some_delivery(number), off)
        behind = [] if delivery is None else self._behind(delivery)[:count]
        rows = [self.row_of(each) for each in behind]
        self.run(
            lambda side: ops.JoinDeliveries(
                delivery_id=row(side),
                attempt=attempt,
                joined=tuple(each(side) for each in rows),
                text="all of it",
                parts=parts,
                now=self.now,
            )
        )

    def _behind(self, delivery: Delivery) -> list[Delivery]:
        address = address_of(delivery.target)
        there = [
            each for each in self.oracle.deliveries() if each.id > delivery.id and address_of(each.target) == address
        ]
        return sorted((each for each in there if each.settled_at is None), key=lambda each: each.id)

    @rule(number=numbers, drop=flags, dead=maybe_flags)
    def retry_or_drop(self, *, number: int, drop: bool, dead: bool | None) -> None:
        """Do what people do with a delivery."""
        delivery = self.some_delivery(number)
        row = self.row_of(delivery)
        presumed = None if dead is None else self._attempt(delivery, 0 if dead else 1)
        if drop:
            self.run(lambda side: ops.DropDelivery(delivery_id=row(side), now=self.now, presumed_dead=presumed))
        else:
            self.run(lambda side: ops.RetryDelivery(delivery_id=row(side), now=self.now, presumed_dead=presumed))
