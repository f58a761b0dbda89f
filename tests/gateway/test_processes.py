"""Gateways as processes: one owner, takeover, stop, reload, and what people are told of it."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest
from toy_chat import ToyServer
from toy_process import ToyHome

PATIENCE_S = 30


def within(test):
    async def run():
        async with asyncio.timeout(90):
            await test

    asyncio.run(run())


@pytest.fixture
def homes(tmp_path):
    """Return a function that makes a home; its processes are gone when the test ends."""
    made = []

    def make(port, name="home", **options):
        made.append(ToyHome(tmp_path / name, port, **options))
        return made[-1]

    yield make
    for home in made:
        home.close()


async def ended(process):
    return await asyncio.to_thread(process.wait, PATIENCE_S)


async def logged(home, words, times=1):
    async with asyncio.timeout(PATIENCE_S):
        while home.log.count(words) < times:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)


def test_the_second_gateway_waits_and_takes_over_when_the_first_is_killed(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port)
        first = home.run()
        await server.until(lambda: server.connections["default"] == 1)
        second = home.run()
        await logged(home, f"toy is elsewhere: served by process {first.pid}")
        assert server.connections["default"] == 1

        first.send_signal(signal.SIGKILL)
        await server.until(lambda: server.connections["default"] == 2)
        await server.say("are you there")
        await server.until(lambda: server.shown)
        second.send_signal(signal.SIGTERM)

        assert server.texts() == ["echo 1: are you there"]
        assert await ended(second) == 0
        await server.stop()

    within(test())


def test_status_knows_a_dead_gateway_from_a_live_one_and_from_none(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port)
        none = await asyncio.to_thread(home.hermes, "gateway", "status")
        assert none.returncode == 1
        assert "No gateway runs" in none.stdout

        process = home.run()
        await logged(home, "toy is connected")
        live = await asyncio.to_thread(home.json, "gateway", "status")
        assert (live["running"], live["accounts"][0]["state"]) == (True, "connected")

        process.send_signal(signal.SIGKILL)
        await ended(process)
        dead = await asyncio.to_thread(home.hermes, "gateway", "status")
        assert f"gateway {process.pid}" in dead.stdout
        assert "died without a word" in dead.stdout
        assert "not running" in dead.stdout
        stopped = await asyncio.to_thread(home.hermes, "gateway", "stop")
        assert (stopped.returncode, stopped.stderr) == (0, "No gateway runs.\n")
        await server.stop()

    within(test())


def test_gateway_stop_lets_it_leave_with_a_word(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port)
        process = home.run()
        await logged(home, "toy is connected")

        stopped = await asyncio.to_thread(home.json, "gateway", "stop")

        assert await ended(process) == 0
        assert [(one["pid"], one["lives"]) for one in stopped] == [(process.pid, False)]
        assert (await asyncio.to_thread(home.json, "gateway", "status"))["processes"] == []
        await server.stop()

    within(test())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_turn_ends_and_is_sent_before_the_gateway_leaves(homes, number):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port)
        process = home.run("--agent", "patient")
        await server.say("hello")
        await server.until(lambda: server.acked)
        await asyncio.to_thread(_until_a_turn_runs, home)
        process.send_signal(number)
        await logged(home, "stopping")
        while process.poll() is None:
            server.go()
            await asyncio.sleep(0.02)

        assert await ended(process) == 0
        assert server.texts() == ["well, hello"]
        assert (await asyncio.to_thread(home.json, "outbox", "list", "--all"))[0]["status"] == "sent"
        await server.stop()

    within(test())


def _until_a_turn_runs(home):
    for _ in range(100):
        if home.json("leases"):
            return
    raise TimeoutError("no turn runs")


def test_a_second_signal_ends_it_at_once_and_the_next_one_answers(homes):
    async def test():
        server = await ToyServer().start()
        server.answers.extend(["lost"] * 1)
        home = homes(server.port, settings="[outbox]\nsend_timeout_s = 60\n[turns]\ndrain_s = 60")
        process = home.run()
        await server.say("hello")
        await server.until(lambda: server.shown)  # it arrived, and its sender waits to hear of it
        process.send_signal(signal.SIGTERM)
        await logged(home, "stopping")
        process.send_signal(signal.SIGTERM)

        assert await ended(process) == 128 + signal.SIGTERM
        again = home.run()
        await server.until(lambda: len(server.shown) == 2)
        assert server.texts()[0] == "echo 1: hello"
        assert server.texts()[1].endswith("echo 1: hello")
        assert server.texts()[1] != server.texts()[0]  # said to be a possible repeat
        again.kill()
        await server.stop()

    within(test())


def test_sighup_reads_the_configuration_anew_and_keeps_the_old_one_where_it_is_wrong(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port, dm_policy="off")
        process = home.run()
        await server.say("nobody hears me")
        await server.until(lambda: server.acked)

        (home.path / "config.toml").write_text("[gateway]\nwatchdog = 1\n", encoding="utf-8")
        process.send_signal(signal.SIGHUP)
        await logged(home, "everything goes on as it was")
        assert server.connections["default"] == 1

        home.configure(server.port, dm_policy="open")
        process.send_signal(signal.SIGHUP)
        await server.until(lambda: server.connections["default"] == 2)
        await server.say("now I am heard")
        await server.until(lambda: server.shown)

        assert server.texts() == ["echo 1: now I am heard"]
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0
        await server.stop()

    within(test())


def test_pairing_by_the_command_line_while_the_gateway_runs(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port, dm_policy="pairing")
        home.run()
        await server.say("hello", name="小明")
        await server.until(lambda: server.shown)
        code = server.texts()[0].partition("runs me: ")[2].split()[0]

        listed = await asyncio.to_thread(home.hermes, "pairing", "list")
        approved = await asyncio.to_thread(home.hermes, "pairing", "approve", code)
        await server.until(lambda: len(server.shown) == 2)
        await server.say("hello again")
        await server.until(lambda: len(server.shown) == 3)
        wrong = await asyncio.to_thread(home.hermes, "pairing", "approve", code)
        revoked = await asyncio.to_thread(home.json, "pairing", "revoke", "u1")

        assert "小明" in listed.stdout
        assert code not in listed.stdout
        assert (approved.returncode, approved.stderr) == (0, "u1 (小明) of toy is let in, and will be told\n")
        assert server.texts()[2] == "echo 1: hello again"
        assert (wrong.returncode, "no such code" in wrong.stderr) == (2, True)
        assert [one["user_id"] for one in revoked] == ["u1"]
        await server.stop()

    within(test())


def test_what_is_logged_as_json_is_one_object_a_line_and_holds_no_text(homes):
    async def test():
        server = await ToyServer().start()
        home = homes(server.port, settings='[gateway]\nlog = "json"')
        process = home.run()
        await server.say("my secret")
        await server.until(lambda: server.shown)
        process.send_signal(signal.SIGTERM)
        await ended(process)

        lines = [json.loads(line) for line in home.log.splitlines()]
        assert [one["state"] for one in lines if one.get("platform") == "toy"][-1:] == ["connected"]
        assert all({"time", "level", "logger", "message"} <= set(one) for one in lines)
        assert "secret" not in home.log
        await server.stop()

    within(test())


def test_each_bot_follows_its_own_profile_for_settings_and_storage(homes):
    """J11: the isolation of a second profile is its own, and so is what it stores."""

    async def test():
        server = await ToyServer().start()
        shared = homes(server.port, "shared", settings="[routing]\ngroup_sessions_per_user = false")
        apart = homes(
            server.port, "apart", toy='accounts = ["second"]', settings="[routing]\ngroup_sessions_per_user = true"
        )
        for home in (shared, apart):
            text = (home.path / "config.toml").read_text(encoding="utf-8")
            (home.path / "config.toml").write_text(
                text.replace("[platforms.toy]\n", '[platforms.toy]\ngroup_policy = "open"\n'), encoding="utf-8"
            )
            home.run()
        for account in ("default", "second"):
            for user in ("ann", "bob"):
                await server.say(user, chat="g", user=user, account=account, group=True)
        await server.until(lambda: len(server.shown) == 4)

        assert len(await asyncio.to_thread(shared.json, "sessions", "list")) == 1
        assert len(await asyncio.to_thread(apart.json, "sessions", "list")) == 2
        await server.stop()

    within(test())
