"""Answers that are shown as they are written, where the platform can edit; that somebody writes, where it can tell.

Nothing here carries a promise: what is shown is a draft, and the delivery that comes with the end of the turn replaces
it. The one rule that counts is that an answer is never shown twice because its draft was (:mod:`drafts`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import attrs

from hermes_core.outbox.calls import call_in_time
from hermes_core.outbox.drafts import forget, read_draft
from hermes_core.outbox.parts import is_taken_once
from hermes_core.outbox.results import sound_result
from hermes_core.outbox.stream import Stream, Typing
from hermes_hookspecs.errors import Rejected
from hermes_hookspecs.outbox import delivery_key
from hermes_hookspecs.ports.platform import Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.outbox.drafts import ShownDraft
    from hermes_core.outbox.limits import AccountPace
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.agent import AgentEvent
    from hermes_hookspecs.ports.platform import DeliveryPart, SendResult, ServedEntrance
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource

__all__ = ["Following", "Streams", "Trace"]


class Following(Protocol):
    """Who follows one turn while it runs. For one event loop."""

    def event(self, event: AgentEvent) -> None:
        """Take one event of the agent; never blocks."""
        ...

    async def close(self) -> None:
        """The turn has ended: nothing more is shown. Returns within seconds, also where the platform hangs."""
        ...


@attrs.frozen(kw_only=True)
class Trace:
    """What a draft left behind for the delivery that replaces it.

    Attributes:
        result: of the edit that did so; ``None`` where the answer has to be sent as a message of its own.
        maybe_shown: a draft may stand there that cannot be edited any more: the answer may be a repeat.
    """

    result: SendResult | None = None
    maybe_shown: bool = False


class Streams:
    """The drafts of one served entrance. For one event loop.

    :param interval_s: between two edits, at least; ``None`` shows no drafts.
    """

    def __init__(
        self,
        served: ServedEntrance,
        *,
        store: Store,
        clock: Clock,
        pace: AccountPace,
        limit_s: float,
        interval_s: float | None,
    ) -> None:
        self._served = served
        self._store = store
        self._clock = clock
        self._pace = pace
        self._limit_s = limit_s
        self._interval_s = interval_s
        self._running: dict[str, Stream] = {}
        edit: Callable[[DeliveryPart, str], Awaitable[SendResult]] | None = getattr(served.sender, "edit", None)
        self._edit = edit if served.abilities.edits else None

    # --- while a turn runs

    def follow(self, target: SessionSource, lineage_id: LineageId, inbox_id: InboxId) -> Following:
        """Follow a turn that answers a message; close what is returned when the turn has ended.

        :param target: where the answer goes. inbox_id: the oldest message that it answers.
        """
        key = delivery_key(lineage_id, inbox_id)
        typing = None
        if self._served.abilities.typing and callable(getattr(self._served.sender, "typing", None)):
            typing = Typing(self._served.sender, target, self._limit_s)  # type: ignore[arg-type]  # it has the method
        stream = None
        if self._edit is not None and self._interval_s is not None and key not in self._running:
            stream = Stream(
                self._served,
                self._edit,
                key,
                target,
                lineage_id,
                store=self._store,
                clock=self._clock,
                pace=self._pace,
                limit_s=self._limit_s,
                interval_s=self._interval_s,
            )
            self._running[key] = stream
        return _Follower(self, key, stream, typing)

    def let_go(self, key: str, stream: Stream) -> None:
        """Forget a stream that has ended."""
        if self._running.get(key) is stream:
            del self._running[key]

    # --- when the answer is delivered

    async def replace(self, delivery: Delivery, part: DeliveryPart) -> Trace:
        """Let the first part of an answer take the place of its draft.

        :raises RetryLater, AuthFailed: of the edit, which may be repeated: it makes no second message.
        """
        if self._edit is None:
            return Trace()
        edit, stream = self._edit, self._running.get(delivery.key)
        if stream is not None:
            await stream.end()  # a late edit must not put the draft back
        now = self._clock.now()
        draft = await asyncio.wrap_future(self._store.submit_read(lambda reader: read_draft(reader, delivery.key, now)))
        if draft is None:
            return Trace()
        message_id = draft.message_id or await self._found(delivery, part, draft)
        if message_id is None:
            return Trace(maybe_shown=True)
        try:
            result = sound_result(await call_in_time(lambda: edit(part, message_id), self._limit_s))
        except Rejected:
            return Trace(maybe_shown=False)  # the draft stands there, and the answer below it: no repeat, a longer one
        if not isinstance(result, Sent):
            return Trace(result=result)
        own = attrs.evolve(
            result,
            platform_message_id=result.platform_message_id or message_id,
            state=(*result.state, forget(delivery.key)),
        )
        return Trace(result=own)

    async def _found(self, delivery: Delivery, part: DeliveryPart, draft: ShownDraft) -> str | None:
        """Return the id of a draft of which nobody knows whether it was sent, ``None`` where it cannot be found.

        A platform that knows the draft's key is sent the answer under it: either it is there now, or the draft is, and
        has its id. One that can be asked is asked.
        """
        under_its_key = attrs.evolve(part, key=draft.part_key)
        find: Callable[[DeliveryPart], Awaitable[Sent | None]] | None
        find = getattr(self._served.sender, "find_sent", None)
        if is_taken_once(delivery, self._served.abilities, self._clock.now()):
            result: object = await call_in_time(lambda: self._served.sender.send(under_its_key), self._limit_s)
        elif find is not None:
            asking = find
            result = await call_in_time(lambda: asking(under_its_key), self._limit_s)
        else:
            return None
        return result.platform_message_id if isinstance(result, Sent) else None


class _Follower:
    """Follows one turn."""

    def __init__(self, streams: Streams, key: str, stream: Stream | None, typing: Typing | None) -> None:
        self._streams = streams
        self._key = key
        self._stream = stream
        self._typing = typing
        if typing is not None:
            typing.begin()

    def event(self, event: AgentEvent) -> None:
        """Take one event of the agent."""
        if self._stream is not None:
            self._stream.take(event)

    async def close(self) -> None:
        """End both, whatever becomes of the other."""
        stream = self._stream
        work = [] if self._typing is None else [self._typing.end()]
        if stream is not None:
            work.append(stream.end())
        try:
            await asyncio.gather(*work, return_exceptions=True)
        finally:
            if stream is not None:
                self._streams.let_go(self._key, stream)
