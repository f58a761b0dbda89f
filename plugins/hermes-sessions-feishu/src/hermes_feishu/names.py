"""What people are called: events name them by ids alone, and in a conversation of several that says little."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.lookups import path_part
from hermes_feishu.recent import Recent
from hermes_hookspecs.errors import AuthFailed, PlatformError

if TYPE_CHECKING:
    from hermes_feishu.client import FeishuClient
    from hermes_hookspecs.clock import Clock

__all__ = ["Names"]

_log = getLogger(__name__)

_LIMIT_S = 1.0
_PEOPLE = 4000
_KNOWN_S, _UNKNOWN_S, _FORBIDDEN_S = 86_400.0, 600.0, 3600.0


class Names:
    """Asks once a day what somebody is called; never raises. For one event loop."""

    def __init__(self, client: FeishuClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: Recent[tuple[str, float]] = Recent(_PEOPLE)
        self._quiet_until = 0.0

    async def of(self, open_id: str) -> str:
        """Return somebody's name, ``""`` where the app may not know it, or nobody says it within a second."""
        now = self._clock.monotonic()
        name, ask_at = self._known.get(open_id) or ("", 0.0)
        if not open_id or now < max(ask_at, self._quiet_until):
            return name
        path = f"/open-apis/contact/v3/users/{path_part(open_id)}"
        try:
            async with asyncio.timeout(_LIMIT_S):
                answer = await self._client.get("looking up a name", path, params={"user_id_type": "open_id"})
        except AuthFailed as error:
            self._quiet_until = now + _FORBIDDEN_S
            _log.info("people are called by their ids: %s", error)
            return name
        except (PlatformError, TimeoutError) as error:
            _log.debug("a name is not known: %s", error)
        else:
            name = text_of(mapping_of(answer.data.get("user")).get("name"))
        self._known.put(open_id, (name, now + (_KNOWN_S if name else _UNKNOWN_S)))
        return name
