"""A waiter that sees the process in its way die begins at once: what it saw before stands, or the begin is refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import attrs
import pytest

from hermes_core.turns.queue import LineageQueue
from hermes_hookspecs.messages import MessageDraft, ToolCall
from hermes_hookspecs.operations import Accept, Append, Begin, Begun, Busy
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.turns import Fence

HOLDER = """
import sys
from hermes_core import open_app
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource

async def agent(turn):
    yield AssistantStep(tool_calls=(ToolCall(id="a", name="launch"),))
    print("running", flush=True)
    sys.stdin.readline()

app = open_app(sys.argv[1], plugins=False, environ={})
app.ask("go", SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1"), agent=agent)
"""


@pytest.mark.parametrize("backend", ["sqlite"])
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot watch a process")
def test_the_first_in_line_takes_over_from_a_killed_process_without_another_look(
    bench, tmp_path, monkeypatch, wait_until
):
    looks = []

    class Watched(LineageQueue):
        def look(self, reader, own=None):
            looks.append(super().look(reader, own))
            return looks[-1]

    monkeypatch.setattr("hermes_core.turns.surroundings.LineageQueue", Watched)
    command = [sys.executable, "-P", "-c", HOLDER, str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        work = bench()
        entry = work.enter()

        async def main():
            task = work.asking("are you there?")
            await wait_until(lambda: looks and work.waiters(entry) == 1)
            seen = len(looks)
            work.waker.wake(entry.lineage_id)
            await wait_until(lambda: len(looks) > seen)  # the next one is a second away
            process.kill()
            return await task

        result = asyncio.run(main())

    assert result.text == "heard are you there?"
    assert [turn.outcome for turn in work.turns(entry)] == ["interrupted", "done"]
    assert {look.presumed_dead for look in looks} == {None}
    assert work.store.written.count("Begin") == 1


def begun_elsewhere(work, entry, holder, *, waits_there=True):
    """Begin a turn as another process would; its sender waits there, or is one of a chat."""
    draft = work.request("first", entry=entry).draft
    waiter = attrs.evolve(draft.waiter, **holder) if waits_there else None
    accept = Accept(drafts=(attrs.evolve(draft, waiter=waiter),), now=work.clock.now(), max_waiting=100)
    (taken,) = work.app.store.apply(accept)
    begun = work.app.store.apply(
        Begin(
            lineage_id=entry.lineage_id,
            turn_id="T_other",
            holder=work.holder(**holder),
            now=work.clock.now(),
            ttl_ms=30_000,
            drafts=(MessageDraft(role="user", content="first", timestamp=1, inbox_id=taken.id),),
        )
    )
    assert isinstance(begun, Begun)
    return begun


@pytest.mark.parametrize("writes", [False, True])
def test_what_was_seen_before_the_death_holds_unless_the_holder_wrote_since(bench, elsewhere, writes):
    work = bench(clock=FakeClock())
    entry = work.enter()
    begun = begun_elsewhere(work, entry, elsewhere)
    own = work.app.store.inbox_item(work.leave_a_row(entry, "second"))
    queue = work.engine.around.queue(entry.lineage_id)
    look = queue.look(work.app.store, own=own.id)
    if writes:
        fence = Fence(lineage_id=entry.lineage_id, turn_id=begun.turn.id, token=begun.lease.token)
        step = MessageDraft(role="assistant", content="", timestamp=2, tool_calls=(ToolCall(id="a", name="launch"),))
        work.app.store.apply(Append(fence=fence, drafts=(step,), now=work.clock.now()))

    inherited = look.after_death()
    operation = queue.begin(inherited, (own,), holder=work.holder(), shared=False, snapshot=None)
    result = work.app.store.apply(operation)

    assert isinstance(result, Busy if writes else Begun)
    assert work.turns(entry)[0].outcome == ("active" if writes else "interrupted")


def test_whose_messages_have_to_be_tried_again_is_looked_at_anew(bench, elsewhere):
    work = bench(clock=FakeClock())
    entry = work.enter()
    begun_elsewhere(work, entry, elsewhere, waits_there=False)
    own = work.leave_a_row(entry, "second")

    assert work.engine.around.queue(entry.lineage_id).look(work.app.store, own=own).after_death() is None


def test_a_free_lease_is_inherited_from_nobody(bench):
    work = bench(clock=FakeClock())
    entry = work.enter()
    own = work.leave_a_row(entry, "second")

    assert work.engine.around.queue(entry.lineage_id).look(work.app.store, own=own).after_death() is None


def test_the_own_process_is_not_waited_for_to_die(bench):
    work = bench(clock=FakeClock())
    entry = work.enter()
    begun_elsewhere(work, entry, {})
    own = work.leave_a_row(entry, "second")

    assert work.engine.around.queue(entry.lineage_id).look(work.app.store, own=own).after_death() is None
