"""The stage: the platforms, the house with its gateway, what was said, and what people have seen of the answers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Self

from hermes_demo.book import answer_to
from hermes_demo.entrances import find_fakes, plugins_for
from hermes_demo.house import House
from hermes_demo.people import REPEAT_MARK, Line
from hermes_hookspecs.errors import HermesError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hermes_demo.house import Ran
    from hermes_demo.people import Person
    from hermes_hookspecs.testing.fakes import FakeSent, ServesProcesses

__all__ = ["PLATFORMS", "Stage"]

PLATFORMS: Final = ("feishu", "weixin", "slack")

_LOOK_S: Final = 0.05
_START_S: Final = 60.0
_PATIENCE_S, _LITTLE_PATIENCE_S = 30.0, 5.0
"""How long an answer is waited for; and where one did not come already, so that the rest does not take all day."""
_HALF: Final = 8
_NOTICED_S: Final = 0.5


class Stage:
    """Everything that the story needs. An asynchronous context: nothing runs any more when it is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fakes = find_fakes(PLATFORMS)
        self._earlier: dict[str, list[str]] = {}
        self._begun: dict[Person, int] = {}
        self._printed: dict[Line, str] = {}
        self._gateway: Process | None = None
        self._connections = 0
        self._patience_s = _PATIENCE_S
        self.lines: list[Line] = []
        self.house: House

    async def __aenter__(self) -> Self:
        for fake in self._fakes.values():
            await fake.start()
        self.house = House(
            self._folder,
            config=_config(self._fakes),
            environ={name: value for fake in self._fakes.values() for name, value in fake.environ().items()},
            plugins=plugins_for(PLATFORMS),
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.house.kill()
        await self.house.close()
        for fake in self._fakes.values():
            await fake.stop()

    # --- processes

    async def log_in(self) -> list[str]:
        """Run what accounts need once; return the commands."""
        commands = [tuple(words) for fake in self._fakes.values() for words in fake.logins()]
        for words in commands:
            ran = await self.house.run(*words)
            if ran.status:
                raise HermesError(f"`hermes {' '.join(words)}` failed: {ran.err.strip()}")
        return [" ".join(words) for words in commands]

    async def start(self) -> int:
        """Start a gateway, wait until every platform is connected, and return its process id.

        :raises HermesError: it ended, or did not connect.
        """
        self._connections += 1
        self._gateway = await self.house.start()
        connected = [fake.connected(self._connections, _START_S) for fake in self._fakes.values()]
        try:
            await asyncio.gather(*connected)
        except TimeoutError:
            raise HermesError(f"the gateway did not connect; {self.house.log} says why") from None
        return self._gateway.pid

    async def kill(self) -> int:
        """Kill the gateway as ``kill -9`` does, and return the process id that it had."""
        assert self._gateway is not None  # noqa: S101 - the story starts one first
        self._gateway.kill()
        await self._gateway.wait()
        # What WeChat hands to a poll that nobody waits for any more is gone for good, there as here.
        await asyncio.sleep(_NOTICED_S)
        return self._gateway.pid

    async def stop(self) -> int:
        """Let the gateway leave and return its exit status."""
        assert self._gateway is not None  # noqa: S101 - the story starts one first
        with contextlib.suppress(ProcessLookupError):
            self._gateway.terminate()
        return await self._gateway.wait()

    # --- people

    async def say(self, person: Person, text: str) -> Line:
        """Let somebody write to the agent."""
        return await self._told(person, text, self._next_answer(person, text))

    async def command(self, person: Person, text: str, wanted: str) -> Line:
        """Let somebody write a command. :param wanted: words of its answer."""
        return await self._told(person, text, wanted, is_command=True)

    async def again(self, line: Line) -> None:
        """Let the platform deliver a message that it has delivered before."""
        await self._fakes[line.person.platform].deliver(line.message_id)

    def begin_anew(self, person: Person) -> None:
        """Note that a person's next message begins another conversation."""
        self._begun[person] = self._begun.get(person, 0) + 1

    async def type(self, person: Person, reference: str, text: str) -> tuple[Line, Ran]:
        """Let somebody go on with a session in a terminal."""
        line = self._line(person, text, "", self._next_answer(person, text))
        ran = await self.house.run("-r", reference, "-q", text)
        if ran.status == 0:
            self._printed[line] = ran.out.strip()
        return line, ran

    async def _told(self, person: Person, text: str, wanted: str, *, is_command: bool = False) -> Line:
        message_id = await self._fakes[person.platform].say(
            text, chat_id=person.chat_id, user_id=person.user_id, group=person.group
        )
        return self._line(person, text, message_id, wanted, is_command=is_command)

    def _line(self, person: Person, text: str, message_id: str, wanted: str, *, is_command: bool = False) -> Line:
        line = Line(
            person=person,
            text=text,
            conversation=self._conversation(person),
            message_id=message_id,
            wanted=wanted,
            is_command=is_command,
        )
        self.lines.append(line)
        return line

    def _conversation(self, person: Person) -> str:
        return f"{person.name}, session {self._begun.get(person, 0) + 1}"

    def _next_answer(self, person: Person, text: str) -> str:
        earlier = self._earlier.setdefault(self._conversation(person), [])
        answer = answer_to(text, earlier)
        earlier.append(text)
        return answer

    # --- what people see

    async def seen(self) -> dict[tuple[str, str], list[str]]:
        """Return what bots said, by platform and chat, oldest first; a message that was edited as it is now."""
        found: dict[tuple[str, str], list[str]] = {}
        for line, text in self._printed.items():
            found.setdefault(line.person.place, []).append(text)
        for name, fake in self._fakes.items():
            sent: Sequence[FakeSent] = await fake.sent(0)
            for one in sent:
                found.setdefault((name, one.chat_id), []).append(one.text)
        return found

    def is_acknowledged(self, line: Line) -> bool:
        """Return whether the platform was told that a message arrived, or the terminal took it."""
        if not line.message_id:
            return line in self._printed
        return self._fakes[line.person.platform].is_acknowledged(line.message_id)

    async def draft_of(self, line: Line) -> str:
        """Return what can be read of an answer while it is written, once there is some of it.

        :raises HermesError: it is not shown in time.
        """
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    for text in (await self.seen()).get(line.person.place, ()):
                        if len(text) >= _HALF and line.wanted.startswith(text) and text != line.wanted:
                            return text
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise HermesError(f"nothing is seen of the answer to “{line.text}”") from None

    async def answered(self, lines: Sequence[Line], tell: Callable[[Line, str], None]) -> Sequence[Line]:
        """Wait until every line has its answer, and return those that have none in time.

        :param tell: hears of each answer when it is there.
        """
        missing = list(lines)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                while missing:
                    seen = await self.seen()
                    for line in tuple(missing):
                        text = next((text for text in seen.get(line.person.place, ()) if _fits(line, text)), None)
                        if text is not None:
                            missing.remove(line)
                            tell(line, text)
                    await asyncio.sleep(_LOOK_S)
        if missing:
            self._patience_s = _LITTLE_PATIENCE_S
        return missing


def _fits(line: Line, text: str) -> bool:
    return line.is_answered_by(text.removeprefix(REPEAT_MARK))


def _config(fakes: dict[str, ServesProcesses]) -> dict[str, object]:
    """Return a configuration as a person would write it, in a hurry."""
    return {
        "agent": {"runner": "demo"},
        "inbox": {"batch_window_s": 0},
        "gateway": {"stream_interval_s": 0.3, "retry_first_s": 0.05, "retry_most_s": 0.5},
        "outbox": {"retry_first_s": 0.05, "retry_most_s": 0.5},
        "platforms": {name: {"dm_policy": "open", "group_policy": "open"} for name in fakes},
        "plugins": {"demo": {"agent": True}, **{name: dict(fake.table()) for name, fake in fakes.items()}},
    }
