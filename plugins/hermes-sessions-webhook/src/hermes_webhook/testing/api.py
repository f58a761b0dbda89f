"""The platform ``api_server`` from outside: a program that posts messages with a token, and fetches answers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from hermes_hookspecs.testing.fakes import FakeSent
from hermes_webhook.config import API_SERVER
from hermes_webhook.testing.entrance import FakeEntrance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FakeApi"]

_AGAIN_S = 0.02


class FakeApi(FakeEntrance):
    """A :class:`~hermes_hookspecs.testing.fakes.FakePlatform` that asks for answers. Its sends cannot fail."""

    def __init__(self) -> None:
        super().__init__(API_SERVER, "api", "/api", "API_SERVER_TOKEN")

    def headers(self, account_id: str, payload: bytes) -> Mapping[str, str]:
        """Return the header with the token."""
        return {"Authorization": f"Bearer {self.secret(account_id)}"}

    async def start(self) -> None:
        """Do nothing: nobody calls this program."""

    async def stop(self) -> None:
        """Post and ask nothing any more."""
        await self.caller.close()

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return the answers that can be fetched, oldest first, once there are ``count``."""
        async with asyncio.timeout(timeout_s):
            while True:
                found = [answer for place in self._places() for answer in await self._answers(*place)]
                if len(found) >= count:
                    return [answer for _, answer in sorted(found, key=lambda one: one[0])]
                await asyncio.sleep(_AGAIN_S)

    def next_sends(self, *answers: str) -> None:
        """Refuse: an answer that is kept cannot fail."""
        raise NotImplementedError(f"nobody is asked to take an answer: {answers}")

    def freeze(self, frozen: bool) -> None:
        """Post half of each message."""
        self.caller.freeze(frozen)

    def _places(self) -> list[tuple[str, str, str]]:
        places = set()
        for posted in self.caller.posted.values():
            said = json.loads(posted.body)
            places.add((posted.account_id, said["chat_id"], said.get("thread_id", "")))
        return sorted(places)

    async def _answers(self, account_id: str, chat_id: str, thread_id: str) -> list[tuple[int, FakeSent]]:
        query = {"thread": thread_id} if thread_id else {}
        _, said = await self.get(f"/chats/{quote(chat_id, safe='')}/answers", account_id, **query)
        answers = said["answers"]
        if not isinstance(answers, list):
            return []
        return [
            (
                int(one["id"]),
                FakeSent(
                    message_id=one["id"],
                    account_id=account_id,
                    chat_id=one["chat_id"],
                    thread_id=one["thread_id"],
                    text=one["text"],
                    file=await self.fetch(one["file"]["path"], account_id) if one["file"] else None,
                    file_name=one["file"]["name"] if one["file"] else "",
                ),
            )
            for one in answers
        ]
