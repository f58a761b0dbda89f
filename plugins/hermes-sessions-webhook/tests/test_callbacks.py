"""Answers by callback: signed, to nobody who is not allowed, and what became of them is said truly."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.ports.platform import Sent
from hermes_webhook.addresses import Prefix
from hermes_webhook.testing import free_listen


class Elsewhere:
    """An HTTP server that answers as it is told."""

    def __init__(self, answer):
        self._answer = answer
        self.listen = free_listen()
        self.seen = []
        self.is_leaving = asyncio.Event()

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        host, port = self.listen.split(":")
        await web.TCPSite(self._runner, host, int(port)).start()
        return self

    async def __aexit__(self, *_):
        self.is_leaving.set()
        await self._runner.cleanup()

    def url(self, path="/hook"):
        return f"http://{self.listen}{path}"

    async def _handle(self, request):
        self.seen.append((request.path, json.loads(await request.read())))
        return await self._answer(request) or await self._late()

    async def _late(self):
        await self.is_leaving.wait()
        return web.Response()


def answering(status, headers=None, body=""):
    async def answer(request):
        return web.Response(status=status, headers=headers, text=body)

    return answer


def sent_to(stage_of, webhook, answer, *, timeout_s=5.0):
    """Send one part to a server that answers so; return what came of it, and what the server saw."""
    there = Elsewhere(answer)
    webhook.account_settings = {"callback_url": there.url()}
    webhook.settings["callback_timeout_s"] = timeout_s
    stage = stage_of(webhook)
    came = []

    async def play():
        async with there, stage.running() as account:
            event = await account.hear()
            try:
                came.append(await account.send(account.part(event, "hello")))
            except (RetryLater, Rejected) as error:
                came.append(error)

    stage.play(play)
    return came[0], there.seen


def test_a_callback_says_everything_about_the_answer(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            event = await account.hear(thread_id="t1")
            result = await account.send(account.part(event, "鱼", key="k-1", index=1, count=3))
            assert webhook.receiver.bodies == [
                {
                    "type": "answer", "key": "k-1", "account": "default", "chat_id": "chat-1", "thread_id": "t1",
                    "reply_to": event.source.message_id, "text": "鱼", "part": 2, "parts": 3,
                }
            ]  # fmt: skip
            assert result == Sent(platform_message_id="answer-1")
            assert webhook.receiver.faults == []

    stage.play(play)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_two_hundreds_are_good(stage_of, webhook, status):
    assert isinstance(sent_to(stage_of, webhook, answering(status))[0], Sent)


@pytest.mark.parametrize(
    ("status", "headers", "after_s", "maybe_sent"),
    [
        (429, {"Retry-After": "7"}, 7.0, False),
        (429, {}, 5.0, False),
        (408, {}, 5.0, False),
        (503, {"Retry-After": "30"}, 30.0, True),
        (500, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, True),
    ],
)
def test_what_may_work_later_is_tried_later(stage_of, webhook, status, headers, after_s, maybe_sent):
    error, _ = sent_to(stage_of, webhook, answering(status, headers))

    assert isinstance(error, RetryLater)
    assert (error.after_s, error.maybe_sent) == (after_s, maybe_sent)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 410, 413])
def test_what_will_never_work_is_rejected_and_no_redirection_is_followed(stage_of, webhook, status):
    error, seen = sent_to(stage_of, webhook, answering(status, {"Location": "/elsewhere"}))

    assert isinstance(error, Rejected)
    assert [path for path, _ in seen] == ["/hook"]


def test_a_callback_that_takes_too_long_may_have_arrived(stage_of, webhook):
    async def never(request):
        return None

    error, _ = sent_to(stage_of, webhook, never, timeout_s=0.2)

    assert isinstance(error, RetryLater)
    assert error.maybe_sent


def test_a_host_that_is_not_there_got_nothing(stage_of, webhook):
    webhook.account_settings = {"callback_url": f"http://{free_listen()}/hook"}
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            with pytest.raises(RetryLater) as raised:
                await account.send(account.part(event, "hello"))
            assert not raised.value.maybe_sent

    stage.play(play)


def test_a_reply_of_any_size_and_kind_does_no_harm(stage_of, webhook):
    result, _ = sent_to(stage_of, webhook, answering(200, body='{"id": ["' + "x" * 1_000_000))

    assert result == Sent()


def test_a_message_may_name_an_address_that_is_allowed(stage_of, webhook):
    there = Elsewhere(answering(200))
    webhook.account_settings = {"callback_allow": [there.url("/bots/")]}
    stage = stage_of(webhook)

    async def play():
        async with there, stage.running() as account:
            event = await account.hear(callback_url=there.url("/bots/7"))
            await account.send(account.part(event, "hello"))
            await account.restart()
            await account.send(account.part(event, "hello again", key="k2"))
            assert [(path, said["text"]) for path, said in there.seen] == [
                ("/bots/7", "hello"), ("/bots/7", "hello again"),
            ]  # fmt: skip
            assert webhook.receiver.bodies == []

    stage.play(play)


def test_an_address_that_is_allowed_no_longer_gets_nothing(stage_of, webhook):
    there = Elsewhere(answering(200))
    webhook.account_settings = {"callback_allow": [there.url()]}
    stage = stage_of(webhook)

    async def play():
        async with there, stage.running() as account:
            event = await account.hear(callback_url=there.url())
            await account.stop()
            webhook.account_settings = {"callback_allow": [there.url("/other")]}
            stage._platform = None
            account._platform = stage.platform
            await account.start()
            with pytest.raises(Rejected, match="callback_allow"):
                await account.send(account.part(event, "hello"))
            assert there.seen == []

    stage.play(play)


def test_an_answer_goes_out_after_receiving_has_ended(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.leave()
            await account.send(account.part(event, "the last one"))
            assert [body["text"] for body in webhook.receiver.bodies] == ["the last one"]

    stage.play(play)


# --- addresses


@pytest.mark.parametrize(
    ("prefix", "url", "allowed"),
    [
        ("https://a.example/bots/", "https://a.example/bots/7?x=1", True),
        ("https://a.example/bots/", "https://A.EXAMPLE:443/bots/7", True),
        ("https://a.example/bots", "https://a.example/bots", True),
        ("https://a.example/bots", "https://a.example/bots/7", True),
        ("https://a.example", "https://a.example/anything", True),
        ("https://a.example/bots", "https://a.example/botsandmore", False),
        ("https://a.example/bots/", "http://a.example/bots/7", False),
        ("https://a.example/bots/", "https://a.example:8443/bots/7", False),
        ("https://a.example/bots/", "https://a.example.evil.example/bots/7", False),
        ("https://a.example/bots/", "https://evil.example/bots/7", False),
        ("https://a.example/bots/", "https://a.example@evil.example/bots/7", False),
        ("https://a.example/bots/", "https://evil.example\\@a.example/bots/7", False),
        ("https://a.example/bots/", "https://a.example/bots/../admin", False),
        ("https://a.example/bots/", "https://a.example/bots/%2e%2e/admin", False),
        ("https://a.example/bots/", "https://a.example/bots/..%2fadmin", False),
        ("https://a.example/bots/", "https://a.example/bots/x\r\nHost: y", False),
        ("https://a.example/bots/", "https://a.example/bots/ x", False),
        ("https://a.example/bots/", "https://a.example:99999/bots/", False),
        ("https://a.example/bots/", "file:///bots/", False),
        ("https://a.example/bots/", "", False),
    ],
)
def test_an_address_is_allowed_by_scheme_host_port_and_path(prefix, url, allowed):
    assert Prefix.of(prefix).allows(url) is allowed
