"""Short ways to say what a storage test needs: sources, holders, ids, and a :class:`Scene` that plays with a store."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, TypeVar

import attrs

from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, SessionId, SessionKey, TurnId
from hermes_hookspecs.inbox import CONTROL, InboxDraft
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, MessageDraft, ToolCall
from hermes_hookspecs.operations import (
    Accept,
    Append,
    Begin,
    Begun,
    BindRoute,
    ClaimDelivery,
    Control,
    DeferDelivery,
    Deliver,
    FailDelivery,
    Finish,
    GetOrCreate,
    MarkSent,
    ReleaseRoute,
    RetryDelivery,
    Revoke,
    SplitDelivery,
)
from hermes_hookspecs.outbox import DeliveryDraft, PartDraft
from hermes_hookspecs.principal import operator, owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.turns import Fence, LeaseHolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.inbox import AcceptResult, ControlOutcome, InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import BeginResult, Finished, Operation
    from hermes_hookspecs.outbox import Delivery, StoredPart
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import Lineage, Session, SessionEntry
    from hermes_hookspecs.turns import Lease, Turn

__all__ = [
    "ALL",
    "KEY",
    "OTHER_KEY",
    "Scene",
    "asking",
    "binding",
    "fence_of",
    "holder_at",
    "key_of",
    "releasing",
    "result",
    "saying",
    "source_at",
]

T = TypeVar("T")

ALL = operator()
"""A principal that sees everything."""


def key_of(chat: str) -> SessionKey:
    """Return a well-formed key for a chat of that name."""
    return SessionKey(f"agent:main:feishu:dm:chat={chat}")


KEY = key_of("oc_1")
OTHER_KEY = key_of("oc_2")


def source_at(chat: str = "oc_1", user: str = "ou_1", **fields: str) -> SessionSource:
    """Return a source: a direct message of Feishu unless ``fields`` say otherwise."""
    named = {"platform": "feishu", "chat_id": chat, "user_id": user, "user_name": user.upper()} | fields
    return SessionSource(**named)  # type: ignore[arg-type]  # is_bot is the one field that is no text; tests leave it


def holder_at(place: str = "pts-1", pid: int = 100, key: SessionKey | None = KEY) -> LeaseHolder:
    """Return a process that holds leases at a terminal of that name."""
    entrance = Entrance("cli", terminal=place)
    return LeaseHolder(
        host="here",
        boot_id="boot",
        pid_namespace="1",
        pid=pid,
        started="77",
        entrance=entrance,
        session_key=key,
    )


def saying(content: str, role: str = ASSISTANT, at: int = 1) -> MessageDraft:
    """Return a plain row, an assistant's unless ``role`` says otherwise."""
    return MessageDraft(role=role, content=content, timestamp=at)


def asking(*call_ids: str, content: str = "") -> MessageDraft:
    """Return an assistant row that calls a tool once per id."""
    calls = tuple(ToolCall(id=call_id, name=f"tool-{call_id}") for call_id in call_ids)
    return MessageDraft(role=ASSISTANT, content=content, tool_calls=calls, timestamp=1)


def result(call_id: str, content: str = "42") -> MessageDraft:
    """Return the result of one call."""
    return MessageDraft(role=TOOL, content=content, tool_call_id=call_id, tool_name=f"tool-{call_id}", timestamp=1)


def fence_of(begun: Begun) -> Fence:
    """Return what the turn's writes show."""
    return Fence(begun.turn.lineage_id, begun.turn.id, begun.turn.token)


class Scene:
    """A store, a clock that stands still, fresh ids, and the walk of a message in short words.

    :param store: the store to play with.
    :param prefix: begins every id, so that two scenes on one store do not meet.
    """

    def __init__(self, store: Store, prefix: str = "20260101_000000_") -> None:
        self.store = store
        self.clock = FakeClock()
        self.policy = KeyPolicy()
        self._prefix = prefix
        self._numbers = count(1)

    def run(self, operation: Operation[T]) -> T:
        """Run one operation."""
        return self.store.apply(operation)

    @property
    def now(self) -> int:
        """The scene's time, UTC milliseconds."""
        return self.clock.now()

    def fresh(self) -> str:
        """Return text that was not returned before and sorts behind it."""
        return f"{self._prefix}{next(self._numbers):08x}"

    # routes
    def wanting(self, key: SessionKey = KEY, source: SessionSource | None = None, **fields: object) -> GetOrCreate:
        """Return a get-or-create of ``key`` with fresh ids; ``fields`` replace any of its fields."""
        where = source_at() if source is None else source
        number = self.fresh()
        operation = GetOrCreate(
            key=key,
            key_version=1,
            source=where,
            owner=owner_of(where, shared=False),
            policy=self.policy,
            shared=False,
            now=self.now,
            session_id=SessionId(number),
            lineage_id=LineageId(f"L{number}"),
        )
        # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
        return attrs.evolve(operation, **fields)  # type: ignore[arg-type]

    def enter(self, key: SessionKey = KEY, source: SessionSource | None = None, **fields: object) -> SessionEntry:
        """Run :meth:`wanting`."""
        return self.run(self.wanting(key, source, **fields))

    # inbox
    def incoming(self, text: str = "hello", key: SessionKey = KEY, **fields: object) -> InboxDraft:
        """Return a message that comes in for ``key``."""
        draft = InboxDraft(
            session_key=key, source=source_at(), entrance=Entrance("feishu"), text=text, accepted_at=self.now
        )
        return attrs.evolve(draft, **fields)  # type: ignore[arg-type]  # as above

    def accept(self, text: str = "hello", key: SessionKey = KEY, **fields: object) -> InboxId:
        """Accept one message and return its row's id."""
        results: Sequence[AcceptResult] = self.run(Accept(drafts=(self.incoming(text, key, **fields),), now=self.now))
        (taken,) = results
        assert taken.id is not None
        assert not taken.duplicate
        return taken.id

    def control(self, effect: Operation[object] | None = None, **fields: object) -> ControlOutcome:
        """Accept a command and run its effect; ``inbox_id`` among the fields names one that was accepted before."""
        named: dict[str, object] = {"now": self.now, "effect": effect} | fields
        if "inbox_id" not in named:
            named["inbox_id"] = self.accept("/command", kind=CONTROL)
        return self.run(Control(**named))  # type: ignore[arg-type]  # as above

    # turns
    def beginning(self, lineage_id: LineageId, *inbox_ids: InboxId, **fields: object) -> Begin:
        """Return a begin that claims these rows."""
        drafts = []
        for inbox_id in inbox_ids:
            item = self.store.inbox_item(inbox_id)
            text = "" if item is None else item.text
            drafts.append(MessageDraft(role=USER, content=text, timestamp=self.now, inbox_id=inbox_id))
        operation = Begin(
            lineage_id=lineage_id,
            turn_id=TurnId(f"T{self.fresh()}"),
            holder=holder_at(),
            now=self.now,
            ttl_ms=30_000,
            drafts=tuple(drafts),
        )
        return attrs.evolve(operation, **fields)  # type: ignore[arg-type]  # as above

    def try_begin(self, lineage_id: LineageId, *inbox_ids: InboxId, **fields: object) -> BeginResult:
        """Run :meth:`beginning`, whatever comes of it."""
        return self.run(self.beginning(lineage_id, *inbox_ids, **fields))

    def begin(self, lineage_id: LineageId, *inbox_ids: InboxId, **fields: object) -> Begun:
        """Run :meth:`beginning`, which must succeed."""
        begun = self.try_begin(lineage_id, *inbox_ids, **fields)
        assert isinstance(begun, Begun), begun
        return begun

    def ask(self, entry: SessionEntry, text: str = "hello", **fields: object) -> Begun:
        """Accept a message for an entry's lineage and begin the turn that answers it."""
        inbox_id = self.accept(text, entry.session_key, lineage_id=entry.lineage_id)
        return self.begin(entry.lineage_id, inbox_id, **fields)

    def append(self, begun: Begun, *drafts: MessageDraft) -> Sequence[int]:
        """Store rows of a running turn."""
        return self.run(Append(fence=fence_of(begun), drafts=drafts, now=self.now))

    def finish(self, begun: Begun, *drafts: MessageDraft, outcome: str = "done", **fields: object) -> Finished:
        """End a turn."""
        operation = Finish(fence=fence_of(begun), outcome=outcome, now=self.now, drafts=drafts)
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    def talk(self, entry: SessionEntry, text: str = "hello", answer: str = "hi") -> Begun:
        """Run a whole turn: one question, one answer."""
        begun = self.ask(entry, text)
        self.finish(begun, saying(answer))
        return begun

    def revoke(self, lineage_id: LineageId, reason: str = "", **fields: object) -> Turn | None:
        """Take a lease away."""
        operation = Revoke(lineage_id=lineage_id, now=self.now, reason=reason)
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    # outbox
    def delivering(self, text: str = "answer", **fields: object) -> DeliveryDraft:
        """Return a delivery with a fresh key."""
        draft = DeliveryDraft(key=f"key-{self.fresh()}", target=source_at(), text=text, session_key=KEY)
        return attrs.evolve(draft, **fields)  # type: ignore[arg-type]  # as above

    def deliver(self, text: str = "answer", **fields: object) -> DeliveryId:
        """Store one delivery and return its row's id."""
        (delivery_id,) = self.run(Deliver(drafts=(self.delivering(text, **fields),), now=self.now))
        return delivery_id

    def try_claim(self, delivery_id: DeliveryId, **fields: object) -> Delivery | None:
        """Claim a delivery as it is now, whatever comes of it."""
        operation = ClaimDelivery(
            delivery_id=delivery_id,
            owner=holder_at("sender"),
            expected_attempt=self.delivery(delivery_id).attempt,
            now=self.now,
        )
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    def claim(self, delivery_id: DeliveryId, *texts: str, **fields: object) -> Delivery:
        """Claim a delivery, which must succeed; split it into ``texts`` where there are any."""
        claimed = self.try_claim(delivery_id, **fields)
        assert claimed is not None
        if texts:
            self.split(claimed, *texts)
        return self.delivery(delivery_id)

    def split(self, claimed: Delivery, *texts: str) -> Sequence[StoredPart]:
        """Split a delivery that was claimed."""
        parts = tuple(PartDraft(text=text) for text in texts)
        return self.run(SplitDelivery(delivery_id=claimed.id, attempt=claimed.attempt, parts=parts, now=self.now))

    def mark(self, claimed: Delivery, index: int = 0, **fields: object) -> Delivery:
        """Write down that a part went out."""
        operation = MarkSent(delivery_id=claimed.id, attempt=claimed.attempt, index=index, now=self.now)
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    def defer(self, claimed: Delivery, **fields: object) -> Delivery:
        """Put a delivery back that was claimed."""
        operation = DeferDelivery(
            delivery_id=claimed.id, attempt=claimed.attempt, now=self.now, due_at=self.now, error="later"
        )
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    def fail(self, claimed: Delivery, **fields: object) -> Delivery:
        """Give a delivery up that was claimed."""
        operation = FailDelivery(delivery_id=claimed.id, attempt=claimed.attempt, now=self.now, error="refused")
        return self.run(attrs.evolve(operation, **fields))  # type: ignore[arg-type]  # as above

    def retry(self, delivery_id: DeliveryId) -> Delivery:
        """Let a delivery that failed be sent again."""
        return self.run(RetryDelivery(delivery_id=delivery_id, now=self.now))

    def send(self, delivery_id: DeliveryId) -> Delivery:
        """Claim a delivery and send it as one part."""
        return self.mark(self.claim(delivery_id, "answer"))

    def delivery(self, delivery_id: DeliveryId) -> Delivery:
        """Return a delivery that must be there."""
        found = self.store.delivery(delivery_id)
        assert found is not None
        return found

    # what is there
    def lineage(self, lineage_id: LineageId) -> Lineage:
        """Return a lineage that must be there."""
        found = self.store.lineage(lineage_id, ALL)
        assert found is not None
        return found

    def tip(self, lineage_id: LineageId) -> Session:
        """Return the session that goes on in a lineage that must be there."""
        found = self.store.session(self.lineage(lineage_id).tip, ALL)
        assert found is not None
        return found

    def lease(self, lineage_id: LineageId) -> Lease:
        """Return the lease of a lineage that must be there."""
        found = self.store.lease(lineage_id)
        assert found is not None
        return found

    def rows(self, lineage_id: LineageId) -> Sequence[Message]:
        """Return all rows of a lineage."""
        return self.store.messages(lineage_id, ALL)

    def texts(self, lineage_id: LineageId) -> list[str]:
        """Return the contents of all rows of a lineage."""
        return [row.content for row in self.rows(lineage_id)]

    def item(self, inbox_id: InboxId) -> InboxItem:
        """Return an inbox row that must be there."""
        found = self.store.inbox_item(inbox_id)
        assert found is not None
        return found

    def status(self, inbox_id: InboxId) -> str:
        """Return the status of an inbox row that must be there."""
        return self.item(inbox_id).status


def binding(scene: Scene, key: SessionKey, lineage_id: LineageId, **fields: object) -> BindRoute:
    """Return a bind of ``key`` to a lineage."""
    operation = BindRoute(
        key=key, key_version=1, source=source_at(), policy=scene.policy, lineage_id=lineage_id, now=scene.now
    )
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    return attrs.evolve(operation, **fields)  # type: ignore[arg-type]


def releasing(scene: Scene, key: SessionKey = KEY, **fields: object) -> ReleaseRoute:
    """Return a release of ``key``."""
    operation = ReleaseRoute(key=key, now=scene.now, reason="session_reset")
    return attrs.evolve(operation, **fields)  # type: ignore[arg-type]  # as above
