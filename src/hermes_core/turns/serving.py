"""What a process needs to answer entrances whose senders do not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.context.fetching import nothing_to_fetch
from hermes_core.leases import holder_here
from hermes_core.turns.presence import door
from hermes_core.turns.queue import same_address
from hermes_hookspecs.inbox import MESSAGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.outbox.streams import Following
    from hermes_core.sessions.desk import SessionDesk
    from hermes_core.turns.queue import QueueLook
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.agent import Agent, Tool
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["Serving"]

MOST_TOGETHER = 50
_LONGEST_HOLD = 10
"""Windows after which a batch is answered although its sender goes on."""


@attrs.frozen(kw_only=True, eq=False)
class Serving:
    """The entrances that a process serves, and how.

    Attributes:
        run_control: runs a command's row and returns its reply, ``""`` for none; runs an effect once, however often
            it is called. waits_its_turn: whether a command's row has to wait like a message. overtakes: whether it
            goes before older commands that wait or do not end. follow: of where an answer goes, its lineage and the
            oldest message that it answers, returns who shows readers what becomes of it; ``None`` for nobody.
        fetch: fetches what came with messages of a lineage; says whether it changed their rows.
    """

    entrances: tuple[Entrance, ...]
    agent: Agent
    tools: Mapping[str, Tool]
    commands: tuple[tuple[str, str], ...]
    desk: SessionDesk
    settings: Settings
    run_control: Callable[[InboxItem], Awaitable[str]]
    waits_its_turn: Callable[[InboxItem], bool]
    overtakes: Callable[[InboxItem], bool]
    follow: Callable[[SessionSource, LineageId, InboxId], Following | None] = lambda *_: None
    fetch: Callable[[Sequence[InboxItem], LineageId], Awaitable[bool]] = nothing_to_fetch

    def serves(self, item: InboxItem) -> bool:
        """Return whether this process answers a message: its entrance is served, and nobody else waits for it."""
        return item.waiter is None and door(item.entrance) in {door(one) for one in self.entrances}

    def holder(self, item: InboxItem) -> LeaseHolder:
        """Return this process as the holder of the lease under which a message is answered."""
        return holder_here(item.entrance, item.session_key)

    def policy(self, item: InboxItem) -> str:
        """Return the busy policy of a message's platform."""
        return self.settings.busy_policy_of(item.entrance.platform)

    @property
    def window_ms(self) -> int:
        """Return how close texts of one sender follow each other to be answered together, milliseconds."""
        return int(self.settings.inbox.batch_window_s * 1000)

    def batch(self, look: QueueLook, barriers: Mapping[SessionKey, InboxId]) -> tuple[InboxItem, ...]:
        """Return the messages that the next turn answers, when it is this process's turn; else nothing.

        The oldest one and those directly behind it with the same key, sender and thread: as many as were said in one
        go; with the policy ``merge`` all of them.

        :param barriers: the oldest command of a key that is not done yet; what stands behind it waits for it.
        """
        oldest = look.oldest
        if oldest is None or not self.serves(oldest):
            return ()
        barrier = barriers.get(oldest.session_key)
        if barrier is not None and oldest.id > barrier:
            return ()
        together = [oldest]
        merged = self.policy(oldest) == "merge"
        for item in look.waiting[1:MOST_TOGETHER]:
            in_one_go = item.accepted_at - together[-1].accepted_at < self.window_ms
            if item.kind != MESSAGE or oldest.kind != MESSAGE or not same_address(oldest, item):
                break
            if barrier is not None and item.id > barrier:
                break
            # what was tried before goes on as it was: a younger message does not share its fate
            if item.attempts != oldest.attempts or not (merged or in_one_go):
                break
            together.append(item)
        return tuple(together)

    def hold_s(self, batch: tuple[InboxItem, ...], now: int) -> float:
        """Return the seconds for which a batch may still grow; 0 for one that is complete."""
        oldest, newest = batch[0], batch[-1]
        if newest.kind != MESSAGE or newest.attempts:
            return 0.0
        until = min(newest.accepted_at + self.window_ms, oldest.accepted_at + _LONGEST_HOLD * self.window_ms)
        return min(max(0, until - now), self.window_ms) / 1000
