"""Commands of an entrance whose sender does not wait: effect once, reply once, in the order of one key.

The effect and the mark *applied* are one transaction of the store; the reply and the mark *done* are another. A process
that dies between the two leaves a row whose effect is not run again and whose reply is still owed.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.faultpoints import reach
from hermes_core.outbox.topics import outbox_topic
from hermes_core.settling import settled
from hermes_hookspecs.errors import HermesError, PluginError, StorageError
from hermes_hookspecs.operations import Deliver
from hermes_hookspecs.outbox import REPLY, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from hermes_core.turns.engine import TurnEngine
    from hermes_core.turns.serving import Serving
    from hermes_hookspecs.ids import InboxId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["ControlWork", "barriers", "next_controls"]

_log = getLogger(__name__)

_MOST = 1000
_FAILED = "That command failed; what went wrong is in the log."


class ControlWork:
    """Runs the commands of one key that wait, oldest first. One that waits for its turn holds up those behind it."""

    def __init__(self, engine: TurnEngine, serving: Serving, key: SessionKey) -> None:
        self._around = engine.around
        self._serving = serving
        self._key = key

    async def run(self) -> None:
        """Run what can be run now."""
        while True:
            item = await asyncio.wrap_future(self._around.store.submit_read(self._next))
            if item is None:
                return
            await self._run_one(item)
            self._around.waker.wake(outbox_topic(item.entrance))
            if item.lineage_id is not None:
                self._around.waker.wake(item.lineage_id)  # what stands behind the command may begin

    def _next(self, reader: StoreReader) -> InboxItem | None:
        return next((one for one in next_controls(reader, self._serving) if one.session_key == self._key), None)

    async def _run_one(self, item: InboxItem) -> None:
        try:
            reply = await self._serving.run_control(item)
        except StorageError:
            raise
        except HermesError as error:
            if isinstance(error, PluginError):
                _log.warning("the command of inbox row %s failed: %s", item.id, error)
            reply = _FAILED if isinstance(error, PluginError) else str(error)
        except Exception:  # noqa: BLE001 - a command is a plugin's code; its fault is answered, not the worker's end
            _log.exception("the command of inbox row %s failed", item.id)
            reply = _FAILED
        drafts = (_reply(item, reply),) if reply else ()
        reach("control.applied")
        operation = Deliver(drafts=drafts, now=self._around.clock.now(), settle=item.id)
        await settled(self._around.store.perform(operation))
        reach("control.replied")


def next_controls(reader: StoreReader, serving: Serving) -> tuple[InboxItem, ...]:
    """Return the commands that can be run now: the oldest of each key, unless it has to wait for its turn."""
    oldest: dict[SessionKey, InboxItem] = {}
    for item in reader.controls(serving.entrances, limit=_MOST):
        oldest.setdefault(item.session_key, item)
    return tuple(item for item in oldest.values() if not (serving.waits_its_turn(item) and _is_held_up(reader, item)))


def barriers(reader: StoreReader, serving: Serving) -> dict[SessionKey, InboxId]:
    """Return the oldest command of each key that was not run, or not replied to: no message behind it begins before."""
    found: dict[SessionKey, InboxId] = {}
    for item in reader.controls(serving.entrances, limit=_MOST):
        found.setdefault(item.session_key, item.id)
    return found


def _is_held_up(reader: StoreReader, item: InboxItem) -> bool:
    """Return whether older messages of the key, or a turn of its session, go first."""
    if any(one.id < item.id for one in reader.waiting_of_key(item.session_key, limit=1)):
        return True
    route = reader.route(item.session_key)
    lease = None if route is None or route.lineage_id is None else reader.lease(route.lineage_id)
    return lease is not None and lease.holder is not None


def _reply(item: InboxItem, text: str) -> DeliveryDraft:
    return DeliveryDraft(
        key=delivery_key(item.session_key, item.id),
        target=item.source,
        text=text,
        session_key=item.session_key,
        lineage_id=item.lineage_id,
        inbox_id=item.id,
        kind=REPLY,
    )
