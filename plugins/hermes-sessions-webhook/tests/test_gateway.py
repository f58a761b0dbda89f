"""The whole way, in a real gateway: what the README shows works as it is written."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_webhook.testing import free_listen

hermes_core = pytest.importorskip("hermes_core", reason="a gateway is the core's")

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
SECRETS = {"WEBHOOK_SECRET": "a secret of the webhook".replace(" ", "-"), "API_SERVER_TOKEN": "a-token-of-the-api"}
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl") and shutil.which("openssl")),
    reason="the examples of the README need bash, curl and openssl",
)


def fences(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@asynccontextmanager
async def serving(home, listen):
    """Run a gateway with the README's configuration, at another port."""
    config, *_ = fences("toml")
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(config.replace("127.0.0.1:8787", listen), encoding="utf-8")
    with hermes_core.open_app(home, environ=SECRETS, overrides={"agent.runner": "echo"}) as app:
        running = asyncio.create_task(app.gateway.run(platforms=("webhook", "api_server")))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while [one.state for one in app.gateway.accounts()] != ["connected", "connected"]:
                    assert not running.done(), running.result()
                    await asyncio.sleep(0.05)
            yield app
        finally:
            running.cancel()
            await asyncio.wait({running}, timeout=PATIENCE_S)


async def shell(script, listen):
    """Run a piece of the README, at another port; return the JSON objects that it printed."""
    text = "set -eu\n" + script.replace("127.0.0.1:8787", listen).replace("curl -sS", "curl -sS --write-out '\\n'")
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", text, env=os.environ | SECRETS, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return [json.loads(line) for line in output.splitlines()]


def test_the_examples_of_the_readme_work_as_they_are_written(tmp_path):
    listen = free_listen()
    ask, post, *_ = fences("sh")

    async def play():
        async with serving(tmp_path / "home", listen):
            accepted, answered = await shell(ask, listen)
            (posted,) = await shell(post, listen)
        return accepted, answered, posted

    accepted, answered, posted = asyncio.run(play())

    assert (accepted["status"], answered["status"], posted["status"]) == ("accepted", "answered", "accepted")
    (answer,) = answered["answers"]
    assert (answer["reply_to"], answer["part"], answer["parts"]) == ("m1", 1, 1)
    assert "hello" in answer["text"]


def test_an_answer_can_be_fetched_after_the_gateway_was_started_anew(tmp_path):
    listen = free_listen()
    ask, *_ = fences("sh")

    async def play():
        async with serving(tmp_path / "home", listen):
            _, first = await shell(ask, listen)
        async with serving(tmp_path / "home", listen):
            again, second = await shell(ask, listen)
        return first, again, second

    first, again, second = asyncio.run(play())

    assert again["status"] == "duplicate"
    assert second == first
