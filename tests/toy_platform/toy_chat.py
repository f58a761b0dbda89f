"""A small chat platform for tests: a server on loopback, and the plugin that connects to it. JSON lines over TCP.

The server says each message until it is acknowledged, again after every reconnect, and as often as a test wants.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque

import attrs

from hermes_hookspecs.errors import AuthFailed, ConfigError, Rejected, RetryLater
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta
from hermes_hookspecs.ports.platform import CONNECTED, PlatformAbilities, Sent
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.state import StateUpdate

NAME = "toy"
PATIENCE_S = 20


class ToyChatPlugin:
    """Entry point of the plugin: ``[plugins.toy-chat]`` has ``port``, ``accounts`` and what the platform can do."""

    def __init__(self, config):
        self._platform = ToyPlatform(**{key: config[key] for key in config})

    @hookimpl
    def hermes_platforms(self):
        return (self._platform,)

    @hookimpl
    def hermes_agents(self):
        return (PatientAgent(self._platform), StutteringAgent())


class PatientAgent:
    """Says the first half of its answer, the rest once the server says *go*, and ends when it says so again."""

    name, model = "patient", None

    def __init__(self, platform):
        self._platform = platform

    async def run(self, turn):
        words = f"well, {turn.text}"
        yield TextDelta(text="well,")
        await self._go()
        yield TextDelta(text=words.removeprefix("well,"))
        await self._go()
        yield AssistantStep(content=words)

    async def _go(self):
        self._platform.going.clear()
        await self._platform.going.wait()


class StutteringAgent:
    """Answers as the built-in ``echo`` does, in pieces with a little time between them."""

    name, model = "stutter", None

    async def run(self, turn):
        heard = sum(row.role == "user" for row in turn.messages)
        answer = f"echo {heard}: {turn.text}"
        for at in range(0, len(answer), 7):
            yield TextDelta(text=answer[at : at + 7])
            await asyncio.sleep(0.02)
        yield AssistantStep(content=answer)


class ToyPlatform:
    """The platform: ``secret`` is what an account needs, ``abilities`` what the server can do."""

    def __init__(self, port=0, accounts=("default",), secret="open", name=NAME, **abilities):
        self.name = name
        self.abilities = PlatformAbilities(**abilities)
        self.going = asyncio.Event()
        self._port, self._accounts, self._secret = port, tuple(accounts), secret

    def accounts(self):
        return self._accounts

    def adapter(self, setup):
        if not self._port:
            raise ConfigError("[plugins.toy-chat] port is missing", section="plugins.toy-chat", key="port")
        adapter = ToyAdapter(self, self._port, setup, self._secret)
        if not self.abilities.edits:
            adapter.edit = None
        return adapter


class ToyAdapter:
    """One account, connected by one socket for both directions."""

    def __init__(self, platform, port, setup, secret):
        self._platform = platform
        self._name, self._port, self._setup, self._secret = platform.name, port, setup, secret
        self._writer = None
        self._answers = {}
        self._number = 0

    async def run(self, inlet):
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            self._say(hello=self._setup.account_id, secret=self._secret)
            welcome = json.loads(await reader.readline() or b"{}")
            if not welcome.get("welcome"):
                raise AuthFailed("the secret of the account is refused")
            inlet.report(CONNECTED)
            while line := await reader.readline():
                inlet.alive()
                await self._take(json.loads(line), inlet)
            raise ConnectionError("the server hung up")
        finally:
            writer, self._writer = self._writer, None
            writer.close()
            for answer in self._answers.values():
                answer.cancel()
            self._answers.clear()

    async def _take(self, said, inlet):
        if "answer" in said:
            answer = self._answers.pop(said["answer"], None)
            if answer is not None and not answer.done():
                answer.set_result(said)
        elif "go" in said:
            self._platform.going.set()
        elif "message" in said:
            asked = said["message"]
            update = StateUpdate(namespace=self._name, key=f"cursor:{self._setup.account_id}", value=str(asked["id"]))
            await inlet.accept([self._event(asked)], state=[update])
            self._say(ack=asked["id"])

    def _event(self, said):
        source = SessionSource(
            platform=self._name,
            account_id=self._setup.account_id,
            chat_type="group" if said.get("group") else "dm",
            chat_id=said["chat"],
            thread_id=said.get("thread"),
            user_id=said["user"],
            user_name=said.get("name"),
            message_id=str(said["id"]),
            is_bot=bool(said.get("bot")),
        )
        return MessageEvent(
            source=source,
            text=said.get("text", ""),
            identities=(f"{said['chat']}:{said['id']}",),
            received_at=self._setup.clock.now(),
            addressed=said.get("mention", True),
            recalls=f"{said['chat']}:{said['recalls']}" if said.get("recalls") else "",
        )

    async def send(self, part):
        said = await self._ask(send=part.text, chat=part.target.chat_id, thread=part.target.thread_id, key=part.key)
        return Sent(platform_message_id=said["id"])

    async def edit(self, part, platform_message_id):
        said = await self._ask(edit=platform_message_id, text=part.text, chat=part.target.chat_id)
        return Sent(platform_message_id=said["id"])

    async def typing(self, target, *, on):
        self._say(typing=on, chat=target.chat_id)

    async def _ask(self, **asked):
        if self._writer is None:
            raise RetryLater("not connected")
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self._say(n=self._number, **asked)
        said = await answer
        if said.get("error") == "rejected":
            raise Rejected("the server does not take it")
        if said.get("error"):
            raise RetryLater(said["error"], maybe_sent=False)
        return said

    def _say(self, **said):
        if self._writer is not None:
            self._writer.write(json.dumps(said).encode() + b"\n")


@attrs.define
class Shown:
    """A message as people in a chat see it; ``texts``: every text that it has had, the newest last."""

    id: str
    account: str
    chat: str
    thread: str | None
    key: str
    texts: list

    @property
    def text(self):
        return self.texts[-1]


class ToyServer:
    """The platform's side. For one event loop."""

    def __init__(self, *, idempotent=False):
        self.shown = []
        self.typing = []
        self.acked = Counter()
        self.connections = Counter()
        self.secret = "open"
        self.silent = False
        self.answers = deque()
        """How the next sends are answered: ``error``: nothing arrives; ``lost``: it arrives, nobody hears of it."""
        self.lose_acks = 0
        """Of so many acknowledgements nothing comes in: their messages are said again with the next connection."""
        self._idempotent = idempotent
        self._messages = {}
        self._waiting = {}
        self._writers = {}
        self._open = {}
        self._number = 0
        self._changed = asyncio.Condition()
        self._server = None

    async def start(self, port=0):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=1 << 20)
        return self

    @property
    def port(self):
        return self._server.sockets[0].getsockname()[1]

    async def stop(self):
        self._server.close()
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def drop(self):
        """Cut every connection."""
        for writer in list(self._writers.values()):
            writer.close()
        self._writers.clear()

    async def say(self, text, *, chat="c1", user="u1", account="default", times=1, deliver=True, **more):
        """Let somebody write; return the message's id."""
        self._number += 1
        said = {"id": self._number, "chat": chat, "user": user, "text": text} | more
        self._messages[self._number] = (account, said)
        if deliver:
            for _ in range(times):
                self.deliver(self._number)
        return self._number

    def deliver(self, number):
        """Deliver a message, once more perhaps."""
        account, said = self._messages[number]
        self._waiting.setdefault(account, {})[number] = said
        self._tell(account, message=said)

    def go(self):
        """Let the patient agents of whoever is connected now come to an end."""
        for account in list(self._writers):
            self._tell(account, go=True)

    def _tell(self, account, **said):
        writer = self._writers.get(account)
        if writer is not None and not self.silent:
            writer.write(json.dumps(said).encode() + b"\n")

    async def _serve(self, reader, writer):
        account = None
        self._open[asyncio.current_task()] = writer
        try:
            while line := await reader.readline():
                said = json.loads(line)
                if "hello" in said:
                    account = said["hello"]
                    ok = said["secret"] == self.secret
                    writer.write(json.dumps({"welcome": ok}).encode() + b"\n")
                    if not ok:
                        return
                    self._writers[account] = writer
                    self.connections[account] += 1
                    for message in list(self._waiting.get(account, {}).values()):
                        self._tell(account, message=message)
                else:
                    self._take(account, said)
                async with self._changed:
                    self._changed.notify_all()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.pop(asyncio.current_task(), None)
            if self._writers.get(account) is writer:
                del self._writers[account]
            writer.close()

    def _take(self, account, said):
        if "ack" in said:
            self.acked[said["ack"]] += 1
            if self.lose_acks:
                self.lose_acks -= 1
            else:
                self._waiting.get(account, {}).pop(said["ack"], None)
        elif "typing" in said:
            self.typing.append((said["chat"], said["typing"]))
        elif "send" in said:
            self._sent(account, said)
        elif "edit" in said:
            message = next((one for one in self.shown if one.id == said["edit"]), None)
            if message is None:
                self._tell(account, answer=said["n"], error="rejected")
            else:
                message.texts.append(said["text"])
                self._tell(account, answer=said["n"], id=message.id)

    def _sent(self, account, said):
        how = self.answers.popleft() if self.answers else "ok"
        if how in ("error", "rejected"):
            self._tell(account, answer=said["n"], error=how)
            return
        known = next((one for one in self.shown if self._idempotent and one.key == said["key"]), None)
        if known is None:
            known = Shown(f"m{len(self.shown) + 1}", account, said["chat"], said["thread"], said["key"], [said["send"]])
            self.shown.append(known)
        if how == "ok":
            self._tell(account, answer=said["n"], id=known.id)

    def texts(self, chat=None):
        """Return what people see, oldest first."""
        return [one.text for one in self.shown if chat in (None, one.chat)]

    async def until(self, condition, timeout_s=PATIENCE_S):
        """Return once ``condition()`` holds after something came in."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(condition)
