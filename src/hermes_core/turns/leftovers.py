"""What could not be written when a turn or a wait ended: it is written before this process takes its next message.

A full disk fails the closing of a turn, too. Its lease would then stand for one ttl, held by a living process that has
no use for it, and a message that nobody waits for any more would keep its place in the queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.settling import settled
from hermes_hookspecs.errors import HermesError, StorageError, StoreStopped

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.ports.store import Store

__all__ = ["Leftovers"]

_log = getLogger(__name__)


class Leftovers:
    """The operations of one process that are still owed to its store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owed: deque[Operation[object]] = deque()

    def owe(self, operation: Operation[object], what: str, error: StorageError) -> None:
        """Remember what has failed; a store that has stopped is not asked again, the next process recovers.

        :param operation: may be run again, like every operation. what: for the log, without content.
        """
        if isinstance(error, StoreStopped):
            _log.warning("%s could not be written: %s", what, error)
            return
        _log.warning("%s could not be written, it is tried again: %s", what, error)
        self._owed.append(operation)

    async def write(self) -> None:
        """Write what is owed. What fails again stays owed; what has become pointless, as a lost lease, is let go."""
        if not self._owed:
            return
        taken = [self._owed.popleft() for _ in range(len(self._owed))]
        await settled(asyncio.gather(*(self._write(operation) for operation in taken)))

    async def _write(self, operation: Operation[object]) -> None:
        try:
            await self._store.perform(operation)
        except StoreStopped:
            return
        except StorageError:
            self._owed.append(operation)
        except HermesError as error:
            _log.info("%s is not owed any more: %s", type(operation).__name__, error)
