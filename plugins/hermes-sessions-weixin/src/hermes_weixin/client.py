"""The nine endpoints, as one object over an HTTP session. Nothing is retried here.

Two facts decide the error of a request that failed: whether it left this host, and whether the server said no.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.errors import RetryLater
from hermes_weixin.failures import check
from hermes_weixin.wire import Updates, base_info, get_headers, post_headers, read_updates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_weixin.config import WeixinConfig

__all__ = ["ILinkClient"]

_MOST_BYTES = 8 * 1024 * 1024
_QR_POLL_S = 40.0
_ADVANCE_S = 10.0


class ILinkClient:
    """Requests of one account. For one event loop; ``session`` belongs to the caller.

    :param token: of the bot, ``""`` before a login. base_url: where its account lives, without a slash at the end.
    :raises RetryLater: (every request) it failed on the way, ``maybe_sent`` where it may have arrived; or it was
        refused (:class:`~hermes_weixin.failures.Refused`).
    :raises AuthFailed: (every request) the token is stale.
    """

    def __init__(self, session: aiohttp.ClientSession, config: WeixinConfig, *, base_url: str, token: str = "") -> None:
        self._session = session
        self._config = config
        self._base_url = base_url.rstrip("/")
        self._token = token

    # --- receiving

    async def poll(self, cursor: str, hold_s: float) -> Updates | None:
        """Return what came behind ``cursor``; ``None`` when the server did not answer in time.

        :param hold_s: seconds that the server may hold the request. The client waits longer: a server that answers just
            when its client gives up regards the messages as delivered.
        """
        timeout = hold_s + _ADVANCE_S
        try:
            return read_updates(await self._post("getupdates", {"get_updates_buf": cursor}, timeout))
        except RetryLater as error:
            if isinstance(error.__cause__, TimeoutError):
                return None
            raise

    # --- sending

    async def send(
        self, peer: str, item: Mapping[str, object], *, client_id: str, context_token: str, run_id: str = ""
    ) -> str | None:
        """Send one item; return the message's id where the server says it."""
        message: dict[str, object] = {
            "from_user_id": "",
            "to_user_id": peer,
            "client_id": client_id,
            "message_type": 2,
            "message_state": 2,
            "item_list": [dict(item)],
        }
        if context_token:
            message["context_token"] = context_token
        if run_id:
            message["run_id"] = run_id
        body = await self._post("sendmessage", {"msg": message}, 15.0)
        sent_id = body.get("message_id")
        return str(sent_id) if isinstance(sent_id, int | str) and sent_id and not isinstance(sent_id, bool) else None

    async def typing_ticket(self, peer: str, context_token: str) -> str:
        """Return the ticket that :meth:`type` needs, ``""`` where there is none."""
        request: dict[str, object] = {"ilink_user_id": peer}
        if context_token:
            request["context_token"] = context_token
        ticket = (await self._post("getconfig", request, 10.0)).get("typing_ticket")
        return ticket if isinstance(ticket, str) else ""

    async def type(self, peer: str, ticket: str, *, on: bool) -> None:
        """Show, or stop showing, that an answer is being written."""
        request = {"ilink_user_id": peer, "typing_ticket": ticket, "status": 1 if on else 2}
        await self._post("sendtyping", request, 10.0)

    async def upload_place(self, request: Mapping[str, object]) -> tuple[str, str]:
        """Return the address to upload to, or the parameter from which it is made; one of them is ``""``."""
        body = await self._post("getuploadurl", request, 15.0)
        url, param = body.get("upload_full_url"), body.get("upload_param")
        return (url if isinstance(url, str) else "", param if isinstance(param, str) else "")

    async def notify(self, what: str) -> None:
        """Tell the server that we ``start`` or ``stop``."""
        await self._post(f"msg/notify{what}", {}, 10.0)

    # --- logging in

    async def qr_code(self, known_tokens: Sequence[str]) -> tuple[str, str]:
        """Return the key by which a login is polled, and the address that its QR code holds."""
        body = await self._post(
            "get_bot_qrcode?bot_type=3", {"local_token_list": list(known_tokens)[:10]}, 60.0, bare=True
        )
        key, content = body.get("qrcode"), body.get("qrcode_img_content")
        if not isinstance(key, str) or not isinstance(content, str) or not key or not content:
            raise RetryLater("the server sent no QR code")
        return key, content

    async def qr_status(self, key: str, *, host: str = "", verify_code: str = "") -> Mapping[str, object]:
        """Return the state of a login; a server that says nothing, or fails, is one that still waits.

        :param host: where to poll after a redirection, ``""`` for the usual place.
        """
        query = {"qrcode": key} | ({"verify_code": verify_code} if verify_code else {})
        place = f"{host or self._base_url}/ilink/bot/get_qrcode_status"
        timeout = aiohttp.ClientTimeout(total=_QR_POLL_S)
        headers = get_headers(self._config.channel_version)
        try:
            async with self._session.get(place, params=query, headers=headers, timeout=timeout) as answer:
                if answer.status >= 500:
                    return {"status": "wait"}
                return _object(await _read(answer))
        except (TimeoutError, aiohttp.ClientError):
            return {"status": "wait"}

    # --- the request

    async def _post(
        self, path: str, body: Mapping[str, object], timeout_s: float, *, bare: bool = False
    ) -> Mapping[str, object]:
        """Return the answer.

        :param bare: without ``base_info``, which the first request of a login does not have.
        """
        version = self._config.channel_version
        if not bare:
            body = {**body, "base_info": base_info(version, self._config.bot_agent)}
        name = path.partition("?")[0]
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            async with self._session.post(
                f"{self._base_url}/ilink/bot/{path}",
                data=data,
                headers=post_headers(version, self._token),
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as answer:
                content = await _read(answer)
                if answer.status != 200:
                    raise RetryLater(f"{name} failed: HTTP {answer.status}", maybe_sent=answer.status >= 500)
        except aiohttp.ClientConnectorError as error:
            raise RetryLater(f"{name} failed: {error.host} cannot be reached ({error.os_error})") from error
        except TimeoutError as error:
            raise RetryLater(f"{name} failed: no answer within {timeout_s:g} s", maybe_sent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryLater(f"{name} failed: {type(error).__name__}", maybe_sent=True) from error
        return check(name, _object(content))


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    content = await answer.content.read(_MOST_BYTES + 1)
    while len(content) <= _MOST_BYTES and not answer.content.at_eof():
        content += await answer.content.read(_MOST_BYTES + 1 - len(content))
    if len(content) > _MOST_BYTES:
        raise RetryLater(f"an answer is larger than {_MOST_BYTES} bytes", maybe_sent=True)
    return content


def _object(content: bytes) -> Mapping[str, object]:
    """Return a JSON object; an empty answer is an empty one."""
    if not content.strip():
        return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise RetryLater("the answer is no JSON", maybe_sent=True) from None
    if not isinstance(body, dict):
        raise RetryLater("the answer is no JSON object", maybe_sent=True)
    return body
