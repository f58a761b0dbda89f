"""The way in: events wait in order, are read, and stored in batches; only then does whoever brought them hear of it."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import RetryLater, StorageError, StoreStopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_feishu.reader import EventReader
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import Inlet

__all__ = ["Intake"]

_log = getLogger(__name__)

_MOST_WAITING = 1000
_MOST_AT_ONCE = 50
_AGAIN_FIRST_S, _AGAIN_MOST_S = 0.1, 5.0


@attrs.define(eq=False)
class _Waiting:
    payload: bytes
    stored: asyncio.Future[bool]


class Intake:
    """Takes the events of one account while it is :meth:`run`. For one event loop."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()
        self._leaving = False

    def submit(self, payload: bytes) -> asyncio.Future[bool]:
        """Let an event wait; return what becomes true when it is stored, and false when it has to come again."""
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._leaving or len(self._waiting) >= _MOST_WAITING:
            stored.set_result(False)
        else:
            self._waiting.append(_Waiting(payload, stored))
            self._arrived.set()
        return stored

    async def run(self, inlet: Inlet) -> None:
        """Read and store what comes, until :meth:`leave` is called; the batch in hand is stored first.

        A batch that could not be stored is tried again until it is; whoever brought it need not wait so long.

        :raises StoreStopped: the store takes no more writes.
        """
        self._leaving = False
        try:
            while not self._leaving:
                await self._arrived.wait()
                self._arrived.clear()
                while self._waiting and not self._leaving:
                    batch = self._waiting[:_MOST_AT_ONCE]
                    del self._waiting[:_MOST_AT_ONCE]
                    await self._take(inlet, batch)
        finally:
            self._leaving = True
            left, self._waiting = self._waiting, []
            _settle(left, stored=False)

    def leave(self) -> None:
        """Take no more."""
        self._leaving = True
        self._arrived.set()

    async def _take(self, inlet: Inlet, batch: Sequence[_Waiting]) -> None:
        try:
            read = await asyncio.gather(*(self._read(one) for one in batch))
            pairs = [(one, event) for one, event in zip(batch, read, strict=True) if event is not None]
            if pairs:
                await self._store(inlet, [event for _, event in pairs])
            _settle(batch, stored=True)
        finally:
            _settle(batch, stored=False)

    async def _read(self, one: _Waiting) -> MessageEvent | None:
        try:
            return await self._reader.read(one.payload)
        except RetryLater as error:
            _log.info("an event has to come again: %s", error)
            _settle((one,), stored=False)
            return None
        except Exception as error:  # noqa: BLE001 - one event that we fail at must not stop those behind it
            _log.exception("an event could not be read")
            return self._reader.unreadable(one.payload, f"{type(error).__name__} while it was read")

    async def _store(self, inlet: Inlet, events: Sequence[MessageEvent]) -> None:
        wait_s = _AGAIN_FIRST_S
        while True:
            try:
                await inlet.accept(events)
            except StoreStopped:
                raise
            except StorageError as error:
                _log.warning("%d messages could not be stored and are tried again: %s", len(events), error)
                if self._leaving:
                    raise
            else:
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _AGAIN_MOST_S)


def _settle(batch: Sequence[_Waiting], *, stored: bool) -> None:
    """Tell those who wait for a batch; who was told, or has gone, stays so."""
    for one in batch:
        if not one.stored.done():
            one.stored.set_result(stored)
