"""Gateways as processes, killed at any moment: each message is answered once, in its own chat, whatever is lost."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from contextlib import suppress

import pytest

from hermes_feishu.testing import FakeFeishu
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, OK, RATE_LIMITED

pytest.importorskip("hermes_core", reason="a gateway is the core's")

KILLS, CHATS, PATIENCE_S = 4, 4, 90
PROGRAM = """
import asyncio, os, sys
from hermes_core import open_app
overrides = {"agent.runner": "echo", "inbox.batch_window_s": 0.0, "outbox.retry_first_s": 0.05}
with open_app(sys.argv[1], environ=dict(os.environ), overrides=overrides) as app:
    asyncio.run(app.gateway.run(platforms=("feishu",)))
"""


async def started(home, environ):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(home), env={**os.environ, **environ}, stderr=asyncio.subprocess.DEVNULL
    )


@pytest.mark.slow
def test_killed_gateways_answer_each_message_once_and_in_its_own_chat(tmp_path):
    chance = random.Random(7)
    fake = FakeFeishu()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    app = fake.world.app("default")
    (home / "config.toml").write_text(
        f'[plugins.feishu.accounts.default]\napp_id = "{app.app_id}"\ndomain = "{fake.url}"\n'
        '[plugins.feishu]\nreconnect_first_s = 0.05\n[platforms.feishu]\ndm_policy = "open"\n',
        encoding="utf-8",
    )
    said = {}

    async def say(number):
        for chat in range(CHATS):
            text = f"word{number}x{chat}"
            said[text] = f"oc_{chat}"
            message_id = await fake.say(text, chat_id=f"oc_{chat}", user_id=f"ou_{chat}")
            await fake.deliver(message_id)  # the platform says it twice

    def answers():
        return [one for one in fake.world.sent_by_apps() if "echo" in one.content]

    async def play():
        await fake.start()
        try:
            for number in range(KILLS):
                fake.world.answers.extend(chance.choices([OK, ARRIVED_BUT_FAILED, BROKEN, RATE_LIMITED], k=CHATS))
                await say(number)
                before = len(answers())
                gateway = await started(home, fake.environ())
                async with asyncio.timeout(PATIENCE_S):
                    await fake.world.until(lambda before=before: len(answers()) > before, PATIENCE_S)
                    await asyncio.sleep(chance.random() * 0.1)
                with suppress(ProcessLookupError):
                    gateway.kill()
                await gateway.wait()
            gateway = await started(home, fake.environ())
            try:
                await fake.world.until(
                    lambda: all(any(text in one.content for one in answers()) for text in said), PATIENCE_S
                )
                await fake.settled()
            finally:
                gateway.terminate()
                await gateway.wait()
        finally:
            await fake.stop()

    asyncio.run(play())

    found = {text: [one.chat_id for one in answers() if text in one.content] for text in said}
    assert found == {text: [chat] for text, chat in said.items()}
    assert fake.world.faults == []
