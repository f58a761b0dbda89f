"""What stands above a message in a thread, and its session has not seen."""

from __future__ import annotations

import asyncio
from collections import deque

from hermes_slack.testing.state import Post

HEAD = "[Earlier in this thread:]\n"


def _posted(stage, text, *, user="U7", root=None, own=False, channel="C1"):
    """Let somebody write what is not told to us, or let a job of ours post."""
    post = Post(
        channel=channel,
        ts=stage.server.ts(),
        text=text,
        user=stage.here.user_id if own else user,
        bot_id=stage.here.bot_id if own else "",
        thread_ts=root,
    )
    stage.server.posts.append(post)
    return post.ts


def test_h24_the_message_that_opened_a_thread_is_shown_and_what_others_added_at_the_next_mention(stage, run):
    async def main():
        async with stage.running():
            root = _posted(stage, "nightly report: 3 &lt; 5 failed", own=True)
            _posted(stage, "looking at it", root=root)
            first = await stage.heard("which ones?", thread_id=root)
            await stage.send("these three", first)
            second = await stage.heard("thanks", thread_id=root, mention=False)
            _posted(stage, "I restarted one", user="U8", root=root)
            third = await stage.heard("and now?", thread_id=root)
            return first.text, second.text, third.text

    first, second, third = run(main())

    assert first == f"{HEAD}> you: nightly report: 3 < 5 failed\n> U7: looking at it\n\nwhich ones?"
    assert second == "thanks"
    assert third == f"{HEAD}> U8: I restarted one\n\nand now?", "our own answer is not repeated"


def test_h24_of_a_long_thread_its_beginning_and_its_end_are_shown(new_stage, run, monkeypatch):
    monkeypatch.setattr("hermes_slack.threads._TIMEOUT_S", 60.0)
    stage = new_stage(thread_context=3)

    async def main():
        async with stage.running():
            root = _posted(stage, "nightly report", own=True)
            for number in range(450):
                _posted(stage, f"line {number}", root=root)
            return (await stage.heard("which ones?", thread_id=root)).text

    assert run(main()) == f"{HEAD}> you: nightly report\n> U7: line 448\n> U7: line 449\n\nwhich ones?"


def test_a_thread_that_slack_stops_telling_is_shown_as_far_as_it_was_told(stage, run):
    async def main():
        async with stage.running():
            root = _posted(stage, "nightly report", own=True)
            for number in range(250):
                _posted(stage, f"line {number}", root=root)
            stage.server.failures["conversations.replies"] = deque(["ok", "ratelimited"])
            return (await stage.heard("which ones?", thread_id=root)).text

    shown = run(main())

    assert shown.startswith(f"{HEAD}> you: nightly report\n")
    assert "line 198" in shown
    assert "line 249" not in shown


def test_what_was_seen_is_known_after_a_restart(new_stage, run):
    first = new_stage()

    async def main():
        async with first.running():
            root = _posted(first, "the beginning")
            await first.heard("one", thread_id=root)
        second = new_stage(fake=first.fake, state=first.state)
        async with second.running():
            return (await second.heard("two", thread_id=root)).text

    assert run(main()) == "two"


def test_a_command_is_the_whole_message_and_hides_nothing_from_the_next_one(stage, run):
    async def main():
        async with stage.running():
            root = _posted(stage, "the beginning")
            command = await stage.heard("!new", thread_id=root)
            after = await stage.heard("what was it?", thread_id=root)
            return command.text, after.text

    assert run(main()) == ("/new", f"{HEAD}> U7: the beginning\n\nwhat was it?")


def test_a_thread_that_a_mention_began_has_nothing_above_it(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("deploy?")
            return (await stage.heard("well?", thread_id=asked.source.message_id, mention=False)).text

    assert run(main()) == "well?"
    assert "conversations.replies" not in stage.server.calls


def test_messages_are_taken_without_what_slack_does_not_tell(stage, run):
    async def main():
        async with stage.running():
            root = _posted(stage, "the beginning", channel="D1")
            stage.server.failures["conversations.replies"] = deque(["ratelimited", "missing_scope"])
            return [(await stage.heard(text, chat="D1", thread_id=root)).text for text in ("one", "two", "three")]

    assert run(main()) == ["one", "two", f"{HEAD}> U7: the beginning\n\nthree"]


def test_nothing_is_asked_where_the_operator_wants_nothing(new_stage, run):
    stage = new_stage(thread_context=0)

    async def main():
        async with stage.running():
            return (await stage.heard("hello", thread_id=_posted(stage, "the beginning"))).text

    assert run(main()) == "hello"
    assert "conversations.replies" not in stage.server.calls


def test_messages_of_one_batch_see_each_other(stage, run):
    async def main():
        async with stage.running():
            root = _posted(stage, "the beginning")
            said = [await stage.fake.say(text, chat_id="C1", user_id="U1", group=True, thread_id=root, deliver=False)
                    for text in ("one", "two")]  # fmt: skip
            await asyncio.gather(*map(stage.fake.deliver, said))
            return [(await stage.stored(ts)).text for ts in said]

    assert run(main()) == [f"{HEAD}> U7: the beginning\n\none", "two"]
