"""Finding, leaving, resuming and removing sessions; what moves a clock and what does not."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_core.sessions import removal
from hermes_hookspecs.errors import KeyBuildError, LeaseBusy, PluginError, SessionNotFound, StoreBusy, TitleError
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import MessageDraft
from hermes_hookspecs.operations import Accept, Begin, Claim
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.clock import FakeClock

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", user_name="Al")
OTHER = SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_2")
TERMINAL = SessionSource(platform="cli", chat_id="pts-1")


def lineage(app, entry):
    return app.store.lineage(entry.lineage_id, operator())


# ------------------------------------------------------------------ get or create


def test_a_session_is_reused_until_a_new_one_is_forced(app, ear):
    first = app.get_or_create_session(SOURCE)
    again = app.get_or_create_session(SOURCE)
    forced = app.get_or_create_session(SOURCE, force_new=True)

    assert (first.created, again.created, forced.created) == (True, False, True)
    assert first.session_id == again.session_id != forced.session_id
    assert app.get_or_create_session(SOURCE).session_id == forced.session_id
    app.hooks.flush()
    assert ear.names() == ["after_session_start", "after_session_end", "after_session_start"]


def test_without_touch_no_clock_moves(profile):
    clock = FakeClock()
    app = profile(clock=clock)
    entry = app.get_or_create_session(SOURCE)
    route = app.store.route(entry.session_key)
    clock.advance(3600)

    quiet = app.get_or_create_session(SOURCE, touch_activity=False)

    assert quiet.updated_at == entry.updated_at == lineage(app, entry).last_activity
    assert app.store.route(entry.session_key) == route
    assert app.get_or_create_session(SOURCE).updated_at == clock.now()


def test_a_second_account_moves_nobody(profile):
    app = profile()
    first = [app.ask(f"message {number}", SOURCE).entry for number in range(10)][-1]
    second_account = attrs.evolve(SOURCE, account_id="second")

    other = app.ask("hello from the second", second_account).entry

    assert app.ask("and on", SOURCE).entry.session_id == first.session_id
    assert other.session_id != first.session_id
    assert lineage(app, first).message_count == 22
    assert lineage(app, other).message_count == 2


def test_too_little_identity_is_refused_before_anything_is_stored(app):
    with pytest.raises(KeyBuildError):
        app.get_or_create_session(SessionSource(platform="email"))

    assert app.store.summaries(operator()) == ()


def test_the_stable_id_that_arrives_late_claims_the_session_of_the_plain_one(app):
    plain = SessionSource(platform="feishu", chat_type="group", chat_id="oc_1", user_id="ou_1")
    first = app.ask("I am ou_1", plain).entry
    stable = attrs.evolve(plain, user_id_alt="on_1")

    claimed = app.get_or_create_session(stable)

    assert (claimed.session_id, claimed.created, claimed.claimed) == (first.session_id, False, first.session_key)
    assert app.store.route(first.session_key) is None
    assert app.ask("still me", stable).text == "echo 2: still me"


class Legacy:
    def __init__(self, key):
        self.key, self.asked = key, 0

    @hookimpl
    def hermes_legacy_claims(self, source, policy):
        self.asked += 1
        return [Claim(key=self.key, scope_id=source.scope_id)]


def test_claims_of_plugins_are_asked_only_where_the_key_leads_nowhere(profile):
    legacy = Legacy("agent:main:feishu:dm:chat=oc_1")
    app = profile(plugins=[legacy])
    old = app.get_or_create_session(SOURCE)
    moved = attrs.evolve(SOURCE, chat_id="oc_new")
    legacy.asked = 0

    claimed = app.get_or_create_session(moved)
    app.get_or_create_session(moved)
    app.get_or_create_session(moved, force_new=True)

    assert claimed.lineage_id == old.lineage_id
    assert legacy.asked == 1


def test_a_new_session_is_not_undone_by_a_claim(profile):
    legacy = Legacy("agent:main:feishu:dm:chat=oc_1")
    app = profile(plugins=[legacy])
    old = app.ask("hello", SOURCE).entry
    moved = attrs.evolve(SOURCE, chat_id="oc_new")

    left = app.leave_session(moved, None, title="the next")

    assert left.summary.session_id == old.session_id
    fresh = app.get_or_create_session(moved)
    assert (fresh.created, fresh.title, fresh.claimed) == (True, "the next", None)


def test_a_key_that_was_let_go_claims_nothing_more(profile):
    legacy = Legacy("agent:main:feishu:dm:chat=oc_1")
    app = profile(plugins=[legacy])
    moved = attrs.evolve(SOURCE, chat_id="oc_new")
    app.leave_session(moved, app.get_or_create_session(moved))
    other = app.get_or_create_session(SOURCE)

    assert app.get_or_create_session(moved).created
    assert app.store.route(other.session_key).lineage_id == other.lineage_id


def test_a_command_speaks_of_the_session_that_the_next_message_would_claim(profile):
    app = profile(plugins=[Legacy("agent:main:feishu:dm:chat=oc_1")])
    old = app.get_or_create_session(SOURCE)
    moved, stranger = attrs.evolve(SOURCE, chat_id="oc_new"), attrs.evolve(OTHER, chat_id="oc_far", scope_id="T1")

    behind, nothing = (app.desk.entry_behind(command_of(app, source)) for source in (moved, stranger))

    assert (behind.lineage_id, behind.claimed, nothing) == (old.lineage_id, old.session_key, None)


def command_of(app, source):
    """Store a command and return its row."""
    draft = InboxDraft(
        session_key=app.session_key(source),
        source=source,
        entrance=Entrance(source.platform),
        text="/undo",
        kind="control",
        accepted_at=app.clock.now(),
    )
    (taken,) = app.store.apply(Accept(drafts=(draft,), now=app.clock.now()))
    return app.store.inbox_item(taken.id)


def test_a_failing_claim_refuses_the_message(profile):
    class Broken:
        @hookimpl
        def hermes_legacy_claims(self, source, policy):
            raise ValueError("no")

    app = profile(plugins=[Broken()])

    with pytest.raises(PluginError):
        app.get_or_create_session(SOURCE)

    assert app.store.summaries(operator()) == ()


def test_the_terminal_is_the_operator_and_a_room_sees_the_room_alone(app):
    room = SessionSource(platform="feishu", chat_type="thread", chat_id="oc_1", thread_id="t1", user_id="ou_1")

    assert app.principal(TERMINAL).sees_all
    assert {owner.kind for owner in app.principal(room).owners} == {"room"}
    assert not app.principal(SOURCE).sees_all


# ------------------------------------------------------------------ leave and resume


def test_leaving_keeps_the_session_and_the_next_message_makes_another_with_its_title(app, ear):
    entry = app.ask("hello", SOURCE).entry

    left = app.leave_session(SOURCE, entry, title="the next")

    assert left.summary.session_id == entry.session_id
    assert (left.summary.end_reason, left.summary.message_count) == ("session_reset", 2)
    assert (left.superseded, left.stopped) == (0, False)
    fresh = app.get_or_create_session(SOURCE)
    assert fresh.session_id != entry.session_id
    assert fresh.title == "the next"
    app.hooks.flush()
    assert [one["reason"] for one in ear.told("after_session_end")] == ["session_reset"]


def test_leaving_what_the_key_no_longer_leads_to_lets_nothing_go(app):
    old = app.get_or_create_session(SOURCE)
    new = app.get_or_create_session(SOURCE, force_new=True)

    assert app.leave_session(SOURCE, old) is None
    assert app.get_or_create_session(SOURCE).session_id == new.session_id


def test_leaving_without_a_session_is_no_error(app):
    assert app.leave_session(SOURCE, None) is None
    entry = app.get_or_create_session(SOURCE)
    assert app.leave_session(SOURCE, None).summary.session_id == entry.session_id
    assert app.leave_session(SOURCE, None) is None


def test_resuming_leads_the_key_to_an_earlier_session_and_reopens_it(app, ear):
    old = app.ask("one", SOURCE).entry
    new = app.ask("two", attrs.evolve(SOURCE), entry=app.get_or_create_session(SOURCE, force_new=True)).entry

    back = app.resume_session(SOURCE, old.lineage_id)

    assert back.session_id == old.session_id
    assert app.store.session(old.session_id, operator()).end_reason is None
    assert app.store.session(new.session_id, operator()).end_reason == "session_switch"
    assert app.ask("three", SOURCE).text == "echo 2: three"
    app.hooks.flush()
    assert [one["session_id"] for one in ear.told("after_session_end")] == [old.session_id, new.session_id]


def test_an_ended_session_is_reopened_by_a_turn(app):
    entry = app.ask("one", SOURCE).entry
    app.leave_session(SOURCE, entry)

    again = app.ask("two", TERMINAL, entry=entry)

    assert again.entry.session_id == entry.session_id
    assert app.store.session(entry.session_id, operator()).ended_at is None


def test_nobody_resumes_what_is_not_theirs(app):
    theirs = app.get_or_create_session(OTHER)

    for lineage_id in (theirs.lineage_id, "L_nowhere"):
        with pytest.raises(SessionNotFound):
            app.resume_session(SOURCE, lineage_id)
    assert app.resume_session(TERMINAL, theirs.lineage_id).session_id == theirs.session_id


@pytest.mark.parametrize("failure", [None, StoreBusy("locked")], ids=["silent", "busy"])
def test_a_store_that_cannot_let_a_route_go_does_not_hold_up_the_end(app, monkeypatch, failure):
    """Behind a lock that somebody held for ever the end took another busy timeout, and hid why the program ended."""
    app.get_or_create_session(TERMINAL)
    asked = []

    def submit(operation):
        asked.append(Future())
        if failure is not None:
            asked[0].set_exception(failure)
        return asked[0]

    monkeypatch.setattr(removal, "FORGETTING_S", 0.01)
    monkeypatch.setattr(app.store, "submit", submit)

    app.desk.forget([TERMINAL, TERMINAL])

    assert len(asked) == 1
    assert asked[0].cancelled() == (failure is None)


# ------------------------------------------------------------------ programs without a terminal


def test_the_routes_of_a_program_end_with_it_and_its_sessions_stay(profile):
    app = profile(home="kept")
    store = app.store
    fresh = app.new_session(TERMINAL)
    assert app.new_session(TERMINAL).session_id != fresh.session_id
    other = SessionSource(platform="cli", chat_id="pts-2")
    app.resume_session(other, fresh.lineage_id, bind=False)
    keys = [app.session_key(TERMINAL), app.session_key(other)]
    assert all(store.route(key) is not None for key in keys)

    app.close()

    if store.durable:
        again = profile(home="kept", listens=False)
        assert [again.store.route(key) for key in keys] == [None, None]
        assert again.store.lineage(fresh.lineage_id, operator()) is not None


def test_a_lineage_that_goes_while_one_leaves_it_is_told_by_nobody(app, ear):
    entry = app.get_or_create_session(SOURCE)
    other = app.get_or_create_session(SOURCE, force_new=True)
    app.hooks.flush()
    ear.heard.clear()
    app.delete_session(entry.lineage_id)

    app.desk._endings.tell_left(entry.lineage_id)
    app.desk._endings.tell_left(None)
    app.desk._endings.tell_left(other.lineage_id)  # still alive: another route may lead there

    app.hooks.flush()
    assert ear.told("after_session_end") == []


# ------------------------------------------------------------------ delete


def begin(app, entry, **holder):
    """Leave a turn running in ``entry`` as a process would that is described by ``holder``."""
    here = attrs.evolve(holder_here(Entrance("feishu"), entry.session_key), **holder)
    draft = InboxDraft(
        session_key=entry.session_key,
        source=SOURCE,
        entrance=Entrance("feishu"),
        text="x",
        accepted_at=1,
        lineage_id=entry.lineage_id,
        waiter=here,
    )
    (taken,) = app.store.apply(Accept(drafts=(draft,), now=1))
    row = MessageDraft(role="user", content="x", timestamp=1, inbox_id=taken.id)
    app.store.apply(Begin(lineage_id=entry.lineage_id, turn_id="T1", holder=here, now=1, ttl_ms=30_000, drafts=(row,)))


def test_delete_is_told_before_anything_is_gone(profile):
    found = []

    class Looks:
        @hookimpl
        def hermes_before_erase(self, lineage_id):
            found.append(app.store.lineage(lineage_id, operator()))

    app = profile(plugins=[Looks()])
    entry = app.ask("hello", SOURCE).entry

    deleted = app.delete_session(entry.lineage_id)

    assert (deleted.sessions, deleted.messages) == (1, 2)
    assert found[0].id == entry.lineage_id
    assert lineage(app, entry) is None
    assert app.get_or_create_session(SOURCE).created


def test_a_session_with_a_running_turn_is_deleted_by_force_only_and_a_refusal_tells_nothing(app, ear):
    entry = app.get_or_create_session(SOURCE)
    begin(app, entry)

    with pytest.raises(LeaseBusy, match=r"feishu \(process .* runs a turn .*; nothing was removed") as caught:
        app.delete_session(entry.lineage_id)

    app.hooks.flush()
    assert caught.value.holder.startswith("feishu")
    assert ear.told("before_erase") == []
    assert app.delete_session(entry.lineage_id, force=True).sessions == 1


def test_the_turn_of_a_dead_process_is_no_reason_to_refuse(app):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(20)
    entry = app.get_or_create_session(SOURCE)
    begin(app, entry, pid=process.pid, started="1")

    assert app.delete_session(entry.lineage_id).sessions == 1


def test_what_does_not_exist_cannot_be_deleted_or_renamed(app):
    with pytest.raises(SessionNotFound):
        app.delete_session("L_nowhere")
    with pytest.raises(SessionNotFound):
        app.rename_session("L_nowhere", "x")
    with pytest.raises(TitleError):
        app.rename_session("L_nowhere", "x" * 101)
