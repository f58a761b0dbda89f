"""One endpoint: requests, repetitions, and what it was seen not to know.

A request is repeated only while nothing of its answer was given away: no text was shown and no tool ran. A failure
behind that is stored with what was shown.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.metering import report_usage
from hermes_hookspecs.ports.agent import Progress, TextDelta
from hermes_openai.failures import (
    Failure,
    cut_off,
    failure_of_body,
    failure_of_status,
    no_connection,
    nothing_said,
    out_of_time,
    silent,
    too_long,
    withheld,
)
from hermes_openai.keys import KEYLESS, without_key
from hermes_openai.lines import TooLong, lines_of
from hermes_openai.media import has_media, text_only
from hermes_openai.reply import Reply
from hermes_openai.stream import PieceReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
    from ssl import SSLContext

    from openai import AsyncOpenAI

    from hermes_openai.config import OpenAIConfig

__all__ = ["Endpoint", "Line"]

_log = getLogger(__name__)

_FIRST_WAIT_S = 0.5
_THINKING = "thinking"
_CLOSING_S = 5.0
_MEDIA = frozenset(
    {
        *("image", "images", "image_url", "vision", "multimodal", "modality", "modalities", "mmproj"),
        *("audio", "input_audio", "file", "file_data", "pdf"),
    }
)
"""Words by which an endpoint names what it does not take."""


class Endpoint:
    """Where models are asked. Event loops may share it: what it keeps is what it was seen not to know.

    :param sleep: waits before a repetition.
    """

    def __init__(
        self, config: OpenAIConfig, key: str, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.config = config
        self.sleep = sleep
        self.streams = config.stream
        self.tells_usage = True
        """Whether it takes ``stream_options``."""
        self.takes_media = True
        """Whether it takes anything but text."""
        self.limit_name = "max_completion_tokens" if config.asks_openai else "max_tokens"
        """How it calls the most tokens of an answer."""
        self._key = key
        self._tls: SSLContext | None = None

    def __repr__(self) -> str:
        """Return the address; never the key."""
        return f"<Endpoint {self.config.base_url}>"

    def safe(self, text: str) -> str:
        """Return a text without the key."""
        return without_key(text, self._key)

    def told(self, failure: Failure) -> Failure:
        """Return the failure as people may read it: the key is not quoted, and where there is none it is asked for."""
        said = [self.safe(one) if isinstance(one, str) else one for one in failure.error.args]
        if isinstance(failure.error, AuthFailed) and not self._key:
            said[0] = f"{str(said[0]).rstrip('. ')}; no key was sent: {self.config.place_of_key}"
        failure.error.args = tuple(said)
        return failure

    @asynccontextmanager
    async def line(self) -> AsyncGenerator[Line, None]:
        """Open a way to ask; its connection is kept between requests, and closed at the end."""
        async with self.client() as client:
            yield Line(self, client)

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[AsyncOpenAI, None]:
        """Open a client that repeats nothing by itself; closing it takes a bounded time."""
        client = await self._client()
        try:
            yield client
        finally:
            try:
                async with asyncio.timeout(_CLOSING_S):
                    await client.close()
            except Exception as error:  # noqa: BLE001 - a connection that is given up has nothing left to say
                _log.debug("a connection to %s was not closed as it should: %s", self, type(error).__name__)

    async def _client(self) -> AsyncOpenAI:
        """Return a new client. The first one takes its time, beside the loop."""
        if self._tls is None:
            self._tls = await asyncio.to_thread(_prepared)
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        config = self.config
        client = AsyncOpenAI(
            api_key=self._key or KEYLESS,
            base_url=config.base_url,
            max_retries=0,
            timeout=Timeout(config.timeout_s, connect=config.connect_timeout_s),
            http_client=DefaultAsyncHttpxClient(verify=self._tls),
        )
        # what the environment names for another endpoint is not told to this one
        client.organization = config.organisation or None
        client.project = config.project or None
        return client

    def learn(self, failure: Failure, *, media: bool = False) -> bool:
        """Return whether a refusal names something that can be left out or named otherwise, and remember it.

        :param media: whether more than text was sent. Servers that take none answer with any status.
        """
        words = set(re.findall(r"[a-z_]+", failure.about))
        if media and self.takes_media and words & _MEDIA and isinstance(failure.error, Rejected | RetryLater):
            self.takes_media = False
            return True
        if not isinstance(failure.error, Rejected):
            return False
        if "stream_options" in words and self.tells_usage:
            self.tells_usage = False
        elif words & {"stream", "streaming"} and "stream_options" not in words and self.streams:
            self.streams = False
        elif "max_completion_tokens" in words and self.limit_name == "max_tokens":
            self.limit_name = "max_completion_tokens"  # the refusal of the one names the other
        elif "max_completion_tokens" in words and self.config.max_tokens is not None:
            self.limit_name = "max_tokens"
        else:
            return False
        return True


class Line:
    """Asks one endpoint, one request at a time. Made by :meth:`Endpoint.line`."""

    def __init__(self, endpoint: Endpoint, client: AsyncOpenAI) -> None:
        self._endpoint = endpoint
        self._config = endpoint.config
        self._client = client

    async def ask(
        self, body: dict[str, object], *, deadline: float
    ) -> AsyncGenerator[TextDelta | Progress | Reply, None]:
        """Ask; yield the text as it comes, at last the whole :class:`~hermes_openai.reply.Reply`.

        A reply before that one is ``dropped``: it was of no use, and what it used counts.

        :param body: of the request, without what concerns the way it is answered. Unchanged.
        :param deadline: in the time of the event loop.
        :raises HermesError: there is no answer, see :mod:`hermes_openai.failures`. Once text was shown nothing is
            raised: the reply says what is wrong with it.
        """
        left, changes = self._config.retries, 4
        wait_s = _FIRST_WAIT_S
        while True:
            reply = Reply()
            try:
                with self._counting(body, reply):
                    async with aclosing(self._answer(body, reply, deadline)) as events:
                        async for event in events:
                            yield event
                if reply.is_empty and not reply.shown:
                    raise _Failed(withheld() if reply.finish_reason == "content_filter" else nothing_said())
            except _Failed as failed:
                failure = failed.failure
            else:
                yield reply
                return
            if reply.shown:
                reply.fault = failure.error
                yield reply
                return
            if reply.tells_usage:
                reply.dropped = True
                yield reply
            if changes and self._endpoint.learn(failure, media=has_media(body)):
                changes -= 1
                continue
            pause_s = wait_s if failure.after_s is None else failure.after_s
            if not self._may_repeat(failure, left, pause_s, deadline):
                raise failure.error
            _log.info("%s is asked again in %.3g s: %s", self._config.base_url, pause_s, failure.error)
            left, wait_s = left - 1, min(2 * wait_s, self._config.retry_wait_s)
            yield Progress(label=f"{failure.error}; trying again in {pause_s:.3g} s")
            await self._endpoint.sleep(pause_s)

    @contextmanager
    def _counting(self, body: dict[str, object], reply: Reply) -> Iterator[None]:
        """Count a request that is given up on its way: most endpoints take money for it, and few say how much."""
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            model = body.get("model")
            report_usage(self._config.priced(reply.usage(model if isinstance(model, str) else self._config.model)))
            raise

    def _may_repeat(self, failure: Failure, left: int, pause_s: float, deadline: float) -> bool:
        if not failure.again or left <= 0 or pause_s > self._config.retry_wait_s:
            return False
        return asyncio.get_running_loop().time() + pause_s < deadline

    async def _answer(
        self, body: dict[str, object], reply: Reply, deadline: float
    ) -> AsyncGenerator[TextDelta | Progress, None]:
        """Make one request and take in what is answered. :raises _Failed: it ended otherwise than it should."""
        reader = PieceReader()
        thinks = False
        async with AsyncExitStack() as stack:
            lines = await self._opened(stack, body, deadline)
            line: str | None = ""
            while line is not None and not reader.done:
                line = await self._next(lines, deadline)
                for piece in reader.end() if line is None else reader.take(line):
                    if piece.get("error"):
                        raise _Failed(self._endpoint.told(failure_of_body(piece["error"])))
                    text = reply.take(piece)
                    if text:
                        reply.shown = True
                        yield TextDelta(text=text)
                    elif not thinks and not reply.shown and reply.reasoning:
                        thinks = True
                        yield Progress(label=_THINKING)
        if rest := reply.rest():
            reply.shown = True
            yield TextDelta(text=rest)
        if reader.other and reply.is_empty:
            raise _Failed(self._endpoint.told(failure_of_status(502, reader.other, {}, now=0)))
        if reader.is_broken or not (reader.done or reader.is_document or reply.finish_reason):
            raise _Failed(cut_off())

    async def _opened(self, stack: AsyncExitStack, body: dict[str, object], deadline: float) -> AsyncIterator[str]:
        """Return the lines of the answer; it is closed with the stack."""
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        create = self._client.chat.completions.with_streaming_response.create
        try:
            async with asyncio.timeout_at(deadline):
                opened = create(model=self._config.model, messages=(), extra_body=self._whole(body))
                response = await stack.enter_async_context(opened)
        except APITimeoutError as error:
            raise _Failed(silent(self._config.timeout_s)) from error
        except APIConnectionError as error:
            reason = _one_line(error.__cause__ or error)
            raise _Failed(self._endpoint.told(no_connection(self._config.base_url, reason))) from error
        except APIStatusError as error:
            failure = failure_of_status(error.status_code, error.response.text, error.response.headers, now=time.time())
            raise _Failed(self._endpoint.told(failure)) from error
        except TimeoutError as error:
            raise _Failed(out_of_time()) from error
        return lines_of(response.iter_bytes(), most_bytes=self._config.answer_bytes)

    async def _next(self, lines: AsyncIterator[str], deadline: float) -> str | None:
        """Return the next line, ``None`` at the end."""
        try:
            async with asyncio.timeout_at(deadline) as limit:
                return await anext(lines, None)
        except TooLong as error:
            raise _Failed(too_long(self._config.answer_bytes)) from error
        except Exception as error:  # whatever the client's transport raises, the answer ends here
            if isinstance(error, TimeoutError) and limit.expired():
                raise _Failed(out_of_time()) from error
            if "Timeout" in type(error).__name__:
                raise _Failed(silent(self._config.timeout_s)) from error
            raise _Failed(cut_off()) from error

    def _whole(self, body: dict[str, object]) -> dict[str, object]:
        """Return the body with what concerns the way it is answered; the messages stand before it."""
        endpoint, config = self._endpoint, self._config
        whole = dict(body) if endpoint.takes_media else text_only(body)
        if config.max_tokens is not None:
            whole[endpoint.limit_name] = config.max_tokens
        if endpoint.streams:
            whole["stream"] = True
            if endpoint.tells_usage:
                whole["stream_options"] = {"include_usage": True}
        return whole


class _Failed(Exception):
    """A request failed; inside this module only."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


def _prepared() -> SSLContext:
    """Load the client's modules and the certificates: a second's work, once."""
    import ssl

    import openai  # noqa: F401  # loaded here, where nobody waits for it

    return ssl.create_default_context()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
