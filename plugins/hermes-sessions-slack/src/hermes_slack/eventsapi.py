"""The Events API: Slack calls us. A request is answered when its event is stored, or Slack is told to come again."""

from __future__ import annotations

import asyncio
import json
from logging import getLogger
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from aiohttp import web

from hermes_hookspecs.ports.platform import CONNECTED, WAITING
from hermes_slack.intake import COMMANDS, EVENTS, Item
from hermes_slack.signing import is_signed
from hermes_slack.wire import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import Inlet
    from hermes_slack.intake import Intake
    from hermes_slack.listener import Listener

__all__ = ["EventsApi"]

_log = getLogger(__name__)

_ANSWER_S = 2.5
"""Slack waits three seconds."""
_FORM = "application/x-www-form-urlencoded"


class EventsApi:
    """The way in of one account. For one event loop.

    :param secret: with which Slack signs.
    """

    def __init__(self, account_id: str, *, secret: str, listener: Listener, intake: Intake, clock: Clock) -> None:
        self._account_id = account_id
        self._secret = secret
        self._listener = listener
        self._intake = intake
        self._clock = clock
        self._open: set[asyncio.Future[bool]] = set()

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled. :raises RetryLater: nobody can listen there."""
        async with self._listener.serving(self._account_id, lambda request: self._answer(request, inlet)):
            inlet.report(CONNECTED)
            try:
                await asyncio.Event().wait()
            finally:
                for outcome in self._open:
                    _settle(outcome, stored=False)

    async def _answer(self, request: web.Request, inlet: Inlet) -> web.StreamResponse:
        body = await request.read()
        if not is_signed(request.headers, body, secret=self._secret, now=self._clock.now()):
            _log.warning("slack: a request is refused: it is not signed by Slack, or more than five minutes old")
            return web.Response(status=401)
        if request.content_type == _FORM:
            return await self._take(COMMANDS, _form(body))
        payload = _json(body)
        kind = text(payload, "type")
        if kind == "url_verification":
            return web.Response(text=text(payload, "challenge"))
        if kind == "app_rate_limited":
            inlet.report(WAITING, "Slack holds events back: more than 30000 came within an hour")
            return web.Response()
        # whatever it is, it was signed: Slack must not bring it again only because nobody here knows it
        return await self._take(EVENTS, payload) if kind == "event_callback" else web.Response()

    async def _take(self, kind: str, payload: Mapping[str, object]) -> web.StreamResponse:
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def acknowledge() -> None:
            _settle(outcome, stored=True)

        if not self._intake.offer(Item(kind=kind, payload=payload, acknowledge=acknowledge)):
            return web.Response(status=503)
        self._open.add(outcome)
        try:
            async with asyncio.timeout(_ANSWER_S):
                stored = await outcome
        except TimeoutError:
            stored = False  # it waits on; when Slack brings it again it is known
        finally:
            self._open.discard(outcome)
        return web.Response(status=200 if stored else 503)


def _settle(outcome: asyncio.Future[bool], *, stored: bool) -> None:
    if not outcome.done():
        outcome.set_result(stored)


def _json(body: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _form(body: bytes) -> Mapping[str, object]:
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))
