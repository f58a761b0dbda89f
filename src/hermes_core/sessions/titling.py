"""Titles that nobody gave: plugins are asked behind a turn of a conversation without one.

On a thread of its own: neither the answer nor another listener waits. A conversation whose title a person gave, or that
got one, is not asked about again; the store itself compares where the title came from, so a person who is quicker wins.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final

from hermes_core.sessions.titles import clean_title
from hermes_hookspecs.errors import HermesError, SessionNotFound
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.metering import metered
from hermes_hookspecs.operations import RecordUsage, Rename
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.services import Titler
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.turns import Turn, Usage

__all__ = ["ASKING_S", "Titling"]

_log = getLogger(__name__)

ASKING_S: Final = 30.0
"""Seconds that one titler has for one conversation."""
_LEAVING_S: Final = 2.0
"""Seconds for which a profile that closes waits for the title that is being found."""
_ROWS: Final = 6
"""First rows of a conversation that are shown."""
_TRIES: Final = 3
_KNOWN: Final = 4096
"""Conversations of which this process remembers that they were asked about."""
_WAITING: Final = 256
_LONGEST: Final = 80


class Titling:
    """Listens for turns that end, and finds titles. Thread-safe; its thread begins with the first conversation.

    :param fire: tells an event to the plugins. asking_s: for one titler.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        titlers: Sequence[Titler],
        fire: Callable[..., None],
        *,
        asking_s: float = ASKING_S,
    ) -> None:
        self._store = store
        self._clock = clock
        self._titlers = titlers
        self._fire = fire
        self._asking_s = asking_s
        self._changed = Condition()
        self._tries: dict[LineageId, int] = {}
        self._waiting: dict[LineageId, None] = {}
        self._thread: Thread | None = None
        self._closing = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[str | None]] | None = None

    @hookimpl
    def hermes_after_turn_finish(self, turn: Turn) -> None:
        """Ask about the conversation, unless that was done."""
        with self._changed:
            tries = self._tries.get(turn.lineage_id, 0)
            full = len(self._waiting) >= _WAITING
            if turn.outcome != DONE or tries >= _TRIES or self._closing or full:
                return
            self._waiting[turn.lineage_id] = None
            if self._thread is None:
                self._thread = Thread(target=self._run, name="hermes-titles", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @hookimpl
    def hermes_before_close(self) -> None:
        """Let the title that is being found be found, for a moment; what waits stays without."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is None:
            return
        thread.join(_LEAVING_S)
        with self._changed:
            if self._running is not None:
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._waiting)
                if self._closing:
                    return
                lineage_id = next(iter(self._waiting))
                del self._waiting[lineage_id]
            try:
                done = self._find(lineage_id)
            except Exception as error:  # noqa: BLE001 - a conversation without a title is no fault of its answers
                _log.warning("%s gets no title: %s", lineage_id, type(error).__name__)
                done = False
            self._remember(lineage_id, done=done)

    def _remember(self, lineage_id: LineageId, *, done: bool) -> None:
        with self._changed:
            self._tries[lineage_id] = _TRIES if done else self._tries.pop(lineage_id, 0) + 1
            while len(self._tries) > _KNOWN:
                del self._tries[next(iter(self._tries))]
            self._changed.notify_all()

    def _find(self, lineage_id: LineageId) -> bool:
        """Find a title and write it down; return whether there is nothing left to ask."""
        lineage = self._store.lineage(lineage_id, operator())
        if lineage is None or lineage.title is not None:
            return True
        rows = self._store.messages(lineage_id, operator(), limit=_ROWS)
        said = [row for row in rows if row.role in (USER, ASSISTANT) and row.content.strip() and not row.kind]
        if not said:
            return False
        found = self._found(said)
        title = None if found is None else clean_title(_shortened(found))
        if title is None:
            return False
        rename = Rename(
            lineage_id=lineage_id, title=title, origin="auto", now=self._clock.now(), session_id=lineage.tip
        )
        try:
            given = self._store.apply(rename)
        except SessionNotFound:
            return True
        if given is not None and given != lineage.title:
            self._fire("hermes_after_title_change", lineage_id=lineage_id, title=given, origin="auto")
        return given is not None

    def _found(self, said: Sequence[Message]) -> str | None:
        """Return a title; what that took counts to the newest turn that was shown."""
        used: list[Usage] = []
        turn_id = next((row.turn_id for row in reversed(said) if row.turn_id is not None), None)
        try:
            with metered(used.append):
                return asyncio.run(self._asked(said))
        finally:
            if turn_id is not None:
                for usage in used:
                    self._store.apply(RecordUsage(turn_id=turn_id, usage=usage, now=self._clock.now()))

    async def _asked(self, rows: Sequence[Message]) -> str | None:
        """Return the first title that a plugin finds; a closing profile ends the asking."""
        task = asyncio.create_task(self._ask(rows))
        with self._changed:
            self._running = (asyncio.get_running_loop(), task)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            with self._changed:
                self._running = None

    async def _ask(self, rows: Sequence[Message]) -> str | None:
        for titler in self._titlers:
            try:
                async with asyncio.timeout(self._asking_s):
                    title: object = await titler.title(tuple(rows))
            except Exception as error:  # noqa: BLE001 - a plugin's fault: the next one is asked
                reason = str(error) if isinstance(error, HermesError) else type(error).__name__
                _log.warning("titler %s failed: %s", titler.name, reason)
                continue
            if isinstance(title, str) and title.strip():
                return title
        return None


def _shortened(title: str) -> str:
    """Return the first line of what was said, at most 80 characters."""
    line = title.strip().splitlines()[0].strip()
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
