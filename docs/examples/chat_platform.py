"""A chat platform with its bot, whole; start it with ``python chat_platform.py FOLDER``.

The platform is a folder. Put a message into it as a file of its own (write it elsewhere, then move it in)::

    in/0001.json    {"id": "m1", "chat": "kitchen", "user": "ming", "text": "tea"}

The bot looks the text up in ``menu.txt`` (lines such as ``tea: 3 yuan``) and answers with a file in ``out/``. The
platform delivers a message again until the bot takes its file away, as real ones do until they get their 200. Kill the
program at any moment and start it again: each message is answered once.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core import SessionSource, open_app
from hermes_hookspecs import MessageEvent
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.platform import PlatformAbilities, Sent, ServedEntrance
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_core import HermesApp
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext
    from hermes_hookspecs.ports.platform import DeliveryPart, SendResult

LOOK_S = 0.1
UPKEEP_S = 30


class FolderPlatform:
    """The adapter: it accepts, normalises and sends, and decides nothing."""

    # A file is named by the part's key, so a part that is sent twice is there once.
    abilities = PlatformAbilities(idempotent_send=True, max_length=2000)

    def __init__(self, folder: Path) -> None:
        self._inbox, self._outbox = folder / "in", folder / "out"
        for place in (self._inbox, self._outbox):
            place.mkdir(parents=True, exist_ok=True)

    async def receive(self, app: HermesApp) -> None:
        """Take messages in, as they come, until cancelled."""
        while True:
            files = sorted(self._inbox.glob("*.json"))
            if files:
                await app.accept([self._event(file, app.clock.now()) for file in files])
                # Stored: now the platform may forget them. Killed before this line, we get them again and know them.
                for file in files:
                    file.unlink()
            await asyncio.sleep(LOOK_S)

    def _event(self, file: Path, now: int) -> MessageEvent:
        """Return a file as the core takes it; one that cannot be read is kept apart and holds nothing up."""
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
            chat, message = str(said["chat"]), str(said["id"])
            source = SessionSource(
                platform="folder",
                chat_type=str(said.get("chat_type", "dm")),
                chat_id=chat,
                user_id=str(said["user"]),
                message_id=message,
            )
            return MessageEvent(
                source=source,
                text=str(said["text"]),
                identities=(f"folder:{chat}:{message}",),
                received_at=now,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            source = SessionSource(platform="folder")
            return MessageEvent(
                source=source, text="", identities=(f"folder::{file.name}",), received_at=now, error=repr(error)
            )

    async def send(self, part: DeliveryPart) -> SendResult:
        """Put one part of an answer into the folder."""
        letter = {"chat": part.target.chat_id, "reply_to": part.reply_to, "text": part.text}
        file = self._outbox / f"{part.key}.json"
        draft = file.with_suffix(f".{os.getpid()}")
        try:
            draft.write_text(json.dumps(letter), encoding="utf-8")
            draft.replace(file)
        except OSError as error:
            # Nothing arrived: the file appears with the last step or not at all.
            raise RetryLater(f"the folder takes no file: {error}") from error
        return Sent(platform_message_id=part.key)


class MenuAgent:
    """Answers from a file. A call of a model would stand where it looks."""

    name = "menu"
    model: str | None = None

    def __init__(self, menu: Path) -> None:
        self._menu = menu

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the call, its result, and the answer."""
        # Reading twice changes nothing: after a crash in mid-call the message is tried again. With the default,
        # "write", its sender would be told instead.
        arguments = json.dumps({"dish": turn.text})
        call = ToolCall(id=f"{turn.turn.id}-1", name="read_menu", arguments=arguments, effect="read")
        yield AssistantStep(tool_calls=(call,))
        found = await asyncio.to_thread(self._look_up, turn.text)
        yield ToolResult(call_id=call.id, name=call.name, content=found)
        yield AssistantStep(content=f"{turn.text}: {found}", finish_reason="stop")

    def _look_up(self, dish: str) -> str:
        lines = self._menu.read_text(encoding="utf-8").splitlines()
        prices = dict(line.split(": ", 1) for line in lines if ": " in line)
        return prices.get(dish, "we have none")


async def keep_up(app: HermesApp) -> None:
    """Do now and then what a gateway would: close what dead processes left, let old rows go, index."""
    while True:
        await asyncio.to_thread(app.maintain)
        await asyncio.sleep(UPKEEP_S)


async def serve(app: HermesApp, folder: Path) -> None:
    """Receive, answer and send until cancelled; turns that run then may end, and their answers go out."""
    platform = FolderPlatform(folder)
    served = ServedEntrance(entrance=Entrance("folder"), sender=platform, abilities=platform.abilities)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(platform.receive(app))
        tasks.create_task(app.work([served], agent=MenuAgent(folder / "menu.txt")))
        tasks.create_task(keep_up(app))


async def main(folder: Path) -> None:
    """Open the profile and serve until SIGTERM or Ctrl-C."""
    with open_app() as app:
        serving = asyncio.create_task(serve(app, folder))
        # Without this a SIGTERM ends Python on the spot. Nothing is lost then either, but no turn may end.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        print("serving", flush=True)
        with suppress(asyncio.CancelledError):
            await serving


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
