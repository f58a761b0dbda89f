"""Answers that are sent to whoever asked: one signed POST for each part."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.ports.platform import Sent
from hermes_webhook.signing import headers_of

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import DeliveryPart

__all__ = ["post", "session"]

_LONGEST_REPLY = 4096
_LONGEST_ID = 200
_LATER = (408, 425, 429)


def session(timeout_s: float) -> aiohttp.ClientSession:
    """Return a client that keeps no cookies and asks no proxy of the environment."""
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    return aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)


async def post(client: aiohttp.ClientSession, url: str, part: DeliveryPart, *, secret: str, clock: Clock) -> Sent:
    """Send one part of an answer; redirections are not followed.

    :raises RetryLater: it did not work, and may another time. :raises Rejected: it never will.
    """
    body = _body(part) if part.media is None else await asyncio.to_thread(_body, part)
    headers = headers_of(secret, body, clock.now())
    headers |= {
        "Content-Type": "application/json",
        "Idempotency-Key": part.key,
        "User-Agent": "hermes-sessions-webhook",
    }
    try:
        async with client.post(url, data=BytesIO(body), headers=headers, allow_redirects=False) as response:
            reply = await response.content.read(_LONGEST_REPLY)
            status, retry_after = response.status, response.headers.get("Retry-After", "")
    except aiohttp.ClientConnectorError as error:
        raise RetryLater(f"the callback's host cannot be reached: {error.os_error.strerror or 'no answer'}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise RetryLater(f"the callback was cut off: {type(error).__name__}", maybe_sent=True) from error
    if 200 <= status < 300:
        return Sent(platform_message_id=_id_in(reply))
    if status in _LATER:
        raise RetryLater(f"the callback answered {status}", after_s=_seconds(retry_after) or 5.0)
    if status >= 500:
        raise RetryLater(f"the callback answered {status}", after_s=_seconds(retry_after), maybe_sent=True)
    raise Rejected(f"the callback answered {status}")


def _body(part: DeliveryPart) -> bytes:
    target = part.target
    said: dict[str, object] = {
        "type": "answer",
        "key": part.key,
        "account": target.account_id,
        "chat_id": target.chat_id,
        "thread_id": target.thread_id,
        "reply_to": target.message_id,
        "text": "" if part.media else part.text,
        "part": part.index + 1,
        "parts": part.count,
    }
    if part.media is not None:
        file = part.media
        said["file"] = {
            "name": file.name,
            "media_type": file.media_type,
            "size": file.size,
            "sha256": sha256(file.data).hexdigest(),
            "data": b64encode(file.data).decode("ascii"),
        }
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")


def _id_in(reply: bytes) -> str | None:
    """Return the id that the callback gives the answer, if any."""
    try:
        said: object = json.loads(reply)
    except ValueError:
        return None
    found = said.get("id") if isinstance(said, dict) else None
    return found if isinstance(found, str) and 0 < len(found) <= _LONGEST_ID else None


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None
