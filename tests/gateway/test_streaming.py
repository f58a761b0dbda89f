"""Answers that are shown as they are written: one message that grows, whatever dies in between; typing otherwise."""

from __future__ import annotations

import asyncio
import signal

import pytest
from toy_chat import ToyChatPlugin, ToyServer
from toy_process import ToyHome

from hermes_hookspecs.ports.agent import AssistantStep, TextDelta

PATIENCE_S = 30
EDITS = {"edits": True}


class Writer:
    """An agent that says a piece whenever the test lets it."""

    name, model = "writer", None

    def __init__(self, *pieces):
        self._pieces = pieces
        self.gate = asyncio.Queue()

    def go_on(self, times=1):
        for _ in range(times):
            self.gate.put_nowait(None)

    async def run(self, turn):
        for piece in self._pieces:
            yield TextDelta(text=piece)
            await self.gate.get()
        yield AssistantStep(content="".join(self._pieces))


class Show:
    """A gateway over a toy server in this process."""

    def __init__(self, app, server, agent):
        self.app, self.server, self.agent = app, server, agent

    def drafts(self):
        return self.app.store.states("streaming", now=self.app.clock.now())

    async def until_sent(self):
        async with asyncio.timeout(PATIENCE_S):
            while [one.status for one in self.app.outbox.list()] != ["sent"]:  # noqa: ASYNC110 - in the store
                await asyncio.sleep(0.005)


@pytest.fixture
def show(profile):
    """Return a function that runs a test with a gateway; the platform can do what ``toy`` says."""

    def run(test, *pieces, settings=None, idempotent=False, **toy):
        async def within():
            server = await ToyServer(idempotent=idempotent).start()
            chosen = {
                "platforms.toy.dm_policy": "open",
                "gateway.stream_interval_s": 0.02,
                "inbox.batch_window_s": 0.0,
                "outbox.send_timeout_s": 2.0,
                "outbox.retry_first_s": 0.01,
            }
            app = profile(chosen | (settings or {}), listens=False)
            app.hooks.host.register("toy", ToyChatPlugin({"port": server.port} | toy))
            agent = Writer(*pieces)
            gateway = asyncio.create_task(app.gateway.run(agent=agent))
            try:
                async with asyncio.timeout(60):
                    await test(Show(app, server, agent))
            finally:
                gateway.cancel()
                await asyncio.wait({gateway}, timeout=PATIENCE_S)
                await server.stop()

        asyncio.run(within())

    return run


def test_an_answer_is_one_message_that_grows(show):
    async def test(stage):
        await stage.server.say("hello")
        await stage.server.until(lambda: stage.server.texts() == ["Once "])
        stage.agent.go_on()
        await stage.server.until(lambda: stage.server.texts() == ["Once upon "])
        stage.agent.go_on(2)
        await stage.until_sent()

        (shown,) = stage.server.shown
        assert shown.texts == ["Once ", "Once upon ", "Once upon a time"]
        assert stage.drafts() == ()

    show(test, "Once ", "upon ", "a time", **EDITS)


@pytest.mark.parametrize("toy", [EDITS, {}])
def test_where_streaming_is_off_or_nothing_can_be_edited_the_answer_comes_as_a_whole(show, toy):
    async def test(stage):
        stage.agent.go_on(2)
        await stage.server.say("hello")
        await stage.until_sent()

        assert [one.texts for one in stage.server.shown] == [["Once upon"]]

    show(test, "Once ", "upon", settings={"platforms.toy.streaming": False} if toy else None, **toy)


def test_a_long_answer_grows_in_its_first_message_and_goes_on_below_it(show):
    async def test(stage):
        await stage.server.say("hello")
        await stage.server.until(lambda: stage.server.shown)
        stage.agent.go_on(2)
        await stage.until_sent()

        texts = stage.server.texts()
        assert len(texts) == 3
        assert "".join(texts).replace(" ", "") == "wordsandmore" * 12
        assert all(len(text) <= 60 for text in texts)

    show(test, "words and more " * 3, "words and more " * 9, max_length=80, **EDITS)


def test_a_draft_does_not_overtake_an_answer_that_waits_for_the_same_chat(show):
    async def test(stage):
        stage.server.answers.append("lost")
        await stage.server.say("first")
        stage.agent.go_on(2)
        await stage.server.until(lambda: stage.server.shown)
        await stage.server.say("second")
        async with asyncio.timeout(PATIENCE_S):
            while stage.app.store.stats().turns < 2:  # noqa: ASYNC110 - in the store
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert len(stage.server.shown) == 1
        stage.agent.go_on(2)
        await stage.server.until(lambda: len(stage.server.shown) >= 3)

        assert stage.server.texts()[1].startswith("(may be a repeat)")
        assert stage.server.texts()[2] == "Once upon"

    show(test, "Once ", "upon", settings={"platforms.toy.streaming": True}, **EDITS)


def test_a_draft_that_the_platform_refuses_leaves_the_answer_to_the_delivery(show):
    async def test(stage):
        stage.server.answers.append("rejected")
        await stage.server.say("hello")
        async with asyncio.timeout(PATIENCE_S):
            while stage.server.answers:  # noqa: ASYNC110 - of another task
                await asyncio.sleep(0.005)
        stage.agent.go_on(2)
        await stage.until_sent()

        assert stage.server.texts() == ["Once upon"]

    show(test, "Once ", "upon", **EDITS)


def test_an_answer_whose_draft_cannot_be_edited_any_more_is_sent_below_it(show):
    async def test(stage):
        await stage.server.say("hello")
        await stage.server.until(lambda: stage.server.shown)
        stage.server.shown[0].id = "another"  # nobody finds it by its id
        stage.agent.go_on(2)
        await stage.until_sent()

        assert stage.server.texts() == ["Once ", "Once upon"]

    show(test, "Once ", "upon", **EDITS)


def test_the_last_edit_that_a_platform_allows_is_the_answers(show):
    async def test(stage):
        await stage.server.say("hello")
        for number in range(1, 9):
            await stage.server.until(
                lambda number=number: (
                    len(stage.server.shown[0].texts) == min(number, 3) if stage.server.shown else False
                )
            )
            stage.agent.go_on()
        await stage.until_sent()

        (shown,) = stage.server.shown
        assert shown.texts == ["1", "12", "123", "12345678"]

    show(test, *"12345678", most_edits=3, **EDITS)


def test_an_answer_with_tools_shows_the_step_that_it_is_at(show):
    async def test(stage):
        await stage.server.say("hello")
        await stage.server.until(lambda: stage.server.texts() == ["Let me look."])
        stage.agent.go_on()
        await stage.server.until(lambda: stage.server.texts() == ["Found"])
        stage.agent.go_on()
        await stage.until_sent()

        assert stage.server.texts() == ["Found it."]

    class Looker(Writer):
        async def run(self, turn):
            yield TextDelta(text="Let me look.")
            await self.gate.get()
            yield AssistantStep(content="Let me look.")
            yield TextDelta(text="Found")
            await self.gate.get()
            yield AssistantStep(content="Found it.")

    show(_with_agent(test, Looker), **EDITS)


def _with_agent(test, kind):
    async def run(stage):
        agent = kind()
        stage.agent.run = agent.run
        stage.agent.gate = agent.gate
        await test(stage)

    return run


def test_typing_is_shown_while_a_turn_runs_and_ends_with_it(show):
    async def test(stage):
        await stage.server.say("hello")
        await stage.server.until(lambda: stage.server.typing)
        assert stage.server.typing == [("c1", True)]
        stage.agent.go_on()
        await stage.until_sent()
        await stage.server.until(lambda: len(stage.server.typing) == 2)

        assert stage.server.typing == [("c1", True), ("c1", False)]

    show(test, "Once", typing=True)


def test_typing_ends_with_a_turn_that_failed(show):
    async def test(stage):
        class Broken:
            name, model = "broken", None

            async def run(self, turn):
                raise RuntimeError("broken")
                yield

        stage.agent.run = Broken().run
        await stage.server.say("hello")
        await stage.server.until(lambda: len(stage.server.typing) == 2)

        assert stage.server.typing[-1] == ("c1", False)

    show(test, "Once", typing=True)


def test_a_platform_that_hangs_when_it_is_told_of_typing_delays_no_answer(show):
    async def test(stage):
        async def hang(self, target, *, on):
            await asyncio.Event().wait()

        from toy_chat import ToyAdapter

        patched = pytest.MonkeyPatch()
        patched.setattr(ToyAdapter, "typing", hang)
        try:
            stage.agent.go_on()
            await stage.server.say("hello")
            await stage.until_sent()
        finally:
            patched.undo()

        assert stage.server.texts() == ["Once"]

    show(test, "Once", typing=True, settings={"outbox.send_timeout_s": 0.3})


# --- kills


STREAM_POINTS = ["stream.opened", "stream.sent", "stream.shown", "stream.edited"]
OTHER_POINTS = ["finish.before", "finish.stored", "deliver.claimed", "deliver.split", "deliver.sent", "deliver.marked"]
SETTINGS = "[gateway]\nstream_interval_s = 0.02\n[outbox]\nretry_first_s = 0.05"


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("point", [*STREAM_POINTS, *OTHER_POINTS])
def test_a_gateway_killed_at_any_step_leaves_one_answer_or_says_that_it_repeats(tmp_path, point, idempotent):
    async def test():
        server = await ToyServer(idempotent=idempotent).start()
        toy = f"edits = true\nidempotent_send = {str(idempotent).lower()}"
        home = ToyHome(tmp_path, server.port, toy=toy, settings=SETTINGS)
        leading = asyncio.create_task(_lead(server, point))
        try:
            first = home.run("--agent", "patient", env={"HERMES_FAULT_POINTS": f"{point}:kill"})
            await server.say("hello")
            assert await asyncio.to_thread(first.wait, PATIENCE_S) == -signal.SIGKILL
            home.run("--agent", "patient")
            leading.cancel()
            leading = asyncio.create_task(_lead(server, ""))
            async with asyncio.timeout(PATIENCE_S):
                while not await asyncio.to_thread(_is_sent, home):
                    continue
        finally:
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            home.close()
            await server.stop()
        return server.texts()

    texts = asyncio.run(test())

    whole = [text for text in texts if text == "well, hello"]
    others = [text for text in texts if text != "well, hello"]
    assert len(whole) <= 1
    assert all(text in {"well,", "(may be a repeat) well, hello"} for text in others), texts
    if idempotent or point not in ("stream.opened", "stream.sent"):
        assert texts == ["well, hello"]


def _is_sent(home):
    return [one["status"] for one in home.json("outbox", "list", "--all")] == ["sent"]


async def _lead(server, point):
    """Let agents go on, so that the process comes to the point where it dies."""
    if point == "stream.edited":
        await server.until(lambda: server.shown)
        server.go()
    while point not in STREAM_POINTS:
        await asyncio.sleep(0.05)
        server.go()
