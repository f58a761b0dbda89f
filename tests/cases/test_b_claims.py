"""Case B03: whatever is taken is taken by one, in one transaction."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from hermes_core.inbox.door import entrance_of
from hermes_core.leases import holder_here
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import Begin, Begun, Control, Finish, ReleaseRoute
from hermes_hookspecs.turns import DONE, Fence

CALLERS = 8


def at_once(work):
    """Return what ``CALLERS`` threads get that begin together."""
    barrier = Barrier(CALLERS, timeout=60)

    def call(number):
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(CALLERS) as threads:
        return list(threads.map(call, range(CALLERS)))


@pytest.fixture
def messages(open_quick, chats, alice):
    app = open_quick()
    entry = app.get_or_create_session(alice)
    chats.accept(app, *(f"m{number}" for number in range(5)))
    return app, entry


def test_b03_a_message_begins_one_turn_however_many_ask_for_it(messages, alice):
    app, entry = messages

    def take(item):
        now = app.clock.now()
        draft = MessageDraft(role=USER, content=item.text, timestamp=now, inbox_id=item.id)
        return app.store.apply(
            Begin(
                lineage_id=entry.lineage_id,
                turn_id=new_turn_id(now),
                holder=holder_here(entrance_of(alice), entry.session_key),
                now=now,
                ttl_ms=30_000,
                drafts=(draft,),
            )
        )

    taken = []
    while waiting := app.store.waiting(entry.lineage_id):
        begun = [one for one in at_once(lambda _, item=waiting[0]: take(item)) if isinstance(one, Begun)]
        assert len(begun) == 1
        taken += [item.text for item in begun[0].items]
        fence = Fence(entry.lineage_id, begun[0].turn.id, begun[0].lease.token)
        app.store.apply(Finish(fence=fence, outcome=DONE, now=app.clock.now()))

    assert taken == [f"m{number}" for number in range(5)]


def test_b03_a_command_takes_effect_once_however_many_run_it(messages, chats):
    app, entry = messages
    (row,) = chats.accept(app, "/new")
    effect = ReleaseRoute(
        key=entry.session_key, now=app.clock.now(), reason="session_reset", check=False, control_id=row.id
    )

    outcomes = at_once(lambda _: app.store.apply(Control(inbox_id=row.id, effect=effect, now=app.clock.now())))

    assert sorted(outcome.repeated for outcome in outcomes) == [False] + [True] * (CALLERS - 1)
    assert {outcome.superseded for outcome in outcomes} == {5}
