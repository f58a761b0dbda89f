"""Conversations that end by themselves: when they are used, by a sweep, and never under somebody."""

from __future__ import annotations

import attrs
import pytest
from resets_scene import CHAT, HOUR, IDLE, accept, begin_and_die, dead_pid, serve

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Withdraw
from hermes_hookspecs.ports.policies import Activity, Keep, Reset
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource


def tip(app, entry):
    return app.store.session(entry.session_id, operator())


def notices(app):
    return [each.text for each in app.store.deliveries() if each.kind == "notice"]


# ------------------------------------------------------------------ the look with a message


def test_without_a_word_in_the_settings_nothing_ends(opened, clock):
    """Case E11."""
    app = opened({"session_reset.idle_minutes": 1})
    first = app.ask("hello", CHAT)
    clock.advance(400 * 24 * HOUR)

    assert app.maintain().reset == 0
    assert app.ask("again", CHAT).entry.session_id == first.entry.session_id
    assert not app.desk.resets.active


def test_a_message_in_time_goes_on_and_one_that_is_late_begins_anew(opened, clock):
    app = opened(IDLE)
    first = app.ask("hello", CHAT)
    clock.advance(HOUR - 0.001)
    same = app.ask("still there", CHAT)
    clock.advance(HOUR)

    new = app.ask("good morning", CHAT)

    assert same.entry.session_id == first.entry.session_id
    assert new.text == "echo 1: good morning"
    assert tip(app, first.entry).end_reason == "idle"


def test_what_ended_is_listed_searched_and_resumed_on_request(opened, clock):
    """Cases E04 and E06."""
    app = opened(IDLE)
    first = app.ask("the pump is broken", CHAT).entry
    clock.advance(2 * HOUR)
    app.maintain()
    second = app.ask("hello", CHAT).entry
    principal = app.principal(CHAT)

    listed = [each.lineage_id for each in app.store.summaries(principal)]
    found = [hit.lineage_id for hit in app.session_search("pump", principal=principal).results]
    resumed = app.resume_session(CHAT, first.lineage_id)
    after = app.ask("and now?", CHAT)

    assert set(listed) == {first.lineage_id, second.lineage_id}
    assert found == [first.lineage_id]
    assert resumed.session_id == first.session_id
    assert (after.entry.session_id, after.text) == (first.session_id, "echo 2: and now?")


def test_what_ended_stays_ended_after_a_restart(opened, clock, backend):
    if backend == "memory":
        pytest.skip("this store does not outlive its process")
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)
    app.maintain()
    app.close()

    again = opened(IDLE)

    assert again.store.route(first.session_key).lineage_id is None
    assert again.ask("hello", CHAT).entry.lineage_id != first.lineage_id
    assert tip(again, first).end_reason == "idle"


def test_reading_listing_and_explaining_move_no_clock(opened, clock):
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    clock.advance(HOUR - 1)
    app.store.summaries(operator())
    app.sessions.load_transcript(first.session_id)
    app.explain_reset(first.session_key)
    app.get_or_create_session(CHAT, touch_activity=False)
    clock.advance(1)

    assert app.explain_reset(first.session_key).verdict == "reset"
    assert app.store.lineage(first.lineage_id, operator()).last_activity == first.updated_at


def test_who_has_a_conversation_on_the_screen_gets_a_new_one_too(opened, clock):
    app = opened(IDLE)
    shown = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)
    app.maintain()

    after_a_sweep = app.ask("good morning", CHAT, entry=shown)
    clock.advance(2 * HOUR)
    told = []
    after_a_look = app.ask("hello", CHAT, entry=after_a_sweep.entry, on_event=told.append)

    assert len({shown.lineage_id, after_a_sweep.entry.lineage_id, after_a_look.entry.lineage_id}) == 3
    assert told[0].label.startswith("The conversation before this one ended after 1 hour without a message.")


def test_a_claim_does_not_bring_back_what_has_had_its_time(opened, clock):
    old = attrs.evolve(CHAT, chat_type="group", user_id="ou_1", user_id_alt=None)
    app = opened(IDLE)
    first = app.ask("hello", old).entry
    clock.advance(2 * HOUR)

    later = app.ask("hello", attrs.evolve(old, user_id_alt="on_1")).entry

    assert later.claimed is None
    assert later.lineage_id != first.lineage_id
    assert tip(app, first).end_reason == "idle"


def test_a_key_that_another_entrance_uses_keeps_the_conversation_alive(opened, clock):
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    other = SessionSource(platform="slack", chat_id="D1", user_id="U1", scope_id="T1")
    app.desk.resume(attrs.evolve(other, platform="cli"), first.lineage_id)
    clock.advance(HOUR - 1)
    app.ask("from the terminal", attrs.evolve(other, platform="cli"))
    clock.advance(HOUR - 1)

    assert app.maintain().reset == 0


# ------------------------------------------------------------------ the sweep


def test_the_sweep_ends_what_the_look_would_end_and_nothing_else(opened, clock):
    app = opened(IDLE)
    chats = [attrs.evolve(CHAT, chat_id=f"oc_{number}") for number in range(5)]
    entries = []
    for chat in chats:
        entries.append(app.ask("hello", chat).entry)
        clock.advance(20 * 60)

    verdicts = {entry.session_key: app.explain_reset(entry.session_key).verdict for entry in entries}
    swept = app.maintain().reset
    ended = {entry.session_key for entry in entries if app.store.route(entry.session_key).lineage_id is None}

    assert ended == {key for key, verdict in verdicts.items() if verdict == "reset"}
    assert swept == len(ended) == 3
    assert app.maintain().reset == 0


def test_a_sweep_looks_again_only_when_something_can_have_changed(opened, clock):
    asked = []

    class Counting:
        name = "counting"

        def decide(self, view):
            asked.append(view.lineage.id)
            due = int(view.last_activity.timestamp() * 1000) + 1000 * HOUR
            now = int(view.now.timestamp() * 1000)
            return Reset(reason="counted", at=due) if now >= due else Keep(next_check=due)

    app = opened({"session_reset.mode": "counting"}, plugins=[policies(Counting())])
    app.ask("hello", CHAT)
    asked.clear()
    for _ in range(5):
        app.maintain()
    assert len(asked) == 1

    clock.advance(HOUR)

    assert app.maintain().reset == 1


# ------------------------------------------------------------------ never under somebody


def test_a_message_that_waits_is_answered_where_it_was_said(opened, clock):
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    accept(app, "are you there?")
    clock.advance(5 * HOUR)

    swept = app.maintain().reset
    explained = app.explain_reset(first.session_key)
    serve(app)

    assert swept == 0
    assert (explained.verdict, explained.reason) == ("defer", "a message waits to be answered")
    rows = app.sessions.load_transcript(first.session_id)
    assert [row.content for row in rows][-1] == "echo 2: are you there?"


def test_a_running_turn_is_not_ended(opened, clock):
    app = opened(IDLE)
    seen = {}

    def slow(turn):
        clock.advance(5 * HOUR)
        seen["reset"] = app.maintain().reset
        seen["explained"] = app.explain_reset(app.session_key(CHAT))
        return "done"

    result = app.ask("work", CHAT, agent=slow)

    assert seen["reset"] == 0
    assert seen["explained"].reason.startswith("a turn runs in ")
    assert tip(app, result.entry).end_reason is None
    assert app.explain_reset(app.session_key(CHAT)).verdict == "keep"


def test_what_moved_between_decision_and_deed_is_left_alone(opened, clock):
    """The release compares: whoever came in between keeps their conversation."""
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)
    verdict = app.desk.resets._look(first.session_key)
    accept_id = app.store.apply(_accepting(app, "quick", first))[0].id

    assert not app.desk.resets._end(verdict)

    app.store.apply(Withdraw(ids=(accept_id,), now=clock.now()))
    assert app.desk.resets._end(verdict)
    assert not app.desk.resets._end(verdict)


def _accepting(app, text, entry):
    from hermes_core.inbox.door import waiting_draft
    from hermes_hookspecs.operations import Accept

    draft = waiting_draft(
        app.hooks, text, CHAT, session_key=entry.session_key, lineage_id=entry.lineage_id, now=app.clock.now()
    )
    return Accept(drafts=(draft,), now=app.clock.now(), max_waiting=10)


# ------------------------------------------------------------------ policies of plugins


def policies(*found, activity=None, fails=None):
    class Plugin:
        @hookimpl
        def hermes_reset_policies(self):
            return found

        @hookimpl
        def hermes_background_activity(self, lineage_id):
            if fails is not None:
                raise fails
            return activity

    return Plugin()


class Always:
    name = "always"

    def __init__(self, reason="because", error=None):
        self.reason, self.error = reason, error
        self.views = []

    def decide(self, view):
        self.views.append(view)
        if self.error is not None:
            raise self.error
        return Reset(reason=self.reason)


def test_a_policy_sees_the_zone_the_activity_and_the_settings(opened, clock):
    policy = Always()
    running = (Activity(kind="job", label="build", started_at=clock.now()),)
    config = '[session_reset]\nmode = "always"\ntimezone = "Asia/Shanghai"\nidle_minutes = 7\n'
    app = opened(config=config, plugins=[policies(policy, activity=running)])
    first = app.ask("hello", CHAT).entry
    clock.advance(HOUR)

    app.explain_reset(first.session_key)

    view = policy.views[-1]
    assert f"{view.now:%H:%M %Z}" == "11:00 CST"
    assert f"{view.last_activity:%H:%M %Z}" == "10:00 CST"
    assert (view.activities, view.settings.idle_minutes, view.lineage.id) == (running, 7, first.lineage_id)


@pytest.mark.parametrize(("age_hours", "is_reset"), [(0.5, False), (23.9, False), (24, True), (25, True)])
def test_background_work_pins_until_it_is_too_old_and_is_shown(opened, clock, age_hours, is_reset):
    """Case E01."""
    server = Activity(kind="process", label="npm run dev", started_at=clock.now() + int((26 - age_hours) * 3_600_000))
    app = opened(IDLE, plugins=[policies(activity=(server,))])
    first = app.ask("start the server", CHAT).entry
    clock.advance(26 * HOUR)

    explained = app.explain_reset(first.session_key)

    assert (app.maintain().reset == 1) is is_reset
    shown = ("process npm run dev",)
    assert (explained.pins, explained.stale) == (((), shown) if is_reset else (shown, ()))


def test_activity_that_cannot_be_told_counts_as_activity(opened, clock):
    app = opened(IDLE, plugins=[policies(fails=RuntimeError("registry gone"))])
    first = app.ask("hello", CHAT).entry
    clock.advance(1000 * HOUR)

    assert app.maintain().reset == 0
    assert app.ask("hello", CHAT).entry.session_id == first.session_id
    assert "registry gone" in app.explain_reset(first.session_key).pins[0]


@pytest.mark.parametrize("settings", [{"session_reset.mode": "weekly"}, {"session_reset.mode": "always"}])
def test_a_policy_that_is_not_there_or_fails_resets_nothing(opened, clock, settings):
    app = opened(settings, plugins=[policies(Always(error=ValueError("oops")))])
    first = app.ask("hello", CHAT).entry
    clock.advance(1000 * HOUR)

    assert app.maintain().reset == 0
    assert app.ask("hello", CHAT).entry.session_id == first.session_id
    said = app.explain_reset(first.session_key).reason
    assert said in ("no policy 'weekly' is installed, so nothing is reset", "the policy always failed: ValueError")


@pytest.mark.parametrize("reason", ["", "  ", "session_reset", "new_session"])
def test_no_policy_passes_for_a_person(opened, reason):
    app = opened({"session_reset.mode": "always"}, plugins=[policies(Always(reason))])
    first = app.ask("hello", CHAT).entry

    app.maintain()

    assert tip(app, first).end_reason == "always"


# ------------------------------------------------------------------ what is told


def test_the_notice_comes_with_the_next_message_and_names_the_true_reason(opened, clock):
    """Case E08. Nobody is woken by a sweep."""
    app = opened({"session_reset.mode": "daily", "session_reset.timezone": "Asia/Shanghai"})
    first = app.ask("hello", CHAT).entry
    clock.advance(24 * HOUR)
    app.maintain()
    asleep = notices(app)

    accept(app, "good morning")
    serve(app)

    assert asleep == []
    (told,) = notices(app)
    assert told.startswith("The conversation before this one ended at 04:00 (Asia/Shanghai)")
    assert f"/resume {first.session_id}" in told
    kinds = [each.kind for each in sorted(app.store.deliveries(), key=lambda each: each.id)]
    assert kinds == ["notice", "answer"]
    assert [each.status for each in app.store.deliveries()] == ["sent", "sent"]
    accept(app, "and another")
    serve(app)
    assert len(notices(app)) == 1


def test_a_process_that_dies_right_behind_the_reset_takes_no_notice_with_it(opened, clock, monkeypatch):
    app = opened(IDLE)
    app.ask("hello", CHAT)
    clock.advance(2 * HOUR)
    with monkeypatch.context() as patched:
        patched.setattr(app.desk.resets, "_tell", lambda *_: None)  # the last thing that it did was the transaction
        assert app.maintain().reset == 1

    accept(app, "good morning")
    serve(app)

    (told,) = notices(app)
    assert "after 1 hour without a message" in told


def test_the_look_tells_what_the_sweep_tells(opened, clock):
    app = opened(IDLE)
    app.ask("hello", CHAT)
    clock.advance(2 * HOUR)

    accept(app, "good morning")
    serve(app)

    (told,) = notices(app)
    assert "after 1 hour without a message" in told


@pytest.mark.parametrize(
    "config",
    ["notify = false", 'notify_exclude_platforms = ["feishu"]', "[platforms.feishu.session_reset]\nnotify = false"],
)
def test_who_wants_no_notice_gets_none(opened, clock, config):
    app = opened(config=f'[session_reset]\nmode = "idle"\nidle_minutes = 60\n{config}\n')
    first = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)

    accept(app, "good morning")
    serve(app)

    assert tip(app, first).end_reason == "idle"
    assert notices(app) == []


def test_after_new_no_notice_is_owed(opened, clock):
    app = opened(IDLE)
    app.ask("hello", CHAT)
    clock.advance(2 * HOUR)
    app.maintain()
    app.leave_session(CHAT, None)

    accept(app, "good morning")
    serve(app)

    assert notices(app) == []


def test_a_conversation_in_which_nothing_was_said_owes_no_notice(opened, clock):
    app = opened(IDLE)
    app.get_or_create_session(CHAT)
    clock.advance(2 * HOUR)

    accept(app, "good morning")
    serve(app)

    assert notices(app) == []


def test_plugins_hear_of_every_reset_and_whether_a_person_made_it(opened, clock):
    heard = []

    class Ear:
        @hookimpl
        def hermes_after_reset(self, lineage_id, session_id, reason, automatic):
            heard.append((lineage_id, session_id, reason, automatic))

    app = opened(IDLE, plugins=[Ear()])
    first = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)
    second = app.ask("hello", CHAT).entry
    app.leave_session(CHAT, second)
    app.hooks.flush()

    assert heard == [
        (first.lineage_id, first.session_id, "idle", True),
        (second.lineage_id, second.session_id, "session_reset", False),
    ]


def test_the_end_of_the_session_is_told_too(opened, clock, ear):
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry
    clock.advance(2 * HOUR)
    app.maintain()
    app.hooks.flush()

    assert ear.told("after_session_end") == [
        {"lineage_id": first.lineage_id, "session_id": first.session_id, "reason": "idle"}
    ]


# ------------------------------------------------------------------ explaining


def test_a_key_that_nobody_has_is_not_explained(opened):
    with pytest.raises(SessionNotFound):
        opened(IDLE).explain_reset("agent:main:feishu:dm:chat=nobody")


def test_the_next_possible_end_is_told(opened, clock):
    app = opened(IDLE)
    first = app.ask("hello", CHAT).entry

    explained = app.explain_reset(first.session_key)

    assert (explained.verdict, explained.next_at) == ("keep", first.updated_at + HOUR * 1000)
    clock.advance(2 * HOUR)
    app.maintain()
    assert app.explain_reset(first.session_key).verdict == "nothing"


def test_a_turn_of_a_dead_process_is_not_ended_before_it_is_recovered(opened, clock):
    app = opened(IDLE)
    item = begin_and_die(app, "work", dead_pid())
    clock.advance(5 * HOUR)

    assert not app.desk.resets.settle(item.session_key)
    assert app.maintain().recovered == 1
    assert app.store.route(item.session_key).lineage_id == item.lineage_id
