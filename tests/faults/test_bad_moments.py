"""Disks that fill up or cannot be written, an upgrade under a running process, and a clock that somebody sets."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from contextlib import suppress

import apsw
import pytest

from hermes_core import SessionSource, open_app
from hermes_hookspecs.errors import StorageError, StoreFull, StoreRefused, StoreStopped
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import Deliver
from hermes_hookspecs.outbox import DeliveryDraft, delivery_key
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.platform import RecordingSender

CHAT = SessionSource(platform="chatA", chat_id="a1", user_id="ming")
HOUR_MS = 3_600_000


@pytest.fixture
def open_home():
    """Open profiles that are closed at the end."""
    opened = []

    def open_one(home, clock=None):
        overrides = {"inbox.batch_window_s": 0, "outbox.retry_first_s": 0.01, "storage.busy_timeout_s": 2}
        opened.append(open_app(home, overrides=overrides, plugins=False, environ={}, clock=clock))
        return opened[-1]

    yield open_one
    for app in opened:
        app.close()


@pytest.fixture
def small_disk(tmp_path):
    """Return the folder of a file system that holds two megabytes."""
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def _remount(folder, option):
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], capture_output=True, check=True)


def _fill(folder):
    """Write until nothing more fits; return the file."""
    filler = folder / "filler"
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    size = 65536
    try:
        while size >= 512:
            try:
                os.write(descriptor, bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    finally:
        os.close(descriptor)
    return filler


def _said(name, app, text=None):
    identity = f"a1/{name}"
    return MessageEvent(source=CHAT, text=text or name, identities=(identity,), received_at=app.clock.now())


def _served(sender):
    return [ServedEntrance(entrance=Entrance("chatA"), sender=sender)]


def _work(app, sender, agent="echo"):
    asyncio.run(app.work(_served(sender), agent=agent, until_idle=True))


def _accepted_until_it_fails(app):
    """Accept one message after the other; return those that were, and number and error of the first that was not."""
    names = []
    for number in range(10_000):
        name = f"{number} " + "x" * 2000
        try:
            asyncio.run(app.accept([_said(str(number), app, name)]))
        except StorageError as error:
            return names, number, error
        names.append(name)
    raise AssertionError("the disk did not fill up")


def test_what_a_full_disk_refuses_is_taken_when_it_is_delivered_again(open_home, small_disk):
    app, sender = open_home(small_disk / "home"), RecordingSender()
    app.store.stats()
    asyncio.run(app.accept([_said("first", app)]))
    filler = _fill(small_disk)

    names, refused, error = _accepted_until_it_fails(app)
    filler.unlink()
    (again,) = asyncio.run(app.accept([_said(str(refused), app, "again")]))
    _work(app, sender)

    assert isinstance(error, StoreFull)
    assert not again.duplicate
    heard = [text.partition(": ")[2] for text in sender.texts()]
    assert [text.split()[0] for text in heard] == ["first", *(name.split()[0] for name in names), "again"]


class FillingAgent:
    """Fills the disk between a step and its result; frees it once it is told that this could not be stored."""

    name = "filling"
    model = None

    def __init__(self, folder):
        self._folder = folder
        self.tries = 0

    async def run(self, turn):
        self.tries += 1
        call = ToolCall(id="1", name="look", effect="read")
        yield AssistantStep(content="looking", tool_calls=(call,))
        if self.tries > 1:
            yield ToolResult(call_id="1", name="look", content="nothing")
            yield AssistantStep(content=f"answer to {turn.text}")
            return
        filler = _fill(self._folder)
        try:
            yield ToolResult(call_id="1", name="look", content="x" * 1_000_000)
        finally:
            asyncio.get_running_loop().call_later(0.2, filler.unlink)


def test_a_disk_that_fills_up_in_the_middle_of_a_turn_leaves_nobody_without_word(open_home, small_disk):
    app, sender = open_home(small_disk / "home"), RecordingSender()
    agent = FillingAgent(small_disk)

    async def main():
        await app.accept([_said("first", app)])
        await app.accept([_said("second", app)])
        for _ in range(3):  # what could not be written is owed, and written when there is room
            with suppress(StorageError):
                await app.work(_served(sender), agent=agent, until_idle=True)
            await asyncio.sleep(0.3)

    asyncio.run(main())

    texts = sender.texts()
    assert texts[-1] == "answer to second"
    assert len(texts) == 2
    assert app.store.leases() == ()
    assert app.store.deliveries(statuses=("waiting", "sending")) == ()


def test_a_store_that_cannot_be_written_for_a_while_takes_what_is_delivered_again(open_home, small_disk):
    app, sender = open_home(small_disk / "home"), RecordingSender()
    asyncio.run(app.accept([_said("first", app)]))
    app.close()
    _remount(small_disk, "ro")

    with pytest.raises(StorageError) as caught:
        asyncio.run(open_home(small_disk / "home").accept([_said("second", app)]))
    _remount(small_disk, "rw")
    app = open_home(small_disk / "home")
    results = asyncio.run(app.accept([_said("first", app), _said("second", app)]))
    _work(app, sender)

    assert "\n" not in str(caught.value)
    assert [result.duplicate for result in results] == [True, False]
    assert sender.texts() == ["echo 1: first", "echo 2: second"]


def test_an_upgrade_under_a_running_process_stops_its_writing_with_one_line(open_home, tmp_path):
    app, sender = open_home(tmp_path / "home"), RecordingSender()
    asyncio.run(app.accept([_said("first", app)]))
    connection = apsw.Connection(app.store.location)
    (version,) = connection.execute("PRAGMA user_version").fetchall()[0]
    connection.execute(f"PRAGMA user_version = {version + 1}").fetchall()

    with pytest.raises(StoreStopped) as accepting:
        asyncio.run(app.accept([_said("second", app)]))
    with pytest.raises(StoreStopped) as working:
        asyncio.run(asyncio.wait_for(app.work(_served(sender), agent="echo"), 20))
    with pytest.raises(StoreRefused):
        open_home(tmp_path / "home").store.stats()

    for caught in (accepting, working):
        assert "restart with that version" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert sender.texts() == []
    assert connection.execute("SELECT text, status FROM inbox").fetchall() == [("first", "pending")]
    connection.close()


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_a_wall_clock_that_is_set_by_an_hour_steals_no_living_turn(open_home, tmp_path, jump_ms):
    clock, sender = FakeClock(), RecordingSender()
    first, second = open_home(tmp_path / "home", clock), open_home(tmp_path / "home", clock)
    went_on = []

    async def main():
        inside, go = asyncio.Event(), asyncio.Event()

        class Slow:
            name, model = "slow", None

            async def run(self, turn):
                inside.set()
                await go.wait()
                yield AssistantStep(content=f"answer to {turn.text}")

        await first.accept([_said("first", first)])
        working = asyncio.create_task(first.work(_served(sender), agent=Slow()))
        await asyncio.wait_for(inside.wait(), 20)
        clock.set_now(clock.now() + jump_ms)
        await second.accept([_said("second", second)])
        other = asyncio.create_task(second.work(_served(sender), agent="echo"))
        for _ in range(3):  # each look of the other one begins with one at the lease
            await asyncio.wait({other}, timeout=0.2)
            went_on.append(len(first.store.turns(first.store.leases()[0].lineage_id, first.principal(CHAT))))
        go.set()
        while len(sender.texts()) < 2:  # noqa: ASYNC110 - the sender tells nobody
            await asyncio.sleep(0.02)
        for task in (working, other):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(main(), 60))

    assert went_on == [1, 1, 1]
    assert sender.texts()[0] == "answer to first"


def test_an_answer_that_was_stored_before_the_clock_was_set_back_does_not_wait_for_the_hour(open_home, tmp_path):
    clock, sender = FakeClock(), RecordingSender()
    app = open_home(tmp_path / "home", clock)
    key = app.session_key(CHAT)
    answer = DeliveryDraft(key=delivery_key(key, 1), target=CHAT, text="answer", session_key=key)
    app.store.apply(Deliver(drafts=(answer,), now=clock.now()))

    clock.set_now(clock.now() - HOUR_MS)
    _work(app, sender)

    assert sender.texts() == ["answer"]
