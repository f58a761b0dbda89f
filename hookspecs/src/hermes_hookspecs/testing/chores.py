"""What the state machine does beside conversations: messages that come in, commands, state, presence and sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hermes_hookspecs import operations as ops
from hermes_hookspecs.ids import LineageId, MessageId, SessionId
from hermes_hookspecs.inbox import CONTROL, MESSAGE, InboxDraft
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, Attachment, MessageDraft
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy
from hermes_hookspecs.testing.play import Play
from hermes_hookspecs.testing.scene import ALL, holder_at, source_at
from hermes_hookspecs.testing.strategies import ENTRANCES, drafts_in, flags, keys, numbers, sources, titles, updates

if TYPE_CHECKING:
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.testing.agreement import Side
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["ChoreRules"]

EFFECTS = ("none", "release", "bind", "revoke", "rename", "flags")


class ChoreRules(Play):
    """Rules about the inbox, entrances and upkeep."""

    # inbox
    @rule(
        drafts=st.lists(drafts_in, min_size=1, max_size=3),
        most=st.sampled_from([1, 3, 100]),
        state=st.lists(updates, max_size=1).map(tuple),
    )
    def accept(
        self,
        *,
        drafts: list[tuple[SessionKey, SessionSource, str, tuple[str, ...], str, str, bool, LeaseHolder | None]],
        most: int,
        state: tuple[StateUpdate, ...],
    ) -> None:
        """Accept a batch."""
        accepted = tuple(
            InboxDraft(
                session_key=key,
                source=source,
                entrance=Entrance(source.platform),
                text=text,
                accepted_at=self.now,
                identities=identities,
                kind=kind,
                error=error,
                only_if_idle=only_if_idle,
                waiter=waiter,
            )
            for key, source, text, identities, kind, error, only_if_idle, waiter in drafts
        )
        self.run(lambda _side: ops.Accept(drafts=accepted, now=self.now, max_waiting=most, state=state))

    @rule(chosen=st.lists(numbers, max_size=3, unique=True))
    def withdraw(self, *, chosen: list[int]) -> None:
        """Take back inbox rows."""
        self.run(lambda side: ops.Withdraw(ids=tuple(side.inbox_id(each) for each in chosen), now=self.now))

    @rule(number=numbers, sha256=st.sampled_from([None, "ab"]), text=st.sampled_from([None, "[image]"]))
    def attach(self, *, number: int, sha256: str | None, text: str | None) -> None:
        """Write down what was fetched of a message."""
        made = (Attachment(kind="image", reference="img_1", sha256=sha256, text=text),)
        self.run(lambda side: ops.Attach(inbox_id=side.inbox_id(number), attachments=made, now=self.now))

    @rule(
        number=numbers,
        waits=st.sampled_from([True, True, False]),
        fresh=flags,
        effect=st.sampled_from(EFFECTS),
        key=keys,
        lineage=numbers,
        title=titles,
        settle=flags,
    )
    def control(
        self,
        *,
        number: int,
        waits: bool,
        fresh: bool,
        effect: str,
        key: SessionKey,
        lineage: int,
        title: str,
        settle: bool,
    ) -> None:
        """Run the effect of a command, perhaps a new one, or of any row."""
        if fresh:
            self.accept_one(key, source_at(), "/command", kind=CONTROL)
            number = -1
        places = [place for place in range(self.sides[1].accepted()) if not waits or self._is_command(place)]
        place = places[number % len(places)] if places else number

        def build(side: Side) -> ops.Control:
            inbox_id = side.inbox_id(place)
            made = self._effect(side, effect, key=key, lineage=lineage, title=title, place=place)
            return ops.Control(inbox_id=inbox_id, effect=made, now=self.now, settle=settle)

        self.run(build)

    def _is_command(self, place: int) -> bool:
        item = self.oracle.inbox_item(self.sides[1].inbox_id(place))
        return item is not None and item.kind == CONTROL

    def _effect(
        self, side: Side, name: str, *, key: SessionKey, lineage: int, title: str, place: int
    ) -> ops.Operation[object] | None:
        lineage_id, inbox_id = self.some_lineage(lineage), side.inbox_id(place)
        effects: dict[str, ops.Operation[object] | None] = {
            "none": None,
            "release": ops.ReleaseRoute(key=key, now=self.now, reason="session_reset", control_id=inbox_id),
            "bind": ops.BindRoute(
                key=key,
                key_version=1,
                source=source_at(),
                policy=KeyPolicy(),
                lineage_id=lineage_id,
                now=self.now,
                carry=False,
                control_id=inbox_id,
            ),
            "revoke": ops.Revoke(lineage_id=lineage_id, now=self.now, reason="/stop"),
            "rename": ops.Rename(lineage_id=lineage_id, title=title, origin="user", now=self.now),
            "flags": ops.SetFlags(lineage_id=lineage_id, now=self.now, pinned=True),
        }
        return effects[name]

    # compression
    @precondition(lambda self: self.fences)
    @rule(
        back=st.sampled_from([0, 0, 0, 1]),
        row=numbers,
        at_tip=st.sampled_from([True, True, False]),
        kind=st.sampled_from([KIND_SUMMARY, KIND_SUMMARY, KIND_SUMMARY, "", None]),
        undo=flags,
        finish=flags,
    )
    def compress(self, *, back: int, row: int, at_tip: bool, kind: str | None, undo: bool, finish: bool) -> None:
        """Let a lineage go on in a child that keeps the rows from one of them on."""
        fence, child = self.some_fence(back), SessionId(self.fresh())
        lineage = self.oracle.lineage(fence.lineage_id, ALL)
        tip = lineage.tip if lineage is not None and at_tip else SessionId("gone")
        summary = None if kind is None else MessageDraft(role=SYSTEM, content="in short", kind=kind, timestamp=0)

        def build(side: Side) -> ops.Compress:
            rows = side.store.messages(fence.lineage_id, ALL)
            return ops.Compress(
                fence=fence,
                expected=tip,
                session_id=child,
                kept_from=rows[-1 - row % len(rows)].id if rows else MessageId(1_000_000_000),
                now=self.now,
                summary=summary,
                reason=ops.UNCOMPRESSION if undo else ops.COMPRESSION,
                finish=finish,
            )

        operations = {side: build(side) for side in self.sides}  # a repetition names the same rows
        if isinstance(self.run(operations.__getitem__), tuple | list):
            self.known.sessions.append(child)

    # taking back
    @precondition(lambda self: self.fences and self.knows_records)
    @rule(
        back=st.sampled_from([0, 0, 0, 1]),
        row=numbers,
        length=st.none() | numbers,
        show=flags,
        finish=flags,
        swap=st.none() | numbers,
        state=st.lists(updates, max_size=1).map(tuple),
    )
    def hide(
        self,
        *,
        back: int,
        row: int,
        length: int | None,
        show: bool,
        finish: bool,
        swap: int | None,
        state: tuple[StateUpdate, ...],
    ) -> None:
        """Take rows back, or bring them back; other rows the other way."""
        fence = self.some_fence(back)

        def build(side: Side) -> ops.Hide:
            rows = side.store.messages(fence.lineage_id, ALL, hidden=True)
            place = row % len(rows) if rows else 0
            last = None if length is None or not rows else rows[min(place + length, len(rows) - 1)].id
            first = rows[place].id if rows else MessageId(1)
            other = rows[swap % len(rows)].id if rows and swap is not None else first
            return ops.Hide(
                fence=fence,
                first=first,
                last=last,
                now=self.now,
                show=show,
                finish=finish,
                swap=() if swap is None else ((other, other),),
                state=state,
            )

        self.run(build)

    # branching off
    @precondition(lambda self: self.knows_records)
    @rule(number=numbers, key=keys, source=sources, title=st.none() | titles, at_tip=flags)
    def branch(self, *, number: int, key: SessionKey, source: SessionSource, title: str | None, at_tip: bool) -> None:
        """Make a lineage that begins where another one stands."""
        origin, fresh = self.some_lineage(number), self.fresh()
        lineage = self.oracle.lineage(origin, ALL)
        made = ops.Branch(
            key=key,
            key_version=1,
            source=source,
            owner=owner_of(source, shared=False),
            policy=KeyPolicy(),
            shared=False,
            origin=origin,
            expected=lineage.tip if lineage is not None and at_tip else SessionId("gone"),
            session_id=SessionId(fresh),
            lineage_id=LineageId(f"L{fresh}"),
            now=self.now,
            title=title,
        )
        self.run(lambda _side: made)
        if self.oracle.lineage(made.lineage_id, ALL) is not None:
            self.known.lineages.append(made.lineage_id)
            self.known.sessions.append(made.session_id)

    # state
    @rule(chosen=st.lists(updates, min_size=1, max_size=2), number=st.none() | numbers, ttl=st.none() | st.just(1500))
    def put_state(self, *, chosen: list[StateUpdate], number: int | None, ttl: int | None) -> None:
        """Write state of a plugin."""
        lineage_id = None if number is None else self.some_lineage(number)
        expires_at = None if ttl is None else self.now + ttl
        written = tuple(attrs.evolve(each, lineage_id=lineage_id, expires_at=expires_at) for each in chosen)
        self.run(lambda _side: ops.PutState(updates=written, now=self.now))

    # upkeep
    @rule(
        entrances=st.lists(st.sampled_from(ENTRANCES), min_size=1, max_size=2, unique=True).map(tuple),
        pid=st.sampled_from([1, 2]),
        place=st.sampled_from(["pts-1", "pts-2"]),
        leaves=flags,
    )
    def serve(self, *, entrances: tuple[Entrance, ...], pid: int, place: str, leaves: bool) -> None:
        """Say that a process serves entrances, or leaves."""
        holder = holder_at(place, pid)
        if leaves:
            self.run(lambda _side: ops.LeaveEntrances(holders=(holder,), now=self.now))
        else:
            self.run(lambda _side: ops.ServeEntrances(entrances=entrances, holder=holder, now=self.now))

    @rule(key=keys, command=flags, milliseconds=st.sampled_from([1, 1000]), limit=st.sampled_from([1, 500]))
    def sweep_what_ended(self, *, key: SessionKey, command: bool, milliseconds: int, limit: int) -> None:
        """Bring a row to its end some time after its acceptance, and remove what had ended before."""
        self.accept_one(key, source_at(), "x", kind=CONTROL if command else MESSAGE)
        place = self.sides[1].accepted() - 1
        self.known.now += milliseconds

        def end(side: Side) -> ops.Operation[object]:
            inbox_id = side.inbox_id(place)
            if command:
                return ops.Control(inbox_id=inbox_id, effect=None, now=self.now, settle=True)
            return ops.Withdraw(ids=(inbox_id,), now=self.now)

        self.run(end)
        self.run(lambda _side: ops.Sweep(now=self.now, inbox_before=self.now, outbox_before=self.now, limit=limit))

    @rule(age=st.sampled_from([0, 1000, 10**9]), ahead=st.sampled_from([0, 1]), limit=st.sampled_from([1, 2, 500]))
    def sweep(self, *, age: int, ahead: int, limit: int) -> None:
        """Remove what ended some time ago."""
        before = self.now - age + ahead
        self.run(lambda _side: ops.Sweep(now=self.now, inbox_before=before, outbox_before=before, limit=limit))
