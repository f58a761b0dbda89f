"""Faults that users of other systems reported, as far as they are the gateway's; each test names its report."""

from __future__ import annotations

import asyncio

import pytest
from toy_chat import ToyChatPlugin, ToyServer

from hermes_hookspecs.ports.agent import AssistantStep

PATIENCE_S = 20


@pytest.fixture
def scene(profile):
    """Return a function that runs a test over a server, with functions that start a gateway and end it."""

    def run(test, agent="echo", *, settings=None, toy=None):
        async def within():
            server = await ToyServer().start()
            chosen = {"platforms.toy.dm_policy": "open", "gateway.retry_first_s": 0.01, "inbox.batch_window_s": 0.0}
            app = profile(chosen | (settings or {}), listens=False)
            app.hooks.host.register("toy", ToyChatPlugin({"port": server.port} | (toy or {})))
            running = []

            async def begin():
                running.append(asyncio.create_task(app.gateway.run(agent=agent)))

            async def end():
                task = running.pop()
                task.cancel()
                await asyncio.wait({task}, timeout=PATIENCE_S)

            try:
                async with asyncio.timeout(60):
                    await test(server, begin, end)
            finally:
                while running:
                    await end()
                await server.stop()

        asyncio.run(within())

    return run


def test_e02_a_slow_close_of_one_agent_delays_neither_new_nor_another_chat(scene):
    closing, may_close = asyncio.Event(), asyncio.Event()

    class Slow:
        name, model = "slow", None

        async def run(self, turn):
            try:
                if turn.text == "work":
                    await asyncio.Event().wait()
                yield AssistantStep(content=f"done: {turn.text}")
            finally:
                if turn.text == "work":
                    closing.set()
                    await may_close.wait()

    async def test(server, begin, end):
        await begin()
        await server.say("work", chat="a", user="a")
        await server.until(lambda: server.acked)
        await asyncio.sleep(0.1)  # the turn runs
        await server.say("/new", chat="a", user="a")
        await server.until(lambda: server.texts("a"))
        await closing.wait()
        async with asyncio.timeout(5):
            await server.say("hello", chat="b", user="b")
            await server.until(lambda: server.texts("b") == ["done: hello"])
        may_close.set()

    scene(test, Slow())


def test_h12_what_was_said_while_the_gateway_was_down_is_answered_and_what_was_answered_is_not_again(scene):
    async def test(server, begin, end):
        await begin()
        first = await server.say("before")
        await server.until(lambda: server.texts() == ["echo 1: before"])
        await end()
        await server.say("meanwhile")
        server.deliver(first)
        await begin()
        await server.until(lambda: len(server.shown) == 2)
        await server.until(lambda: server.acked[first] == 2)

        assert server.texts() == ["echo 1: before", "echo 2: meanwhile"]

    scene(test)


def test_h12_a_command_that_was_said_while_the_gateway_was_down_counts_once_and_in_its_order(scene):
    async def test(server, begin, end):
        await begin()
        await server.say("before")
        await server.until(lambda: server.texts() == ["echo 1: before"])
        await end()
        command = await server.say("/new")
        await server.say("in a new session")
        await begin()
        await server.until(lambda: len(server.shown) == 3)
        await end()
        server.deliver(command)
        await begin()
        await server.until(lambda: server.acked[command] == 2)
        await server.say("still there")
        await server.until(lambda: len(server.shown) == 4)

        assert "echo 1: in a new session" in server.texts()
        assert server.texts()[-1] == "echo 2: still there"

    scene(test)


def test_h13_a_message_is_acknowledged_before_its_answer_is_there(scene):
    going = asyncio.Event()

    async def patient(turn):
        await going.wait()
        return f"done: {turn.text}"

    async def test(server, begin, end):
        await begin()
        number = await server.say("take your time", times=3)
        await server.until(lambda: server.acked[number] >= 1)
        assert server.shown == []
        server.deliver(number)
        await server.until(lambda: server.acked[number] >= 2)
        going.set()
        await server.until(lambda: server.shown)

        assert server.texts() == ["done: take your time"]

    scene(test, patient)


def test_h14_two_bots_in_one_group_each_answer_the_message_that_names_both(scene):
    async def test(server, begin, end):
        await begin()
        for account in ("default", "second"):
            await server.say("both of you", chat="g", group=True, account=account)
        await server.until(lambda: len(server.shown) == 2)

        assert {one.account for one in server.shown} == {"default", "second"}

    scene(test, settings={"platforms.toy.group_policy": "open"}, toy={"accounts": ["default", "second"]})


def test_h17_a_command_in_a_group_is_a_command_and_one_that_is_only_mentioned_is_not(scene):
    async def test(server, begin, end):
        await begin()
        for count, text in enumerate(("one", "two", "/new", "ask @Ann to run /new", "three"), 1):
            await server.say(text, chat="g", user="u", group=True)
            await server.until(lambda count=count: len(server.shown) == count)

        assert server.texts()[-2:] == ["echo 1: ask @Ann to run /new", "echo 2: three"]

    scene(test, settings={"platforms.toy.group_policy": "open"})


def test_c05_a_stop_frees_the_session_for_the_next_message(scene):
    class Stuck:
        name, model = "stuck", None

        async def run(self, turn):
            if turn.text == "stick":
                await asyncio.Event().wait()
            yield AssistantStep(content=f"done: {turn.text}")

    async def test(server, begin, end):
        await begin()
        await server.say("stick")
        await server.until(lambda: server.acked)
        await asyncio.sleep(0.1)  # the turn runs
        await server.say("/stop")
        await server.until(lambda: server.shown)
        await server.say("go on")
        await server.until(lambda: "done: go on" in server.texts())

    scene(test, Stuck())


def test_h23_a_connection_that_breaks_all_the_time_leaves_the_other_account_alone(scene):
    async def test(server, begin, end):
        await begin()
        await server.until(lambda: server.connections.total() == 2)
        for times in range(2, 6):
            server._writers["default"].close()
            await server.until(lambda times=times: server.connections["default"] == times)
        await server.say("are you there", account="second")
        await server.until(lambda: server.shown)

        assert server.connections["second"] == 1

    scene(test, toy={"accounts": ["default", "second"]})
