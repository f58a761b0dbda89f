"""From Slack to the store: what comes waits its turn, is stored in batches, and is acknowledged behind that.

Slack brings an event again when nobody acknowledges it, three times within six minutes; a store that takes nothing for
longer would lose it. So a batch in hand is offered until it is taken, and only what does not fit into memory is left to
Slack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import PlatformError, StorageError
from hermes_hookspecs.ports.platform import CONNECTED, WAITING
from hermes_slack.directs import Directs
from hermes_slack.threads import earlier_words, order
from hermes_slack.wire import text
from hermes_slack.workspaces import scope_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.ports.platform import Inlet
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_slack.config import SlackConfig
    from hermes_slack.events import Reader
    from hermes_slack.people import People
    from hermes_slack.responses import ResponseBook
    from hermes_slack.threads import ThreadBook
    from hermes_slack.workspaces import Workspace

    _Read = tuple["Item", Workspace, MessageEvent]

__all__ = ["COMMANDS", "EVENTS", "Intake", "Item"]

_log = getLogger(__name__)

EVENTS, COMMANDS = "events_api", "slash_commands"
"""What an item is, in the words of Socket Mode."""
_BATCH = 64


@attrs.frozen(kw_only=True)
class Item:
    """One delivery; ``acknowledge`` tells Slack, and raises nothing."""

    kind: str
    payload: Mapping[str, object]
    acknowledge: Callable[[], Awaitable[None]]


class Intake:
    """Takes the deliveries of one account, in order. For one event loop.

    :param workspaces: ours, by scope. pause: waits for seconds.
    """

    def __init__(
        self,
        *,
        config: SlackConfig,
        reader: Reader,
        threads: ThreadBook,
        people: People,
        responses: ResponseBook,
        workspaces: Mapping[str, Workspace],
        clock: Clock,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._config = config
        self._reader = reader
        self._threads = threads
        self._people = people
        self._directs = Directs()
        self._responses = responses
        self._workspaces = workspaces
        self._clock = clock
        self._pause = pause
        self._waiting: asyncio.Queue[Item] = asyncio.Queue(config.most_waiting)
        self._strangers: set[str] = set()

    def offer(self, item: Item) -> bool:
        """Let a delivery wait its turn; return whether there was room."""
        try:
            self._waiting.put_nowait(item)
        except asyncio.QueueFull:
            return False
        return True

    async def work(self, inlet: Inlet) -> None:
        """Store what waits, until cancelled; the batch in hand is finished before."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < _BATCH and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await self._take(inlet, batch)
            for item in batch:
                await item.acknowledge()

    async def _take(self, inlet: Inlet, batch: Sequence[Item]) -> None:
        events: list[MessageEvent] = []
        updates: dict[str, StateUpdate] = {}
        asks = self._config.thread_context > 0
        for item, workspace, read in await self._with_names(await self._all_read(batch)):
            event = read
            if _is_for_us(read):
                is_mention = self._reader.is_mention(item.payload, workspace)
                event, saw, asks = await self._in_its_thread(read, workspace, asks, is_mention)
                saw = (*saw, *self._responses.came(event, text(item.payload, "response_url")))
                updates |= {update.key: update for update in saw}
            events.append(event)
        if events:
            await self._store(inlet, events, tuple(updates.values()))

    async def _all_read(self, batch: Sequence[Item]) -> Sequence[_Read]:
        found = []
        for item in batch:
            workspace = self._workspace(item)
            event = None if workspace is None else await self._read(item, workspace)
            if event is not None and workspace is not None:
                found.append((item, workspace, event))
        return found

    async def _with_names(self, told: Sequence[_Read]) -> Sequence[_Read]:
        """Say what the people are called who talk to us, as far as that is known soon."""
        asked: dict[str, tuple[Workspace, list[str]]] = {}
        for _, workspace, event in told:
            if _is_for_us(event) and not event.source.is_bot:
                asked.setdefault(workspace.scope_id, (workspace, []))[1].append(event.source.user_id or "")
        await asyncio.gather(*(self._people.learn(workspace, users) for workspace, users in asked.values()))
        return [(item, workspace, self._named(event, workspace)) for item, workspace, event in told]

    def _named(self, event: MessageEvent, workspace: Workspace) -> MessageEvent:
        name = "" if event.source.is_bot else self._people.name_of(workspace, event.source.user_id or "")
        return attrs.evolve(event, source=attrs.evolve(event.source, user_name=name)) if name else event

    def _workspace(self, item: Item) -> Workspace | None:
        scope_id = scope_of(item.payload)
        found = self._workspaces.get(scope_id)
        if found is None and scope_id and scope_id not in self._strangers and len(self._strangers) < _BATCH:
            self._strangers.add(scope_id)
            _log.warning("slack: events of the workspace %r are passed over: no bot token is of it", scope_id)
        return found

    async def _read(self, item: Item, workspace: Workspace) -> MessageEvent | None:
        now = self._clock.now()
        if item.kind != COMMANDS:
            event = self._reader.event(item.payload, workspace, now)
            if event is not None and event.source.chat_type == "dm" and event.source.chat_id:
                self._directs.heard_from(workspace, event.source.chat_id)
            return event
        channel = text(item.payload, "channel_id")
        looks_direct = channel.startswith("D") or text(item.payload, "channel_name") == "directmessage"
        is_direct = looks_direct and await self._directs.has(workspace, channel)
        return self._reader.command(item.payload, workspace, now, is_direct=is_direct)

    async def _in_its_thread(
        self, event: MessageEvent, workspace: Workspace, asks: bool, is_mention: bool
    ) -> tuple[MessageEvent, tuple[StateUpdate, ...], bool]:
        """Return a message with what stands above it and is new, what to remember, and whether to go on asking."""
        if event.text.lstrip().startswith("/"):
            return event, (), asks  # a command is the whole message
        source = event.source
        seen = self._threads.seen(source) if source.thread_id and asks else ""
        if not source.thread_id or not asks or not self._may_lack(source, seen, is_mention=is_mention):
            return event, self._threads.saw(source), asks
        try:
            above = await earlier_words(source, workspace, self._people, seen=seen, most=self._config.thread_context)
        except PlatformError as error:
            _log.info("slack: what stands above a message in a thread is not known: %s", error)
            return event, (), False
        words = f"[Earlier in this thread:]\n{above}\n\n{event.text}" if above else event.text
        return attrs.evolve(event, text=words), self._threads.saw(source), asks

    def _may_lack(self, source: SessionSource, seen: str, *, is_mention: bool) -> bool:
        """Return whether something above a message may not be in its session; of a twin, all of it is."""
        if not seen:
            return True
        # where all that people say in our threads comes in, only a mention asks again what others have added
        asks_again = is_mention or not self._config.thread_replies
        return asks_again and order(seen) < order(source.message_id or "")

    async def _store(self, inlet: Inlet, events: Sequence[MessageEvent], state: Sequence[StateUpdate]) -> None:
        pause_s = 0.1
        waited = False
        while True:
            try:
                results = await self._accepted(inlet, events, state)
                break
            except StorageError as error:
                waited = True
                inlet.report(WAITING, f"the store takes nothing: {error}")
                _log.warning("slack: a batch is offered to the store again: %s", error)
            await self._pause(pause_s)
            pause_s = min(pause_s * 2, 10.0)
        if waited:
            inlet.report(CONNECTED)
        for event, result in zip(events, results, strict=True):
            if event.addressed and not result.refused:
                self._threads.taken(event.source)

    async def _accepted(
        self, inlet: Inlet, events: Sequence[MessageEvent], state: Sequence[StateUpdate]
    ) -> Sequence[AcceptResult]:
        """Hand a batch in; cancelled meanwhile, see how that ends before leaving."""
        handing = asyncio.ensure_future(inlet.accept(events, state=state))
        try:
            return await asyncio.shield(handing)
        except asyncio.CancelledError:
            await asyncio.wait({handing}, timeout=self._config.leave_s)
            handing.cancel()
            await asyncio.gather(handing, return_exceptions=True)
            raise


def _is_for_us(event: MessageEvent) -> bool:
    """Return whether an event is a message that an agent is to hear."""
    return event.addressed and not event.error and not event.recalls
