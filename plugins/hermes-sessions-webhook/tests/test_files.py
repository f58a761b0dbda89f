"""Files of answers: inside a callback, or fetched beside the answer, for as long as that can be."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from hashlib import sha256

import aiohttp
import pytest

from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.testing.clock import FakeClock
from hermes_webhook.config import WebhookConfig
from hermes_webhook.platform import platforms
from hermes_webhook.shelf import Shelf
from hermes_webhook.testing import FakeWebhook

CHART = OutgoingFile(name="图 1.png", data=b"\x89PNG")
NUMBER = sha256(CHART.data).hexdigest()
TOLD = {"name": "图 1.png", "media_type": "image/png", "size": 4, "sha256": NUMBER}
HOUR_S = 3600


def test_a_callback_has_the_file_in_it(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "[图 1.png, 4 bytes]", media=CHART))
            (body,) = webhook.receiver.bodies
            assert (body["text"], b64decode(body["file"].pop("data"))) == ("", CHART.data)
            assert body["file"] == TOLD
            assert webhook.receiver.faults == []

    stage.play(play)


@pytest.mark.parametrize("how", ["message", "conversation", "stream"])
def test_who_fetches_an_answer_is_told_where_its_file_is(stage_of, api, how):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "[图 1.png, 4 bytes]", media=CHART))
            answer = await _answer(api, event.source.message_id, how)
            assert (answer["text"], answer["file"]) == ("", TOLD | {"path": f"/files/{NUMBER}"})
            assert await api.fetch(answer["file"]["path"]) == CHART.data

    stage.play(play)


def test_a_text_has_no_file(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "words"))
            answer = await _answer(api, event.source.message_id, "conversation")
            assert (answer["text"], answer["file"]) == ("words", None)

    stage.play(play)


def test_a_file_is_fetched_after_a_restart(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "[file]", media=CHART))
            await account.restart()
            assert await api.fetch(f"/files/{NUMBER}") == CHART.data

    stage.play(play)


@pytest.mark.parametrize("kind", ["api", "webhook"])
def test_only_who_knows_the_secret_fetches_files(stage_of, api, kind):
    fake = api if kind == "api" else FakeWebhook(answers_by_callback=False)
    stage = stage_of(fake)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "[file]", media=CHART))
            url = fake.url().removesuffix("/messages") + f"/files/{NUMBER}"
            async with fake.caller.client.get(url) as response:
                assert (response.status, CHART.data in await response.read()) == (401, False)

    stage.play(play)


@pytest.mark.parametrize("number", ["0" * 64, "..%2F..%2Fstate.db", "x", NUMBER.upper(), f"{NUMBER}.1.half"])
def test_an_address_without_a_file_is_404(stage_of, api, number):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "[file]", media=CHART))
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await api.fetch(f"/files/{number}")
            assert caught.value.status == 404

    stage.play(play)


def test_a_file_goes_when_its_answer_cannot_be_fetched_any_more(tmp_path):
    clock = FakeClock()
    shelf = Shelf(tmp_path / "files", clock, keep_ms=HOUR_S * 1000)
    old, young = shelf.put(b"old"), shelf.put(b"young")
    clock.advance(HOUR_S // 2)
    shelf.put(b"young")
    clock.advance(HOUR_S // 2 + 1)

    assert shelf.sweep() == 1

    assert (shelf.get(old), shelf.get(young)) == (None, b"young")


def test_a_torn_file_is_none_and_is_put_again(tmp_path):
    shelf = Shelf(tmp_path / "files", FakeClock(), keep_ms=HOUR_S * 1000)
    number = shelf.put(b"whole")
    (tmp_path / "files" / number).write_bytes(b"who")

    assert shelf.get(number) is None
    assert shelf.put(b"whole") == number
    assert shelf.get(number) == b"whole"
    assert (tmp_path / "files" / number).stat().st_mode & 0o777 == 0o600


def test_the_size_of_files_can_be_set():
    default, none = (
        platforms(WebhookConfig.of({"accounts": {"default": {}}} | table))[0].abilities.max_file_bytes
        for table in ({}, {"max_file_kib": 0})
    )

    assert (default, none) == (8192 * 1024, 0)


async def _answer(api, message_id, how):
    if how == "stream":
        url = api.url().removesuffix("/messages") + "/chats/chat-1/events"
        async with api.caller.client.get(url, headers=api.headers("default", b"")) as response, asyncio.timeout(20):
            async for line in response.content:
                if line.startswith(b"data: "):
                    return json.loads(line.removeprefix(b"data: "))
    path = f"/chats/chat-1/messages/{message_id}" if how == "message" else "/chats/chat-1/answers"
    _, said = await api.get(path)
    return said["answers"][-1]
