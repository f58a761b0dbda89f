"""Receiving: nothing that a poll brought is lost, nothing comes twice, whatever the server does."""

from __future__ import annotations

import asyncio
import json

import pytest

from hermes_hookspecs.errors import AuthFailed, RetryLater, StoreBusy
from hermes_hookspecs.ports.platform import CONNECTED, FAILED, WAITING, Sent


def test_a_batch_and_its_cursor_are_stored_before_the_next_poll(stage, run):
    async def main():
        async with stage.running():
            message = stage.server.message("user-1", "hello")
            stage.inlet.hold = asyncio.Event()
            stage.server.say(stage.bot, message)
            await stage.server.until(lambda: stage.bot.brought)
            polls = stage.bot.polls
            await asyncio.sleep(0.02)
            assert stage.bot.polls == polls, "the next poll went before the batch was stored"
            stage.inlet.hold.set()
            await stage.server.until(lambda: stage.bot.acknowledged >= 1)
        return json.loads(stage.state.get("default/cursor").value)

    found = run(main())

    assert stage.inlet.texts == ["hello"]
    assert found["cursor"] == "C1"


def test_a_batch_that_the_store_does_not_take_is_offered_until_it_does(stage, run):
    async def main():
        stage.inlet.failures = [StoreBusy("locked"), StoreBusy("locked")]
        async with stage.running():
            await stage.heard("hello")

    run(main())

    assert stage.inlet.texts == ["hello"]
    assert any(state == WAITING and "store" in detail for state, detail in stage.inlet.reports)


def test_a_kinder_server_hands_out_again_what_no_cursor_came_back_for(tmp_path, run, new_stage):
    first = new_stage(tmp_path)
    first.server.replays = True

    async def main():
        async with first.running():
            first.inlet.hold = asyncio.Event()
            first.server.say(first.bot, first.server.message("user-1", "one"))
            await first.server.until(lambda: first.bot.brought)
        second = new_stage(tmp_path, fake=first.fake, state=first.state)
        async with second.running():
            await second.heard("two")
            await second.server.until(lambda: second.bot.acknowledged >= second.bot.cursor)
        return second

    assert run(main()).inlet.texts == ["one", "two"]


def test_after_a_restart_polling_goes_on_behind_the_cursor(tmp_path, run, new_stage):
    first = new_stage(tmp_path)

    async def main():
        async with first.running():
            await first.heard("one")
        second = new_stage(tmp_path, fake=first.fake, state=first.state)
        async with second.running():
            await second.heard("two")
            await second.server.until(lambda: second.bot.acknowledged >= 2)
        return second

    assert run(main()).inlet.texts == ["two"]


def test_what_a_poll_brings_while_the_adapter_leaves_is_stored(stage, run):
    async def main():
        stage.server.hold_s = 10
        async with stage.running() as task:
            await stage.server.until(lambda: stage.bot.polls)
            task.cancel()
            await asyncio.sleep(0)
            stage.server.say(stage.bot, stage.server.message("user-1", "at the last moment"))
            await asyncio.wait({task})
            assert task.cancelled()

    run(main())

    assert stage.inlet.texts == ["at the last moment"]
    assert stage.bot.notified[-1] == "stop"


def test_redelivered_messages_are_known_by_id_or_by_sender_time_and_content(stage, run):
    async def main():
        async with stage.running():
            message = stage.server.message("user-1", "hello")
            await_first = stage.inlet.until
            stage.server.say(stage.bot, message)
            await await_first(lambda: stage.inlet.texts == ["hello"])
            stage.server.say(stage.bot, message)
            again = stage.server.message("user-1", "hello", create_time_ms=message["create_time_ms"])
            stage.server.say(stage.bot, again)
            await stage.heard("hello")

    run(main())

    assert stage.inlet.texts == ["hello", "hello"], "a person may say the same words again"
    assert stage.inlet.duplicates == 2


def test_our_own_messages_and_those_of_bots_are_passed_over(stage, run):
    async def main():
        async with stage.running():
            stage.server.say(stage.bot, stage.server.message("user-1", "echo", message_type=2))
            await stage.heard("real")

    run(main())

    assert stage.inlet.texts == ["real"]


@pytest.mark.parametrize("failure", [500, 524, -1, "not json", "[]"])
def test_a_server_that_fails_is_asked_again_and_said_to(stage, failure, run):
    async def main():
        stage.server.poll_failures.extend([failure] * 3)
        async with stage.running():
            await stage.heard("at last")

    run(main())

    assert stage.inlet.texts == ["at last"]
    assert stage.pauses[:3] == [2.0, 2.0, 30.0]
    assert WAITING in [state for state, _ in stage.inlet.reports]


def test_a_poll_waits_longer_than_the_server_says_it_holds(stage, run):
    seen = []

    async def main():
        stage.server.announce_ms = 45_000
        async with stage.running():
            await stage.heard("one")
            client = stage.adapter._client(stage.adapter._open())
            post = client._post

            async def noted(path, body, timeout_s, **more):
                seen.append(timeout_s)
                return await post(path, body, timeout_s, **more)

            client._post = noted
            await client.poll("", 45.0)

    run(main())

    assert seen == [55.0]


def test_a_success_need_not_say_so(stage, run):
    async def main():
        stage.server.bare_success = True
        async with stage.running():
            await stage.heard("one")
            assert isinstance(await stage.send("answer"), Sent)
            await stage.heard("two")

    run(main())

    assert stage.inlet.texts == ["one", "two"]
    assert CONNECTED in [state for state, _ in stage.inlet.reports]


@pytest.mark.parametrize("wait_ms", [0, -5, 10**12, "soon", None])
def test_absurd_announcements_change_nothing(stage, wait_ms, run):
    async def main():
        stage.server.announce_ms = wait_ms
        async with stage.running():
            await stage.heard("one")
            await stage.heard("two")

    run(main())

    assert stage.inlet.texts == ["one", "two"]


def test_a_batch_with_pieces_that_nobody_can_read_holds_nothing_up(stage, run):
    async def main():
        async with stage.running():
            stage.bot.waiting.extend([None, "text", {"from_user_id": 7}, {"from_user_id": "user-9", "item_list": "no"}])
            await stage.heard("hello")

    run(main())

    assert stage.inlet.texts[-1] == "hello"
    assert [bool(event.error) for event in stage.inlet.events] == [True, True, True, True, False]


def test_a_refused_login_is_asked_about_once_more_and_then_waits_for_a_person(stage, run):
    async def main():
        async with stage.running() as task:
            await stage.heard("before")
            stage.bot.stale = True
            await asyncio.wait({task})
            assert isinstance(task.exception(), AuthFailed)
            with pytest.raises(RetryLater, match="hermes weixin login"):
                await stage.send("answer")

    run(main())

    assert stage.bot.notified[:2] == ["start", "start"]
    assert 5.0 in stage.pauses
    assert stage.inlet.reports[-1][0] == FAILED


def test_a_server_that_never_answers_is_no_success_and_one_that_answers_again_is(stage, run, monkeypatch):
    monkeypatch.setattr("hermes_weixin.client._ADVANCE_S", 0.05)
    alive = []

    async def main():
        stage.server.announce_ms = 50
        async with stage.running():
            await stage.heard("before")
            stage.server.frozen = True
            await stage.inlet.until(lambda: "last 2 polls" in stage.inlet.reports[-1][1])
            stage.inlet.alive = lambda: alive.append(1)
            await stage.inlet.until(lambda: "last 4 polls" in stage.inlet.reports[-1][1])
            assert not alive
            await stage.fake.stop()
            stage.server.frozen = False
            await stage.fake.start()
            await stage.heard("after")

    run(main())

    assert alive
    assert stage.inlet.reports[-1][0] == CONNECTED


def test_a_send_that_is_refused_as_stale_waits_for_the_next_poll_to_decide(stage, run):
    async def main():
        async with stage.running():
            await stage.heard("before")
            stage.server.answers.append("-14")
            for _ in range(2):  # the second is not asked of the server
                with pytest.raises(RetryLater, match="next poll") as refused:
                    await stage.send("answer")
                assert refused.value.after_s <= 10
            await stage.heard("meanwhile")
            await stage.server.until(lambda: stage.bot.acknowledged >= 2)
            return await stage.send("answer")

    assert isinstance(run(main()), Sent)
    assert len(stage.server.sent) == 1


def test_a_refusal_that_a_start_cures_is_no_more_than_that(stage, run):
    async def main():
        async with stage.running():
            await stage.heard("before")
            stage.bot.cured_by_start = True
            stage.bot.stale = True
            stage.server.say(stage.bot, stage.server.message("user-1", "after"))
            await stage.inlet.until(lambda: "after" in stage.inlet.texts)

    run(main())

    assert FAILED not in [state for state, _ in stage.inlet.reports]
    assert stage.inlet.reports[-1][0] == CONNECTED


def test_another_login_begins_a_cursor_of_its_own_and_keeps_the_context_tokens(tmp_path, run, new_stage):
    first = new_stage(tmp_path)

    async def main():
        async with first.running():
            await first.heard("one")
        first.fake._bots["default"] = first.server.bind("owner-of-default")
        second = new_stage(tmp_path, fake=first.fake, state=first.state)
        async with second.running():
            await second.server.until(lambda: second.bot.polls)
            assert second.adapter._ledger.peer("user-1").token
            await second.heard("two")
        return second

    assert run(main()).inlet.texts == ["two"]


def test_two_accounts_with_the_same_person_are_two_sessions(tmp_path, run, new_stage):
    first = new_stage(tmp_path / "a")
    second = new_stage(tmp_path / "b", account_id="second", fake=first.fake)

    async def main():
        async with first.running(), second.running():
            await first.heard("to the first")
            await second.heard("to the second")

    run(main())

    assert [event.source.account_id for event in first.inlet.events] == ["default"]
    assert [event.source.account_id for event in second.inlet.events] == ["second"]
