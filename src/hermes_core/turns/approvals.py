"""Asking a person before a dangerous call: the request is stored, its turn waits, and anybody's answer ends the wait.

The wait is part of the turn: it holds the lease, ends with it, and counts as progress within its own limit. An answer
is a command of its own and never stands behind the turn that waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_core.outbox.topics import outbox_topic
from hermes_core.settling import settled
from hermes_hookspecs.approvals import APPROVED, DENIED, EXPIRED, OPEN
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import new_approval_id
from hermes_hookspecs.operations import AnswerApproval, AskApproval
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.ids import ApprovalId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.ports.agent import Patience, Tool, TurnContext
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Fence, Turn

__all__ = ["TurnApprovals", "approval_topic", "request_text"]

_LOOK_S = 5.0
"""Longest time between two looks at a request that is open."""
_LAST_WORDS_S = 30.0
"""Seconds behind the limit of a request within which its turn goes on."""
_SHOWN = 600


def approval_topic(approval_id: str) -> str:
    """Return what is woken when a request is answered."""
    return f"approval:{approval_id}"


def request_text(approval: Approval, minutes: float) -> str:
    """Return what a person is asked, with how to answer."""
    arguments = " ".join(approval.arguments.split())
    shown = arguments if len(arguments) <= _SHOWN else f"{arguments[:_SHOWN]}…"
    return (
        f"May {approval.tool_name} be called?\n{shown}\n"
        f"/approve {approval.id} allows it, /deny {approval.id} refuses it. "
        f"Without an answer within {minutes:g} min it is refused."
    )


class TurnApprovals:
    """Asks on behalf of one turn (:class:`~hermes_hookspecs.ports.agent.Approvals`).

    :param item: the message whose sender is told by a delivery; ``None`` where the sender waits in the same call.
    :param on_approval: told of each request, on the loop; for an entrance whose sender waits.
    :param limit_s: seconds for which a request is open. patience: of the turn.
    """

    def __init__(
        self,
        around: Surroundings,
        turn: Turn,
        fence: Fence,
        source: SessionSource,
        *,
        item: InboxItem | None,
        on_approval: Callable[[Approval], None] | None,
        patience: Patience,
    ) -> None:
        self._around = around
        self._turn = turn
        self._fence = fence
        self._source = source
        self._item = item
        self._on_approval = on_approval
        self._patience = patience
        self._limit_s = around.approval_timeout_s
        self._asked: dict[str, ApprovalId] = {}
        self._granted: set[str] = set()

    def asked_for(self, call_id: str) -> ApprovalId | None:
        """Return the request that was made for a call."""
        return self._asked.get(call_id)

    def may_have_run(self, call_id: str) -> bool:
        """Return whether a call was approved, or needed no approval."""
        return call_id not in self._asked or call_id in self._granted

    async def ask(self, call: ToolCall, tool: Tool, turn: TurnContext) -> str | None:
        """Return ``None`` when the call may be made, else why not.

        :raises LeaseLost: the turn is not ours any more.
        """
        asked = await self._store(call)
        self._asked[call.id] = asked.id
        self._patience.allow(self._limit_s + _LAST_WORDS_S)
        self._tell(asked)
        answered = await self._answered(asked)
        if answered.status == APPROVED:
            self._granted.add(call.id)
            return None
        if answered.status == DENIED:
            return f"{answered.answered_by or 'a person'} said no."
        if answered.status == EXPIRED:
            return f"nobody answered within {self._limit_s:g} s."
        return "its turn has ended."

    async def _store(self, call: ToolCall) -> Approval:
        now, turn = self._around.clock.now(), self._turn
        approval_id = new_approval_id()
        operation = AskApproval(
            fence=self._fence,
            approval_id=approval_id,
            call=call,
            source=self._source,
            session_key=turn.session_key,
            now=now,
            expires_at=now + int(self._limit_s * 1000),
            deliveries=self._notice(approval_id, call),
        )
        return await settled(self._around.store.perform(operation))

    def _notice(self, approval_id: ApprovalId, call: ToolCall) -> tuple[DeliveryDraft, ...]:
        if self._item is None:
            return ()
        from hermes_hookspecs.approvals import Approval

        turn = self._turn
        asked = Approval(
            id=approval_id,
            lineage_id=turn.lineage_id,
            session_id=turn.session_id,
            turn_id=turn.id,
            call_id=call.id,
            tool_name=call.name,
            effect=call.effect,
            arguments=call.arguments,
            status=OPEN,
            asked_at=0,
            expires_at=0,
            settled_at=None,
            session_key=turn.session_key,
            source=self._source,
        )
        return (
            DeliveryDraft(
                key=delivery_key(turn.lineage_id, f"approval {approval_id}"),
                target=self._item.source,
                text=request_text(asked, self._limit_s / 60),
                session_key=self._item.session_key,
                lineage_id=turn.lineage_id,
                turn_id=turn.id,
                kind=NOTICE,
            ),
        )

    def _tell(self, asked: Approval) -> None:
        if self._item is not None:
            self._around.waker.wake(outbox_topic(self._item.entrance))
        elif self._on_approval is not None and asked.status == OPEN:
            self._on_approval(asked)

    async def _answered(self, asked: Approval) -> Approval:
        """Wait until a request is not open any more; one that nobody has answered in time is closed here."""
        clock, store, waker = self._around.clock, self._around.store, self._around.waker
        due = clock.monotonic() + self._limit_s
        waiter = waker.enter(approval_topic(asked.id))
        try:
            while True:
                found = await asyncio.wrap_future(store.submit_read(lambda reader: reader.approval(asked.id)))
                left = due - clock.monotonic()
                if found is None or found.status != OPEN:
                    return asked if found is None else found
                if left <= 0:
                    expired = AnswerApproval(approval_id=asked.id, status=EXPIRED, now=clock.now())
                    with suppress(Conflict):  # somebody has answered it at the last moment
                        await settled(store.perform(expired))
                    continue
                await waiter.wait(min(left, _LOOK_S))
        finally:
            waker.leave(waiter)
