"""The gateway in this process: accounts side by side, each with its own troubles; status, health, streams of faults."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import asynccontextmanager
from contextvars import ContextVar
from logging import INFO

import pytest
from toy_chat import ToyChatPlugin, ToyPlatform, ToyServer

from hermes_core.gateway.ownership import Ownership
from hermes_hookspecs.errors import AuthFailed, ConfigError, RetryLater
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING
from hermes_hookspecs.source import Entrance

PATIENCE_S = 20
QUICK = {"gateway.retry_first_s": 0.01, "gateway.retry_most_s": 0.05, "inbox.batch_window_s": 0.0}


class Gate:
    """A profile, a toy server, and the gateway between them."""

    def __init__(self, app, server):
        self.app, self.server = app, server
        self.task = None

    def account(self, name="toy", alias="default"):
        return next(one for one in self.app.gateway.accounts() if one.entrance == Entrance(name, alias))

    async def until_state(self, state, name="toy", alias="default"):
        async with asyncio.timeout(PATIENCE_S):
            while self.account(name, alias).state != state:  # noqa: ASYNC110 - read from a file, as others do
                await asyncio.sleep(0.01)
        return self.account(name, alias)

    async def seen(self, count=1):
        await self.server.until(lambda: len(self.server.shown) >= count)
        return self.server.texts()


class Others:
    """A plugin with further platforms."""

    def __init__(self, *platforms):
        self._platforms = platforms

    @hookimpl
    def hermes_platforms(self):
        return self._platforms


@pytest.fixture
def gate(profile):
    """Return an asynchronous context: a gateway that runs, over a server of its own."""

    @asynccontextmanager
    async def running(settings=None, *, toy=None, plugins=(), agent=None, server=None, runs=True, **options):
        server = await (server or ToyServer()).start()
        chosen = {"platforms.toy.dm_policy": "open"} | QUICK | (settings or {})
        config = {"port": server.port} | (toy or {})
        app = profile(chosen, plugins=(ToyChatPlugin(config), *plugins), listens=False)
        found = Gate(app, server)
        if runs:
            found.task = asyncio.create_task(app.gateway.run(agent=agent, **options))
        try:
            yield found
        finally:
            if found.task is not None:
                found.task.cancel()
                await asyncio.wait({found.task}, timeout=PATIENCE_S)
            await server.stop()

    return running


def within(test):
    """Run an asynchronous test within the time."""

    async def run():
        async with asyncio.timeout(60):
            await test

    asyncio.run(run())


def test_a_message_is_answered_where_it_came_from(gate):
    async def test():
        async with gate() as found:
            await found.server.say("hello")

            assert await found.seen() == ["echo 1: hello"]
            assert (await found.until_state(CONNECTED)).starts == 1

    within(test())


def test_hermes_platforms_of_a_plugin_are_run_and_each_account_has_its_own_session(gate):
    async def test():
        async with gate(toy={"accounts": ["default", "second"]}) as found:
            await found.server.say("to the first")
            await found.server.say("to the second", account="second")

            assert sorted(await found.seen(2)) == ["echo 1: to the first", "echo 1: to the second"]
            assert {one.account for one in found.server.shown} == {"default", "second"}

    within(test())


def test_a_message_is_acknowledged_only_once_it_is_stored_and_answered_once_however_often_it_comes(gate):
    async def test():
        server = ToyServer()
        server.lose_acks = 3
        async with gate(server=server) as found:
            await server.until(lambda: server.connections["default"] == 1)
            number = await server.say("once", times=3)
            await found.seen()
            await server.drop()
            await server.until(lambda: server.connections["default"] == 2)
            await server.say("last")
            await found.seen(2)

            assert server.texts() == ["echo 1: once", "echo 2: last"]
            assert server.acked[number] == 4

    within(test())


def test_a_connection_that_breaks_is_made_anew_and_the_other_platform_hears_nothing_of_it(gate):
    async def test():
        other = await ToyServer().start()
        platform = ToyPlatform(port=other.port, name="other")
        async with gate({"platforms.other.dm_policy": "open"}, plugins=(Others(platform),)) as found:
            await other.until(lambda: other.connections["default"] == 1)
            for times in range(2, 5):
                await found.server.drop()
                await found.server.until(lambda times=times: found.server.connections["default"] == times)
            await other.say("are you there")
            await other.until(lambda: other.shown)

            assert found.account("other").starts == 1
        await other.stop()

    within(test())


def test_an_account_without_its_settings_is_named_and_the_others_run(gate):
    async def test():
        broken = ToyPlatform(port=0, name="broken")
        async with gate(plugins=(Others(broken),)) as found:
            await found.server.say("hello")
            await found.seen()

            failed = await found.until_state("failed", "broken")
            assert "port is missing" in failed.detail

    within(test())


def test_a_platform_that_cannot_even_say_its_accounts_is_named_and_the_others_run(gate):
    class Wrong(ToyPlatform):
        def accounts(self):
            raise RuntimeError("no idea")

    async def test():
        async with gate(plugins=(Others(Wrong(name="wrong")),)) as found:
            await found.server.say("hello")
            await found.seen()

            assert "no idea" in (await found.until_state("failed", "wrong")).detail

    within(test())


def test_refused_credentials_are_not_tried_again(gate):
    async def test():
        async with gate(toy={"secret": "wrong"}) as found:
            failed = await found.until_state("failed")

            assert "refused" in failed.detail
            assert failed.starts == 1
            assert not found.task.done()

    within(test())


def test_nothing_configured_is_said_in_one_line(profile):
    app = profile(listens=False)

    with pytest.raises(ConfigError, match="no chat platform is configured: install one"):
        asyncio.run(app.gateway.run())


def test_an_account_that_is_the_only_one_and_cannot_be_run_ends_the_gateway_with_its_reason(gate):
    async def test():
        async with gate(toy={"port": 0}) as found:
            await asyncio.wait({found.task}, timeout=PATIENCE_S)

            with pytest.raises(ConfigError, match=r"toy cannot be run: .*port is missing"):
                found.task.result()

    within(test())


def test_a_platform_that_nobody_has_installed_is_refused_by_name(gate):
    async def test():
        async with gate(runs=False) as found:
            with pytest.raises(ConfigError, match="there is no chat platform 'tyo'; installed are: toy"):
                await found.app.gateway.run(platforms=["tyo"])

    within(test())


def test_a_connection_that_falls_silent_is_made_anew(gate):
    async def test():
        async with gate({"gateway.watchdog_s": 0.2}) as found:
            await found.server.say("hello")
            await found.seen()
            found.server.silent = True

            await found.server.until(lambda: found.server.connections["default"] >= 2)

    within(test())


def test_an_adapter_that_never_says_that_it_hears_something_is_left_alone(gate):
    ran = asyncio.Event()

    class Listening(ToyPlatform):
        def adapter(self, setup):
            return self

        async def run(self, inlet):
            inlet.report(CONNECTED)
            ran.set()
            await asyncio.Event().wait()

    async def test():
        async with gate({"gateway.watchdog_s": 0.1}, plugins=(Others(Listening(name="hook")),)) as found:
            await ran.wait()
            await found.server.say("hello")
            await found.seen()
            await asyncio.sleep(0.4)

            assert found.account("hook").starts == 1

    within(test())


def test_an_adapter_that_swallows_its_cancellation_is_left_behind(gate):
    let_go = asyncio.Event()

    class Stubborn(ToyPlatform):
        def adapter(self, setup):
            return self

        async def run(self, inlet):
            inlet.report(CONNECTED)
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

    async def test():
        async with gate(plugins=(Others(Stubborn(name="stubborn", leave_s=0.1)),)) as found:
            await found.until_state(CONNECTED, "stubborn")
            found.task.cancel()
            done, _ = await asyncio.wait({found.task}, timeout=10)

            assert done
        let_go.set()

    within(test())


def _lines(caplog, name):
    """Return what the log says about an account at INFO or above."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= INFO
        and record.name == "hermes_core.gateway.process"
        and f"{name} is " in record.getMessage()
    ]


def test_a_platform_that_is_away_has_one_line_for_each_reason_and_one_when_it_is_back(gate, caplog):
    class Away(ToyPlatform):
        runs = 0

        def adapter(self, setup):
            return self

        async def run(self, inlet):
            self.runs += 1
            if self.runs < 9:
                raise RetryLater("no way there" if self.runs < 6 else "the door is shut")
            inlet.report(CONNECTED)
            await asyncio.Event().wait()

    caplog.set_level(INFO)

    async def test():
        async with gate(plugins=(Others(Away(name="away")),)) as found:
            back = await found.until_state(CONNECTED, "away")
            assert back.starts == 9

    within(test())
    assert _lines(caplog, "away") == [
        "away is waiting: no way there",
        "away is waiting: the door is shut",
        "away is connected",
    ]


def test_an_account_that_is_connecting_again_still_says_why_it_was_away(gate):
    class Slow(ToyPlatform):
        runs = 0

        def adapter(self, setup):
            return self

        async def run(self, inlet):
            self.runs += 1
            inlet.report(CONNECTING)
            if self.runs == 1:
                raise RetryLater("no way there")
            await asyncio.Event().wait()

    async def test():
        platform = Slow(name="slow")
        async with gate(plugins=(Others(platform),)) as found, asyncio.timeout(PATIENCE_S):
            while found.account("slow").starts < 2:  # noqa: ASYNC110 - read from a file, as others do
                await asyncio.sleep(0.01)

            again = await found.until_state(CONNECTING, "slow")
            assert again.detail == "no way there"

    within(test())


def test_what_strangers_do_to_an_account_is_in_its_status_and_fills_no_log(gate, caplog):
    class Door(ToyPlatform):
        def adapter(self, setup):
            return self

        async def run(self, inlet):
            for number in range(50):
                inlet.report(CONNECTED, f"{number} calls were refused")
            await asyncio.Event().wait()

    caplog.set_level(INFO)

    async def test():
        async with gate(plugins=(Others(Door(name="door")),)) as found:
            async with asyncio.timeout(PATIENCE_S):
                while found.account("door").detail != "49 calls were refused":  # noqa: ASYNC110 - read from a file
                    await asyncio.sleep(0.01)

    within(test())
    assert len(_lines(caplog, "door")) == 1


def test_an_adapter_may_raise_anything_and_is_run_again_ever_later(gate):
    class Flaky(ToyPlatform):
        runs = 0

        def adapter(self, setup):
            return self

        async def run(self, inlet):
            self.runs += 1
            if self.runs < 4:
                raise [RuntimeError("x"), asyncio.CancelledError(), ValueError("y")][self.runs - 1]
            raise AuthFailed("enough")

    async def test():
        async with gate(plugins=(Others(Flaky(name="flaky")),)) as found:
            failed = await found.until_state("failed", "flaky")

            assert (failed.starts, failed.detail) == (4, "enough")
            assert not found.task.done()

    within(test())


def test_a_context_variable_that_one_session_sets_is_not_seen_by_another(gate):
    name = ContextVar("name", default="nobody")
    seen = []

    def agent(turn):
        seen.append(name.get())
        name.set(turn.text)
        return turn.text

    async def test():
        async with gate(agent=agent) as found:
            for number in range(4):
                await found.server.say(f"I am {number}", chat=f"c{number}", user=f"u{number}")
                await found.seen(number + 1)

        assert seen == ["nobody"] * 4

    within(test())


def test_messages_of_one_chat_are_answered_in_order_and_chats_side_by_side(gate):
    async def test():
        async with gate() as found:
            for number in range(10):
                for chat in ("a", "b", "c"):
                    await found.server.say(f"{number}", chat=chat, user=chat)
            await found.seen(30)

            for chat in ("a", "b", "c"):
                assert found.server.texts(chat) == [f"echo {n + 1}: {n}" for n in range(10)]

    within(test())


# --- what it says of itself


async def _ask(port, path, method="GET"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_health_and_metrics_say_how_it_is_and_never_what_was_said(gate, port):
    async def test():
        async with gate({"gateway.health_port": port, "platforms.toy.dm_policy": "open"}) as found:
            await found.server.say("my secret", chat="secret-chat", user="secret-user")
            await found.seen()
            await found.until_state(CONNECTED)

            status, health = await _ask(port, "/health")
            _, text = await _ask(port, "/metrics?x=1")

            assert (status, json.loads(health)["status"]) == (200, "ok")
            assert 'hermes_gateway_account_state{platform="toy",account="default",state="connected"} 1' in text
            assert 'hermes_gateway_messages_total{platform="toy",account="default",result="accepted"} 1' in text
            assert "secret" not in text + health
            assert (await _ask(port, "/"))[0] == 404
            assert (await _ask(port, "/health", "POST"))[0] == 405

            await found.server.drop()
            found.server._server.close()
            await found.until_state("waiting")
            assert (await _ask(port, "/health"))[0] == 503

    within(test())


@pytest.mark.parametrize("junk", [b"\r\n\r\n", b"x" * 20_000, b"GET /health\r\n\r\n", b"\xff\xfe\r\n\r\n"])
def test_who_talks_nonsense_to_the_health_endpoint_harms_nobody(gate, port, junk):
    async def test():
        async with gate({"gateway.health_port": port}) as found:
            await found.until_state(CONNECTED)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(junk)
            await reader.read()
            writer.close()

            assert (await _ask(port, "/health"))[0] == 200

    within(test())


def test_a_health_port_that_is_taken_is_told_and_the_gateway_runs(gate):
    async def test():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            async with gate({"gateway.health_port": taken.getsockname()[1]}) as found:
                await found.server.say("hello")
                await found.seen()

                (status,) = found.app.gateway.status()
                assert "cannot be had: Address already in use" in status.health

    within(test())


def test_a_health_port_that_gets_free_is_taken_by_who_waits_for_it(gate, monkeypatch):
    monkeypatch.setattr("hermes_core.gateway.health._AGAIN_S", 0.01)

    async def test():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            async with gate({"gateway.health_port": port}) as found:
                await found.until_state(CONNECTED)
                taken.close()
                async with asyncio.timeout(PATIENCE_S):
                    while await _tried(port) != 200:  # noqa: ASYNC110 - asked for over a socket, as others do
                        await asyncio.sleep(0.01)

    within(test())


async def _tried(port):
    try:
        return (await _ask(port, "/health"))[0]
    except ConnectionError:
        return 0


def test_a_gateway_that_has_left_with_a_word_is_not_there_any_more(gate):
    async def test():
        async with gate() as found:
            await found.until_state(CONNECTED)
            (running,) = found.app.gateway.status()
            found.task.cancel()
            await asyncio.wait({found.task})

            assert (running.pid, running.lives) == (os.getpid(), True)
            assert found.app.gateway.status() == []
            assert found.account().state == ""

    within(test())


def test_the_folder_of_an_account_is_its_own_and_no_alias_leads_out_of_it(profile):
    app = profile(listens=False)

    own = app.account_folder("toy", "second")
    odd = app.account_folder("toy", "../../etc")

    assert own.parts[-3:] == ("platforms", "toy", "second")
    assert own.stat().st_mode & 0o777 == 0o700
    assert odd.parent == own.parent


def test_an_account_has_one_owner_and_is_free_again_when_that_lets_go(tmp_path):
    first, second = Ownership(tmp_path, Entrance("toy")), Ownership(tmp_path, Entrance("toy"))

    assert first.take(1)
    assert first.take(2)
    assert not second.take(3)
    assert f"process {os.getpid()} on " in second.owner()
    assert Ownership(tmp_path, Entrance("toy", "other")).take(4)
    first.release()
    assert second.take(5)
