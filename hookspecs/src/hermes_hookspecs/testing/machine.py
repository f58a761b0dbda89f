"""A state machine that plays with a store and with an oracle, and demands that nobody can tell them apart.

::

    class MyMachine(StoreMachine):
        def new_store(self):
            return MyBackend().open(StoreOptions(path=...))

        def new_oracle(self):
            return MemoryStore()

    TestMyMachine = MyMachine.TestCase
    TestMyMachine.settings = machine_settings()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from hermes_hookspecs import operations as ops
from hermes_hookspecs.ids import SessionId
from hermes_hookspecs.messages import KIND_RECOVERY, USER, MessageDraft
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agreement import without_interruption
from hermes_hookspecs.testing.chores import ChoreRules
from hermes_hookspecs.testing.deliveries import DeliveryRules
from hermes_hookspecs.testing.routing import RouteRules
from hermes_hookspecs.testing.scene import ALL
from hermes_hookspecs.testing.strategies import (
    agains,
    answers,
    flags,
    holders,
    keys,
    maybe_flags,
    numbers,
    places,
    row_lists,
    sources,
    texts,
    titles,
    usages,
)

if TYPE_CHECKING:
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.testing.agreement import Side
    from hermes_hookspecs.testing.strategies import Answer
    from hermes_hookspecs.turns import LeaseHolder, Usage

__all__ = ["StoreMachine", "machine_settings"]


def machine_settings(*, examples: int = 25, steps: int = 30, shrink: bool = False) -> settings:
    """Return settings of a quick run: the same examples every time where the environment names ``CI``.

    :param shrink: look for the shortest failing example, which takes minutes; for whoever looks for the fault.
    """
    from os import environ

    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])]

    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize="CI" in environ,
        database=None,
        phases=phases,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


class StoreMachine(DeliveryRules, ChoreRules, RouteRules):
    """Random operations on two stores; after each step every read of the port must agree.

    A subclass gives :meth:`new_store` and :meth:`new_oracle`: fresh, empty stores.
    """

    @initialize(key=keys, source=sources, shared=flags)
    def open(self, *, key: SessionKey, source: SessionSource, shared: bool) -> None:
        """Begin with one conversation, so that few steps are lost on nothing."""
        self.enter_with(key=key, source=source, shared=shared)

    # time
    @rule(milliseconds=st.sampled_from([1, 500, 999, 1000, 5000, -2000]))
    def time_passes(self, *, milliseconds: int) -> None:
        """Let time pass, or somebody set the clock back."""
        self.known.now += milliseconds

    # lineages
    @rule(number=numbers, title=st.none() | titles, origin=st.sampled_from(["user", "auto"]), of_tip=maybe_flags)
    def rename(self, *, number: int, title: str | None, origin: str, of_tip: bool | None) -> None:
        """Give a lineage a title."""
        lineage_id = self.some_lineage(number)
        lineage = self.oracle.lineage(lineage_id, ALL)
        tip = SessionId("gone") if lineage is None or not of_tip else lineage.tip
        session_id = None if of_tip is None else tip
        self.run(
            lambda _side: ops.Rename(
                lineage_id=lineage_id, title=title, origin=origin, now=self.now, session_id=session_id
            )
        )

    @rule(number=numbers, pinned=maybe_flags, archived=maybe_flags)
    def set_flags(self, *, number: int, pinned: bool | None, archived: bool | None) -> None:
        """Pin or archive a lineage."""
        lineage_id = self.some_lineage(number)
        self.run(lambda _side: ops.SetFlags(lineage_id=lineage_id, now=self.now, pinned=pinned, archived=archived))

    @rule(number=numbers, dead=maybe_flags, force=flags)
    def delete(self, *, number: int, dead: bool | None, force: bool) -> None:
        """Remove a lineage."""
        lineage_id = self.some_lineage(number)
        stamp = None if dead is None else self.stamp_of(lineage_id, exact=dead)
        self.run(lambda _side: ops.Delete(lineage_id=lineage_id, now=self.now, presumed_dead=stamp, force=force))

    # turns
    @rule(number=numbers, holder=holders, count=st.integers(1, 2), model=st.none() | texts, touch=flags)
    def begin(self, *, number: int, holder: LeaseHolder, count: int, model: str | None, touch: bool) -> None:
        """Begin a turn with the oldest waiting rows."""
        lineage_id = self.some_lineage(number)
        snapshot = None if model is None else ops.Snapshot(model=model)

        def waiting(side: Side) -> tuple[MessageDraft, ...]:
            items = side.store.waiting(lineage_id, limit=count)
            return tuple(MessageDraft(role=USER, content=i.text, timestamp=0, inbox_id=i.id) for i in items)

        self.begin_with(lineage_id, waiting, holder=holder, snapshot=snapshot, touch=touch)

    @rule(key=keys, source=places | sources, holder=holders, text=texts, which=agains)
    def ask(self, *, key: SessionKey, source: SessionSource, holder: LeaseHolder, text: str, which: str) -> None:
        """Accept a message and begin the turn that answers it, whoever runs one there."""
        self.answer_one(key, source, text, which=which, holder=holder)

    @rule(
        number=numbers, count=st.integers(0, 2), dead=flags, which=agains, note=flags, chosen=answers, maintenance=flags
    )
    def recover(
        self,
        *,
        number: int,
        count: int,
        dead: bool,
        which: str,
        note: bool,
        chosen: list[Answer],
        maintenance: bool,
    ) -> None:
        """Begin a turn where another one died, perhaps with what that one had taken."""
        lineage_id = self.some_lineage(number)
        active = self.oracle.active_turn(lineage_id)
        again = self.again_of(None if active is None else active.id, which)
        mark = MessageDraft(role=USER, content="again", kind=KIND_RECOVERY, timestamp=0) if note else None
        told = self.drafts_of(chosen, number)
        oldest = self.oldest(lineage_id, again, count)
        self.begin_with(lineage_id, oldest, dead=dead, again=again, note=mark, deliveries=told, maintenance=maintenance)

    @rule(number=numbers, chosen=st.lists(numbers, max_size=2), over=st.lists(numbers, max_size=2), maintenance=flags)
    def begin_anyhow(self, *, number: int, chosen: list[int], over: list[int], maintenance: bool) -> None:
        """Begin a turn with any rows, some passed over."""
        passed_over = [each for each in over if each not in chosen]

        def named(side: Side) -> tuple[MessageDraft, ...]:
            ids = [] if maintenance else [side.inbox_id(each) for each in chosen]
            return tuple(MessageDraft(role=USER, content="x", timestamp=0, inbox_id=each) for each in ids)

        self.begin_with(self.some_lineage(number), named, over=passed_over, maintenance=maintenance)

    @precondition(lambda self: self.fences)
    @rule(back=st.sampled_from([0, 0, 0, 1, 2]), ttl_ms=st.sampled_from([30_000, 5000]))
    def renew(self, *, back: int, ttl_ms: int) -> None:
        """Renew a lease."""
        fence = self.some_fence(back)
        self.run(lambda _side: ops.Renew(fence=fence, now=self.now, ttl_ms=ttl_ms))

    @precondition(lambda self: self.fences)
    @rule(back=st.sampled_from([0, 0, 0, 0, 1]), drafts=row_lists)
    def append(self, *, back: int, drafts: tuple[MessageDraft, ...]) -> None:
        """Store rows of a turn."""
        fence = self.some_fence(back)
        self.run(lambda _side: ops.Append(fence=fence, drafts=drafts, now=self.now))

    @precondition(lambda self: self.fences and self.sides[0].accepted())
    @rule(chosen=st.lists(numbers, min_size=1, max_size=2), waits=flags, role=st.sampled_from([USER, USER, "system"]))
    def steer(self, *, chosen: list[int], waits: bool, role: str) -> None:
        """Say accepted messages into the running turn: such as wait there, or any."""
        fence = self.some_fence(0)
        ids = {
            side: [item.id for item in side.store.waiting(fence.lineage_id, limit=len(chosen))]
            if waits
            else [side.inbox_id(each % side.accepted()) for each in chosen]
            for side in self.sides
        }

        def named(side: Side) -> ops.Append:
            rows = tuple(MessageDraft(role=role, content="x", timestamp=0, inbox_id=each) for each in ids[side])
            return ops.Append(fence=fence, drafts=rows, now=self.now)

        self.run(named)

    @rule(key=keys, source=places, holder=holders, text=texts, count=st.integers(1, 2))
    def interject(self, *, key: SessionKey, source: SessionSource, holder: LeaseHolder, text: str, count: int) -> None:
        """Begin a turn, and say what comes meanwhile into it."""
        lineage_id = self.answer_one(key, source, "first", which="none", holder=holder)
        if lineage_id is None or not self.fences:
            return
        self.accept_one(key, source, text)
        fence = self.some_fence(0)
        rows = {side: self.oldest(lineage_id, {side: frozenset()}, count)(side) for side in self.sides}
        self.run(lambda side: ops.Append(fence=fence, drafts=rows[side], now=self.now))

    @precondition(lambda self: self.fences)
    @rule(
        back=st.sampled_from([0, 0, 0, 1]),
        drafts=row_lists,
        usage=st.lists(usages, max_size=2).map(tuple),
        outcome=st.sampled_from(["done", "failed"]),
        touch=flags,
        chosen=answers,
        which=agains,
    )
    def finish(
        self,
        *,
        back: int,
        drafts: tuple[MessageDraft, ...],
        usage: tuple[Usage, ...],
        outcome: str,
        touch: bool,
        chosen: list[Answer],
        which: str,
    ) -> None:
        """End a turn."""
        fence = self.some_fence(back)
        again, told = self.again_of(fence.turn_id, which), self.drafts_of(chosen, back)
        self.run(
            lambda side: ops.Finish(
                fence=fence,
                outcome=outcome,
                now=self.now,
                drafts=drafts,
                usage=usage,
                touch=touch,
                deliveries=told,
                again=again[side],
            )
        )

    @rule(
        number=numbers,
        exact=maybe_flags,
        outcome=st.sampled_from(["stopped", "interrupted", "failed"]),
        chosen=answers,
        which=agains,
    )
    def revoke(self, *, number: int, exact: bool | None, outcome: str, chosen: list[Answer], which: str) -> None:
        """Take a lease away."""
        lineage_id = self.some_lineage(number)
        stamp = None if exact is None else self.stamp_of(lineage_id, exact=exact)
        active = self.oracle.active_turn(lineage_id)
        again, told = self.again_of(None if active is None else active.id, which), self.drafts_of(chosen, number)
        self.run(
            lambda side: ops.Revoke(
                lineage_id=lineage_id,
                now=self.now,
                reason="",
                outcome=outcome,
                expected=stamp,
                again=again[side],
                deliveries=told,
            )
        )

    @precondition(lambda self: self.fences)
    @rule(back=st.integers(0, 2), usage=usages)
    def record_usage(self, *, back: int, usage: Usage) -> None:
        """Add usage to a turn, however long ago it was."""
        turn_id = self.some_fence(back).turn_id
        self.run(lambda _side: ops.RecordUsage(turn_id=turn_id, usage=usage, now=self.now))

    # repetition
    @precondition(lambda self: self.last is not None)
    @rule()
    def repeat(self) -> None:
        """Run the last operation once more, as after an outcome that nobody knows."""
        if self.last is None:
            return
        build = self.last
        under_test, oracle = (without_interruption(side.run(build(side))) for side in self.sides)
        assert under_test == oracle, f"{build(self.sides[1])} again answered {under_test}, not {oracle}"
