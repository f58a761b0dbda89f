"""The webhook: who may call it, what is answered, and what an operator hears of calls that were refused."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from contextlib import suppress

import pytest

from hermes_feishu.testing.pushes import signed
from hermes_hookspecs.errors import ConfigError, RetryLater, StoreBusy
from hermes_hookspecs.ports.platform import CONNECTED, WAITING


@pytest.fixture
def fake(webhook_fake):
    return webhook_fake


@pytest.fixture
def neighbours(webhook_both):
    """Return a stage of two accounts at one address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for alias in ("default", "second"):
        webhook_both.world.app(alias).webhook = f"http://127.0.0.1:{port}/feishu/{alias}"
    return webhook_both


@pytest.fixture
def scene(stage):
    """Return a function that plays a test with a running account, and with a way to call it."""

    def run(test):
        async def play():
            async with stage.running() as account:
                app = stage.world.app("default")

                async def call(payload, **how):
                    body, headers = signed(app, payload, **how)
                    return await stage.fake.pushes.call(app, body, headers)

                await test(account, app, call)

        stage.play(play)

    return run


def refused(account):
    return [detail for state, detail in account.inlet.reports if state == CONNECTED and "refused" in detail]


# --- the challenge


def test_the_challenge_is_answered_within_a_second_signed_or_not(stage, scene):
    async def test(account, app, call):
        challenge = {"type": "url_verification", "challenge": "chal_1", "token": app.verification_token}
        payload = json.dumps(challenge).encode()
        began = time.monotonic()
        status, text = await call(payload)
        assert (status, json.loads(text)) == (200, {"challenge": "chal_1"})
        body, _ = signed(app, payload)
        assert await stage.fake.pushes.call(app, body) == (status, text)
        assert time.monotonic() - began < 2

    scene(test)


def test_a_challenge_with_another_token_is_refused(scene):
    async def test(account, app, call):
        status, _ = await call(json.dumps({"type": "url_verification", "challenge": "c", "token": "guess"}).encode())
        assert status == 401

    scene(test)


# --- who calls


def test_a_wrong_signature_is_401_and_counted(stage, scene):
    async def test(account, app, call):
        body, headers = signed(app, stage.fake.event(app, "im.chat.imagined_v9", {}))
        for count in range(1, 4):
            status, _ = await stage.fake.pushes.call(app, body, headers | {"X-Lark-Signature": "0" * 64})
            assert status == 401
            await account.inlet.until(lambda count=count: len(refused(account)) == count, "it is told")
        address = stage.world.app("default").webhook
        refusal = "3 calls were refused, the last one because the signature does not hold"
        assert refused(account)[-1] == f"listens at {address}; {refusal}"
        assert account.inlet.is_up
        await account.hear()

    scene(test)


@pytest.mark.parametrize("off_s", [-400, 400])
def test_a_clock_that_is_off_is_said(stage, scene, off_s):
    async def test(account, app, call):
        status, _ = await call(stage.fake.event(app, "im.chat.imagined_v9", {}), at_s=time.time() + off_s)
        assert status == 401
        await account.inlet.until(lambda: bool(refused(account)), "it is told")
        assert refused(account)[-1].endswith("is the clock of this host right?")

    scene(test)


def test_many_refused_calls_fill_no_log(stage, scene, caplog):
    async def test(account, app, call):
        for _ in range(40):
            await stage.fake.pushes.call(app, b"{", {})
        await account.inlet.until(lambda: refused(account)[-1:] and "; 40 calls" in refused(account)[-1], "all count")

    scene(test)
    assert len([record for record in caplog.records if "refused so far" in record.getMessage()]) < 10


# --- what they bring


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[1, 2]", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"[" * 50_000, {}, 400),
        (b'{"encrypt": "AAAA"}', {}, 401),
        (b'{"type": "url_verification"}', {}, 401),
        (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b'{"x": "' + b"y" * (2 << 20) + b'"}', {}, 413),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_and_the_next_call_is_answered(stage, scene, body, headers, status):
    async def test(account, app, call):
        answered, _ = await stage.fake.pushes.call(app, body, headers)
        assert answered == status
        await account.hear()
        assert len(account.inlet.handed) == 1

    scene(test)


def test_a_body_that_is_encrypted_and_no_json_inside_is_refused(scene):
    async def test(account, app, call):
        status, _ = await call(b"no json")
        assert status == 400

    scene(test)


def test_an_event_that_nobody_knows_is_acknowledged(stage, scene):
    async def test(account, app, call):
        status, _ = await call(stage.fake.event(app, "im.chat.imagined_v9", {"x": 1}))
        assert (status, account.inlet.handed) == (200, [])

    scene(test)


@pytest.mark.parametrize("encrypted", [True, False])
def test_an_app_may_do_without_one_of_the_two_secrets(stage, encrypted):
    app = stage.world.app("default")
    if encrypted:
        app.verification_token = ""
    else:
        app.encrypt_key = ""

    async def play():
        stage.environ = {name: value for name, value in stage.environ.items() if value}
        async with stage.running() as account:
            await account.hear()

    stage.play(play)


def test_an_app_without_both_is_refused_since_anybody_could_call_it(stage):
    async def play():
        environ = {name: value for name, value in stage.environ.items() if name == "FEISHU_APP_SECRET"}
        with pytest.raises(ConfigError, match="FEISHU_ENCRYPT_KEY or FEISHU_VERIFICATION_TOKEN"):
            stage.platform.adapter(stage.setup("default", environ=environ))

    stage.play(play)


# --- acknowledging


def test_h13_a_message_is_acknowledged_when_it_is_stored_and_a_repetition_is_known(stage, scene):
    async def test(account, app, call):
        event = await account.hear()
        await stage.fake.acknowledged(event.source.message_id)
        await stage.fake.deliver(event.source.message_id)
        await account.inlet.until(lambda: len(account.inlet.duplicates) == 1, "the repetition is known")
        assert len(account.inlet.events) == 1

    scene(test)


def test_what_cannot_be_stored_now_is_503_and_comes_again(stage, scene):
    async def test(account, app, call):
        account.inlet.fail(StoreBusy("a moment"), StoreBusy("a moment"))
        account.inlet.hold()
        message_id = await stage.say()
        await stage.fake.refused(message_id)
        account.inlet.release()
        await stage.fake.acknowledged(message_id)
        assert len(account.inlet.events) == 1

    scene(test)


# --- listening


def test_a_port_that_is_taken_is_said_and_the_run_ends_to_be_tried_again(stage):
    async def play():
        account = stage.account()
        host, port = "127.0.0.1", int(stage.world.app("default").webhook.split(":")[2].split("/")[0])
        with socket.socket() as taken:
            taken.bind((host, port))
            taken.listen()
            await account.start(wait=False)
            await account.inlet.until(lambda: bool(account.crashes), "it says so")
            assert isinstance(account.crashes[0], RetryLater)
            assert str(account.crashes[0]) == f"{host}:{port} cannot be listened on: Address already in use"
        await account.up()
        await account.hear()

    stage.play(play)


def test_wrong_secrets_of_the_app_are_named_though_nobody_called(stage):
    async def play():
        account = stage.account()
        stage.world.app("default").secret = "another"
        await account.start(wait=False)
        await account.inlet.until(lambda: account.failed is not None, "the run ends")
        assert "check app_id and the app secret" in str(account.failed)

    stage.play(play)


def test_an_api_that_is_not_there_is_waited_for_while_direct_messages_come_in(stage):
    stage.world.out_of_order.add("bot")

    async def play():
        account = stage.account()
        await account.start(wait=False)
        await account.inlet.until(lambda: any(state == WAITING for state, _ in account.inlet.reports), "it waits")
        await account.hear()
        stage.world.out_of_order.clear()
        await account.up()

    stage.play(play)


def test_two_accounts_at_one_path_of_one_address_are_refused_and_both_are_named(fake):
    place = {"listen": "127.0.0.1:9321", "mode": "webhook", "path": "/events"}
    with pytest.raises(ConfigError, match="'/events' is the path of account 'default' at the same address, too"):
        fake.config(("default", "second"), account=place)
    fake.config(("default", "second"), account={name: place[name] for name in ("listen", "mode")})
    fake.config(("default", "second"), account=place | {"mode": "connection"})


def test_accounts_share_a_port_and_each_hears_its_own(neighbours):
    async def play():
        async with neighbours.running() as first, neighbours.running("second") as second:
            assert first.inlet is not second.inlet
            one, other = await first.hear(), await second.hear()
            assert (one.source.account_id, other.source.account_id) == ("default", "second")
            assert (len(first.inlet.handed), len(second.inlet.handed)) == (1, 1)

    neighbours.play(play)


def test_an_account_that_is_away_is_503_while_its_neighbour_is_served(neighbours):
    away = neighbours.world.app("second")

    async def play():
        async with neighbours.running() as first:
            status, text = await neighbours.fake.pushes.call(away, b"{}")
            assert (status, json.loads(text)["msg"]) == (503, "this account is not served now")
            async with neighbours.running("second") as second:
                await second.hear()
            assert (await neighbours.fake.pushes.call(away, b"{}"))[0] == 503
            await first.hear()

    neighbours.play(play)


def test_a_call_signed_for_the_neighbour_is_refused(neighbours):
    first_app, second_app = neighbours.world.app("default"), neighbours.world.app("second")

    async def play():
        async with neighbours.running() as first, neighbours.running("second") as second:
            event = neighbours.fake.event(second_app, "im.chat.imagined_v9", {})
            status, _ = await neighbours.fake.pushes.call(first_app, *signed(second_app, event))
            assert status == 401
            await first.inlet.until(lambda: bool(refused(first)), "it is counted where it was called")
            assert refused(second) == []

    neighbours.play(play)


@pytest.mark.parametrize("steps", range(6))
def test_a_call_that_arrives_while_the_webhook_closes_is_closed_too(stage, steps):
    async def play():
        account = stage.account()
        await account.start()
        port = int(stage.world.app("default").webhook.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as arriving:
            arriving.setblocking(False)
            account.cancel()
            for _ in range(steps):
                await asyncio.sleep(0)
            await account.stop()
            async with asyncio.timeout(20):
                with suppress(ConnectionResetError):
                    assert await asyncio.get_running_loop().sock_recv(arriving, 1) == b""

    stage.play(play)
