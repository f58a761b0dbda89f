"""What people do with conversations beside speaking in them (:mod:`hermes_hookspecs.ports.conversations`)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from hermes_core.commands.memory import memory_of, remembering
from hermes_core.commands.taking_back import plan_redo, plan_retry, plan_undo
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import MessageId
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.messages import USER, preview_of
from hermes_hookspecs.ports.conversations import Fullness, Recap, TakenBack
from hermes_hookspecs.principal import operator
from hermes_hookspecs.state import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.commands.taking_back import Memory, Plan
    from hermes_core.config.sections import Settings
    from hermes_core.sessions.desk import SessionDesk
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Hide
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Fence, LeaseHolder

    Planner = Callable[[Sequence[Message], Memory], Plan | None]

__all__ = ["ConversationDesk"]

_MOST_WAITING = 1000
_NOTHING = "Nothing is here that could be taken back."
_IN_SUMMARY = "What was said before is in the summary; /uncompress brings it back first."
_NOT_UNDONE = "There is nothing to bring back: nothing was taken back, or something new was said since."
_NEVER_ASKED = "There is no message that could be said again."


class ConversationDesk:
    """Conversations of one profile. Thread-safe; blocks.

    :param turns: the turn service, opened at the first use; ``files``, where attachments are kept, too.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        desk: SessionDesk,
        settings: Settings,
        *,
        turns: Callable[[], TurnService],
        files: Callable[[], AttachmentStore],
    ) -> None:
        self._store = store
        self._clock = clock
        self._desk = desk
        self._settings = settings
        self._turns = turns
        self._files = files

    # --- taking back

    def undo(
        self, lineage_id: LineageId, source: SessionSource, *, turns: int = 1, control_id: InboxId | None = None
    ) -> TakenBack:
        """Hide the last turns of a conversation. Errors as the port says."""

        def plan(rows: Sequence[Message], memory: Memory) -> Plan | None:
            return plan_undo(rows, memory, max(turns, 1))

        return self._change(lineage_id, source, control_id, plan, self._nothing_to_undo(lineage_id))

    def redo(self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None) -> TakenBack:
        """Bring back what the last undo took. Errors as the port says."""
        return self._change(lineage_id, source, control_id, plan_redo, _NOT_UNDONE)

    def retry(self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None) -> TakenBack:
        """Hide the last turn, for its message to be said again. Errors as the port says."""
        return self._change(lineage_id, source, control_id, plan_retry, _NEVER_ASKED, again=True)

    def _nothing_to_undo(self, lineage_id: LineageId) -> str:
        lineage = self._store.lineage(lineage_id, operator())
        return _IN_SUMMARY if lineage is not None and lineage.segments > 1 else _NOTHING

    def _change(
        self,
        lineage_id: LineageId,
        source: SessionSource,
        control_id: InboxId | None,
        planner: Planner,
        refusal: str,
        *,
        again: bool = False,
    ) -> TakenBack:
        told = self._told_before(lineage_id, control_id)
        if told is not None:
            return self._result(lineage_id, told, again=again)
        from hermes_core.commands.lone_turn import change_under_lease

        turns = self._turns()
        turns.recovery.close_dead_turns()
        made: list[Plan] = []

        def change(fence: Fence) -> Hide | None:
            if not self._is_pending(control_id):
                return None
            rows, memory = self._rows(lineage_id), memory_of(self._store, lineage_id, self._now)
            plan = planner(rows, memory)
            if plan is None:
                return None
            if not plan.show:
                self._answer_no_more(lineage_id, rows, plan)
            made.append(plan)
            return self._operation(fence, plan, control_id)

        if change_under_lease(turns.engine.around, lineage_id, self._holder(source), control_id, change):
            told = made[0].start, made[0].turns
        else:
            told = self._told_before(lineage_id, control_id)  # another process has run the same row meanwhile
        return TakenBack(turns=0, refusal=refusal) if told is None else self._result(lineage_id, told, again=again)

    def _is_pending(self, control_id: InboxId | None) -> bool:
        """Return whether a command's row is still to be run; read under the lease, since others may run it, too."""
        item = None if control_id is None else self._store.inbox_item(control_id)
        return item is None or item.status == PENDING

    def _answer_no_more(self, lineage_id: LineageId, rows: Sequence[Message], plan: Plan) -> None:
        """Take back the messages of a plan that wait to be tried again, since their turn was interrupted.

        Done under the lease, so none of them can begin meanwhile; else what was taken back would be answered after all.
        """
        from hermes_hookspecs.operations import Withdraw

        first, last = plan.span
        theirs = {row.inbox_id for row in rows if first <= row.id <= last and not row.hidden}
        waiting = self._store.waiting(lineage_id, limit=_MOST_WAITING)
        ids = tuple(item.id for item in waiting if item.id in theirs)
        if ids:
            self._store.apply(Withdraw(ids=ids, now=self._now))

    def _holder(self, source: SessionSource) -> LeaseHolder:
        from hermes_core.inbox.door import entrance_of
        from hermes_core.leases import holder_here

        source = self._desk.at_home(source)
        return holder_here(entrance_of(source), self._desk.key(source))

    def _operation(self, fence: Fence, plan: Plan, control_id: InboxId | None) -> Hide:
        from hermes_hookspecs.operations import Hide

        return Hide(
            fence=fence,
            first=MessageId(plan.span[0]),
            last=MessageId(plan.span[1]),
            now=self._now,
            show=plan.show,
            finish=True,
            swap=tuple((MessageId(first), MessageId(last)) for first, last in plan.swap),
            state=remembering(fence.lineage_id, plan, control_id),
        )

    def _told_before(self, lineage_id: LineageId, control_id: InboxId | None) -> tuple[int, int] | None:
        """Return what the command's row did in an earlier try whose reply is still owed: start, and turns."""
        from hermes_core.commands.memory import done_by

        item = None if control_id is None else self._store.inbox_item(control_id)
        if item is None or control_id is None or item.outcome is None:
            return None
        return done_by(self._store, lineage_id, control_id, self._now) or (0, 0)

    def _result(self, lineage_id: LineageId, told: tuple[int, int], *, again: bool) -> TakenBack:
        from hermes_core.context.described import fetched_anew

        start, turns = told
        rows = self._store.messages(lineage_id, operator(), after=MessageId(start - 1), hidden=True)
        first = rows[0] if rows and rows[0].id == start else None
        if first is None:
            return TakenBack(turns=turns)
        asked = [row for row in rows if row.turn_id == first.turn_id and row.role == USER and not row.kind]
        if first.turn_id is None:
            asked = [first]
        return TakenBack(
            turns=turns,
            text=preview_of(first.content),
            again="\n".join(row.content for row in asked) if again else "",
            attachments=tuple(fetched_anew(one) for row in asked for one in row.attachments) if again else (),
        )

    def _rows(self, lineage_id: LineageId) -> Sequence[Message]:
        """Return the rows of the tip's context, hidden ones too."""
        everybody = operator()
        lineage = self._store.lineage(lineage_id, everybody)
        tip = None if lineage is None else self._store.session(lineage.tip, everybody)
        if tip is None:
            raise SessionNotFound(lineage_id)
        after = None if tip.kept_from is None else MessageId(tip.kept_from - 1)
        return self._store.messages(lineage_id, everybody, after=after, hidden=True)

    # --- branching off

    def branch(
        self, source: SessionSource, lineage_id: LineageId, *, title: str = "", control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of a source lead to a lineage that begins with another one's context."""
        self._turns().recovery.close_dead_turns()
        entry = self._desk.branch(source, lineage_id, title=title or None, control_id=control_id)
        rows = self._store.messages(entry.lineage_id, operator())
        self._files().keep(
            {one.sha256 for row in rows for one in row.attachments if one.sha256 is not None}, entry.lineage_id
        )
        return entry

    # --- looking back

    def recap(self, lineage_id: LineageId, principal: Principal) -> Recap:
        """Return what restores the scene. Errors as the port says."""
        from hermes_core.commands.recap import read_recap

        return self._store.submit_read(lambda reader: read_recap(reader, lineage_id, principal)).result()

    def fullness(self, session_id: SessionId) -> Fullness:
        """Return how full a session's context is. Errors as the port says."""
        from hermes_core.commands.fullness import read_fullness

        settings, agent = self._settings.compression, self._turns().agent(None)
        return self._store.submit_read(lambda reader: read_fullness(reader, session_id, settings, agent)).result()

    # --- what waits

    def waiting(self, source: SessionSource) -> Sequence[InboxItem]:
        """Return the messages that wait under the key of a source, oldest first."""
        return self._store.waiting_of_key(self._desk.key(source), limit=_MOST_WAITING)

    def drop_waiting(self, source: SessionSource, *, control_id: InboxId | None = None) -> int:
        """Take back the messages that wait under the key of a source; return how many."""
        from hermes_hookspecs.operations import Control, Withdraw

        waiting = [item for item in self.waiting(source) if item.status == PENDING and item.waiter is None]
        ids = tuple(item.id for item in waiting if control_id is None or item.id < control_id)
        withdraw = Withdraw(ids=ids, now=self._now)
        if control_id is None:
            return self._store.apply(withdraw)
        return self._store.apply(Control(inbox_id=control_id, effect=withdraw, now=self._now)).superseded

    # --- what holds for one conversation alone

    def settings_of(self, lineage_id: LineageId) -> Mapping[str, str]:
        """Return what holds for one conversation alone, by name."""
        from json import loads

        mark = f"{lineage_id}:"
        entries = self._store.states(CONVERSATION, now=self._now, prefix=mark)
        return MappingProxyType({entry.key.removeprefix(mark): str(loads(entry.value)) for entry in entries})

    def set_for(self, lineage_id: LineageId, name: str, value: str | None) -> None:
        """Let something hold for one conversation alone, until its reset; ``None`` takes it away."""
        from json import dumps

        from hermes_hookspecs.operations import PutState
        from hermes_hookspecs.state import StateUpdate

        text = None if value is None else dumps(value, ensure_ascii=False)
        update = StateUpdate(namespace=CONVERSATION, key=f"{lineage_id}:{name}", value=text, lineage_id=lineage_id)
        self._store.apply(PutState(updates=(update,), now=self._now))

    @property
    def _now(self) -> int:
        return self._clock.now()
