"""Names of people, by which a room's messages are told apart: asked of Slack once, and never for long.

``users.info`` is limited to about a hundred calls a minute and workspace. So what is known is kept, who is asked about
is asked about once for all who want to know, and a message that would wait longer goes on under the id of its person.
"""

from __future__ import annotations

import asyncio
from collections import deque
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AuthFailed, PlatformError, RetryLater
from hermes_slack.wire import mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_hookspecs.clock import Clock
    from hermes_slack.workspaces import Workspace

    Person = tuple[str, str]

__all__ = ["People"]

_log = getLogger(__name__)

_PATIENCE_S = 0.8
"""How long a batch of messages waits; Slack itself waits three seconds for all that is done with it."""
_CALL_S = 10.0
_KEPT_S, _UNKNOWN_S = 6 * 3600.0, 600.0
_MOST = 5000
_A_MINUTE = 60
_PAUSE_S, _REFUSED_S = 10.0, 3600.0
_LONGEST = 80


class People:
    """What the people of one account's workspaces are called. For one event loop.

    :param asks: whether Slack is asked at all.
    """

    def __init__(self, clock: Clock, *, asks: bool = True) -> None:
        self._clock = clock
        self._asks = asks
        self._names: dict[Person, tuple[str, float]] = {}
        self._asking: dict[Person, asyncio.Task[None]] = {}
        self._silent_until: dict[str, float] = {}
        self._asked: dict[str, deque[float]] = {}

    def name_of(self, workspace: Workspace, user_id: str) -> str:
        """Return what a person is called, ``""`` where that is not known."""
        return self._names.get((workspace.scope_id, user_id), ("", 0.0))[0]

    async def learn(self, workspace: Workspace, user_ids: Iterable[str]) -> None:
        """Ask what people are called whose names are not known; return when it is, or soon after at the latest."""
        wanted = (self._task(workspace, user_id) for user_id in dict.fromkeys(user_ids) if user_id)
        tasks = {task for task in wanted if task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE_S)

    async def aclose(self) -> None:
        """Ask no more."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _task(self, workspace: Workspace, user_id: str) -> asyncio.Task[None] | None:
        """Return who asks about a person; ``None`` where the name is fresh, or nobody may be asked now."""
        person, now = (workspace.scope_id, user_id), self._clock.monotonic()
        if person in self._asking:
            return self._asking[person]
        if self._names.get(person, ("", 0.0))[1] > now or not self._may_ask(workspace.scope_id, now):
            return None
        task = asyncio.create_task(self._ask(workspace, person), name="slack-name")
        self._asking[person] = task
        task.add_done_callback(lambda _: self._asking.pop(person, None))
        return task

    def _may_ask(self, scope_id: str, now: float) -> bool:
        """Count a call, where there is room for it."""
        if not self._asks or self._silent_until.get(scope_id, 0.0) > now:
            return False
        asked = self._asked.setdefault(scope_id, deque())
        while asked and asked[0] <= now - 60:
            asked.popleft()
        if len(asked) >= _A_MINUTE:
            return False
        asked.append(now)
        return True

    async def _ask(self, workspace: Workspace, person: Person) -> None:
        try:
            answer = await workspace.api.read("users.info", timeout_s=_CALL_S, user=person[1])
        except RetryLater as error:
            self._be_silent(workspace, error.after_s or _PAUSE_S)
        except AuthFailed:
            self._be_silent(workspace, _REFUSED_S)
        except PlatformError as error:
            if getattr(error, "code", "") == "missing_scope":
                _log.warning("slack: people are shown by their ids: %s", error)
                self._be_silent(workspace, _REFUSED_S)
            self._keep(person, "", _UNKNOWN_S)
        else:
            name = _name(mapping(answer, "user"))
            self._keep(person, name, _KEPT_S if name else _UNKNOWN_S)

    def _be_silent(self, workspace: Workspace, seconds: float) -> None:
        self._silent_until[workspace.scope_id] = self._clock.monotonic() + seconds

    def _keep(self, person: Person, name: str, seconds: float) -> None:
        if len(self._names) >= _MOST:
            self._names.clear()
        # a person who cannot be asked about any more keeps the name that was known
        self._names[person] = (name or self._names.get(person, ("", 0.0))[0], self._clock.monotonic() + seconds)


def _name(user: Mapping[str, object]) -> str:
    profile = mapping(user, "profile")
    found = text(profile, "display_name") or text(profile, "real_name") or text(user, "real_name") or text(user, "name")
    return " ".join(found.split())[:_LONGEST]
