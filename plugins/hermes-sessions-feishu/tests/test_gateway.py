"""The whole way, in a real gateway before the fake platform: people write, and see their answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from hermes_feishu.testing import FakeFeishu
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta
from hermes_hookspecs.principal import operator

hermes_core = pytest.importorskip("hermes_core", reason="a gateway is the core's")

PATIENCE_S = 60
OPEN = {"dm_policy": "open", "group_policy": "open"}


class Scene:
    """A gateway, and a platform that outlives it. ``account``: settings of each account, ``rules``: who comes in."""

    def __init__(self, folder):
        self.fake = FakeFeishu()
        self.home = folder / "home"
        self.account = {}
        self.accounts = ["default"]
        self.rules = dict(OPEN)
        self.more = ""

    def _written(self):
        lines = ["[plugins.feishu]", "reconnect_first_s = 0.05", "silence_s = 5"]
        for alias in self.accounts:
            app = self.fake.world.app(alias)
            table = {"app_id": app.app_id, "domain": self.fake.url} | self.account
            lines += [
                f"[plugins.feishu.accounts.{alias}]",
                *(f"{key} = {shown(value)}" for key, value in table.items()),
            ]
        lines += ["[platforms.feishu]", *(f"{key} = {shown(value)}" for key, value in self.rules.items())]
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.toml").write_text("\n".join([*lines, self.more]), encoding="utf-8")

    @asynccontextmanager
    async def serving(self, agent="echo"):
        """Run a gateway while the block runs."""
        self._written()
        overrides = {"agent.runner": "echo", "inbox.batch_window_s": 0.0, "gateway.stream_interval_s": 0.02}
        with hermes_core.open_app(self.home, environ=dict(self.fake.environ()), overrides=overrides) as app:
            running = asyncio.create_task(app.gateway.run(platforms=("feishu",), agent=agent))
            try:
                yield app
            finally:
                running.cancel()
                await asyncio.wait({running}, timeout=PATIENCE_S)

    async def texts(self, count, **where):
        """Return what people see in a place, once that is ``count`` messages."""

        def seen():
            return [
                one for one in self.fake.world.sent_by_apps() if all(getattr(one, key) == where[key] for key in where)
            ]

        await self.fake.world.until(lambda: len(seen()) >= count, PATIENCE_S)
        every = await self.fake.sent(0)
        wanted = {one.message_id for one in seen()}
        return [one.text for one in every if one.message_id in wanted]

    def play(self, test):
        """Run a test."""

        async def within():
            await self.fake.start()
            try:
                async with asyncio.timeout(2 * PATIENCE_S):
                    await test()
            finally:
                await self.fake.stop()
            assert self.fake.world.faults == []

        asyncio.run(within())


def shown(value):
    return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def test_people_are_answered_each_in_their_own_session_and_it_goes_on_after_a_restart(scene):
    async def test():
        async with scene.serving():
            for chat in ("oc_1", "oc_2"):
                await scene.fake.say("hello", chat_id=chat, user_id=f"ou_{chat}")
                assert await scene.texts(1, chat_id=chat) == ["echo 1: hello"]
        await scene.fake.say("are you back?", chat_id="oc_1", user_id="ou_oc_1")
        async with scene.serving():
            assert await scene.texts(2, chat_id="oc_1") == ["echo 1: hello", "echo 2: are you back?"]
            assert await scene.texts(1, chat_id="oc_2") == ["echo 1: hello"]

    scene.play(test)


def test_a08_topics_are_sessions_of_their_own_and_a_reset_in_one_leaves_the_other_alone(scene):
    async def test():
        async with scene.serving():
            group = {"chat_id": "oc_g", "group": True, "user_id": "ou_1"}
            for text, topic in (("one", "omt_a"), ("two", "omt_b"), ("three", "omt_a")):
                await scene.fake.say(text, thread_id=topic, **group)
                await scene.fake.settled()
            await scene.texts(2, thread_id="omt_a")
            await scene.fake.say("/new", thread_id="omt_a", **group)
            await scene.texts(3, thread_id="omt_a")
            await scene.fake.say("four", thread_id="omt_a", **group)
            await scene.fake.say("five", thread_id="omt_b", **group)
            first, second = await scene.texts(4, thread_id="omt_a"), await scene.texts(2, thread_id="omt_b")
            assert [first[0], first[1], first[3]] == ["echo 1: one", "echo 2: three", "echo 1: four"]
            assert second == ["echo 1: two", "echo 2: five"]

    scene.play(test)


def test_a07_a_topic_that_our_answer_opened_goes_on_with_what_opened_it(scene):
    scene.account["reply_in_thread"] = True

    async def test():
        async with scene.serving():
            first = await scene.fake.say("plan the trip", chat_id="oc_g", group=True, user_id="ou_1")
            await scene.texts(1)
            (answer,) = scene.fake.world.sent_by_apps()
            assert answer.thread_id
            scene.fake.write(
                {"text": "@_user_1 and the hotel"},
                chat_type="group",
                chat_id="oc_g",
                user_id="ou_1",
                thread_id=answer.thread_id,
                root_id=first,
                parent_id=answer.message_id,
                mentions=[scene.fake.mention("@_user_1", scene.fake.world.app("default").bot_open_id, "Bot")],
            )
            assert await scene.texts(2, thread_id=answer.thread_id) == [
                "echo 1: plan the trip",
                "echo 2: and the hotel",
            ]

    scene.play(test)


def test_a15_one_message_that_comes_under_several_events_is_answered_once(scene):
    async def test():
        async with scene.serving():
            message_id = await scene.fake.say("hello", chat_id="oc_1")
            await scene.texts(1)
            app, payload = scene.fake._events[message_id]
            for kind in (b"ev_another_1", b"ev_another_2"):
                start = payload.index(b'"event_id": "') + len(b'"event_id": "')
                end = payload.index(b'"', start)
                scene.fake.push(app, payload[:start] + kind + payload[end:])
            scene.fake.push(
                app, scene.fake.event(app, "im.message.updated_v1", {"message": {"message_id": message_id}})
            )
            await scene.fake.settled()
            await scene.fake.say("again", chat_id="oc_1")
            assert await scene.texts(2) == ["echo 1: hello", "echo 2: again"]

    scene.play(test)


def test_h05_h12_what_was_said_while_nobody_listened_is_answered_and_nothing_twice(scene):
    async def test():
        async with scene.serving():
            first = await scene.fake.say("before", chat_id="oc_1")
            await scene.texts(1)
        for text in ("while", "nobody", "listened"):
            await scene.fake.say(text, chat_id="oc_1")
        await scene.fake.deliver(first)
        async with scene.serving():
            await scene.fake.settled()
            await scene.fake.say("after", chat_id="oc_1")
            await scene.fake.world.until(
                lambda: any("after" in one.content for one in scene.fake.world.sent_by_apps()), PATIENCE_S
            )
            texts = " ".join(await scene.texts(2))
            assert [texts.count(word) for word in ("before", "while", "nobody", "listened", "after")] == [1] * 5

    scene.play(test)


def test_h14_two_bots_in_one_group_each_answer_what_names_both(scene):
    scene.accounts = ["default", "second"]

    async def test():
        async with scene.serving():
            apps = [scene.fake.world.app(alias) for alias in scene.accounts]
            await scene.fake.connected(2)
            mentions = [
                scene.fake.mention(f"@_user_{number}", app.bot_open_id, app.alias) for number, app in enumerate(apps, 1)
            ]
            message_id = scene.fake.write(
                {"text": "@_user_1 @_user_2 hello"}, chat_type="group", chat_id="oc_g", mentions=mentions
            )
            _, payload = scene.fake._events[message_id]
            other = payload.replace(apps[0].app_id.encode(), apps[1].app_id.encode())
            scene.fake.push(apps[1], other)
            await scene.texts(2)
            assert {one.app_id for one in scene.fake.world.sent_by_apps()} == {app.app_id for app in apps}

    scene.play(test)


@pytest.mark.parametrize("text", ["@_user_1 /new", "@_user_1/new", "/new", "/NEW "])
def test_h17_a_mention_in_front_of_a_command_does_not_hide_it(scene, text):
    async def test():
        async with scene.serving():
            us = scene.fake.mention("@_user_1", scene.fake.world.app("default").bot_open_id, "Bot")
            ann = scene.fake.mention("@_user_2", "ou_ann", "Ann")
            said = [
                ("@_user_1 one", [us]),
                ("@_user_1 ask @_user_2 to run /new", [us, ann]),
                (text, [us] if "@" in text else []),
                ("@_user_1 three", [us]),
            ]
            for count, (words, mentions) in enumerate(said, 1):
                scene.fake.write({"text": words}, chat_type="group", chat_id="oc_g", user_id="ou_1", mentions=mentions)
                texts = await scene.texts(count)
            assert [texts[0], texts[1], texts[3]] == ["echo 1: one", "echo 2: ask @Ann to run /new", "echo 1: three"]

    scene.play(test)


def test_h21_what_everybody_is_told_wakes_no_bot_and_other_bots_are_let_in_by_a_setting(scene):
    async def test():
        async with scene.serving() as app:
            us = scene.fake.mention("@_user_1", scene.fake.world.app("default").bot_open_id, "Bot")
            group = {"chat_type": "group", "chat_id": "oc_g"}
            scene.fake.write({"text": "@_all lunch"}, **group)
            scene.fake.write({"text": "@_user_1 beep"}, user_id="ou_robot", sender_type="app", mentions=[us], **group)
            await scene.fake.settled()
            await scene.fake.say("hello", chat_id="oc_g", group=True)
            assert await scene.texts(1) == ["echo 1: hello"]
            assert app.gateway.accounts()[0].state == "connected"
        scene.rules["bots"] = "mentions"
        async with scene.serving():
            scene.fake.write({"text": "@_user_1 beep"}, user_id="ou_robot", sender_type="app", mentions=[us], **group)
            assert (await scene.texts(2))[-1] == "echo 1: beep"

    scene.play(test)


def test_h22_who_shows_another_id_later_keeps_their_session(scene):
    async def test():
        async with scene.serving():
            app = scene.fake.world.app("default")
            mention = scene.fake.mention("@_user_1", app.bot_open_id, "Bot")
            for number, ids in enumerate(({"open_id": "ou_1"}, {"open_id": "ou_1", "union_id": "on_1"}), 1):
                sender = {"sender_id": ids, "sender_type": "user", "tenant_key": "tk_fake"}
                message = {
                    "message_id": f"om_{number}", "chat_id": "oc_g", "chat_type": "group", "message_type": "text",
                    "content": f'{{"text": "@_user_1 message {number}"}}', "mentions": [mention],
                }  # fmt: skip
                event = {"sender": sender, "message": message}
                scene.fake.push(app, scene.fake.event(app, "im.message.receive_v1", event))
                await scene.fake.world.until(
                    lambda number=number: len(scene.fake.world.sent_by_apps()) >= number, PATIENCE_S
                )
            assert await scene.texts(2) == ["echo 1: message 1", "echo 2: message 2"]

    scene.play(test)


class Writer:
    """An agent that says a piece whenever the test lets it."""

    name, model = "writer", None

    def __init__(self, *pieces):
        self._pieces = pieces
        self.gate = asyncio.Queue()

    async def run(self, turn):
        for piece in self._pieces:
            yield TextDelta(text=piece)
            await self.gate.get()
        yield AssistantStep(content="".join(self._pieces))


def test_an_answer_is_one_message_that_grows_in_its_topic(scene):
    agent = Writer("Once ", "**upon** ", "a time")

    async def test():
        async with scene.serving(agent):
            await scene.fake.say("a story", chat_id="oc_g", group=True, thread_id="omt_1")
            (sent,) = await until_shown(scene, "Once")
            agent.gate.put_nowait(None)
            await until_shown(scene, "upon")
            agent.gate.put_nowait(None)
            agent.gate.put_nowait(None)
            (same,) = await until_shown(scene, "a time")
            assert (same.message_id, same.thread_id) == (sent.message_id, "omt_1")
            assert await scene.texts(1) == ["Once **upon** a time"]

    scene.play(test)


def test_an_answer_grows_within_the_edits_that_a_message_can_have(scene):
    agent = Writer(*(f"piece {number} " for number in range(40)))

    async def test():
        async with scene.serving(agent):
            await scene.fake.say("a long story", chat_id="oc_1")
            for number in range(40):
                agent.gate.put_nowait(None)
                if number < 25:
                    await asyncio.sleep(0.03)  # edits have their distance
            await until_shown(scene, "piece 39")
            whole = " ".join(await scene.texts(1))
            assert [f"piece {number} " in f"{whole} " for number in range(40)] == [True] * 40
            assert max(one.edits for one in scene.fake.world.sent_by_apps()) <= 20

    scene.play(test)


async def until_shown(scene, words):
    """Return what our bots said once these words are among it."""
    sent = scene.fake.world.sent_by_apps
    await scene.fake.world.until(lambda: any(words in one.content for one in sent()), PATIENCE_S)
    return sent()


def test_wrong_credentials_are_named_in_the_status_and_the_other_account_runs_on(scene):
    scene.accounts = ["default", "second"]

    async def test():
        environ = dict(scene.fake.environ())
        scene.fake.environ = lambda: environ | {"FEISHU_APP_SECRET": "not-the-secret"}
        async with scene.serving() as app:
            await scene.fake.say("hello", account_id="second")
            await scene.texts(1)
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    states = {one.entrance.account_id: (one.state, one.detail) for one in app.gateway.accounts()}
                    if states["default"][0] == "failed":
                        break
                    await asyncio.sleep(0.05)
            assert "check app_id and the app secret" in states["default"][1]
            assert "not-the-secret" not in str(states)
            assert states["second"][0] == "connected"

    scene.play(test)


@pytest.mark.parametrize(
    ("routing", "last", "sessions"), [("false", "echo 2: from ou_2", 1), ("true", "echo 1: from ou_2", 2)]
)
def test_j11_each_profile_follows_its_own_settings_and_keeps_its_own_sessions(tmp_path, routing, last, sessions):
    scenes = [Scene(tmp_path / name) for name in ("this", "other")]
    own, other = scenes
    for scene, isolated in ((own, routing), (other, "true" if routing == "false" else "false")):
        scene.home.parent.mkdir()
        scene.more = f"[routing]\ngroup_sessions_per_user = {isolated}\n"

    async def test():
        await other.fake.start()
        async with own.serving() as app, other.serving():
            for count, user in enumerate(("ou_1", "ou_2"), 1):
                for scene in scenes:
                    await scene.fake.say(f"from {user}", chat_id="oc_g", group=True, user_id=user)
                texts = await own.texts(count)
                await other.texts(count)
            assert (texts[-1], len(app.store.summaries(operator("test")))) == (last, sessions)
        await other.fake.stop()

    own.play(test)
