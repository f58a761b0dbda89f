"""What we add in front of a model's first word, and what a thousand sessions cost that nobody talks in.

``python -m benchmarks.agents serve`` is the endpoint, ``python -m benchmarks.agents idle FOLDER`` the process whose
memory is read: each has an interpreter of its own.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, RAW, alternate, fact, row, timing
from benchmarks.stage import text
from hermes_core import open_app
from hermes_hookspecs.ports.agent import TextDelta
from hermes_hookspecs.source import SessionSource
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.testing import FakeEndpoint, answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai import AsyncOpenAI

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.app import HermesApp
    from hermes_hookspecs.ports.agent import AgentEvent
    from hermes_openai.testing.replies import Answer
    from hermes_openai.testing.requests import Asked

__all__ = ["run"]

_TURNS = 100
_IDLE = 1000
_WARM = 200
"""Sessions after which caches and pools are as large as they get."""
_PAGE_KB = 4


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield the first token with and without us, and the memory of idle sessions."""
    yield from _first_token(size)
    yield from _idle_sessions()


# --- the first token


def _first_token(size: Size) -> Iterator[Row]:
    with (
        _endpoint() as base_url,
        tempfile.TemporaryDirectory() as folder,
        open_app(Path(folder) / "home", plugins=False, environ={}) as app,
    ):
        config = OpenAIConfig.of({"model": "m", "base_url": base_url, "session_search": False})
        agent = OpenAIAgent(config, environ={})
        seen = alternate(
            size.rounds,
            {OURS: lambda: asyncio.run(_turns(app, agent)), RAW: lambda: asyncio.run(_requests(base_url))},
        )
    yield row("first token of a turn, against a client that is kept open", seen, "p50", unit="ms")
    yield row("the same, the slowest of a hundred", seen, "p99", unit="ms")
    for metric in ("p50", "p99"):
        pairs = zip(seen[OURS], seen[RAW], strict=True)
        added = [(getattr(ours, metric) - getattr(raw, metric)) / 1000 for ours, raw in pairs]
        yield fact(f"added by us to the first token, {metric}", median(added), None, unit="ms", rounds=len(added))


async def _turns(app: HermesApp, agent: OpenAIAgent) -> Timing:
    """Ask in a session of their own, so that rounds are alike; each time ends with the first piece of text."""
    source = SessionSource(platform="api_server", chat_id="one", user_id="somebody")
    entry = app.get_or_create_session(source, force_new=True)
    clock = time.perf_counter_ns
    taken = []
    for number in range(_TURNS):
        came: list[int] = []

        def hear(event: AgentEvent, came: list[int] = came) -> None:
            if isinstance(event, TextDelta) and not came:
                came.append(clock())

        before = clock()
        await app.ask_async(text(number), source, entry=entry, agent=agent, on_event=hear)
        taken.append(came[0] - before)
    return timing(taken, sum(taken))


async def _requests(base_url: str) -> Timing:
    """Ask the same of the endpoint with nothing between."""
    from openai import AsyncOpenAI

    clock = time.perf_counter_ns
    taken = []
    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        told: list[tuple[str, str]] = []
        for number in range(_TURNS):
            told.append(("user", text(number)))
            before = clock()
            taken.append(await _first_of(client, told) - before)
            told.append(("assistant", "It rains."))
    return timing(taken, sum(taken))


async def _first_of(client: AsyncOpenAI, told: list[tuple[str, str]]) -> int:
    """Return the time at which the first text of an answer came; the rest is read."""
    body = {"messages": [{"role": role, "content": words} for role, words in told]}
    first = 0
    stream = await client.chat.completions.create(model="m", messages=(), stream=True, extra_body=body)
    async for piece in stream:
        if not first and piece.choices and piece.choices[0].delta.content:
            first = time.perf_counter_ns()
    return first


class _Endless(FakeEndpoint):
    """Says the same whenever it is asked, and remembers nothing."""

    def take(self, asked: Asked) -> Answer:
        return answer("It ", "rains.", usage={})(asked)


@contextmanager
def _endpoint() -> Iterator[str]:
    """Give the address of an endpoint in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.agents", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the endpoint cannot be talked to")
        yield process.stdout.readline().strip()
        process.stdin.close()


def _serve() -> None:
    with _Endless() as endpoint:
        print(endpoint.base_url, flush=True)
        sys.stdin.read()


# --- idle sessions


def _idle_sessions() -> Iterator[Row]:
    if not Path("/proc/self/statm").exists():
        return  # only there a process can be asked cheaply and truly
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.agents", "idle", folder]
        grown = int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    yield fact(f"memory of {_IDLE} idle sessions, each with one turn", grown, None, unit="KB")


def _idle(folder: str) -> None:
    """Print by how many KB this process grows while a thousand sessions are made, answered once, and left alone."""
    overrides = {"storage.durability": "normal"}
    with open_app(Path(folder) / "home", plugins=False, environ={}, overrides=overrides) as app:
        chats = count()
        asyncio.run(_greet(app, chats, _WARM))
        before = _resident_kb()
        asyncio.run(_greet(app, chats, _IDLE))
        print(_resident_kb() - before)


async def _greet(app: HermesApp, chats: Iterator[int], most: int) -> None:
    for number, _ in zip(chats, range(most), strict=False):
        source = SessionSource(platform="api_server", chat_id=f"c{number}", user_id=f"u{number}")
        await app.ask_async("hello", source, agent="echo")


def _resident_kb() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KB


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve()
    else:
        _idle(sys.argv[2])
