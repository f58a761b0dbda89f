"""Answers to slash commands in rooms where we are no member: by the address that came with the command.

Slack takes five messages there within half an hour, shown to who gave the command alone. Nothing can be looked up
behind such an address, so that a message whose fate is not known may stand there already: sent again, it says so.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.state import StateUpdate
from hermes_slack.failures import refusal
from hermes_slack.files import is_slacks
from hermes_slack.mrkdwn import mrkdwn
from hermes_slack.threads import NAMESPACE
from hermes_slack.wire import text

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import DeliveryPart, StateReader
    from hermes_slack.config import SlackConfig

__all__ = ["ResponseBook"]

_MOST_USES = 5
_WINDOW_MS = 29 * 60_000
"""A minute less than Slack's half an hour: our clock and Slack's are two."""
_TIMEOUT_S = 15.0
_MOST = 1000


class ResponseBook:
    """Where the commands of one account may be answered. For one event loop."""

    def __init__(self, account_id: str, state: StateReader, clock: Clock, config: SlackConfig) -> None:
        self._account = encode_text(account_id)
        self._state = state
        self._clock = clock
        self._config = config
        self._uses: dict[str, int] = {}

    def came(self, event: MessageEvent, url: str) -> tuple[StateUpdate, ...]:
        """Return what to remember of a command. :param url: its ``response_url``, ``""`` where it has none."""
        key = self._key(event.source.message_id)
        if key is None or not url or not is_slacks(url, self._config):
            return ()
        return (self._update(key, url, 0, event.received_at + _WINDOW_MS),)

    async def answer(self, part: DeliveryPart, session: aiohttp.ClientSession) -> Sent | None:
        """Send a part to who gave the command; ``None`` where it answers none, or too late.

        :raises Rejected: Slack takes no more. :raises RetryLater: not now, or it is not known whether it went out.
        """
        key = self._key(part.target.message_id)
        entry = None if key is None else self._state.get(key)
        if key is None or entry is None:
            return None
        found = json.loads(entry.value)
        url, stored = text(found, "url"), found.get("uses", 0)
        used = max(stored if isinstance(stored, int) else 0, self._uses.get(key, 0))
        if used >= _MOST_USES:
            raise Rejected(f"Slack takes {_MOST_USES} messages for a command where we are no member; they are used up")
        if len(self._uses) >= _MOST:
            self._uses.clear()  # what went out is in the store
        self._uses[key] = used + 1
        try:
            await self._post(url, part, session)
        except RetryLater as error:
            if not error.maybe_sent:
                self._uses[key] = used
            raise
        return Sent(state=(self._update(key, url, used + 1, entry.expires_at or self._clock.now()),))

    async def _post(self, url: str, part: DeliveryPart, session: aiohttp.ClientSession) -> None:
        body = {"response_type": "ephemeral", "text": mrkdwn(part.text), "unfurl_links": False, "unfurl_media": False}
        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                session.post(url, json=body, allow_redirects=False) as answer,
            ):
                status, said = answer.status, await answer.text()
        except aiohttp.ClientConnectorError as error:
            raise RetryLater(f"response_url failed: no connection ({error.os_error})") from error
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise RetryLater(f"response_url failed: {type(error).__name__}", maybe_sent=True) from error
        if status != 200:
            raise refusal("response_url", status, _code(said) or (f"HTTP {status}" if status < 500 else ""))

    def _key(self, message_id: str | None) -> str | None:
        if not message_id or not message_id.startswith("command-"):
            return None
        return f"{self._account}/command/{encode_text(message_id)}"

    def _update(self, key: str, url: str, uses: int, expires_at: int) -> StateUpdate:
        value = json.dumps({"url": url, "uses": uses})
        return StateUpdate(namespace=NAMESPACE, key=key, value=value, expires_at=expires_at)


def _code(said: str) -> str:
    """Return Slack's word for a refusal, ``""`` where there is none: it stands alone, or in an object."""
    try:
        found = json.loads(said)
    except ValueError:
        found = {"error": said.strip()}
    code = text(found, "error") if isinstance(found, dict) else ""
    return code if code.isascii() and code.isidentifier() else ""
