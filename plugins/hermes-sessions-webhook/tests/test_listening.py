"""Sockets: shared, waited for, and let go."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import suppress

import pytest

from hermes_hookspecs.ports.platform import CONNECTED, WAITING
from hermes_hookspecs.testing.adapters import Stage
from hermes_webhook.config import WebhookConfig
from hermes_webhook.listeners import Listeners
from hermes_webhook.platform import platforms
from hermes_webhook.testing import FakeApi, FakeWebhook, free_listen


def test_a_port_that_is_taken_is_said_and_waited_for(stage_of, webhook):
    stage = stage_of(webhook)
    host, port = webhook.listen.split(":")

    async def play():
        with socket.socket() as taken:
            taken.bind((host, int(port)))
            taken.listen()
            account = stage.account()
            await account.start(wait=False)
            await account.inlet.until(
                lambda: account.inlet.reports[-1:] != [] and account.inlet.reports[-1][0] == WAITING, "it waits"
            )
            assert webhook.listen in account.inlet.reports[-1][1]
            assert "in use" in account.inlet.reports[-1][1]
        await account.up()
        await account.hear()
        assert account.crashes == []

    stage.play(play)


def test_both_platforms_share_a_port_and_each_account_comes_and_goes_alone(tmp_path):
    webhook, api = FakeWebhook(), FakeApi()
    api.listen = webhook.listen
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()

    async def play():
        await webhook.start()
        table = webhook.table() | {"api": {"default": {}}}
        one, two = platforms(WebhookConfig.of(table))
        stages = [Stage(webhook, tmp_path / "one"), Stage(api, tmp_path / "two")]
        for stage, platform in zip(stages, (one, two), strict=True):
            stage._platform = platform
            stage.environ = dict(stage.fake.environ())
        first, second = (stage.account() for stage in stages)
        await asyncio.gather(first.start(), second.start())
        await first.hear()
        await second.hear()
        await first.stop()
        assert await webhook.caller.raw("default", b"{}") == 503
        await second.hear()
        await first.start()
        await first.hear()
        await asyncio.gather(first.stop(), second.stop())
        await api.stop()
        await webhook.stop()
        host, port = webhook.listen.split(":")
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind((host, int(port)))

    asyncio.run(play())


def test_it_says_where_it_listens(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            assert account.inlet.reports[-1] == (CONNECTED, f"listens at http://{webhook.listen}/webhook/default")

    stage.play(play)


def test_a_broken_request_is_answered_and_logs_nothing_that_an_operator_reads(stage_of, webhook, caplog):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            host, port = webhook.listen.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            async with asyncio.timeout(20):
                assert b"400" in await reader.readline()
            writer.close()
            await account.hear()

    stage.play(play)
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.parametrize("steps", range(6))
def test_a_connection_that_arrives_while_the_socket_is_closed_is_closed_too(steps):
    listen = free_listen()
    host, port = listen.split(":")

    async def play():
        listeners = Listeners({listen: ["/webhook"]})
        await listeners.join(listen, "/webhook", nobody)
        with socket.create_connection((host, int(port))) as arriving:
            arriving.setblocking(False)
            for _ in range(steps):  # of the loop, on the way from the kernel to a request
                await asyncio.sleep(0)
            await listeners.leave(listen, "/webhook")
            async with asyncio.timeout(20):
                with suppress(ConnectionResetError):
                    assert await asyncio.get_running_loop().sock_recv(arriving, 1) == b""

    async def nobody(request, rest):
        raise AssertionError(f"no request was made: {request} {rest}")

    asyncio.run(play())
    gc.collect()  # what was not closed says so when it is collected
