"""Sending: within what the quota leaves, with one id a message, and the truth about what did not go."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.source import SessionSource
from hermes_weixin.client import ILinkClient
from hermes_weixin.config import WeixinConfig
from hermes_weixin.splitting import joined_within

DM = SessionSource(platform="weixin", chat_type="dm", chat_id="user-1", user_id="user-1")


def test_an_answer_carries_the_newest_context_token(stage, run):
    async def main():
        async with stage.running():
            await stage.heard("one", context_token="OLD")
            await stage.heard("two", context_token="NEW")
            return await stage.send("answer")

    result = run(main())

    assert isinstance(result, Sent)
    assert result.platform_message_id == stage.server.sent[0].message_id
    assert stage.server.sent[0].context_token == "NEW"


def test_the_context_token_survives_a_restart(tmp_path, run, new_stage):
    first = new_stage(tmp_path)

    async def main():
        async with first.running():
            await first.heard("one", context_token="KEPT")
        second = new_stage(tmp_path, fake=first.fake, state=first.state)
        async with second.running():
            await second.send("answer")

    run(main())

    assert first.server.sent[0].context_token == "KEPT"


def test_all_tries_of_a_message_have_one_id_so_that_it_arrives_once(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            stage.server.answers.extend(["arrived", "broken"])
            for _ in range(2):
                with pytest.raises(RetryLater) as failed:
                    await stage.send("answer")
                assert failed.value.maybe_sent
            return await stage.send("answer")

    run(main())

    assert [one.text for one in stage.server.sent] == ["answer"]


def test_the_quota_is_reckoned_and_the_rest_waits_for_the_next_message(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            results = [await stage.send(f"part {n}", key=f"key-{n}") for n in range(11)]
            await stage.heard("go on")
            return results, await stage.send("part 9", key="key-9")

    results, later = run(main())

    assert [type(result) for result in results] == [Sent] * 9 + [Deferred] * 2
    assert results[9].at is None
    assert "next message" in results[9].reason
    assert isinstance(later, Sent)
    assert len(stage.server.sent) == 10, "the server was never asked for what it would have refused"


def test_a_message_that_comes_again_opens_no_new_quota_but_brings_its_token(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            message = stage.server.message("user-1", "once more")
            stage.server.say(stage.bot, message)
            await stage.inlet.until(lambda: len(stage.inlet.events) == 2)
            results = [await stage.send(f"part {n}", key=f"key-{n}") for n in range(9)]
            stage.server.say(stage.bot, stage.server.again(message, context_token="NEWER"), counts=False)
            await stage.inlet.until(lambda: stage.inlet.duplicates)
            return results, await stage.send("part 9", key="key-9"), stage.adapter._ledger.peer("user-1").token

    results, later, token = run(main())

    assert [type(result) for result in results] == [Sent] * 9
    assert isinstance(later, Deferred)
    assert token == "NEWER"


def test_answers_that_waited_are_one_message_and_a_file_where_they_are_long(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            return stage.adapter.join(["one", "two", "three"], DM), stage.adapter.join(["a word " * 1500] * 2, DM)

    short, long = run(main())

    assert (short[0], [part.text for part in short[1]]) == (3, ["(3 answers that waited)\n\none\n\ntwo\n\nthree"])
    assert (long[0], [part.format for part in long[1]]) == (2, ["text", "file"])
    assert joined_within(["x" * 150_000] * 3, WeixinConfig(), left=9)[0] == 2, "a file that can be read on a phone"


def test_the_quota_survives_a_restart(tmp_path, run, new_stage):
    first = new_stage(tmp_path)

    async def main():
        async with first.running():
            await first.heard()
            for n in range(8):
                await first.send(f"part {n}", key=f"key-{n}")
        second = new_stage(tmp_path, fake=first.fake, state=first.state)
        async with second.running():
            return [await second.send(f"again {n}", key=f"again-{n}") for n in range(2)]

    assert [type(result) for result in run(main())] == [Sent, Deferred]


def test_a_day_after_the_last_message_nothing_is_sent(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            stage.clock.ahead_s += 24 * 3600 + 60
            return await stage.send("reminder")

    result = run(main())

    assert isinstance(result, Deferred)
    assert "24 h" in result.reason
    assert not stage.server.sent


def test_to_somebody_who_never_wrote_nothing_is_sent(stage, run):
    async def main():
        async with stage.running():
            return await stage.send("hello?", peer="stranger")

    assert isinstance(run(main()), Deferred)


@pytest.mark.parametrize("errmsg", ["", "rate limited", "prepare failed", "unknown error"])
def test_a_refusal_that_the_reckoning_does_not_explain_is_tried_three_times_and_then_put_off(stage, errmsg, run):
    waits = []

    async def main():
        stage.server.errmsg = errmsg
        async with stage.running():
            await stage.heard()
            stage.server.answers.extend(["-2"] * 4)
            for _ in range(3):
                with pytest.raises(RetryLater) as refused:
                    await stage.send("answer")
                waits.append(refused.value.after_s)
            return await stage.send("answer")

    result = run(main())

    assert waits == [5.0, 30.0, 120.0]
    assert isinstance(result, Deferred)
    assert result.at is None


def test_messages_keep_their_distance(tmp_path, run, new_stage, monkeypatch):
    stage = new_stage(tmp_path, peer_pause_s=1.5, bot_pause_s=0.5)
    times, send = [], ILinkClient.send

    async def noted(self, peer, item, **more):
        times.append((stage.clock.monotonic(), peer))
        return await send(self, peer, item, **more)

    monkeypatch.setattr(ILinkClient, "send", noted)

    async def main():
        async with stage.running():
            await stage.heard()
            await stage.heard("hi", peer="user-2")
            await asyncio.gather(*(stage.send(f"part {n}", key=f"key-{n}", peer=f"user-{n % 2 + 1}") for n in range(4)))

    run(main())

    assert len(times) == 4
    assert all(later - earlier >= 0.5 for (earlier, _), (later, _) in pairwise(times))
    for peer in ("user-1", "user-2"):
        assert all(later - earlier >= 1.5 for earlier, later in pairwise([at for at, whom in times if whom == peer]))


def test_a_long_answer_goes_as_a_line_and_a_file_that_can_be_read_again(stage, run):
    text = "段落。" * 4000

    async def main():
        async with stage.running():
            await stage.heard()
            parts = stage.adapter.split(text, DM)
            for n, part in enumerate(parts):
                assert isinstance(await stage.send(part.text, key=f"key-{n}", format=part.format), Sent)

    run(main())

    from hermes_weixin.crypto import decode_key, decrypt

    first, document = stage.server.sent
    assert "in the file" in first.text
    media = document.item["file_item"]["media"]
    data = decrypt(decode_key(media["aes_key"]), stage.server.cdn.blobs[media["encrypt_query_param"]])
    assert data.decode() == text
    assert document.item["file_item"]["len"] == str(len(data))


def test_a_file_is_tried_again_where_the_network_fails_and_given_up_where_it_says_no(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            stage.server.cdn.failures.extend([500, 502])
            assert isinstance(await stage.send("text", format="file"), Sent)
            stage.server.cdn.failures.append(403)
            with pytest.raises(Rejected, match="told to fail"):
                await stage.send("text", format="file", key="key-2")

    run(main())


def test_what_we_said_can_be_quoted_by_its_id(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            sent = await stage.send("the plan is ready")
            item = {"type": 1, "text_item": {"text": "which?"}, "ref_msg": {"svr_id": int(sent.platform_message_id)}}
            return await stage.heard(item_list=[item])

    assert run(main()).text == "> the plan is ready\n\nwhich?"


def test_typing_is_shown_and_ended_and_its_errors_are_nobodys_business(stage, run):
    async def main():
        async with stage.running():
            await stage.heard()
            await stage.adapter.typing(DM, on=True)
            await stage.adapter.typing(DM, on=False)
            await stage.fake.stop()
            await stage.adapter.typing(DM, on=True)

    run(main())

    assert stage.bot.typing == [("user-1", 1), ("user-1", 2)]


def test_nothing_is_typed_where_nothing_may_be_sent(stage, run):
    async def main():
        async with stage.running():
            await stage.adapter.typing(DM, on=True)

    run(main())

    assert stage.bot.typing == []


def test_bytes_come_deciphered_and_only_from_the_platform(stage, run):
    from hermes_hookspecs.messages import Attachment
    from hermes_weixin.crypto import encrypt
    from hermes_weixin.media import reference_of
    from hermes_weixin.wire import Medium

    key = bytes(range(16))

    async def fetched(medium):
        attachment = Attachment(kind="image", reference=reference_of(medium))
        return b"".join([piece async for piece in stage.adapter.fetch(attachment, DM)])

    async def main():
        async with stage.running():
            stage.server.cdn.blobs["p"] = encrypt(key, b"picture")
            assert await fetched(Medium(param="p", hex_key=key.hex())) == b"picture"
            with pytest.raises(Rejected, match="HTTP 404"):
                await fetched(Medium(param="gone", hex_key=key.hex()))
            for address in ("http://127.0.0.1:1/x", "https://evil.example/x", "https://a@evil.qq.com/x", "file:///x"):
                with pytest.raises(Rejected, match="media_hosts"):
                    await fetched(Medium(url=address))
            stage.server.cdn.failures.append(503)
            with pytest.raises(RetryLater):
                await fetched(Medium(param="p", hex_key=key.hex()))
            with pytest.raises(Rejected):
                await fetched(Medium(param="p", hex_key="00" * 16))

    run(main())
