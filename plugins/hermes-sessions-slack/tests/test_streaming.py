"""Answers that grow as Slack's own streams do, and go on by edits where a stream cannot."""

from __future__ import annotations

from collections import deque

import pytest

from hermes_hookspecs.errors import RetryLater
from hermes_slack.testing import FakeSlack


async def _draft(stage, text, event):
    return await stage.adapter.send(stage.part(text, event, "key-1.draft", is_draft=True))


async def _grows(stage, text, event, ts):
    await stage.adapter.edit(stage.part(text, event, "key-1.draft", is_draft=True), ts)


async def _answer(stage, text, event, ts):
    return await stage.adapter.edit(stage.part(text, event, "key-1"), ts)


def _only(stage):
    (post,) = stage.server.posts
    return post


def test_an_answer_grows_in_its_thread_and_ends_as_an_ordinary_message(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("deploy?")
            begun = await _draft(stage, "It is", asked)
            ts = begun.platform_message_id
            await _grows(stage, "It is **do", asked, ts)
            grown = (_only(stage).text, _only(stage).streaming)
            ended = await _answer(stage, "It is **done**.", asked, ts)
            return asked.source.message_id, begun, grown, ended

    root, begun, grown, ended = run(main())

    post = _only(stage)
    assert grown == ("It is **do", True)
    assert (post.text, post.streaming, post.appended, post.edits) == ("It is *done*.", False, 2, 1)
    assert post.metadata["event_payload"] == {"id": "key-1"}
    assert (post.thread_ts, post.recipient) == (root, ("U1", stage.here.team_id))
    assert begun.opened_thread_id == ended.opened_thread_id == root
    assert begun.platform_message_id == ended.platform_message_id == post.ts


def test_in_a_thread_of_a_direct_chat_nobody_is_named(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat="D1", thread_id="1790000000.000100")
            await _draft(stage, "hi", asked)

    run(main())

    assert (_only(stage).streaming, _only(stage).recipient) == (True, None)


@pytest.mark.parametrize(("chat", "config"), [("D1", {}), ("C1", {"replies": "channel"})])
def test_outside_of_threads_a_draft_is_edited(new_stage, chat, config, run):
    stage = new_stage(**config)

    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat=chat)
            ts = (await _draft(stage, "h", asked)).platform_message_id
            await _grows(stage, "hi", asked, ts)
            await _answer(stage, "hi!", asked, ts)

    run(main())

    assert (_only(stage).text, _only(stage).edits) == ("hi!", 2)
    assert "chat.startStream" not in stage.server.calls


def test_streams_can_be_switched_off(new_stage, run):
    stage = new_stage(assistant_streams=False)

    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            await _answer(stage, "hi!", asked, (await _draft(stage, "hi", asked)).platform_message_id)

    run(main())

    assert (_only(stage).text, _only(stage).edits) == ("hi!", 1)
    assert "chat.startStream" not in stage.server.calls


@pytest.mark.parametrize(
    ("code", "asked_again"),
    [("missing_scope", False), ("channel_type_not_supported", False), ("user_not_found", True), ("ratelimited", True)],
)
def test_where_slack_takes_no_stream_the_draft_is_posted_once(stage, code, asked_again, run):
    stage.server.failures["chat.startStream"] = deque([code])

    async def main():
        async with stage.running():
            for number in range(2):
                asked = await stage.heard(f"hello {number}")
                ts = (await _draft(stage, "h", asked)).platform_message_id
                await _answer(stage, "hi", asked, ts)

    run(main())

    assert [(post.text, post.streaming) for post in stage.server.posts] == [("hi", False)] * 2
    assert stage.server.calls.count("chat.startStream") == 1 + asked_again
    assert stage.server.calls.count("chat.postMessage") == 2 - asked_again


def test_a_stream_of_which_nobody_knows_whether_it_was_opened_says_nothing(stage, run):
    stage.server.failures["chat.startStream"] = deque(["cut"])

    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            with pytest.raises(RetryLater) as caught:
                await _draft(stage, "half an ans", asked)
            found = await stage.adapter.find_sent(stage.part("an answer", asked, "key-1.draft"))
            await stage.send("an answer", asked)
            return caught.value.maybe_sent, found

    assert run(main()) == (True, None)
    assert [post.text for post in stage.server.posts] == ["", "an answer"]


def test_a_text_that_changes_in_its_beginning_goes_on_by_edits(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "Let me look.", asked)).platform_message_id
            await _grows(stage, "It is", asked, ts)
            between = (_only(stage).text, _only(stage).streaming)
            await _grows(stage, "It is done", asked, ts)
            return between

    assert run(main()) == ("It is", False)
    assert (_only(stage).text, _only(stage).edits) == ("It is done", 2)


def test_a_stream_that_slack_has_ended_goes_on_by_edits(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "one", asked)).platform_message_id
            _only(stage).streaming = False
            await _grows(stage, "one two", asked, ts)
            await _answer(stage, "one two three", asked, ts)

    run(main())

    assert (_only(stage).text, _only(stage).edits) == ("one two three", 2)


@pytest.mark.parametrize("told", ["cut", "arrived", "dropped"])
def test_words_of_which_nobody_knows_whether_they_were_added_do_not_stand_there_twice(stage, told, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "one", asked)).platform_message_id
            stage.server.failures["chat.appendStream"] = deque([told])
            await _grows(stage, "one two", asked, ts)
            return _only(stage).text

    assert run(main()) == "one two"


def test_a_pause_that_slack_wants_loses_no_words(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "one", asked)).platform_message_id
            stage.server.failures["chat.appendStream"] = deque(["ratelimited"])
            with pytest.raises(RetryLater) as caught:
                await _grows(stage, "one two", asked, ts)
            await _grows(stage, "one two three", asked, ts)
            return caught.value.after_s, _only(stage).text, _only(stage).streaming

    assert run(main()) == (7, "one two three", True)


def test_what_a_process_that_died_had_opened_is_closed_by_the_answer(new_stage, run):
    first = new_stage(fake=FakeSlack(replies="thread"))

    async def main():
        async with first.running():
            asked = await first.heard("hello")
            ts = (await _draft(first, "half an", asked)).platform_message_id
        second = new_stage(fake=first.fake, state=first.state)
        async with second.running():
            await _answer(second, "an answer", asked, ts)

    run(main())

    assert (_only(first).text, _only(first).streaming) == ("an answer", False)


def test_a_message_that_stays_open_is_edited_later_and_not_answered_twice(stage, run):
    stage.server.failures["chat.stopStream"] = deque(["broken", "broken"])

    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "half an", asked)).platform_message_id
            with pytest.raises(RetryLater, match="still being streamed"):
                await _answer(stage, "an answer", asked, ts)
            await _answer(stage, "an answer", asked, ts)

    run(main())

    assert (_only(stage).text, _only(stage).streaming) == ("an answer", False)


def test_a_stream_ends_when_nothing_more_is_written_there(new_stage, run):
    stage = new_stage(assistant_status=False)

    async def main():
        async with stage.running():
            asked, other = await stage.heard("hello"), await stage.heard("you, too")
            await _draft(stage, "one", asked)
            await _draft(stage, "two", other)
            await stage.adapter.typing(asked.source, on=False)
            return [(post.text, post.streaming) for post in stage.server.posts]

    assert run(main()) == [("one", False), ("two", True)]
    assert not stage.server.statuses


def test_no_stream_names_anybody_or_everybody(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            ts = (await _draft(stage, "<!chan", asked)).platform_message_id
            await _grows(stage, "<!channel> & <@U7>", asked, ts)
            return _only(stage).text

    assert run(main()) == "&lt;!channel&gt; &amp; &lt;@U7&gt;"
