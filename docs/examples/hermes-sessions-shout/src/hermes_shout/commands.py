"""The slash command ``/whisper``, and ``hermes shout count``, which says how often it was used."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from hermes_hookspecs.commands import CommandReply
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.messages import ASSISTANT
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.state import ABSENT, StateUpdate

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.commands import CommandCall
    from hermes_hookspecs.ports.app import App

__all__ = ["count", "whisper"]

NAMESPACE, KEY = "shout", "whispers"


async def whisper(call: CommandCall) -> CommandReply:
    """Repeat the last answer in small letters."""
    if call.entry is None:
        return CommandReply(text="There is nothing to whisper yet.", failed=True)
    lineage_id, principal = call.entry.lineage_id, call.principal
    read = call.app.store.submit_read(lambda store: store.last_messages(lineage_id, principal, count=20))
    answers = [row.content for row in await asyncio.wrap_future(read) if row.role == ASSISTANT]
    if not answers:
        return CommandReply(text="There is nothing to whisper yet.", failed=True)
    await asyncio.to_thread(_add_one, call.app)
    return CommandReply(text=answers[-1].lower())


def _add_one(app: App) -> None:
    """Count, beside whoever counts at the same time: compare and set, and again after a conflict."""
    while True:
        now = app.clock.now()
        entry = app.store.state(NAMESPACE, KEY, now=now)
        update = StateUpdate(
            namespace=NAMESPACE,
            key=KEY,
            value=json.dumps(1 if entry is None else json.loads(entry.value) + 1),
            expected_version=ABSENT if entry is None else entry.version,
        )
        try:
            app.store.apply(PutState(updates=(update,), now=now))
        except Conflict:
            continue
        return


def count(call: CliCall) -> int:
    """Print how often somebody whispered; return the exit status."""
    entry = call.app.store.state(NAMESPACE, KEY, now=call.app.clock.now())
    times = 0 if entry is None else json.loads(entry.value)
    print(json.dumps({"whispers": times}) if call.values["json"] else times, file=call.out)
    return 0
