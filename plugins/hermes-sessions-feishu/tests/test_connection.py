"""The long connection: made, watched, lost, made again; and that each event is acknowledged once it is stored."""

from __future__ import annotations

import asyncio
import json

import pytest

from hermes_feishu.connection import Rhythm
from hermes_feishu.frames import CONTROL, DATA, Frame, encode
from hermes_hookspecs.errors import AuthFailed, ConfigError, StoreStopped
from hermes_hookspecs.ports.platform import CONNECTED, WAITING

TOO_MANY = 1000040350


def reports(account, state):
    return [detail for each, detail in account.inlet.reports if each == state]


# --- making it


@pytest.mark.parametrize("code", [1, 1000040343])
def test_a_platform_that_is_busy_is_asked_again(stage, code):
    stage.world.endpoint_codes.extend([code, code])

    async def play():
        async with stage.running() as account:
            assert len(reports(account, WAITING)) == 2
            await account.hear()
            assert account.crashes == []

    stage.play(play)


@pytest.mark.parametrize("code", [403, 514, 1000040344])
def test_credentials_that_the_platform_refuses_end_the_run_and_are_named(stage, code):
    stage.world.endpoint_codes.append(code)

    async def play():
        account = stage.account()
        await account.start(wait=False)
        await account.inlet.until(lambda: account.failed is not None, "the run ends")
        assert isinstance(account.failed, AuthFailed)
        assert "check app_id and the app secret" in str(account.failed)
        assert stage.world.connections_made == 0

    stage.play(play)


@pytest.mark.parametrize(("which", "says"), [("app_id", "10003"), ("secret", "10014")])
def test_wrong_credentials_are_named_by_the_first_question(stage, which, says):
    async def play():
        account = stage.account()
        setattr(stage.world.app("default"), which, "another")
        await account.start(wait=False)
        await account.inlet.until(lambda: account.failed is not None, "the run ends")
        assert isinstance(account.failed, AuthFailed)
        assert f"refused with {says}" in str(account.failed)
        assert "check app_id and the app secret" in str(account.failed)

    stage.play(play)


def test_a_missing_secret_is_named_with_its_variable_and_its_file(stage):
    async def play():
        with pytest.raises(ConfigError, match=r"FEISHU_APP_SECRET.*secrets\.toml \(mode 0600\)"):
            stage.platform.adapter(stage.setup("default", environ={}))

    stage.play(play)


def test_an_app_without_a_bot_is_told_to_get_one(stage):
    stage.world.app("default").is_bot = False

    async def play():
        account = stage.account()
        await account.start(wait=False)
        await account.inlet.until(lambda: account.failed is not None, "the run ends")
        assert "add the bot ability" in str(account.failed)

    stage.play(play)


@pytest.mark.parametrize("where", ["endpoint", "handshake"])
def test_too_many_connections_are_said_and_waited_for(stage, where):
    if where == "endpoint":
        stage.world.endpoint_codes.append(TOO_MANY)
    else:
        stage.world.handshake_codes.append(TOO_MANY)

    async def play():
        account = stage.account()
        await account.start(wait=False)
        await account.inlet.until(lambda: bool(reports(account, WAITING)), "it waits")
        (detail,) = reports(account, WAITING)
        assert detail == "the app has as many connections as it may have; who else uses it?; tried again in 60 s"
        assert account.failed is None

    stage.play(play)


def test_a_handshake_that_is_refused_for_a_while_is_tried_again(stage):
    stage.world.handshake_codes.extend([500])

    async def play():
        async with stage.running() as account:
            assert "was refused with 500" in reports(account, WAITING)[0]
            assert "ticket" not in " ".join(account.inlet.details)

    stage.play(play)


def test_a_host_that_cannot_be_reached_is_said_and_tried_again_at_growing_distances(stage):
    async def play():
        await stage.fake.stop()
        account = stage.account()
        await account.start(wait=False)
        await account.inlet.until(lambda: len(reports(account, WAITING)) >= 4, "it tries four times")
        assert "cannot be reached" in reports(account, WAITING)[0]
        await stage.fake.start()
        await account.up()
        await account.hear()
        assert (account.failed, account.crashes) == (None, [])

    stage.play(play)


# --- holding it


def test_h23_a_connection_that_answers_nothing_is_made_anew(stage):
    stage.fake.hub.pongs = False

    async def play():
        async with stage.running() as account:
            await stage.fake.connected(2)
            assert "nothing was heard for" in reports(account, WAITING)[0]
            stage.fake.hub.pongs = True
            await account.hear()

    stage.play(play)


def test_a_connection_that_pongs_and_brings_nothing_is_made_anew_after_a_while(stage):
    stage.settings = {"idle_rebuild_s": 0.6}

    async def play():
        async with stage.running() as account:
            await stage.fake.connected(2)
            assert reports(account, WAITING)[0].startswith("it was idle")
            await account.hear()

    stage.play(play)


def test_h23_what_nobody_knows_is_acknowledged_and_ends_nothing(stage):
    async def play():
        async with stage.running() as account:
            app = stage.world.app("default")
            for _ in range(3):
                stage.fake.push(app, stage.fake.event(app, "im.chat.imagined_v9", {"x": 1}))
            await account.hear()
            await stage.fake.settled()
            assert stage.world.connections_made == 1
            assert len(account.inlet.handed) == 1

    stage.play(play)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08\xff",
        b"\xff" * 40,
        encode(Frame(service=7, method=9)),
        encode(Frame(service=7, method=DATA, headers=(("sum", "many"),))),
        encode(Frame(service=7, method=DATA, headers=(("sum", "2"), ("seq", "5")))),
        encode(Frame(service=7, method=CONTROL, headers=(("type", "pong"),), payload=b"{")),
        encode(Frame(service=7, method=CONTROL, headers=(("type", "imagined"),))),
    ],
)
def test_frames_that_make_no_sense_end_nothing(stage, data):
    async def play():
        async with stage.running() as account:
            await stage.fake.hub.raw(stage.world.app("default"), data)
            await account.hear()
            assert stage.world.connections_made == 1

    stage.play(play)


def test_an_event_that_comes_in_pieces_is_one(stage):
    stage.world.fragment_bytes = 50

    async def play():
        async with stage.running() as account:
            text = "a text of some length, " * 20
            assert (await account.hear(text)).text == text

    stage.play(play)


def test_a_click_on_a_card_is_acknowledged_and_goes_no_further(stage):
    async def play():
        async with stage.running() as account:
            frame = Frame(
                service=7, method=DATA, headers=(("type", "card"), ("message_id", "m_1"), ("sum", "1"), ("seq", "0"))
            )
            await stage.fake.hub.raw(stage.world.app("default"), encode(frame))
            await account.hear()
            assert len(account.inlet.handed) == 1

    stage.play(play)


@pytest.mark.parametrize(
    ("told", "ping_s", "nonce_s"),
    [
        ({"PingInterval": 10, "ReconnectNonce": 5}, 10, 5),
        ({"PingInterval": 0, "ReconnectNonce": -1}, 120, 30),
        ({"PingInterval": "soon", "ReconnectNonce": None}, 120, 30),
        ({"PingInterval": 10**9, "ReconnectNonce": 10**9}, 3600, 600),
        ({}, 120, 30),
    ],
)
def test_a_server_may_change_the_rhythm_within_reason(told, ping_s, nonce_s):
    assert Rhythm().told(told) == Rhythm(ping_s=ping_s, nonce_s=nonce_s)


# --- acknowledging


def test_what_cannot_be_stored_in_time_comes_again_and_is_stored_once(stage):
    async def play():
        async with stage.running() as account:
            account.inlet.hold()
            message_id = await stage.say()
            await account.handed(1)
            await stage.fake.refused(message_id)
            assert not stage.fake.is_acknowledged(message_id)
            account.inlet.release()
            await stage.fake.acknowledged(message_id)
            assert len(account.inlet.events) == 1

    stage.play(play)


def test_a_store_that_stopped_ends_the_run_and_nothing_is_acknowledged(stage):
    async def play():
        account = stage.account()
        await account.start()
        account.inlet.fail(StoreStopped("closed"))
        message_id = await stage.say()
        await account.inlet.until(lambda: bool(account.crashes), "the run ends")
        assert isinstance(account.crashes[0], StoreStopped)
        await account.stored(message_id)
        await account.stop()

    stage.play(play)


def test_more_events_than_can_wait_come_again(stage):
    stage.world.ladder = (0.05, 0.05)
    stage.settings["silence_s"] = 20.0  # a busy machine takes a while to say so much

    async def play():
        async with stage.running() as account:
            account.inlet.hold()
            ids = [await stage.say(chat_id=f"oc_{number}") for number in range(1100)]
            await account.handed(1)
            await stage.fake.refused()
            account.inlet.release()
            for message_id in ids:
                await account.stored(message_id)
            assert len(account.inlet.events) == 1100

    stage.play(play)


def test_events_of_one_chat_are_stored_in_their_order(stage):
    async def play():
        async with stage.running() as account:
            said = [f"message number {number}" for number in range(40)]
            for text in said:
                last = await stage.say(text)
            await account.stored(last)
            assert account.inlet.texts == said

    stage.play(play)


def test_no_secret_stands_in_what_is_sent_over_the_connection(stage):
    async def play():
        async with stage.running() as account:
            await account.hear()
            assert reports(account, CONNECTED) == [""]
            assert stage.world.app("default").secret not in json.dumps(stage.world.requests)

    stage.play(play)


def test_a_run_ends_though_the_platform_is_silent(stage):
    async def play():
        account = stage.account()
        await account.start()
        await account.hear()
        stage.fake.freeze(True)
        async with asyncio.timeout(stage.timing.leave_s):
            await account.stop()
        stage.fake.freeze(False)

    stage.play(play)
