"""One answer that grows before its readers' eyes, and the sign that somebody writes."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.faultpoints import reach
from hermes_core.outbox.calls import call_in_time
from hermes_core.outbox.drafts import forget, opened, read_draft, shown
from hermes_core.outbox.parts import parts_of
from hermes_core.outbox.results import hint_of, one_line, sound_result
from hermes_core.settling import settled
from hermes_hookspecs.errors import AuthFailed, Conflict, Rejected, RetryLater, StorageError
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta
from hermes_hookspecs.ports.platform import DeliveryPart, Sent
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.outbox.drafts import ShownDraft
    from hermes_core.outbox.limits import AccountPace
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.agent import AgentEvent
    from hermes_hookspecs.ports.platform import SendResult, ServedEntrance, Typist
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate

__all__ = ["Stream", "Typing"]

_log = getLogger(__name__)

_TYPING_S = 4.0
"""Seconds after which a platform is told again that somebody writes."""
_TYPING_LIMIT_S = 5.0
_END_S = 10.0
"""Seconds in which a call that is under way has to end, when the turn has."""
_GROWS = 1.25
"""By how much the time between two edits grows where a message can be edited only so often."""
_HEADS = 1000


class Stream:
    """Shows the answer of one turn as a message that is edited. For one event loop; begins with the first text.

    :param key: of the delivery that will replace it. limit_s: for one call of the platform.
    """

    def __init__(
        self,
        served: ServedEntrance,
        edit: Callable[[DeliveryPart, str], Awaitable[SendResult]],
        key: str,
        target: SessionSource,
        lineage_id: LineageId,
        *,
        store: Store,
        clock: Clock,
        pace: AccountPace,
        limit_s: float,
        interval_s: float,
    ) -> None:
        self._served = served
        self._edit = edit
        self._key = key
        self._target = target
        self._lineage_id = lineage_id
        self._store = store
        self._clock = clock
        self._pace = pace
        self._limit_s = limit_s
        per_minute = served.abilities.parts_per_minute
        # half of what the platform allows: the other half is for answers
        self._interval_s = interval_s if per_minute is None else max(interval_s, 120.0 / per_minute)
        self._text = ""
        self._fresh = True
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def take(self, event: AgentEvent) -> None:
        """Take one event of the agent: the text of the step that it is at is what is shown."""
        if isinstance(event, AssistantStep):
            self._fresh = True
        if isinstance(event, TextDelta) and event.text:
            self._text = event.text if self._fresh else self._text + event.text
            self._fresh = False
            if self._task is None and not self._ended.is_set():
                self._task = asyncio.create_task(self._run(), name="hermes-stream")

    async def end(self) -> None:
        """Show nothing more; a call that is under way ends first, and is cancelled where it takes too long."""
        self._ended.set()
        task = self._task
        if task is None:
            return
        await asyncio.wait({task}, timeout=min(self._limit_s, _END_S))
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self._show()
        except (RetryLater, AuthFailed, Rejected, StorageError, Conflict) as error:
            _log.debug("a draft of %s goes no further: %s", self._served.entrance, error)
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything; the answer itself comes later
            _log.info("a draft of %s goes no further: %s", self._served.entrance, one_line(error))

    async def _show(self) -> None:
        """Open the draft when its address is free, then edit it as the text grows."""
        draft: ShownDraft | None = None
        said = ""
        interval_s, left = self._interval_s, self._served.abilities.most_edits
        message_id: str | None = None
        while not await self._pause(interval_s):
            part = self._part()
            if part is None or part.text == said or self._pace.wait_s(address_of(self._target)) > 0:
                continue
            if message_id is None:
                free, draft = await asyncio.wrap_future(self._store.submit_read(self._look))
                if draft is not None and draft.message_id is None:
                    return  # an attempt before this one may have sent it: the delivery finds out
                if draft is None and not free:
                    continue
                message_id = await self._open(part) if draft is None else draft.message_id
                if message_id is None:
                    return
            if draft is not None or said:
                if left is not None and left <= 1:
                    return  # the last edit is the answer's
                self._pace.note(address_of(self._target))
                await self._edited(part, message_id)
                left = None if left is None else left - 1
                interval_s = interval_s if left is None else interval_s * _GROWS
            said = part.text

    async def _open(self, part: DeliveryPart) -> str | None:
        """Send the first text, remembered before and behind; return the message's id, ``None`` where it has none."""
        await self._put(opened(self._key, part.key, self._lineage_id, self._clock.now()))
        reach("stream.opened")
        self._pace.note(address_of(self._target))
        try:
            result = sound_result(await call_in_time(lambda: self._served.sender.send(part), self._limit_s))
        except (RetryLater, AuthFailed, Rejected) as error:
            if getattr(error, "maybe_sent", False) is not True:
                await self._put(forget(self._key))
            raise
        if not isinstance(result, Sent):
            await self._put(forget(self._key))
            return None
        reach("stream.sent")
        if result.platform_message_id is None:
            return None
        now, message_id = self._clock.now(), result.platform_message_id
        await self._put(shown(self._key, part.key, message_id, self._lineage_id, now), *result.state)
        reach("stream.shown")
        return message_id

    async def _edited(self, part: DeliveryPart, message_id: str) -> None:
        try:
            await call_in_time(lambda: self._edit(part, message_id), self._limit_s)
        except RetryLater as error:
            await self._pause(hint_of(error) or self._interval_s)
        reach("stream.edited")

    def _part(self) -> DeliveryPart | None:
        """Return what is to be shown now: the first part of the text so far, ``None`` while there is none."""
        drafts = parts_of(self._text, self._served.abilities)
        if not drafts:
            return None
        return DeliveryPart(
            target=self._target,
            text=drafts[0].text,
            key=f"{self._key}.draft",
            format=drafts[0].format,
            reply_to=self._target.message_id,
            is_draft=True,
        )

    def _look(self, reader: StoreReader) -> tuple[bool, ShownDraft | None]:
        """Return whether nothing waits at the address, which a draft would overtake, and the draft that there is."""
        entrance = Entrance(self._served.entrance.platform, self._served.entrance.account_id)
        heads = reader.next_deliveries((entrance,), limit=_HEADS)
        address = address_of(self._target)
        draft = read_draft(reader, self._key, self._clock.now())
        return all(address_of(one.target) != address for one in heads), draft

    async def _put(self, *updates: StateUpdate) -> None:
        await settled(self._store.perform(PutState(updates=updates, now=self._clock.now())))

    async def _pause(self, seconds: float) -> bool:
        """Wait; return whether the turn has ended meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True


class Typing:
    """Says again and again that an answer is being written, and in the end that it is not. For one event loop."""

    def __init__(self, typist: Typist, target: SessionSource, limit_s: float) -> None:
        self._typist = typist
        self._target = target
        self._limit_s = min(limit_s, _TYPING_LIMIT_S)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to say so."""
        self._task = asyncio.create_task(self._go_on(), name="hermes-typing")

    async def end(self) -> None:
        """Say that nobody writes any more, whatever happened before; returns within seconds."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._say(on=False)

    async def _go_on(self) -> None:
        while True:
            await self._say(on=True)
            await asyncio.sleep(_TYPING_S)

    async def _say(self, *, on: bool) -> None:
        try:
            await call_in_time(lambda: self._typist.typing(self._target, on=on), self._limit_s)
        except Exception as error:  # noqa: BLE001 - a sign of life is worth no more than this
            _log.debug("the platform was not told that somebody writes: %s", one_line(error))
