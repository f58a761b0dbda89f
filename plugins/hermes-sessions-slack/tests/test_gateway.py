"""A real gateway in a process of its own before the fake: real store, real sockets, ``kill -9``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from hermes_slack.testing import FakeSlack

hermes_core = pytest.importorskip("hermes_core")

PATIENCE_S = 60
PROGRAM = """
import asyncio, sys
from hermes_core import open_app

with open_app(sys.argv[1]) as app:
    asyncio.run(app.gateway.run(signals=True))
"""


class House:
    """A home, its gateway, and Slack."""

    def __init__(self, folder, replies="thread"):
        self.fake = FakeSlack(replies=replies)
        self.home = folder / "home"
        self.home.mkdir()
        self.replies = replies

    def configure(self):
        config = self.fake.config()
        lines = [
            "[agent]", 'runner = "echo"', "[inbox]", "batch_window_s = 0.0",
            "[platforms.slack]", 'dm_policy = "open"', 'group_policy = "open"',
            "[plugins.slack]", 'accounts = ["default"]', f'base_url = "{config.base_url}"',
            f'replies = "{self.replies}"', "assistant_status = false",
        ]  # fmt: skip
        (self.home / "config.toml").write_text("\n".join(lines), encoding="utf-8")

    @asynccontextmanager
    async def gateway(self):
        environ = {**os.environ, **self.fake.environ(), "HERMES_PLUGINS": "slack"}
        opened = self.fake.app().opened
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, str(self.home), env=environ,
            stdout=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await self.fake.server.until(lambda: self.fake.app().opened > opened, PATIENCE_S)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def say(self, text, chat="D1", user="U1", **more):
        return await self.fake.say(text, chat_id=chat, user_id=user, group=not chat.startswith("D"), **more)

    async def answers(self, count):
        return await self.fake.sent(count, PATIENCE_S)


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def play(house, scene):
    async def limited():
        async with asyncio.timeout(PATIENCE_S * 2):
            await house.fake.start()
            house.configure()
            try:
                return await scene()
            finally:
                await house.fake.stop()

    return asyncio.run(limited())


def test_people_places_and_threads_have_sessions_of_their_own(house):
    async def scene():
        async with house.gateway():
            top = await house.say("one", "C1")
            await house.answers(1)
            await house.say("two", "C1", "U2", thread_id=top, mention=False)
            await house.say("three", "D1")
            await house.say("four", "C1")
            return await house.answers(4)

    seen = play(house, scene)

    assert Counter((one.chat_id, one.text) for one in seen) == Counter(
        [("C1", "echo 1: one"), ("C1", "echo 2: two"), ("D1", "echo 1: three"), ("C1", "echo 1: four")]
    )
    threads = {one.text: one.thread_id for one in seen}
    assert threads["echo 1: one"] == threads["echo 2: two"]
    assert threads["echo 1: three"] is None
    assert threads["echo 1: four"] not in (None, threads["echo 1: one"])


def test_a10_the_session_of_a_channel_is_one_and_survives_a_restart(tmp_path):
    house = House(tmp_path, "channel")

    async def scene():
        async with house.gateway():
            for number in range(3):
                await house.say(f"m{number}", "C1")
                await house.answers(number + 1)
        async with house.gateway():
            await house.say("m3", "C1")
            return await house.answers(4)

    assert [one.text for one in play(house, scene)] == [f"echo {n + 1}: m{n}" for n in range(4)]


def test_h16_a_gateway_that_is_killed_loses_and_repeats_nothing(house):
    async def scene():
        said = []
        for round_ in range(2):
            async with house.gateway() as process:
                said += [await house.say(f"r{round_} m{number}", f"D{number}") for number in range(4)]
                if round_:
                    await house.fake.deliver(*said[:4])
                await asyncio.sleep(0.1 * round_)
                process.send_signal(signal.SIGKILL)
                await process.wait()
        async with house.gateway():
            await house.answers(8)
            for ts in said:
                await house.fake.acknowledged(ts, PATIENCE_S)
            await house.say("the end", "D9")
            return await house.answers(9)

    seen = play(house, scene)

    heard = Counter(one.text.partition(": ")[2] for one in seen)
    assert heard == Counter([f"r{r} m{n}" for r in range(2) for n in range(4)] + ["the end"])


def test_a_post_that_was_cut_off_is_looked_up_and_people_read_it_once(house):
    async def scene():
        house.fake.server.answers.extend(["cut", "cut"])
        async with house.gateway():
            await house.say("hello", "D1")
            await house.say("hello", "C1")
            await house.answers(2)
            await house.say("the end", "D2")
            await house.answers(3)
            await house.fake.server.until(lambda: "conversations.replies" in house.fake.server.calls, PATIENCE_S)
            await house.fake.server.until(lambda: "conversations.history" in house.fake.server.calls, PATIENCE_S)
            await house.say("the very end", "D3")
            return await house.answers(4)

    assert Counter(one.text for one in play(house, scene)) == Counter(
        {"echo 1: hello": 2, "echo 1: the end": 1, "echo 1: the very end": 1}
    )


def test_a01_and_a05_keys_hold_the_workspace_and_a_command_has_the_key_of_a_message(tmp_path):
    from hermes_hookspecs.source import SessionSource

    with hermes_core.open_app(tmp_path, overrides={"storage.backend": "memory"}, environ={"HERMES_PLUGINS": ""}) as app:
        keys = [
            app.session_key(SessionSource(platform="slack", chat_type=kind, scope_id=scope, chat_id=chat, user_id="U5"))
            for scope in ("T1", "T2")
            for kind, chat in (("group", "C9"), ("dm", "D9"))
        ]

    assert keys == [
        "agent:main:slack:group:scope=T1:chat=C9:user=U5",
        "agent:main:slack:dm:scope=T1:chat=D9",
        "agent:main:slack:group:scope=T2:chat=C9:user=U5",
        "agent:main:slack:dm:scope=T2:chat=D9",
    ]
