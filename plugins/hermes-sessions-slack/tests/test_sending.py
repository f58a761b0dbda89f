"""Sending: into the right thread, once, escaped, and with the truth about what did not go."""

from __future__ import annotations

from collections import deque

import pytest

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.ports.platform import Sent


def test_a_mention_at_the_top_of_a_channel_is_answered_in_a_thread_that_is_ours_from_then_on(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("deploy?")
            result = await stage.send("done", asked)
            reply = await stage.heard("thanks", user="U2", thread_id=asked.source.message_id, mention=False)
            elsewhere = await stage.heard("no", thread_id="1790000000.000900", mention=False)
            return asked, result, reply, elsewhere

    asked, result, reply, elsewhere = run(main())

    ts = asked.source.message_id
    assert (asked.source.thread_id, asked.source.prospective_thread_id, result.opened_thread_id) == (None, ts, ts)
    assert stage.server.posts[0].thread_ts == ts
    assert (reply.source.thread_id, reply.addressed) == (ts, True)
    assert not elsewhere.addressed


def test_a_thread_is_known_as_ours_after_a_restart_and_only_in_its_channel(new_stage, run):
    first = new_stage()

    async def main():
        async with first.running():
            asked = await first.heard("deploy?")
            await first.send("done", asked)
        second = new_stage(fake=first.fake, state=first.state)
        async with second.running():
            ts = asked.source.message_id
            here = await second.heard("thanks", thread_id=ts, mention=False)
            there = await second.heard("thanks", chat="C2", thread_id=ts, mention=False)
            return here.addressed, there.addressed

    assert run(main()) == (True, False)


def test_a10_replies_that_open_no_threads_make_one_session_of_the_channel(new_stage, run):
    stage = new_stage(replies="channel")

    async def main():
        async with stage.running():
            events = [await stage.heard(f"message {n}") for n in range(3)]
            await stage.send("answer", events[0])
            inside = await stage.heard("inside", thread_id=events[0].source.message_id)
            await stage.send("answer inside", inside, key="key-2")
            return events, inside

    events, inside = run(main())

    assert {(event.source.thread_id, event.source.prospective_thread_id) for event in events} == {(None, None)}
    assert inside.source.thread_id == events[0].source.message_id
    assert [post.thread_ts for post in stage.server.posts] == [None, events[0].source.message_id]


def test_a_direct_message_is_answered_where_it_stands(stage, run):
    async def main():
        async with stage.running():
            top = await stage.heard("hello", chat="D1")
            inside = await stage.heard("hello", chat="D1", thread_id=top.source.message_id)
            await stage.send("top", top)
            await stage.send("inside", inside, key="key-2")
            return top

    top = run(main())

    assert [post.thread_ts for post in stage.server.posts] == [None, top.source.message_id]


def test_no_answer_can_name_anybody_or_everybody(stage, run):
    async def main():
        async with stage.running():
            await stage.send("<!channel> <@U1> <!subteam^S1> a & b", await stage.heard("hello", chat="D1"))

    run(main())

    assert stage.server.posts[0].text == "&lt;!channel&gt; &lt;@U1&gt; &lt;!subteam^S1&gt; a &amp; b"


@pytest.mark.parametrize("answer", ["cut", "arrived"])
@pytest.mark.parametrize("chat", ["C1", "D1"])
def test_a_post_that_arrived_and_failed_is_found_and_not_posted_again(stage, answer, chat, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat=chat)
            stage.server.answers.append(answer)
            with pytest.raises(RetryLater) as failed:
                await stage.send("answer", asked)
            return failed.value, await stage.adapter.find_sent(stage.part("answer", asked))

    failed, found = run(main())

    assert failed.maybe_sent
    assert isinstance(found, Sent)
    assert found.platform_message_id == stage.server.posts[0].ts
    assert len(stage.server.posts) == 1
    assert stage.server.calls.count("chat.postMessage") == 1, "the client repeated it by itself"


@pytest.mark.parametrize("answer", ["dropped", "broken"])
def test_a_post_that_did_not_arrive_is_not_found(stage, answer, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat="D1")
            await stage.send("an earlier answer", asked, key="key-0")
            stage.server.answers.append(answer)
            with pytest.raises(RetryLater):
                await stage.send("answer", asked)
            return await stage.adapter.find_sent(stage.part("answer", asked))

    assert run(main()) is None
    assert stage.server.calls.count("chat.postMessage") == 2


def test_a_rate_limit_says_how_long_slack_wants_to_be_left_alone(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat="D1")
            stage.server.answers.append("ratelimited")
            with pytest.raises(RetryLater) as limited:
                await stage.send("answer", asked)
            return limited.value

    error = run(main())

    assert (error.after_s, error.maybe_sent) == (7.0, False)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("channel_not_found", Rejected),
        ("is_archived", Rejected),
        ("msg_too_long", Rejected),
        ("missing_scope", Rejected),
        ("a_code_of_tomorrow", Rejected),
        ("token_revoked", AuthFailed),
        ("account_inactive", AuthFailed),
        ("internal_error", RetryLater),
        ("service_unavailable", RetryLater),
    ],
)
def test_a_refusal_is_said_as_what_it_is(stage, code, kind, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat="D1")
            stage.server.answers.append(code)
            with pytest.raises(kind, match=code):
                await stage.send("answer", asked)

    run(main())


def test_a_lookup_that_may_not_be_made_leaves_it_open(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello", chat="D1")
            stage.server.failures["conversations.history"] = deque(["missing_scope"])
            with pytest.raises(Rejected, match="some:scope"):
                await stage.adapter.find_sent(stage.part("answer", asked))

    run(main())


def test_an_answer_to_a_workspace_that_is_none_of_ours_is_rejected(stage, run):
    from hermes_hookspecs.ports.platform import DeliveryPart
    from hermes_hookspecs.source import SessionSource

    async def main():
        async with stage.running():
            for scope in ("T0OTHER", None):
                target = SessionSource(platform="slack", scope_id=scope, chat_id="D1")
                with pytest.raises(Rejected, match="no bot token"):
                    await stage.adapter.send(DeliveryPart(target=target, text="x", key="k"))

    run(main())

    assert not stage.server.posts


def test_a_message_is_edited_in_its_place(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("hello")
            sent = await stage.send("a beg", asked)
            await stage.adapter.edit(stage.part("a **beginning**", asked), sent.platform_message_id)
            with pytest.raises(Rejected, match="message_not_found"):
                await stage.adapter.edit(stage.part("gone", asked), "1.1")

    run(main())

    assert [(post.text, post.edits) for post in stage.server.posts] == [("a *beginning*", 1)]


def test_that_an_answer_is_written_is_shown_in_threads_and_not_asked_for_again_where_it_may_not_be(stage, run):
    async def main():
        async with stage.running():
            direct = (await stage.heard("hello", chat="D1")).source
            await stage.adapter.typing(direct, on=True)
            thread = (await stage.heard("hello")).source
            await stage.adapter.typing(thread, on=True)
            await stage.adapter.typing(thread, on=False)
            stage.server.failures["assistant.threads.setStatus"] = deque(["missing_scope"])
            await stage.adapter.typing(thread, on=True)
            await stage.adapter.typing(thread, on=True)
            return thread.prospective_thread_id

    ts = run(main())

    assert stage.server.statuses == [("C1", ts, "is writing…"), ("C1", ts, "")]
    assert stage.server.calls.count("assistant.threads.setStatus") == 3
