"""That an answer is being written, shown by a reaction to its question: the platform has no other sign for it."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING
from urllib.parse import quote

from hermes_feishu.client import text_of
from hermes_feishu.failures import error_of
from hermes_feishu.recent import Recent
from hermes_hookspecs.errors import AuthFailed, PlatformError

if TYPE_CHECKING:
    from hermes_feishu.client import FeishuClient
    from hermes_hookspecs.clock import Clock

__all__ = ["TypingReactions"]

_log = getLogger(__name__)

_EMOJI = "Typing"
_MOST = 2000
_FORBIDDEN_S = 3600.0


class TypingReactions:
    """Sets the reaction of one account, and takes it back. Never raises. For one event loop."""

    def __init__(self, client: FeishuClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._set: Recent[str] = Recent(_MOST)
        self._quiet_until = 0.0

    async def show(self, message_id: str) -> None:
        """Set the reaction to a message, where it is not set yet."""
        if message_id in self._set or self._clock.monotonic() < self._quiet_until:
            return
        body = {"reaction_type": {"emoji_type": _EMOJI}}
        try:
            answer = await self._client.ask("showing that somebody writes", "POST", _path(message_id), body=body)
            if not answer.is_good:
                raise error_of(answer, "showing that somebody writes")
        except AuthFailed as error:
            self._quiet_until = self._clock.monotonic() + _FORBIDDEN_S
            _log.info("nobody sees that an answer is being written: %s", error)
        except PlatformError as error:
            _log.debug("a reaction was not set: %s", error)
        else:
            self._set.put(message_id, text_of(answer.data.get("reaction_id")))

    async def hide(self, message_id: str) -> None:
        """Take the reaction back."""
        reaction = self._set.pop(message_id)
        if not reaction:
            return
        try:
            path = f"{_path(message_id)}/{quote(reaction, safe='')}"
            await self._client.ask("showing that nobody writes", "DELETE", path)
        except PlatformError as error:
            _log.debug("a reaction was not taken back: %s", error)


def _path(message_id: str) -> str:
    return f"/open-apis/im/v1/messages/{quote(message_id, safe='')}/reactions"
