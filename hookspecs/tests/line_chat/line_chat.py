"""A chat platform of JSON lines over TCP: its server, which is a fake as the suite wants it, and a sound adapter.

The adapter is cut into small methods, so that a test can plant one fault at a time.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections import deque
from contextlib import suppress

import attrs

from hermes_hookspecs.errors import AuthFailed, ConfigError, Rejected, RetryLater, StorageError, StoreStopped
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, WAITING, PlatformAbilities, Sent
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, OK, RATE_LIMITED, REJECTED, FakeSent

NAME = "line"
SILENCE_S = 0.3
MOST_BYTES = 1 << 20


class LineAdapter:
    """A sound adapter: one socket for both directions."""

    abilities = PlatformAbilities(
        threads=True, edits=True, typing=True, idempotent_send=True, max_length=500, max_file_bytes=4000
    )

    def __init__(self, port, setup):
        self._port, self._setup = port, setup
        self._secret = self._secret_of(setup)
        self._writer = None
        self._answers = {}
        self._number = 0

    def _secret_of(self, setup):
        name = f"LINE_SECRET_{setup.account_id.upper()}"
        if not setup.environ.get(name):
            raise ConfigError(f"{name} is not set")
        return setup.environ[name]

    # --- receiving

    async def run(self, inlet):
        try:
            while True:
                inlet.report(CONNECTING)
                try:
                    await self._connected(inlet)
                except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                    inlet.report(WAITING, f"the connection is lost: {type(error).__name__}")
                await asyncio.sleep(0.01)
        finally:
            await self._hang_up()

    async def _connected(self, inlet):
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=MOST_BYTES)
        try:
            self._say(hello=self._setup.account_id, secret=self._secret)
            welcome = json.loads(await self._line(reader))
            if not welcome["welcome"]:
                raise AuthFailed("the secret is refused")
            self._me = welcome["you"]
            inlet.report(CONNECTED)
            while True:
                line = await self._line(reader)
                inlet.alive()
                await self._take_line(line, inlet)
        finally:
            await self._hang_up()

    async def _line(self, reader):
        """Return a line; a connection on which nothing came for a while, not even a ping, is given up."""
        async with asyncio.timeout(SILENCE_S):
            line = await reader.readline()
        if not line:
            raise ConnectionResetError("the server hung up")
        return line

    async def _take_line(self, line, inlet):
        try:
            said = json.loads(line)
        except ValueError:
            return
        if "answer" in said:
            answer = self._answers.pop(said["answer"], None)
            if answer is not None and not answer.done():
                answer.set_result(said)
        elif "message" in said:
            await self._take(said["message"], inlet)

    async def _take(self, said, inlet):
        if not self._is_own(said):
            taking = asyncio.ensure_future(self._accept([self._event(said)], said, inlet))
            try:
                await asyncio.shield(taking)
            except asyncio.CancelledError:
                await asyncio.wait({taking})
                raise
        self._say(ack=said["id"])

    async def _accept(self, events, said, inlet):
        while True:
            try:
                return await inlet.accept(events, state=self._remembered(said))
            except StoreStopped:
                raise
            except StorageError:
                await asyncio.sleep(0.01)

    def _remembered(self, said):
        return [StateUpdate(namespace=NAME, key=f"last:{self._setup.account_id}", value=json.dumps(said["id"]))]

    def _is_own(self, said):
        return said["user"] == self._me

    def _event(self, said):
        return MessageEvent(
            source=self._source(said),
            text=said["text"],
            identities=self._identities(said),
            received_at=self._setup.clock.now(),
            addressed=self._is_addressed(said),
        )

    def _is_addressed(self, said):
        return not said["group"] or said["mention"]

    def _source(self, said):
        return SessionSource(
            platform=NAME,
            account_id=self._setup.account_id,
            chat_type="group" if said["group"] else "dm",
            chat_id=said["chat"],
            thread_id=said["thread"],
            user_id=said["user"],
            message_id=said["id"],
            is_bot=said["bot"],
        )

    def _identities(self, said):
        return (f"{said['chat']}/{said['id']}",)

    # --- sending

    async def send(self, part):
        said = await self._ask(
            send=part.text,
            chat=part.target.chat_id,
            thread=part.target.thread_id,
            key=self._key(part),
            file=self._file(part),
        )
        return Sent(platform_message_id=said["id"])

    def _key(self, part):
        return part.key

    def _file(self, part):
        return None if part.media is None else [part.media.name, b64encode(part.media.data).decode()]

    async def edit(self, part, platform_message_id):
        await self._ask(edit=platform_message_id, text=part.text)
        return Sent(platform_message_id=platform_message_id)

    async def typing(self, target, *, on):
        with suppress(RetryLater, Rejected):
            await self._ask(typing=on, chat=target.chat_id)

    async def _ask(self, **asked):
        if self._writer is None:
            raise RetryLater("not connected")
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self._say(n=self._number, **asked)
        said = await answer
        if "error" in said:
            raise self._error(said)
        return said

    def _error(self, said):
        match said["error"]:
            case "slow down":
                return RetryLater("slow down", after_s=said["after_s"])
            case "no":
                return Rejected("the server does not take it")
            case error:
                return RetryLater(error, maybe_sent=True)

    # --- the connection

    def _say(self, **said):
        if self._writer is not None:
            self._writer.write(json.dumps(said).encode() + b"\n")

    async def _hang_up(self):
        writer, self._writer = self._writer, None
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if not answer.done():
                answer.set_result({"error": "the connection was lost"})
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class LinePlatform:
    """The platform: ``kind`` is the class of its adapters."""

    name = NAME

    def __init__(self, port, accounts, kind):
        self._port, self._accounts, self._kind = port, tuple(accounts), kind
        self.abilities = kind.abilities

    def accounts(self):
        return self._accounts

    def adapter(self, setup):
        return self._kind(self._port(), setup)


@attrs.define
class _Shown:
    id: str
    account: str
    chat: str
    thread: str | None
    key: str
    texts: list
    file: list | None = None


class FakeLine:
    """The server, which says each message to its account until it is acknowledged."""

    name = NAME

    def __init__(self, kind=LineAdapter):
        self._kind = kind
        self._server = None
        self._port = 0
        self._messages, self._accounts, self._acked = {}, {}, set()
        self._waiting = []
        self._answers = deque()
        self._shown, self._typing = [], set()
        self._writers = {}
        self._serving = set()
        self._connections = 0
        self._frozen = False
        self._changed = asyncio.Event()
        self._pinging = None

    async def start(self):
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=MOST_BYTES)
            self._port = self._server.sockets[0].getsockname()[1]
            self._pinging = asyncio.create_task(self._ping())

    async def stop(self):
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._pinging.cancel()
        await self.drop()

    async def drop(self):
        for task in list(self._serving):
            task.cancel()
        if self._serving:
            await asyncio.wait(set(self._serving))

    def platform(self, accounts=("default",)):
        return LinePlatform(lambda: self._port, accounts, self._kind)

    def environ(self):
        return {f"LINE_SECRET_{name.upper()}": f"secret of {name}" for name in ("default", "second")}

    async def _ping(self):
        while True:
            await asyncio.sleep(SILENCE_S / 5)
            for account in list(self._writers):
                self._tell(account, ping=True)

    # --- messages

    async def say(self, text, *, chat_id="chat-1", user_id="user-1", group=False, thread_id=None, mention=True,
                  account_id="default", from_bot=False, own=False, deliver=True):  # fmt: skip
        message_id = f"m{len(self._messages) + 1}"
        user = f"bot of {account_id}" if own else user_id
        said = {"id": message_id, "chat": chat_id, "user": user, "text": text, "group": group}
        self._messages[message_id] = said | {"thread": thread_id, "mention": mention, "bot": from_bot or own}
        self._accounts[message_id] = account_id
        if deliver:
            await self.deliver(message_id)
        return message_id

    async def deliver(self, *message_ids):
        for message_id in message_ids:
            self._acked.discard(message_id)
            self._waiting.append(message_id)
            self._tell(self._accounts[message_id], message=self._messages[message_id])

    async def odd(self, kind):
        lines = {
            "unknown-event": b'{"event": "a new one"}\n',
            "malformed": b'{"message": {"id": \n',
            "oversize": json.dumps({"padding": "x" * 500_000}).encode() + b"\n",
        }
        self._writers["default"].write(lines[kind])

    def is_acknowledged(self, message_id):
        return message_id in self._acked

    async def acknowledged(self, message_id, timeout_s=20):
        await self._until(lambda: message_id in self._acked, timeout_s)

    async def sent(self, count=1, timeout_s=20):
        await self._until(lambda: len(self._shown) >= count, timeout_s)
        return [
            FakeSent(message_id=one.id, account_id=one.account, chat_id=one.chat, thread_id=one.thread, key=one.key,
                     text=one.texts[-1], edits=len(one.texts) - 1, file=one.file and b64decode(one.file[1]),
                     file_name=one.file[0] if one.file else "")
            for one in self._shown
        ]  # fmt: skip

    def next_sends(self, *answers):
        self._answers.extend(answers)

    def freeze(self, frozen):
        self._frozen = frozen
        if not frozen:
            for writer in self._writers.values():
                writer.close()

    async def connected(self, count=1, timeout_s=20):
        await self._until(lambda: self._connections >= count, timeout_s)

    def is_typing(self, chat_id):
        return chat_id in self._typing

    async def _until(self, condition, timeout_s):
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # --- connections

    async def _serve(self, reader, writer):
        self._serving.add(asyncio.current_task())
        account = None
        try:
            while line := await reader.readline():
                said = json.loads(line)
                if self._frozen:
                    continue
                if "hello" in said:
                    account = said["hello"]
                    ok = said["secret"] == f"secret of {account}"
                    writer.write(json.dumps({"welcome": ok, "you": f"bot of {account}"}).encode() + b"\n")
                    if not ok:
                        return
                    self._writers[account] = writer
                    self._connections += 1
                    for message_id in self._waiting:
                        if self._accounts[message_id] == account:
                            self._tell(account, message=self._messages[message_id])
                else:
                    self._take(account, said)
                self._changed.set()
        except (OSError, asyncio.CancelledError):
            pass  # dropped: nobody waits for this task
        finally:
            if self._writers.get(account) is writer:
                del self._writers[account]
            writer.close()
            self._serving.discard(asyncio.current_task())

    def _tell(self, account, **said):
        writer = self._writers.get(account)
        if writer is not None and not self._frozen and not writer.is_closing():
            writer.write(json.dumps(said).encode() + b"\n")

    def _take(self, account, said):
        if "ack" in said:
            self._acked.add(said["ack"])
            self._waiting = [one for one in self._waiting if one != said["ack"]]
        elif "typing" in said:
            (self._typing.add if said["typing"] else self._typing.discard)(said["chat"])
            self._tell(account, answer=said["n"])
        elif "edit" in said:
            next(one for one in self._shown if one.id == said["edit"]).texts.append(said["text"])
            self._tell(account, answer=said["n"])
        elif "send" in said:
            self._answer(account, said)

    def _answer(self, account, said):
        how = self._answers.popleft() if self._answers else OK
        refusals = {
            RATE_LIMITED: {"error": "slow down", "after_s": 2},
            BROKEN: {"error": "internal"},
            REJECTED: {"error": "no"},
        }
        file = said["file"]
        if len(said["send"]) > 500 or (file and len(b64decode(file[1])) > 4000):
            how = REJECTED
        if how in refusals:
            self._tell(account, answer=said["n"], **refusals[how])
            return
        shown = next((one for one in self._shown if one.key == said["key"]), None)
        if shown is None:
            shown = _Shown(f"s{len(self._shown)}", account, said["chat"], said["thread"], said["key"], [said["send"]])
            if file:
                shown.texts, shown.file = [""], file
            self._shown.append(shown)
        if how == ARRIVED_BUT_FAILED:
            self._tell(account, answer=said["n"], error="timed out")
        else:
            self._tell(account, answer=said["n"], id=shown.id)
