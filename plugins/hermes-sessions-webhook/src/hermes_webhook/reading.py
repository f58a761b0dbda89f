"""Fetching answers: of one message, of a conversation, or as they come (server-sent events); and their files."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from hermes_webhook.listeners import said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_webhook.book import Answer, Book, Noted
    from hermes_webhook.config import WebhookConfig
    from hermes_webhook.shelf import Shelf
    from hermes_webhook.waiting import Waiting

__all__ = ["Reading"]

_HEARTBEAT_S = 15.0
_SLOW_READER_S = 30.0
"""Seconds in which a reader of a stream has to take what was written."""
_MOST_DIGITS = 18


class Reading:
    """Answers the GETs of one account. For one event loop."""

    def __init__(self, book: Book, shelf: Shelf, waiting: Waiting, config: WebhookConfig) -> None:
        self._book = book
        self._shelf = shelf
        self._waiting = waiting
        self._config = config

    async def get(self, request: web.BaseRequest, rest: str) -> web.StreamResponse:
        """Answer a request of somebody who may read. ``rest``: the path behind the account's, with the query."""
        path, _, query = rest.partition("?")
        steps = [unquote(step) for step in path.split("/")[1:]]
        try:
            asked = _query(query)
            match steps:
                case ["chats", chat, "messages", message]:
                    return await self._message(chat, message, asked)
                case ["chats", chat, "answers"]:
                    return await self._conversation(chat, asked)
                case ["chats", chat, "events"]:
                    last = request.headers.get("Last-Event-ID", "")
                    return await self._stream(request, chat, asked | ({"after": last} if last else {}))
                case ["files", number]:
                    return await self._file(number)
        except ValueError as error:
            return said(400, error=str(error))
        return said(404, error="there is nothing at this address")

    async def _file(self, number: str) -> web.Response:
        """Give the bytes of a file, as bytes: what they are an answer says, and no browser shall guess."""
        data = await asyncio.to_thread(self._shelf.get, number)
        if data is None:
            return said(404, error="there is no such file, or it was too long ago")
        headers = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
        return web.Response(body=data, content_type="application/octet-stream", headers=headers)

    async def _message(self, chat: str, message: str, asked: Mapping[str, str]) -> web.Response:
        noted = await asyncio.to_thread(self._book.message, chat, message)
        if noted is None:
            return said(404, error="no such message came, or it was too long ago")
        found = await self._wait(chat, noted.thread_id, asked, about=noted, after=noted.order)
        if found is None:
            return _too_many()
        status = "answered" if any(answer.answers(noted) for answer in found) else "waiting"
        answers = [_shown(answer, chat, noted.thread_id) for answer in found]
        return said(200, id=message, chat_id=chat, status=status, answers=answers)

    async def _conversation(self, chat: str, asked: Mapping[str, str]) -> web.Response:
        thread, after = asked.get("thread", ""), _number("after", asked)
        found = await self._wait(chat, thread, asked, after=after)
        if found is None:
            return _too_many()
        answers = [_shown(answer, chat, thread) for answer in found]
        return said(200, answers=answers, next=str(found[-1].order if found else after))

    async def _wait(
        self, chat: str, thread: str, asked: Mapping[str, str], *, after: int, about: Noted | None = None
    ) -> Sequence[Answer] | None:
        """Return answers, as soon as there is one, or one about a message; ``None``: too many wait already."""
        wait_s = min(float(_number("wait", asked)), self._config.max_wait_s)
        if wait_s and self._waiting.count >= self._config.max_waiting:
            return None
        return await self._waiting.until(
            (chat, thread),
            lambda: self._book.answers(chat, thread, after=after),
            lambda found: any(about is None or answer.answers(about) for answer in found),
            wait_s=wait_s,
        )

    async def _stream(self, request: web.BaseRequest, chat: str, asked: Mapping[str, str]) -> web.StreamResponse:
        thread, after = asked.get("thread", ""), _number("after", asked)
        if self._waiting.count >= self._config.max_waiting:
            return _too_many()
        response = web.StreamResponse(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        await response.prepare(request)
        await _write(response, ": here are the answers\n\n")
        while not self._waiting.is_over:
            behind = after
            found = await self._waiting.until(
                (chat, thread),
                lambda: self._book.answers(chat, thread, after=behind),  # noqa: B023 - called before the next round
                bool,
                wait_s=_HEARTBEAT_S,
            )
            events = [_event(answer, chat, thread) for answer in found]
            await _write(response, "".join(events) or ": nothing yet\n\n")
            after = found[-1].order if found else after
        return response


async def _write(response: web.StreamResponse, text: str) -> None:
    """Write to a stream. :raises ConnectionError: its reader is gone, or takes nothing."""
    try:
        async with asyncio.timeout(_SLOW_READER_S):
            await response.write(text.encode())
    except TimeoutError:
        raise ConnectionResetError("the reader of a stream takes nothing") from None


def _event(answer: Answer, chat: str, thread: str) -> str:
    return f"id: {answer.order}\nevent: answer\ndata: {json.dumps(_shown(answer, chat, thread))}\n\n"


def _shown(answer: Answer, chat: str, thread: str) -> dict[str, object]:
    return {
        "id": str(answer.order),
        "chat_id": chat,
        "thread_id": thread or None,
        "reply_to": answer.reply_to or None,
        "text": answer.text,
        "part": answer.part,
        "parts": answer.parts,
        "file": None if answer.file is None else {**answer.file, "path": f"/files/{answer.file['sha256']}"},
    }


def _query(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in ("wait", "after", "thread") or key in found:
            raise ValueError("a query has wait, after and thread, each once")
        found[key] = value
    return found


def _number(key: str, asked: Mapping[str, str]) -> int:
    text = asked.get(key, "") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"{key} is no whole number")
    return int(text)


def _too_many() -> web.Response:
    return said(429, {"Retry-After": "5"}, error="too many requests wait for answers of this account")
