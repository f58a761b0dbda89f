"""The login of the fake: codes that are handed out, and polled through whatever states a test writes down."""

from __future__ import annotations

import secrets
from collections import deque
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Logins"]


class Logins:
    """Codes and their states. For one event loop.

    :ivar states: answers of the polls, in order; a dict, or an HTTP status. tokens: what the last code was asked with.
    :ivar verify_codes: digits that came, in order.
    """

    def __init__(self, faults: list[str]) -> None:
        self.states: deque[dict[str, object] | int] = deque()
        self.tokens: list[object] = []
        self.verify_codes: list[str] = []
        self._keys: set[str] = set()
        self._faults = faults

    def code(self, body: Mapping[str, object]) -> web.StreamResponse:
        """Hand out a code."""
        known = body.get("local_token_list")
        self.tokens[:] = known if isinstance(known, list) else []
        if len(self.tokens) > 10:
            self._faults.append("get_bot_qrcode: more than 10 tokens")
        key = secrets.token_hex(8)
        self._keys.add(key)
        content = f"https://liteapp.weixin.qq.com/q/{key}"
        return web.json_response({"qrcode": key, "qrcode_img_content": content})

    def status(self, request: web.Request) -> web.StreamResponse:
        """Say how a code stands."""
        if "Authorization" in request.headers or "AuthorizationType" in request.headers:
            self._faults.append("get_qrcode_status: credentials where there are none")
        if request.query.get("qrcode") not in self._keys:
            self._faults.append("get_qrcode_status: a code that was never handed out")
            return web.json_response({"status": "expired"})
        code = request.query.get("verify_code", "")
        if code:
            self.verify_codes.append(code)
        state = self.states.popleft() if self.states else {"status": "wait"}
        return web.Response(status=state) if isinstance(state, int) else web.json_response(state)
