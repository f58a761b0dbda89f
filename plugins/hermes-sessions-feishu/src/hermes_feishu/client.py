"""The HTTP API: one request after another, with a token that is fetched when it is needed."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp

from hermes_feishu.failures import NO_CODE, TOKEN_CODES, Answer, error_of
from hermes_feishu.tokens import TokenCache
from hermes_hookspecs.errors import Rejected, RetryLater

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from hermes_feishu.config import AccountConfig
    from hermes_feishu.credentials import Credentials
    from hermes_hookspecs.clock import Clock

__all__ = ["FeishuClient", "mapping_of", "text_of"]

_MOST_ANSWER_BYTES = 32 * 1024 * 1024
_PIECE = 1 << 16
_UPLOAD_S = 40.0
"""Seconds in which a file has to be uploaded."""
_RESET = "x-ogw-ratelimit-reset"


class FeishuClient:
    """Asks the API of one app. For one event loop; its connections live while somebody has it open."""

    def __init__(self, config: AccountConfig, credentials: Credentials, clock: Clock, *, timeout_s: float) -> None:
        self._config = config
        self._credentials = credentials
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=timeout_s)
        self._uploading = aiohttp.ClientTimeout(total=max(timeout_s, _UPLOAD_S), connect=timeout_s)
        self._reading = aiohttp.ClientTimeout(total=None, connect=timeout_s, sock_read=timeout_s)
        self._tokens = TokenCache(self._fetch_token, clock)
        self._session: aiohttp.ClientSession | None = None
        self._users = 0

    # --- connections

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Give the session; the last one who leaves closes it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=True)
        session = self._session
        self._users += 1
        try:
            yield session
        finally:
            self._users -= 1
            if self._users == 0:
                self._session = None
                await session.close()

    @property
    def proxy(self) -> str | None:
        """Return the proxy that requests go through."""
        return self._config.proxy or None

    # --- requests

    async def ask(
        self,
        what: str,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        form: Callable[[], aiohttp.FormData] | None = None,
    ) -> Answer:
        """Ask with a token, which is fetched anew once where it is refused; return the answer, good or not.

        :param what: that is tried, for errors, as in *sending*. form: makes what is uploaded instead of a body.
        :raises RetryLater: there was no answer, or the platform is not well. :raises AuthFailed: the credentials are
            refused.
        """
        token = await self._tokens.token()
        answer = await self._ask(what, method, path, body=body, params=params, form=form, token=token)
        if answer.code in TOKEN_CODES:
            self._tokens.drop(token)
            token = await self._tokens.token()
            answer = await self._ask(what, method, path, body=body, params=params, form=form, token=token)
        if answer.status >= 500 and not answer.is_good:
            raise error_of(answer, what)
        return answer

    async def get(self, what: str, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        """Ask for something; return the good answer.

        :raises PlatformError: what the answer says, in the errors of the contract.
        """
        answer = await self.ask(what, "GET", path, params=params)
        if not answer.is_good:
            raise error_of(answer, what)
        return answer

    async def connect_endpoint(self) -> Answer:
        """Ask where the long connection is; return the answer, good or not."""
        body = {"AppID": self._config.app_id, "AppSecret": self._credentials.app_secret}
        return await self._ask(
            "asking for the long connection", "POST", "/callback/ws/endpoint", body=body, headers={"locale": "zh"}
        )

    async def download(self, path: str, params: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield the bytes of a resource.

        :raises RetryLater: not now. :raises Rejected: it is gone, or not for us.
        """
        what = "fetching an attachment"
        for last in (False, True):
            token = await self._tokens.token()
            async with self.session() as session:
                try:
                    async with session.get(
                        self._config.domain + path,
                        params=params,
                        headers=_with(token),
                        timeout=self._reading,
                        proxy=self.proxy,
                        allow_redirects=False,
                    ) as response:
                        if response.status == 200 and _holds_a_file(response):
                            async for piece in response.content.iter_chunked(_PIECE):
                                yield piece
                            return
                        answer = await _answer(response)
                except (aiohttp.ClientError, TimeoutError) as error:
                    raise _unreachable(what, error) from None
            if answer.code == NO_CODE and 400 <= answer.status < 500:
                raise Rejected(f"{what} was refused with {answer.status}")
            if last or answer.code not in TOKEN_CODES:
                raise error_of(answer, what)
            self._tokens.drop(token)

    async def _ask(
        self,
        what: str,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        form: Callable[[], aiohttp.FormData] | None = None,
        token: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        content_type = {} if form is not None else {"Content-Type": "application/json; charset=utf-8"}
        async with self.session() as session:
            try:
                async with session.request(
                    method,
                    self._config.domain + path,
                    data=data if form is None else form(),
                    params=params,
                    headers=_with(token) | content_type | dict(headers or {}),
                    timeout=self._timeout if form is None else self._uploading,
                    proxy=self.proxy,
                    allow_redirects=False,
                ) as response:
                    return await _answer(response)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise _unreachable(what, error) from None

    async def _fetch_token(self) -> tuple[str, float]:
        what = "fetching a token"
        body = {"app_id": self._config.app_id, "app_secret": self._credentials.app_secret}
        answer = await self._ask(what, "POST", "/open-apis/auth/v3/tenant_access_token/internal", body=body)
        if not answer.is_good:
            error = error_of(answer, what)
            # whatever was to be sent with the token is not what was refused
            raise RetryLater(str(error)) if isinstance(error, Rejected) else error
        token, life = text_of(answer.body.get("tenant_access_token")), answer.body.get("expire")
        if not token or not isinstance(life, int | float) or life <= 0:
            raise RetryLater(f"{what}: the answer holds none")
        return token, float(life)


def mapping_of(value: object) -> Mapping[str, object]:
    """Return an object of JSON, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """Return a text of JSON, ``""`` for anything else."""
    return value if isinstance(value, str) else ""


def _with(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _holds_a_file(response: aiohttp.ClientResponse) -> bool:
    """Return whether an answer is bytes: a file may be JSON itself, but then it has a name."""
    return response.content_type != "application/json" or "Content-Disposition" in response.headers


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    raw = await response.content.read(_MOST_ANSWER_BYTES)
    while not response.content.at_eof() and len(raw) < _MOST_ANSWER_BYTES:
        raw += await response.content.read(_MOST_ANSWER_BYTES - len(raw))
    if len(raw) > 1 << 20:
        body = await asyncio.to_thread(_body, raw)
    else:
        body = _body(raw)
    code = body.get("code")
    return Answer(
        status=response.status,
        code=code if isinstance(code, int) and not isinstance(code, bool) else NO_CODE,
        message=text_of(body.get("msg")),
        data=mapping_of(body.get("data")),
        body=body,
        reset_s=_seconds(response.headers.get(_RESET)),
    )


def _body(raw: bytes) -> Mapping[str, object]:
    try:
        return mapping_of(json.loads(raw))
    except (ValueError, RecursionError):
        return {}


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _unreachable(what: str, error: Exception) -> RetryLater:
    """Return what became of a request without an answer; addresses, which may hold secrets, are not in it."""
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    reason = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    return RetryLater(f"{what}: the platform cannot be reached ({reason})", maybe_sent=not unsent)
