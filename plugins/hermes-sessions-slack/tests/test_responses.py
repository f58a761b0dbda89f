"""Answers to commands in rooms where the app is no member: by the address that came along, and never twice."""

from __future__ import annotations

from collections import deque

import pytest

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.ports.platform import Sent
from hermes_slack.testing.payloads import command


async def _given(stage, *, url=None, channel="C9", trigger="t1"):
    """Give a command; return the event and where it may be answered."""
    stage.server.outside.add("C9")
    response = stage.server.response()
    payload = command(
        stage.app, stage.here, channel, "U1", name="/hermes", text="what is new?", trigger_id=trigger,
        response_url=url or response.url,
    )  # fmt: skip
    before = len(stage.inlet.events)
    await stage.acknowledged(stage.server.deliver(stage.app, payload, kind="slash_commands"))
    return stage.inlet.events[before], response


def test_where_we_are_no_member_a_command_is_answered_to_who_gave_it(stage, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage)
            return await stage.send("all **quiet**, <!channel>", event), response

    result, response = run(main())

    assert isinstance(result, Sent)
    assert response.texts == ["all *quiet*, &lt;!channel&gt;"]
    assert not stage.server.posts


def test_where_we_are_a_member_the_room_reads_the_answer(stage, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage, channel="C1")
            await stage.send("all quiet", event)
            return response

    assert run(main()).texts == []
    assert [(post.channel, post.text, post.thread_ts) for post in stage.server.posts] == [("C1", "all quiet", None)]


def test_a_message_in_such_a_room_has_no_such_address(stage, run):
    async def main():
        async with stage.running():
            event = await stage.heard("hello")
            stage.server.outside.add("C1")
            with pytest.raises(Rejected, match="not_in_channel"):
                await stage.send("hello", event)

    run(main())


def test_a_post_of_which_nobody_knows_goes_nowhere_else(stage, run):
    """Only a refusal says that nothing was posted: else the answer would stand there twice."""

    async def main():
        async with stage.running():
            event, response = await _given(stage, channel="C1")
            stage.server.answers.append("cut")
            with pytest.raises(RetryLater) as caught:
                await stage.send("all quiet", event)
            return response.texts, caught.value.maybe_sent

    assert run(main()) == ([], True)


def test_a_draft_is_not_shown_where_it_could_not_be_edited(stage, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage)
            with pytest.raises(Rejected, match="not_in_channel"):
                await stage.send("all", event, is_draft=True)
            return response.texts

    assert run(main()) == []


def test_five_messages_are_what_slack_takes_whichever_process_sends_them(new_stage, run):
    first = new_stage()

    async def main():
        async with first.running():
            event, response = await _given(first)
            for number in range(3):
                await first.send(f"part {number}", event, key=f"key-{number}")
        second = new_stage(fake=first.fake, state=first.state)
        async with second.running():
            for number in range(3, 5):
                await second.send(f"part {number}", event, key=f"key-{number}")
            with pytest.raises(Rejected, match="5 messages"):
                await second.send("part 5", event, key="key-5")
        return response.texts

    assert run(main()) == [f"part {number}" for number in range(5)]


def test_after_half_an_hour_nothing_can_be_said_any_more(stage, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage)
            stage.clock.ahead_s = 29.5 * 60
            with pytest.raises(Rejected, match="not_in_channel"):
                await stage.send("late", event)
            return response.texts

    assert run(main()) == []


def test_what_surely_did_not_arrive_uses_nothing_up(stage, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage)
            stage.server.failures["response_url"] = deque(["ratelimited"] * 6)
            for _ in range(6):
                with pytest.raises(RetryLater):
                    await stage.send("all quiet", event)
            await stage.send("all quiet", event)
            return response.texts

    assert run(main()) == ["all quiet"]


@pytest.mark.parametrize(
    ("told", "kind", "maybe_sent"),
    [
        ("cut", RetryLater, True),
        ("arrived", RetryLater, True),
        ("ratelimited", RetryLater, False),
        ("expired", Rejected, None),
    ],
)
def test_what_became_of_an_answer_is_said_as_it_is(stage, told, kind, maybe_sent, run):
    async def main():
        async with stage.running():
            event, response = await _given(stage)
            response.open = told != "expired"
            stage.server.failures["response_url"] = deque([] if told == "expired" else [told])
            with pytest.raises(kind) as caught:
                await stage.send("all quiet", event)
            return caught.value

    error = run(main())

    assert getattr(error, "maybe_sent", None) is maybe_sent


def test_whether_it_arrived_cannot_be_looked_up_there(stage, run):
    async def main():
        async with stage.running():
            event, _ = await _given(stage)
            with pytest.raises(Rejected):
                await stage.adapter.find_sent(stage.part("all quiet", event))

    run(main())


def test_an_address_that_is_not_slacks_is_not_used(stage, run):
    async def main():
        async with stage.running():
            event, _ = await _given(stage, url="https://hooks.example.com/commands/1")
            with pytest.raises(Rejected, match="not_in_channel"):
                await stage.send("all quiet", event)

    run(main())

    assert not stage.state.list("default/command")


def test_each_command_has_its_own_address(stage, run):
    async def main():
        async with stage.running():
            stage.server.outside.add("C8")
            given = [await _given(stage), await _given(stage, trigger="t2"), await _given(stage, channel="C8")]
            for number, (event, _) in reversed(list(enumerate(given))):
                await stage.send(f"answer {number}", event, key=f"key-{number}")
            return [response.texts for _, response in given]

    assert run(main()) == [["answer 0"], ["answer 1"], ["answer 2"]]
