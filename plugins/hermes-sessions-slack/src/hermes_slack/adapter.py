"""One account: it receives by Socket Mode or the Events API, posts, edits, shows that it writes, fetches files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.errors import AuthFailed, PlatformError, Rejected, RetryLater
from hermes_hookspecs.ports.platform import CONNECTING, FAILED, WAITING, Sent
from hermes_slack.api import SlackApi
from hermes_slack.config import HTTP
from hermes_slack.events import Reader
from hermes_slack.failures import Refused
from hermes_slack.files import bytes_of
from hermes_slack.intake import Intake
from hermes_slack.lookup import find_posted, metadata_of
from hermes_slack.mrkdwn import mrkdwn
from hermes_slack.patience import Patience
from hermes_slack.people import People
from hermes_slack.responses import ResponseBook
from hermes_slack.socketmode import SocketMode
from hermes_slack.streaming import Streaming
from hermes_slack.threads import ThreadBook
from hermes_slack.uploads import Uploads
from hermes_slack.wire import text
from hermes_slack.workspaces import Workspace, introduce

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.platform import AccountSetup, DeliveryPart, Inlet, SendResult
    from hermes_hookspecs.source import SessionSource
    from hermes_slack.config import SlackConfig
    from hermes_slack.credentials import Credentials
    from hermes_slack.eventsapi import EventsApi
    from hermes_slack.listener import Listener

__all__ = ["SlackAdapter"]

_STATUS = "is writing…"
_STATUS_S = 5.0
_NOT_OURS = frozenset({"not_in_channel", "channel_not_found"})
"""How Slack says that we are no member, of a room that we may know of and of one that we may not."""
_IS_OPEN = "streaming_state_conflict"


class SlackAdapter:
    """An adapter of the platform ``slack``. For one event loop.

    :param listener: the server of the Events API, shared by the accounts of a process.
    :param pause: waits for seconds; what tests replace.
    """

    def __init__(
        self,
        setup: AccountSetup,
        config: SlackConfig,
        credentials: Credentials,
        *,
        listener: Listener,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._setup = setup
        self._config = config
        self._credentials = credentials
        self._listener = listener
        self._pause = pause
        self._threads = ThreadBook(setup.account_id, setup.state, setup.clock, config)
        self._responses = ResponseBook(setup.account_id, setup.state, setup.clock, config)
        self._people = People(setup.clock, asks=config.names)
        self._streaming = Streaming()
        self._uploads = Uploads(config)
        self._workspaces: Mapping[str, Workspace] = {}
        self._introducing = asyncio.Lock()
        self._shows_status = config.assistant_status
        self._session: aiohttp.ClientSession | None = None

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; the connections are let go of then.

        :raises AuthFailed: a token is refused. :raises RetryLater: nobody can listen for the Events API.
        """
        inlet.report(CONNECTING)
        try:
            await self._known(inlet)
            await self._receive(inlet)
        except AuthFailed as error:
            inlet.report(FAILED, str(error))
            raise
        finally:
            await self.aclose()

    async def _known(self, inlet: Inlet) -> None:
        """Find out who we are, however long Slack is not there: whose events are ours is not to be guessed."""
        patience = Patience(self._pause)
        while True:
            self._workspaces = {}  # a token may have been changed since
            try:
                await self._introduced()
            except RetryLater as error:
                inlet.report(WAITING, str(error))
                await patience.wait(error.after_s or 0.0)
                continue
            return

    async def _receive(self, inlet: Inlet) -> None:
        intake = Intake(
            config=self._config,
            reader=Reader(account_id=self._setup.account_id, config=self._config, threads=self._threads),
            threads=self._threads,
            people=self._people,
            responses=self._responses,
            workspaces=self._workspaces,
            clock=self._setup.clock,
            pause=self._pause,
        )
        tasks = {
            asyncio.create_task(intake.work(inlet), name="slack-intake"),
            asyncio.create_task(self._way_in(intake).run(inlet), name="slack-receive"),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in done:
            task.result()

    def _way_in(self, intake: Intake) -> SocketMode | EventsApi:
        if self._config.mode == HTTP:
            from hermes_slack.eventsapi import EventsApi  # brings a web server along

            return EventsApi(
                self._setup.account_id,
                secret=self._credentials.signing_secret,
                listener=self._listener,
                intake=intake,
                clock=self._setup.clock,
            )
        session = self._open()
        return SocketMode(
            api=SlackApi(session, self._config.base_url, self._credentials.app_token),
            session=session,
            config=self._config,
            intake=intake,
            clock=self._setup.clock,
            patience=Patience(self._pause),
        )

    async def aclose(self) -> None:
        """Let go of the connections; the next request makes new ones."""
        await self._people.aclose()
        session, self._session = self._session, None
        self._workspaces = {}
        if session is not None:
            await session.close()

    # --- sending

    async def send(self, part: DeliveryPart) -> SendResult:
        """Post one message; a draft, in a thread where Slack takes streams, as one that grows."""
        workspace, channel = await self._address(part.target)
        if part.media is not None:
            ts = await self._uploads.share(
                part, part.media, self._open(), workspace, channel=channel, thread=_thread_of(part.target)
            )
            return self._sent(part.target, ts)
        try:
            begun = await self._begun(part, workspace, channel)
            return begun or self._sent(part.target, await self._post(part, workspace, channel))
        except Refused as error:
            if part.is_draft or error.code not in _NOT_OURS:
                raise
            # nothing was posted, and surely so: else the answer would be there twice
            answered = await self._responses.answer(part, self._open())
            if answered is None:
                raise
            return answered

    async def _begun(self, part: DeliveryPart, workspace: Workspace, channel: str) -> Sent | None:
        """Begin to stream a draft; return how, ``None`` where it has to be posted."""
        if not part.is_draft or not self._config.assistant_streams:
            return None
        ts = await self._streaming.begin(part, workspace, channel, _thread_of(part.target))
        if ts is None:
            return None
        with suppress(PlatformError):  # its message is there, and the next edit says what this one could not
            await self._edit(part, workspace, channel, ts)
        return self._sent(part.target, ts)

    async def _post(self, part: DeliveryPart, workspace: Workspace, channel: str) -> str:
        answer = await workspace.api.call(
            "chat.postMessage",
            channel=channel,
            text=mrkdwn(part.text),
            thread_ts=_thread_of(part.target),
            mrkdwn=True,
            link_names=False,
            unfurl_links=False,
            unfurl_media=False,
            metadata=metadata_of(part),
        )
        ts = text(answer, "ts")
        if not ts:
            raise RetryLater("chat.postMessage does not say which message it made", maybe_sent=True)
        return ts

    def _sent(self, target: SessionSource, ts: str | None) -> Sent:
        begins = None if target.thread_id else _thread_of(target)
        return Sent(platform_message_id=ts, opened_thread_id=begins, state=self._threads.wrote(target))

    async def edit(self, part: DeliveryPart, platform_message_id: str) -> SendResult:
        """Replace the text of a message that was posted, or let one grow that is streamed."""
        workspace, channel = await self._address(part.target)
        await self._edit(part, workspace, channel, platform_message_id)
        return self._sent(part.target, platform_message_id)

    async def _edit(self, part: DeliveryPart, workspace: Workspace, channel: str, ts: str) -> None:
        if part.is_draft and await self._streaming.grow(part, workspace, channel, ts):
            return
        await self._streaming.end(workspace, channel, ts)
        try:
            await self._update(part, workspace, channel, ts)
        except Refused as error:
            if error.code != _IS_OPEN:
                raise
            # a process before this one had opened it
            await self._streaming.end(workspace, channel, ts, known=False)
            await self._update_closed(part, workspace, channel, ts)

    async def _update_closed(self, part: DeliveryPart, workspace: Workspace, channel: str, ts: str) -> None:
        try:
            await self._update(part, workspace, channel, ts)
        except Refused as error:
            if error.code != _IS_OPEN:
                raise
            raise RetryLater("chat.update: the message is still being streamed") from error

    async def _update(self, part: DeliveryPart, workspace: Workspace, channel: str, ts: str) -> None:
        await workspace.api.call(
            "chat.update",
            channel=channel,
            ts=ts,
            text=mrkdwn(part.text),
            link_names=False,
            metadata=metadata_of(part),
        )

    async def find_sent(self, part: DeliveryPart) -> Sent | None:
        """Look for a message that may have been posted, by the key in its metadata."""
        workspace, channel = await self._address(part.target)
        now = self._setup.clock.now()
        if part.media is None:
            ts = await find_posted(part, workspace, channel, now=now)
        else:
            thread = _thread_of(part.target)
            ts = await self._uploads.find(part, part.media, workspace, channel=channel, thread=thread, now=now)
        return None if ts is None else self._sent(part.target, ts)

    # --- beside

    async def typing(self, target: SessionSource, *, on: bool) -> None:
        """Show, or stop showing, that an answer is being written; in threads alone, and nothing that fails is told."""
        thread = _thread_of(target)
        if not thread:
            return
        try:
            workspace, channel = await self._address(target)
            if not on:
                await self._streaming.end_in(workspace, channel, thread)
            if not self._shows_status:
                return
            await workspace.api.call(
                "assistant.threads.setStatus",
                timeout_s=_STATUS_S,
                channel_id=channel,
                thread_ts=thread,
                status=_STATUS if on else "",
            )
        except RetryLater:
            return
        except PlatformError:
            self._shows_status = False  # the app may not: it is not asked for every answer

    async def fetch(self, attachment: Attachment, source: SessionSource) -> AsyncIterator[bytes]:
        """Yield the bytes of a file."""
        workspace, _ = await self._address(source)
        async for piece in bytes_of(attachment, self._open(), self._config, workspace):
            yield piece

    # --- who we are

    async def _address(self, target: SessionSource) -> tuple[Workspace, str]:
        """Return workspace and channel of a target. :raises Rejected: it has none, or one that is not ours."""
        if not target.chat_id:
            raise Rejected("the answer has no channel")
        workspaces = await self._introduced()
        found = workspaces.get(target.scope_id or "")
        if found is None:
            raise Rejected(
                f"the workspace {target.scope_id or '(none)'} is none of this account's: no bot token is of it"
            )
        return found, target.chat_id

    async def _introduced(self) -> Mapping[str, Workspace]:
        async with self._introducing:
            if not self._workspaces:
                self._workspaces = await introduce(self._open(), self._config.base_url, self._credentials.bot_tokens)
            return self._workspaces

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        return self._session


def _thread_of(target: SessionSource) -> str | None:
    """Return the thread in which an answer stands, or that it opens."""
    return target.thread_id or (None if target.chat_type == "dm" else target.prospective_thread_id)
