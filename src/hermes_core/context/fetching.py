"""Fetching what came with a message: from its platform into the attachment store, then into the message's row.

A message whose attachments are named by their platform's ``reference`` waits until their bytes are there. They are kept
first, durably and for the lineage, and its row names them in a transaction of its own then; whoever dies in between
leaves a message whose attachments are fetched again. What cannot be had after the configured tries, or is not wanted,
has a text that says so, and the message is answered without it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from logging import getLogger
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.context.described import text_without
from hermes_core.faultpoints import reach
from hermes_core.settling import settled
from hermes_hookspecs.errors import AttachmentRefused, Rejected, RetryLater
from hermes_hookspecs.operations import Attach

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hermes_core.config.sections import AttachmentSettings
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.platform import AttachmentFetcher
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource

__all__ = ["AttachmentFetching", "fetcher_of", "nothing_to_fetch"]

_log = getLogger(__name__)

_AT_ONCE: Final = 4
"""Attachments that are fetched side by side; each may be as large as the settings let it be."""


async def nothing_to_fetch(_items: Sequence[InboxItem], _lineage_id: LineageId) -> bool:
    """Return ``False``: of entrances whose messages bring nothing that is to be fetched."""
    return False


def fetcher_of(sender: object) -> AttachmentFetcher | None:
    """Return an adapter as what fetches attachments, ``None`` where it does not."""
    found: AttachmentFetcher | None = sender if callable(getattr(sender, "fetch", None)) else None  # type: ignore[assignment]  # the method is the port
    return found


class AttachmentFetching:
    """Fetches for the entrances of one process. For one event loop.

    :param files: returns where bytes are kept. fetchers: by platform and account, for entrances that have one.
    :param sleep: waits before another try.
    """

    def __init__(
        self,
        store: Store,
        files: Callable[[], AttachmentStore],
        fetchers: Mapping[tuple[str, str], AttachmentFetcher],
        *,
        settings: AttachmentSettings,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._files = files
        self._fetchers = fetchers
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def fetch(self, items: Sequence[InboxItem], lineage_id: LineageId) -> bool:
        """Fetch what is missing of messages; return whether there was something, and so their rows are others now.

        :raises StorageError: bytes or row could not be written; nothing is lost, the next call fetches again.
        """
        changed = False
        for item in items:
            fetcher = self._fetchers.get((item.entrance.platform, item.entrance.account_id))
            if fetcher is None or item.attempts or not any(map(_is_missing, item.attachments)):
                continue
            attachments = await self._fetched(item, fetcher, lineage_id)
            reach("fetch.stored")
            operation = Attach(inbox_id=item.id, attachments=attachments, now=self._clock.now())
            await settled(self._store.perform(operation))
            reach("fetch.marked")
            changed = True
        return changed

    async def _fetched(
        self, item: InboxItem, fetcher: AttachmentFetcher, lineage_id: LineageId
    ) -> tuple[Attachment, ...]:
        """Return the attachments of a message, each with its bytes kept or a text that says why not."""
        room = _Room(self._settings.max_message_bytes, self._settings.max_bytes)
        tasks = [
            asyncio.create_task(self._one(one, item.source, fetcher, lineage_id, room)) for one in item.attachments
        ]
        try:
            return tuple(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(
        self,
        attachment: Attachment,
        source: SessionSource,
        fetcher: AttachmentFetcher,
        lineage_id: LineageId,
        room: _Room,
    ) -> Attachment:
        if not _is_missing(attachment):
            return attachment
        if attachment.kind not in self._settings.kinds:
            return _without(attachment, "not taken: attachments.kinds leaves it out")
        try:
            room.expect(attachment.size)
            data = await self._tried(attachment, source, fetcher, room)
            if data is None:
                return _without(attachment)
            name = await asyncio.to_thread(self._files().put, data, lineage_id=lineage_id)
        except (_TooLarge, AttachmentRefused) as error:
            return _without(attachment, f"not taken: {error}")
        return attrs.evolve(attachment, sha256=name, size=len(data))

    async def _tried(
        self, attachment: Attachment, source: SessionSource, fetcher: AttachmentFetcher, room: _Room
    ) -> bytes | None:
        """Return the bytes, ``None`` where they cannot be had. :raises _TooLarge: there are too many."""
        settings, pause_s = self._settings, self._settings.fetch_retry_s
        for left in reversed(range(settings.fetch_attempts)):
            wish_s: float | None = None
            try:
                async with self._at_once, asyncio.timeout(settings.fetch_timeout_s):
                    return await self._read(attachment, source, fetcher, room)
            except _TooLarge:
                raise
            except Rejected as error:
                _tell(attachment, source, error, 0)
                return None
            except Exception as error:  # noqa: BLE001 - whoever fetches is a plugin: the message is answered without it
                _tell(attachment, source, error, left)
                wish_s = error.after_s if isinstance(error, RetryLater) else None
            if left:
                await self._sleep(min(pause_s if wish_s is None else wish_s, settings.fetch_timeout_s))
                pause_s *= 2
        return None

    async def _read(
        self, attachment: Attachment, source: SessionSource, fetcher: AttachmentFetcher, room: _Room
    ) -> bytes:
        data = bytearray()
        async with AsyncExitStack() as stack:
            pieces = fetcher.fetch(attachment, source)
            close = getattr(pieces, "aclose", None)
            if close is not None:
                stack.push_async_callback(close)
            stack.callback(lambda: room.give_back(len(data)))
            async for piece in pieces:
                data += piece
                room.take(len(piece), len(data))
            stack.pop_all()  # what was read keeps its room
        return bytes(data)


class _TooLarge(Exception):
    """More bytes than may come; says so in words."""


class _Room:
    """How many bytes of one message may still come."""

    def __init__(self, together: int, each: int) -> None:
        self._together = together
        self._each = each
        self._left = together

    def expect(self, size: int | None) -> None:
        """:raises _TooLarge: what its platform says is too much already."""
        if size is not None:
            self._check(size, self._left - size)

    def take(self, piece: int, whole: int) -> None:
        """Take in a piece of what has ``whole`` bytes with it. :raises _TooLarge: that is too much."""
        self._left -= piece
        self._check(whole, self._left)

    def give_back(self, count: int) -> None:
        """Take nothing of what a try had that came to nothing."""
        self._left += count

    def _check(self, whole: int, left: int) -> None:
        if whole > self._each:
            raise _TooLarge(f"more than {self._each} bytes (attachments.max_bytes)")
        if left < 0:
            raise _TooLarge(f"more than {self._together} bytes together (attachments.max_message_bytes)")


def _is_missing(attachment: Attachment) -> bool:
    return attachment.sha256 is None and attachment.text is None and bool(attachment.reference)


def _without(attachment: Attachment, reason: str | None = None) -> Attachment:
    text = text_without(attachment) if reason is None else text_without(attachment, reason)
    return attrs.evolve(attachment, text=text)


def _tell(attachment: Attachment, source: SessionSource, error: Exception, left: int) -> None:
    """Tell a failure without what came from outside: a reference may let others fetch the bytes, too."""
    what = f"{left} more tries" if left else "the message is answered without it"
    _log.warning("fetching a %s from %s failed (%s); %s", attachment.kind, source.platform, type(error).__name__, what)
