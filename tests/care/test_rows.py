"""Rows that contradict each other are found, put right in one step, and never at the cost of a text."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import LeaseLost, SessionNotFound
from hermes_hookspecs.messages import MessageDraft, ToolCall
from hermes_hookspecs.operations import Begun, Renew, ServeEntrances
from hermes_hookspecs.outbox import delivery_key
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import Scene, asking, fence_of, holder_at

ALL = operator()


def kinds(findings):
    return [finding.kind for finding in findings]


@pytest.fixture
def told(app, alice):
    """Return a conversation of two exchanges, in Chinese."""
    app.ask("你好，今天天气怎么样？", alice)
    result = app.ask("谢谢", alice)
    app.rename_session(result.entry.lineage_id, "天气")
    return result.entry


@pytest.fixture
def scene(app):
    return Scene(app.store)


@pytest.fixture
def care(app):
    return app.store.care()


# ------------------------------------------------------------------ a sound store


def test_nothing_is_found_in_a_sound_store(care, told):
    assert care.integrity() == []
    assert care.findings() == []


def test_nothing_is_found_in_an_empty_store(care):
    assert care.findings() == []
    assert care.repair() == []


def test_nothing_is_found_while_turns_run_with_open_calls(care, scene):
    entry = scene.enter()
    begun = scene.begin(entry.lineage_id, scene.accept("look"))
    scene.append(begun, asking("c1", "c2"))

    assert care.findings() == []


def test_health_tells_sizes_and_modes(care, told, home):
    health = care.health()

    assert health.size == (home / "state.db").stat().st_size
    assert health.wal_size == (home / "state.db-wal").stat().st_size
    assert health.journal_mode == "wal"
    assert health.pages > 10
    assert health.free_pages == 0
    assert health.schema_version >= 2


# ------------------------------------------------------------------ one fault each

FAULTS = {
    "dangling-parent": "UPDATE sessions SET parent_session_id = 'gone'",
    "dangling-route": "INSERT INTO routes SELECT 'agent:main:x:dm:chat=1', 'L_gone', profile, platform, account_id,"
    " scope_id, chat_type, chat_id, thread_id, user_id, key_version, group_sessions_per_user,"
    " thread_sessions_per_user, created_at, updated_at, pending_title, source FROM routes",
    "dangling-tip": "UPDATE lineages SET tip = 'gone'",
    "lease-without-turn": "UPDATE lineages SET lease_holder = '{}', lease_label = 'cli (process 7 on here)'",
    "turn-without-lease": "UPDATE turns SET outcome = 'active', ended_at = NULL WHERE no = 2",
    "open-calls-without-turn": 'UPDATE lineages SET open_calls = \'[["c1","look"]]\'',
    "claimed-without-turn": "UPDATE inbox SET status = 'claimed', settled_at = NULL WHERE id = 2",
    "dangling-identity": "INSERT INTO inbox_identities VALUES ('feishu:1', 77)",
    "orphaned-part": "INSERT INTO outbox_parts (delivery_id, part, key, format, text) VALUES (77, 0, 'k', 'text', 't')",
    "wrong-counters": "UPDATE lineages SET message_count = 99, turn_count = 0",
    "inbox-without-lineage": "UPDATE inbox SET lineage_id = 'L_gone', status = 'pending', settled_at = NULL"
    " WHERE id = 2",
}


@pytest.mark.parametrize(("kind", "statement"), FAULTS.items(), ids=FAULTS)
def test_a_planted_fault_is_found_repaired_once_and_costs_no_text(care, told, sql, texts, kind, statement):
    before = texts()
    sql(statement)
    found = care.findings()

    repaired = care.repair()

    assert kind in kinds(found)
    assert next(finding for finding in found if finding.kind == kind).fixable
    assert kind in kinds(repaired)
    assert [finding for finding in care.findings() if finding.fixable] == []
    assert care.repair() == []
    assert care.integrity() == []
    assert texts(below=before[0]) == before


def test_all_faults_at_once_are_repaired_in_one_go(care, told, app, alice, sql, texts):
    before = texts()
    for statement in FAULTS.values():
        sql(statement)

    care.repair()

    assert [finding for finding in care.findings() if finding.fixable] == []
    assert texts(below=before[0]) == before
    assert app.ask("weiter", alice).entry.lineage_id == told.lineage_id
    assert [finding for finding in care.findings() if finding.fixable] == []


def test_a_repair_that_fails_changes_nothing(care, told, sql):
    for statement in (FAULTS["dangling-parent"], FAULTS["wrong-counters"]):
        sql(statement)
    sql("CREATE TRIGGER refuse BEFORE UPDATE OF message_count ON lineages BEGIN SELECT raise(ABORT, 'no'); END")
    before = kinds(care.findings())

    with pytest.raises(Exception, match="no"):
        care.repair()

    assert kinds(care.findings()) == before


# ------------------------------------------------------------------ what a repair leads to


def test_b15_a_deleted_lineage_lets_its_route_go_and_the_next_message_makes_a_new_one(app, care, told, alice, sql):
    sql("DELETE FROM lineages")
    with pytest.raises(SessionNotFound):
        app.get_or_create_session(alice)

    care.repair()

    answered = app.ask("again", alice)
    assert answered.text == "echo 1: again"
    assert answered.entry.lineage_id != told.lineage_id
    left = care.findings()
    assert {"messages-without-lineage", "session-without-lineage", "turn-without-lineage"} == set(kinds(left))
    assert not any(finding.fixable for finding in left)
    assert sql("SELECT count(*) FROM messages WHERE lineage_no = 1") == [(4,)]


def test_b15_a_deleted_session_is_given_again_with_its_rows(app, care, told, alice, sql):
    sql("DELETE FROM sessions")

    care.repair()

    answered = app.ask("go on", alice)
    assert answered.entry.session_id == told.session_id
    assert answered.text == "echo 3: go on"
    assert app.store.session(told.session_id, ALL).message_count == 6
    assert care.findings() == []


def test_b15_a_parent_that_is_gone_is_no_parent_any_more(app, care, told, alice, sql):
    sql("UPDATE sessions SET parent_session_id = 'gone'")

    care.repair()
    again = care.repair()

    assert app.store.session(told.session_id, ALL).parent_session_id is None
    assert again == []


def test_a_lost_tip_is_replaced_by_the_newest_segment_and_counted_anew(app, care, told, alice, sql):
    sql("UPDATE lineages SET tip = 'gone', segments = 2")

    care.repair()

    lineage = app.store.lineage(told.lineage_id, ALL)
    assert (lineage.tip, lineage.segments, lineage.message_count) == (told.session_id, 1, 4)
    assert app.store.session(told.session_id, ALL).message_count == 4


def test_e06_a_route_that_a_person_let_go_is_not_led_back(app, care, told, alice, sql):
    app.leave_session(alice, told)
    sql(FAULTS["wrong-counters"])

    care.repair()

    assert app.store.route(app.session_key(alice)).lineage_id is None
    assert app.store.session(told.session_id, ALL).ended_at is not None


def test_a_repair_tells_the_change_feed(app, care, told, sql):
    _, cursor = app.store.changes(None)
    version = app.store.lineage(told.lineage_id, ALL).version
    sql(FAULTS["wrong-counters"])

    care.repair()

    changes, _ = app.store.changes(cursor)
    assert [(change.kind, change.lineage_id) for change in changes] == [("lineage", told.lineage_id)]
    assert app.store.lineage(told.lineage_id, ALL).version > version


# ------------------------------------------------------------------ turns, leases, messages


def test_a_turn_without_a_lease_is_closed_with_results_for_its_calls(app, care, scene, sql):
    entry = scene.enter()
    begun = scene.begin(entry.lineage_id, scene.accept("look"))
    scene.append(begun, asking("c1"))
    sql("UPDATE lineages SET lease_holder = NULL, lease_label = NULL")

    care.repair()

    assert app.store.turn(begun.turn.id).outcome == "interrupted"
    assert [row.role for row in app.store.messages(entry.lineage_id, ALL)] == ["user", "assistant", "tool", "assistant"]
    assert app.store.open_calls(entry.lineage_id) == ()
    with pytest.raises(LeaseLost):
        app.store.apply(Renew(fence=fence_of(begun), now=2, ttl_ms=1000))
    assert care.findings() == []


def test_calls_of_a_running_turn_that_were_lost_are_waited_for_again(app, care, scene, sql):
    entry = scene.enter()
    begun = scene.begin(entry.lineage_id, scene.accept("look"))
    scene.append(begun, asking("c1", "c2"))
    sql("UPDATE lineages SET open_calls = NULL")

    care.repair()

    assert [call.id for call in app.store.open_calls(entry.lineage_id)] == ["c1", "c2"]
    assert app.store.active_turn(entry.lineage_id).id == begun.turn.id


def broken_off(scene, sql, *calls, waiter=None):
    """Return a message whose turn lost its lease after it had called tools."""
    entry = scene.enter()
    inbox_id = scene.accept("look", waiter=waiter)
    begun = scene.begin(entry.lineage_id, inbox_id)
    if calls:
        scene.append(begun, MessageDraft(role="assistant", content="", timestamp=1, tool_calls=calls))
    sql("UPDATE lineages SET lease_holder = NULL, lease_label = NULL")
    return entry, inbox_id


def test_a_message_that_nobody_answered_waits_again(app, care, scene, sql):
    _, inbox_id = broken_off(scene, sql)

    repaired = care.repair()

    assert app.store.inbox_item(inbox_id).status == "pending"
    assert app.store.inbox_item(inbox_id).attempts == 1
    assert repaired[-1].kind == "claimed-without-turn"
    assert repaired[-1].text.endswith("it waits again")


def test_a_message_whose_tools_read_only_waits_again(app, care, scene, sql):
    _, inbox_id = broken_off(scene, sql, ToolCall(id="c1", name="look", effect="read"))

    care.repair()

    assert app.store.inbox_item(inbox_id).status == "pending"


def test_a_message_whose_tools_may_have_written_is_not_answered_twice_by_itself(app, care, scene, sql):
    _, inbox_id = broken_off(scene, sql, ToolCall(id="c1", name="pay", effect="write"))

    care.repair()

    assert app.store.inbox_item(inbox_id).status == "done"


def test_a_message_that_somebody_waited_for_is_done(app, care, scene, sql):
    _, inbox_id = broken_off(scene, sql, waiter=holder_at())

    care.repair()

    assert app.store.inbox_item(inbox_id).status == "done"


def test_a_message_with_an_answer_in_the_outbox_is_done(app, care, scene, sql):
    entry, inbox_id = broken_off(scene, sql)
    scene.deliver("42", key=delivery_key(entry.lineage_id, inbox_id))

    care.repair()

    assert app.store.inbox_item(inbox_id).status == "done"


def test_a_freed_lease_can_be_taken(app, care, scene, sql):
    entry = scene.enter()
    inbox_id = scene.accept("look")
    sql("UPDATE lineages SET lease_holder = '{}', lease_label = 'somebody'")

    care.repair()

    assert isinstance(scene.begin(entry.lineage_id, inbox_id), Begun)


# ------------------------------------------------------------------ outbox and entrances


def test_deliveries_find_their_place_again(app, care, scene, sql):
    for text in ("first", "second", "third"):
        scene.deliver(text)
    sql("UPDATE outbox SET status = 'sent' WHERE id = 1")
    sql("UPDATE outbox SET settled_at = 5 WHERE id = 2")
    sql("UPDATE outbox SET status = 'sending' WHERE id = 3")

    repaired = care.repair()

    assert kinds(repaired) == ["sending-without-owner", "delivery-out-of-place", "delivery-out-of-place"]
    assert [one.id for one in app.store.next_deliveries([Entrance("feishu")])] == [2]
    assert app.store.delivery(3).status == "waiting"
    assert care.findings() == []


def test_messages_at_an_entrance_that_nobody_serves_are_told(app, care, scene):
    scene.enter()
    scene.accept("hello?")

    (finding,) = care.findings()

    assert (finding.kind, finding.fixable) == ("unserved", False)
    assert "1 message waits at" in finding.text


def test_messages_at_an_entrance_that_somebody_serves_are_not_told(app, care, scene):
    scene.enter()
    inbox_id = scene.accept("hello?")
    entrance = app.store.inbox_item(inbox_id).entrance
    app.store.apply(ServeEntrances(entrances=(entrance,), holder=holder_at(), now=1))

    assert care.findings() == []
