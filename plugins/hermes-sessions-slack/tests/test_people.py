"""What people are called: asked once, never for long, and of no message's concern when nobody says."""

from __future__ import annotations

import asyncio
from collections import deque

import aiohttp
import pytest

from hermes_hookspecs.testing.clock import FakeClock
from hermes_slack.people import People
from hermes_slack.testing import FakeSlackServer
from hermes_slack.testing.state import Post
from hermes_slack.workspaces import introduce


@pytest.fixture
def asking(run):
    """Return a function that plays a scene with ``server``, ``clock``, ``people`` and a workspace."""

    def play(scene):
        async def main():
            server, clock = FakeSlackServer(), FakeClock()
            token = server.install("A1").installations[0].token
            await server.start()
            people = People(clock)
            try:
                async with aiohttp.ClientSession() as session:
                    (workspace,) = (await introduce(session, f"{server.url}/api", [token])).values()
                    return await scene(server, clock, people, workspace)
            finally:
                await people.aclose()
                await server.stop()

        return run(main())

    return play


def test_who_writes_has_a_name_that_is_asked_for_once(stage, run):
    stage.server.names |= {"U1": "Ada", "U2": "林 小明"}

    async def main():
        async with stage.running():
            said = [await stage.heard(text, user=user) for text, user in (("a", "U1"), ("b", "U2"), ("c", "U1"))]
            return [event.source.user_name for event in said]

    assert run(main()) == ["Ada", "林 小明", "Ada"]
    assert stage.server.calls.count("users.info") == 2


def test_who_is_not_talking_to_us_is_not_asked_about(new_stage, run):
    stage = new_stage()
    stage.server.names["U1"] = "Ada"

    async def main():
        async with stage.running():
            await stage.heard("to others", mention=False)
            await stage.heard("a bot", user="U2", from_bot=True)

    run(main())

    assert "users.info" not in stage.server.calls


def test_those_who_spoke_above_in_a_thread_are_named_too(stage, run):
    stage.server.names |= {"U1": "Ada", "U7": "Bo"}

    async def main():
        async with stage.running():
            root = stage.server.ts()
            for text, ts in (("the beginning", root), ("and on", stage.server.ts())):
                stage.server.posts.append(Post(channel="C1", ts=ts, text=text, user="U7", thread_ts=root))
            return (await stage.heard("what was it?", thread_id=root)).text

    assert run(main()) == "[Earlier in this thread:]\n> Bo: the beginning\n> Bo: and on\n\nwhat was it?"
    assert stage.server.calls.count("users.info") == 2


@pytest.mark.parametrize("answer", ["user_not_found", "missing_scope", "ratelimited", "broken", "cut"])
def test_a_message_whose_sender_nobody_names_is_taken_under_the_id(stage, answer, run):
    stage.server.names["U1"] = "Ada"
    stage.server.failures["users.info"] = deque([answer])

    async def main():
        async with stage.running():
            return [(await stage.heard(text)).source for text in ("one", "two")]

    one, two = run(main())

    assert {one.user_id, two.user_id} == {"U1"}
    assert (one.user_name, two.user_name) == (None, None)
    assert stage.server.calls.count("users.info") == 1, "it is not asked again at once"


def test_names_can_be_left_alone(new_stage, run):
    stage = new_stage(names=False)
    stage.server.names["U1"] = "Ada"

    async def main():
        async with stage.running():
            return (await stage.heard("hello")).source.user_name

    assert run(main()) is None
    assert "users.info" not in stage.server.calls


def test_all_who_want_to_know_wait_for_one_call(asking):
    async def scene(server, clock, people, workspace):
        server.names["U1"] = "Ada"
        await asyncio.gather(*(people.learn(workspace, ["U1", "U1"]) for _ in range(20)))
        return server.calls.count("users.info"), people.name_of(workspace, "U1")

    assert asking(scene) == (1, "Ada")


def test_nobody_waits_for_long_and_a_late_name_is_known_afterwards(asking):
    async def scene(server, clock, people, workspace):
        server.names["U1"] = "Ada"
        server.freeze(True)
        async with asyncio.timeout(10):
            await people.learn(workspace, ["U1"])
        before = people.name_of(workspace, "U1")
        server.freeze(False)
        await people.learn(workspace, ["U1"])
        return before, people.name_of(workspace, "U1"), server.calls.count("users.info")

    assert asking(scene) == ("", "Ada", 1)


def test_in_a_minute_only_so_many_are_asked_about(asking):
    async def scene(server, clock, people, workspace):
        crowd = [f"U{number}" for number in range(150)]
        server.names |= {user: user.lower() for user in crowd}
        for _ in range(3):
            await people.learn(workspace, crowd)
        first = server.calls.count("users.info")
        clock.advance(61)
        await people.learn(workspace, crowd)
        return first, server.calls.count("users.info")

    assert asking(scene) == (60, 120)


def test_slack_is_left_alone_for_as_long_as_it_wants(asking):
    async def scene(server, clock, people, workspace):
        server.names["U1"] = "Ada"
        server.failures["users.info"] = deque(["ratelimited"])
        asked = []
        for seconds in (0, 6, 2):
            clock.advance(seconds)
            await people.learn(workspace, ["U1"])
            asked.append(server.calls.count("users.info"))
        return asked, people.name_of(workspace, "U1")

    assert asking(scene) == ([1, 1, 2], "Ada")


def test_a_name_is_asked_for_again_after_hours_and_kept_where_nobody_says_it_any_more(asking):
    async def scene(server, clock, people, workspace):
        names = []
        for name in ("Ada", "Ada L.", None):
            server.names = {"U1": name} if name else {}
            await people.learn(workspace, ["U1"])
            names.append(people.name_of(workspace, "U1"))
            clock.advance(7 * 3600)
        return names

    assert asking(scene) == ["Ada", "Ada L.", "Ada L."]
