"""What the state machine does with routes: they are followed, claimed, bound, let go, moved to other keys and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from hermes_hookspecs import operations as ops
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.sessions.moves import MOVED, RETURNED
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.testing.play import Play
from hermes_hookspecs.testing.scene import ALL, key_of
from hermes_hookspecs.testing.strategies import carried, flags, keys, maybe_flags, numbers, policies, sources, titles

if TYPE_CHECKING:
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.sessions import RouteMove
    from hermes_hookspecs.source import SessionSource

__all__ = ["RouteRules"]

BATCHES = ("B1", "B2")


class RouteRules(Play):
    """Rules about keys and what they lead to."""

    @rule(
        key=keys,
        source=sources,
        shared=flags,
        policy=policies,
        touch=flags,
        claim=keys,
        version=st.integers(1, 2),
        carry=carried,
        whose=flags,
    )
    def enter(
        self,
        *,
        key: SessionKey,
        source: SessionSource,
        shared: bool,
        policy: KeyPolicy,
        touch: bool,
        claim: SessionKey,
        version: int,
        carry: MessageDraft | None,
        whose: bool,
    ) -> None:
        """Follow a key, perhaps claiming another one, of this person alone or of anybody."""
        person = source.user_id or "" if whose else None
        claims = (ops.Claim(key=claim, scope_id=source.scope_id, user_id=person),) if claim != key else ()
        fields = {"policy": policy, "touch": touch, "claims": claims, "key_version": version}
        self.enter_with(source=source, shared=shared, key=key, carry=carry if self.knows_records else None, **fields)

    @rule(key=keys, source=sources, number=numbers, is_current=flags)
    def enter_anew(self, *, key: SessionKey, source: SessionSource, number: int, is_current: bool) -> None:
        """Force a new session behind a key."""
        route = self.oracle.route(key)
        current = None if route is None else route.lineage_id
        observed = current if is_current else self.some_lineage(number)
        self.enter_with(key=key, source=source, force_new=True, observed=observed)

    @rule(source=sources)
    def enter_unbound(self, *, source: SessionSource) -> None:
        """Make a session without a route."""
        self.enter_with(key=key_of("unbound"), source=source, bind=False)

    @rule(key=keys, source=sources, number=numbers, check=maybe_flags, carry=flags, control=st.none() | numbers)
    def bind(
        self,
        *,
        key: SessionKey,
        source: SessionSource,
        number: int,
        check: bool | None,
        carry: bool,
        control: int | None,
    ) -> None:
        """Lead a key to a lineage; ``check`` is true for what it leads to, false for something else."""
        target = self.some_lineage(number)
        if self.oracle.lineage(target, ALL) is None:
            check = None  # which of two refusals comes first is nobody's business
        expected = self.expected_of(key, check=check)
        self.run(
            lambda side: ops.BindRoute(
                key=key,
                key_version=1,
                source=source,
                policy=KeyPolicy(),
                lineage_id=target,
                now=self.now,
                check=check is not None,
                expected=expected,
                carry=carry,
                control_id=None if control is None else side.inbox_id(control),
            )
        )

    @rule(key=keys, title=st.none() | titles, check=maybe_flags, control=st.none() | numbers)
    def release(self, *, key: SessionKey, title: str | None, check: bool | None, control: int | None) -> None:
        """Let a key lead nowhere."""
        expected = self.expected_of(key, check=check)
        self.run(
            lambda side: ops.ReleaseRoute(
                key=key,
                now=self.now,
                reason="session_reset",
                title=title,
                check=check is not None,
                expected=expected,
                control_id=None if control is None else side.inbox_id(control),
            )
        )

    @rule(key=keys)
    def forget(self, *, key: SessionKey) -> None:
        """Remove a route."""
        self.run(lambda _side: ops.ForgetRoute(key=key, now=self.now))

    # other keys
    @precondition(lambda self: self.knows_records)
    @rule(
        pairs=st.lists(st.tuples(keys, keys, st.sampled_from([True, True, False])), min_size=1, max_size=3),
        batch=st.sampled_from(BATCHES),
        policy=policies,
        owner=st.none() | sources,
        shared=maybe_flags,
    )
    def move(
        self,
        *,
        pairs: list[tuple[SessionKey, SessionKey, bool]],
        batch: str,
        policy: KeyPolicy,
        owner: SessionSource | None,
        shared: bool | None,
    ) -> None:
        """Give routes other keys; some are not what is expected."""
        moves = tuple(
            ops.Rekey(
                key=key,
                new_key=new_key,
                expected=self.expected_of(key, check=is_as_expected) or LineageId("L-nowhere"),
                key_version=2,
                policy=policy,
                owner=None if owner is None else owner_of(owner, shared=bool(shared)),
                shared=shared,
                reason="why",
            )
            for key, new_key, is_as_expected in pairs
            if key != new_key
        )
        self.run(lambda _side: ops.MoveRoutes(moves=moves, batch=batch, now=self.now))

    @precondition(lambda self: self.knows_records)
    @rule(batch=st.sampled_from(BATCHES))
    def move_back(self, *, batch: str) -> None:
        """Undo a batch, as far as that goes."""
        moves = tuple(map(_back, self.oracle.route_moves(batch=batch, kinds=(MOVED,))))
        self.run(lambda _side: ops.MoveRoutes(moves=moves, batch=batch, now=self.now, kind=RETURNED))

    @precondition(lambda self: self.knows_records)
    @rule(age=st.sampled_from([0, 1000]), ahead=st.sampled_from([0, 1]), limit=st.sampled_from([1, 500]))
    def sweep_the_journal(self, *, age: int, ahead: int, limit: int) -> None:
        """Forget what became of routes some time ago."""
        before = self.now - age + ahead
        self.run(
            lambda _side: ops.Sweep(now=self.now, inbox_before=0, outbox_before=0, moves_before=before, limit=limit)
        )


def _back(line: RouteMove) -> ops.Rekey:
    return ops.Rekey(
        key=line.new_key,
        new_key=line.key,
        expected=line.lineage_id,
        key_version=line.key_version,
        policy=line.policy,
        owner=line.owner,
        shared=line.shared,
    )
