"""What the tests of resets say and do: a chat, messages that nobody waits for, and who serves them."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import attrs

from hermes_core.leases import holder_here
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import Begin, Begun
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", chat_type="dm")
HOUR = 3600
IDLE = {"session_reset.mode": "idle", "session_reset.idle_minutes": 60}


def accept(app, text, source=CHAT):
    event = MessageEvent(source=source, text=text, received_at=app.clock.now(), identities=(f"{text}",))
    (result,) = asyncio.run(app.accept([event]))
    return result


def serve(app, platform="feishu"):
    sender = RecordingSender()
    served = [ServedEntrance(entrance=Entrance(platform), sender=sender)]
    asyncio.run(asyncio.wait_for(app.work(served, until_idle=True), 30))
    return sender


def dead_pid():
    """Return the number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(timeout=60)
    return child.pid


def begin_and_die(app, text, pid, source=CHAT):
    """Accept a message and begin its turn in a process that is gone; return its row."""
    accepted = accept(app, text, source)
    item = app.store.inbox_item(accepted.id)
    if item.lineage_id is None:
        app.desk.route_waiting(item)
        item = app.store.inbox_item(accepted.id)
    now = app.clock.now()
    begin = Begin(
        lineage_id=item.lineage_id,
        turn_id=f"T{item.id}",
        holder=attrs.evolve(holder_here(item.entrance, item.session_key), pid=pid),
        now=now,
        ttl_ms=30_000,
        drafts=(MessageDraft(role=USER, content=text, timestamp=now, inbox_id=item.id),),
    )
    assert isinstance(app.store.apply(begin), Begun)
    return item
