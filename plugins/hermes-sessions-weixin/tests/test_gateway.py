"""The whole way, in a real gateway before the fake server: who is heard, by which bot, and what waits."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from hermes_weixin.credentials import save
from hermes_weixin.testing import FakeWeixin

hermes_core = pytest.importorskip("hermes_core", reason="a gateway is the core's")

PATIENCE_S = 60


class Scene:
    """A gateway that serves some accounts. ``more``: lines of its configuration."""

    def __init__(self, folder, accounts=("default",), more="", **settings):
        self.fake = FakeWeixin()
        self.home = folder / "home"
        self._accounts, self._more, self._settings = accounts, more, settings

    @asynccontextmanager
    async def serving(self):
        await self.fake.start()
        self.home.mkdir(mode=0o700, exist_ok=True)
        table = {**self.fake.table(self._accounts), **self._settings}
        lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        (self.home / "config.toml").write_text(
            "\n".join([*self._more.splitlines(), "[plugins.weixin]", *lines]), encoding="utf-8"
        )
        overrides = {"agent.runner": "echo", "inbox.batch_window_s": 0.0}
        with hermes_core.open_app(self.home, environ={}, overrides=overrides) as app:
            for account in self._accounts:
                folder = self.home / "platforms" / "weixin" / account
                save(folder, self.fake.login(account))
            running = asyncio.create_task(app.gateway.run(platforms=("weixin",)))
            try:
                yield app
            finally:
                running.cancel()
                await asyncio.wait({running}, timeout=PATIENCE_S)
                await self.fake.stop()

    async def seen(self, count):
        """Return what people see, once that is ``count`` messages: the account, the person, the text."""
        return [(one.account_id, one.chat_id, one.text) for one in await self.fake.sent(count, PATIENCE_S)]


def limited(main):
    async def run():
        async with asyncio.timeout(2 * PATIENCE_S):
            return await main

    return asyncio.run(run())


def test_whoever_scanned_is_heard_in_a_chat_of_their_own_and_rooms_are_not(tmp_path):
    scene = Scene(tmp_path)

    async def main():
        async with scene.serving() as app:
            await scene.fake.say("in a room", user_id="owner-of-default", chat_id="room", group=True)
            await scene.fake.say("by a stranger", user_id="stranger")
            await scene.fake.say("hello", user_id="owner-of-default")
            seen = await scene.seen(2)
            await scene.fake.say("again", user_id="owner-of-default")
            seen = await scene.seen(3)
            return seen, app.store.routes()

    seen, routes = limited(main())

    assert [text for _, person, text in seen if person == "owner-of-default"] == ["echo 1: hello", "echo 2: again"]
    (told,) = [text for _, person, text in seen if person != "owner-of-default"]
    assert "by a stranger" not in told
    assert len(routes) == 1
    assert scene.fake.server.faults == []


def test_two_accounts_with_the_same_person_are_two_sessions_each_answered_by_its_own_bot(tmp_path):
    scene = Scene(tmp_path, ("default", "second"), '[platforms.weixin]\ndm_policy = "open"')

    async def main():
        async with scene.serving() as app:
            for account in ("default", "second", "default"):
                before = len(scene.fake.server.sent)
                await scene.fake.say(f"to {account}", user_id="ann", account_id=account)
                await scene.seen(before + 1)
            return await scene.seen(3), app.store.routes()

    seen, routes = limited(main())

    assert seen == [
        ("default", "ann", "echo 1: to default"),
        ("second", "ann", "echo 1: to second"),
        ("default", "ann", "echo 2: to default"),
    ]
    assert len(routes) == 2
    assert scene.fake.server.faults == []


def test_answers_beyond_the_quota_go_out_joined_with_the_next_message_and_each_is_settled_once(tmp_path):
    scene = Scene(tmp_path, more='[platforms.weixin]\ndm_policy = "open"', quota=2)

    async def main():
        async with scene.serving() as app:
            server, bot = scene.fake.server, scene.fake.bot()
            server.say(bot, *(server.message("ann", f"m{number}") for number in range(1, 6)))
            await scene.seen(2)
            async with asyncio.timeout(PATIENCE_S):
                while len(waiting := app.outbox.list(statuses=("waiting",))) < 3:  # noqa: ASYNC110 - the store tells nobody
                    await asyncio.sleep(0.02)
            before = sorted(waiting, key=lambda one: one.id)
            await scene.fake.say("m6", user_id="ann")
            seen = await scene.seen(4)
            async with asyncio.timeout(PATIENCE_S):
                while app.outbox.list(statuses=("waiting", "sending")):  # noqa: ASYNC110 - the same
                    await asyncio.sleep(0.02)
            return before, seen, [app.store.delivery(one.id) for one in before]

    before, seen, after = limited(main())

    assert [text for _, _, text in seen] == [
        "echo 1: m1",
        "echo 2: m2",
        "(3 answers that waited)\n\necho 3: m3\n\necho 4: m4\n\necho 5: m5",
        "echo 6: m6",
    ]
    assert (before[0].awaits_inbound, "next message" in before[0].error) == (True, True)
    assert [one.status for one in after] == ["sent", "joined", "joined"]
    assert after[1].error == f"it goes out with delivery {after[0].id}"
    assert scene.fake.server.faults == []
