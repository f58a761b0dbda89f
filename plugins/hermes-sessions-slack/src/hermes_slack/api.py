"""The Web API, by slack-sdk's client: one call each, nothing retried here.

slack-sdk repeats a request whose connection broke unless it is told not to; a message that was posted would be posted
twice. So its retries are off, and what became of a call is said in the errors of the contract.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from logging import WARNING, getLogger
from typing import TYPE_CHECKING

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from hermes_hookspecs.errors import RetryLater
from hermes_slack.failures import refusal

if TYPE_CHECKING:
    from hermes_hookspecs.errors import PlatformError

__all__ = ["SlackApi"]


class SlackApi:
    """Calls with one token. For one event loop; ``session`` belongs to the caller.

    :raises RetryLater: (every call) not now, or it failed on the way; ``maybe_sent``: it may have been carried out.
    :raises AuthFailed: (every call) the token is refused, or lacks a scope.
    :raises Refused: (every call) any other refusal.
    """

    def __init__(self, session: aiohttp.ClientSession, base_url: str, token: str) -> None:
        # the sdk logs bodies, unless the logger itself says that it does not log them
        quiet = getLogger("hermes_slack.sdk")
        quiet.setLevel(WARNING)
        self._client = AsyncWebClient(
            token=token, base_url=f"{base_url}/", session=session, retry_handlers=[], logger=quiet
        )
        # the sdk sends everything by HTTPS_PROXY, whatever NO_PROXY says; the session knows the rules
        self._client.proxy = None

    async def call(self, method: str, *, timeout_s: float = 15.0, **arguments: object) -> Mapping[str, object]:
        """Return the answer to a call. Arguments that are ``None`` are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._client.api_call(method, json=given)
        except SlackApiError as error:
            raise _refused(method, error) from None  # its text holds the whole answer
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(method, error) from error
        except TimeoutError as error:
            raise RetryLater(f"{method} failed: no answer within {timeout_s:g} s", maybe_sent=True) from error
        except (aiohttp.ClientError, SlackClientError, OSError, ValueError) as error:
            raise RetryLater(f"{method} failed: {type(error).__name__}", maybe_sent=True) from error
        return _object(method, answer.data)

    async def read(self, method: str, *, timeout_s: float = 15.0, **arguments: object) -> Mapping[str, object]:
        """Return the answer to a call that changes nothing; these take no JSON."""
        given = {name: str(value) for name, value in arguments.items() if value is not None}
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._client.api_call(method, data=given)
        except SlackApiError as error:
            raise _refused(method, error) from None
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(method, error) from error
        except (TimeoutError, aiohttp.ClientError, SlackClientError, OSError, ValueError) as error:
            raise RetryLater(f"{method} failed: {type(error).__name__}") from error
        return _object(method, answer.data)


def _unreachable(method: str, error: aiohttp.ClientConnectorError) -> RetryLater:
    return RetryLater(f"{method} failed: {error.host} cannot be reached ({error.os_error})")


def _object(method: str, data: object) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise RetryLater(f"{method} failed: the answer is no JSON object", maybe_sent=True)
    return data


def _refused(method: str, error: SlackApiError) -> PlatformError:
    response: object = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", 0)
    data: object = getattr(response, "data", None)
    body = data if isinstance(data, Mapping) else {}
    headers: object = getattr(response, "headers", None)
    code, needed = body.get("error"), body.get("needed")
    return refusal(
        method,
        status if isinstance(status, int) else 0,
        code if isinstance(code, str) else "",
        after_s=_seconds(headers),
        needed=needed if isinstance(needed, str) else "",
    )


def _seconds(headers: object) -> float | None:
    """Return what ``Retry-After`` says, within reason."""
    value = headers.get("Retry-After") if isinstance(headers, Mapping) else None
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        return None
    return float(min(max(int(value[:9]), 1), 3600))
