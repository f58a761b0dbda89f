"""What a fake Slack makes of an answer at a ``response_url``."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_slack.testing.state import ResponseUrl

__all__ = ["answered", "cut"]

_MOST = 5


async def answered(
    found: ResponseUrl | None, failures: Mapping[str, deque[str]], request: web.Request
) -> web.StreamResponse:
    """Take a message, five at most. :param failures: what is to go wrong, under ``response_url``."""
    scripted = failures.get("response_url", deque())
    told = scripted.popleft() if scripted else "ok"
    if told == "ratelimited":
        return web.Response(status=429, headers={"Retry-After": "7"})
    if told == "dropped":
        return cut(request)
    if found is None or not found.open:
        return web.Response(status=404, text="expired_url")
    if len(found.texts) >= _MOST:
        return web.Response(status=404, text="used_url")
    body = json.loads(await request.read())
    if not body.get("text"):
        return web.Response(status=400, text="no_text")
    found.texts.append(str(body["text"]))
    if told == "arrived":
        return web.Response(status=500, text="<html>oh</html>", content_type="text/html")
    return cut(request) if told == "cut" else web.Response(text="ok")


def cut(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
