"""The whole way, in a gateway of this process before the fake: what the core and the adapter make of Slack together."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager

import pytest

from hermes_hookspecs.ports.agent import AssistantStep, TextDelta
from hermes_slack.testing import FakeSlack
from hermes_slack.testing.payloads import callback, command, mention_twin, message

hermes_core = pytest.importorskip("hermes_core")

PATIENCE_S = 60
BIND = """
import sys
from hermes_core import open_app
from hermes_hookspecs.source import SessionSource

with open_app(sys.argv[1]) as app:
    source = SessionSource(platform="slack", scope_id=sys.argv[2], chat_type="dm", chat_id="D2", user_id="U2")
    print(app.ask("begun elsewhere", source).entry.lineage_id)
"""


class Writer:
    """An agent that says a piece whenever the test lets it; :attr:`heard` is what it was told."""

    name, model = "writer", None

    def __init__(self, *pieces):
        self._pieces = pieces
        self.gate = asyncio.Queue()
        self.heard = []

    async def run(self, turn):
        self.heard.append(turn.messages[-1].content)
        for piece in self._pieces:
            yield TextDelta(text=piece)
            await self.gate.get()
        yield AssistantStep(content="".join(self._pieces), finish_reason="stop")


class Scene:
    """A home, a gateway that can be started again, and a Slack that outlives it."""

    def __init__(self, folder):
        self.fake = FakeSlack(replies="thread")
        self.home = folder / "home"
        self.home.mkdir()
        self.more = ""

    @property
    def server(self):
        return self.fake.server

    def _write(self):
        config = self.fake.config()
        lines = [
            "[agent]", 'runner = "echo"', "[inbox]", "batch_window_s = 0.0",
            "[gateway]", "stream_interval_s = 0.02",
            "[platforms.slack]", 'dm_policy = "open"', 'group_policy = "open"', self.more,
            "[plugins.slack]", 'accounts = ["default"]', f'base_url = "{config.base_url}"', 'replies = "thread"',
            "posts_per_minute = 1000",
        ]  # fmt: skip
        (self.home / "config.toml").write_text("\n".join(lines), encoding="utf-8")

    @asynccontextmanager
    async def serving(self, agent=None):
        self._write()
        environ = {**self.fake.environ(), "HERMES_PLUGINS": "slack"}
        opened = self.fake.app().opened
        with hermes_core.open_app(self.home, environ=environ) as app:
            task = asyncio.create_task(app.gateway.run(agent=agent))
            try:
                await self.server.until(lambda: task.done() or self.fake.app().opened > opened, PATIENCE_S)
                yield app
            finally:
                task.cancel()
                await asyncio.wait({task}, timeout=PATIENCE_S)

    def play(self, scene):
        async def limited():
            async with asyncio.timeout(PATIENCE_S * 2):
                await self.fake.start()
                try:
                    return await scene()
                finally:
                    await self.fake.stop()

        found = asyncio.run(limited())
        assert not self.server.faults
        return found

    async def until_shown(self, text):
        await self.server.until(lambda: any(text in post.text for post in self.server.posts), PATIENCE_S)


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def test_an_answer_is_one_message_that_is_streamed_into_its_thread(scene):
    agent = Writer("Once ", "**upon** ", "a time")

    async def story():
        async with scene.serving(agent):
            root = await scene.fake.say("a story", chat_id="C1", group=True)
            await scene.until_shown("Once")
            agent.gate.put_nowait(None)
            await scene.until_shown("upon")
            during = [(post.text, post.streaming) for post in scene.server.posts]
            agent.gate.put_nowait(None)
            agent.gate.put_nowait(None)
            await scene.until_shown("a time")
            await scene.server.until(lambda: not scene.server.posts[0].streaming, PATIENCE_S)
            await scene.until_shown("*upon* a")
            return root, during

    root, during = scene.play(story)

    ((words, is_open),) = during
    assert (words.strip(), is_open) == ("Once **upon**", True)
    assert [(post.text, post.thread_ts) for post in scene.server.posts] == [("Once *upon* a time", root)]
    assert "chat.postMessage" not in scene.server.calls


def test_an_answer_that_was_being_streamed_when_the_gateway_ended_stands_there_once(scene):
    agent = Writer("Once ", "upon a time")

    async def story():
        async with scene.serving(agent):
            await scene.fake.say("a story", chat_id="C1", group=True)
            await scene.until_shown("Once")
        again = Writer("Once upon another time")
        again.gate.put_nowait(None)
        async with scene.serving(again):
            await scene.until_shown("another")
            await scene.server.until(lambda: not any(post.streaming for post in scene.server.posts), PATIENCE_S)
            return [post.text for post in scene.server.posts]

    shown = scene.play(story)

    assert sum("Once" in text for text in shown) == 1


def test_a_command_in_a_room_without_us_is_answered_once_to_who_gave_it(scene):
    async def story():
        scene.server.outside.add("C9")
        response = scene.server.response()
        app = scene.fake.app()
        async with scene.serving():
            payload = command(
                app, app.installations[0], "C9", "U1", name="/hermes", text="what is new?", trigger_id="t1",
                response_url=response.url,
            )  # fmt: skip
            for _ in range(2):
                scene.server.deliver(app, payload, kind="slash_commands")
            await scene.server.until(lambda: response.texts, PATIENCE_S)
            await scene.fake.say("the end", chat_id="D1")
            await scene.until_shown("the end")
        async with scene.serving():
            await scene.fake.say("the very end", chat_id="D1")
            await scene.until_shown("the very end")
        return response.texts

    assert scene.play(story) == ["echo 1: what is new?"]
    assert [post.channel for post in scene.server.posts] == ["D1", "D1"]


def test_in_a_room_the_agent_is_told_who_speaks_by_name(scene):
    scene.server.names |= {"U1": "Ada", "U2": "林 小明"}
    agent = Writer()

    async def story():
        async with scene.serving(agent):
            root = await scene.fake.say("hello", chat_id="C1", user_id="U1", group=True)
            await scene.server.until(lambda: len(agent.heard) == 1, PATIENCE_S)
            await scene.fake.say("and me", chat_id="C1", user_id="U2", group=True, thread_id=root)
            await scene.server.until(lambda: len(agent.heard) == 2, PATIENCE_S)
            return agent.heard

    one, two = scene.play(story)

    assert "Ada" in one
    assert "hello" in one
    assert "林 小明" in two


def test_a_mention_that_an_edit_adds_is_answered_and_one_that_was_answered_is_not_answered_again(scene):
    here = scene.fake.app().installations[0]

    def edited(ts, text):
        inner = mention_twin(message("C1", "U1", f"<@{here.user_id}> {text}", ts, edited={"user": "U1", "ts": ts}))
        scene.server.deliver(scene.fake.app(), callback(scene.fake.app(), here, inner, scene.server.number("Ev")))

    async def story():
        async with scene.serving():
            for text, mention in (("overheard", False), ("meant", True)):
                ts = await scene.fake.say(text, chat_id="C1", group=True, mention=mention)
                await scene.fake.acknowledged(ts, PATIENCE_S)
                edited(ts, text)
                await scene.until_shown(f"echo 1: {text}")
            await scene.fake.say("the end", chat_id="D1")
            await scene.until_shown("the end")

    scene.play(story)

    assert [post.text for post in scene.server.posts] == ["echo 1: overheard", "echo 1: meant", "echo 1: the end"]


def test_b19_what_another_process_binds_is_seen_and_neither_takes_the_others_routes_away(scene):
    """The route of a message is read when it is asked for and written by its key alone, whoever else writes."""

    async def story():
        mine = await _echo(scene, "D1", "one")
        async with scene.serving() as app:
            await scene.fake.say("two", chat_id="D1", user_id="U1")
            await scene.until_shown("echo 2: two")
            source = app.store.routes()[0].source
            other = await asyncio.create_subprocess_exec(
                sys.executable, "-c", BIND, str(scene.home), source.scope_id,
                env={**os.environ, "HERMES_PLUGINS": ""}, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            bound = (await other.communicate())[0].decode().strip()
            await scene.fake.say("there", chat_id="D2", user_id="U2")
            await scene.until_shown("echo 2: there")
            await scene.fake.say("three", chat_id="D1", user_id="U1")
            await scene.until_shown("echo 3: three")
        async with scene.serving() as app:
            await scene.fake.say("again", chat_id="D2", user_id="U2")
            await scene.until_shown("echo 3: again")
            await scene.fake.say("four", chat_id="D1", user_id="U1")
            await scene.until_shown("echo 4: four")
            return mine, bound, {route.source.chat_id: route.lineage_id for route in app.store.routes()}

    mine, bound, routes = scene.play(story)

    assert routes == {"D1": mine, "D2": bound}


async def _echo(scene, chat, text):
    async with scene.serving() as app:
        await scene.fake.say(text, chat_id=chat, user_id="U1")
        await scene.until_shown(f"echo 1: {text}")
        return app.store.routes()[0].lineage_id
