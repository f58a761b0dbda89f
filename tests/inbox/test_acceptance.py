"""The door: everything of a batch in one transaction, nothing twice, nothing lost without a word."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.errors import Conflict, PluginError
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import USER, Attachment, MessageDraft
from hermes_hookspecs.operations import Accept, Begin, Begun
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, pause
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 30
FEISHU = Entrance("feishu")


class Redaction:
    """A plugin that takes a word out, and fails at another."""

    @hookimpl
    def hermes_redact_inbound(self, text, source):
        if "poison" in text:
            raise RuntimeError("cannot read that")
        return text.replace("hunter2", "***")


class Door:
    """A profile's door; everything a test says to it is short."""

    def __init__(self, app):
        self.app = app
        self.sender = RecordingSender()

    def source(self, chat="oc_1", **fields):
        return SessionSource(**({"platform": "feishu", "chat_id": chat, "user_id": "ou_1"} | fields))

    def event(self, text, *identities, chat="oc_1", source=None, **fields):
        return MessageEvent(
            source=source or self.source(chat),
            text=text,
            identities=identities,
            received_at=self.app.clock.now(),
            **fields,
        )

    def accept(self, *events, **options):
        return asyncio.run(self.app.accept(events, **options))

    def served(self, *entrances):
        return [ServedEntrance(entrance=one, sender=self.sender) for one in entrances or (FEISHU,)]

    def work(self, agent="echo", *entrances):
        async def scene():
            async with asyncio.timeout(PATIENCE_S):
                await self.app.work(self.served(*entrances), agent=agent, until_idle=True)

        asyncio.run(scene())
        return self.sender.texts()

    def item(self, number):
        return self.app.store.inbox_item(number)

    def cursor(self):
        entry = self.app.store.state("feishu", "cursor", now=self.app.clock.now())
        return None if entry is None else entry.value


def cursor(value, **fields):
    return StateUpdate(namespace="feishu", key="cursor", value=value, **fields)


def begin(app, item):
    """Begin a turn with a message, as another server of its entrance would."""
    lineage_id = app.get_or_create_session(item.source).lineage_id
    now = app.clock.now()
    operation = Begin(
        lineage_id=lineage_id,
        turn_id=new_turn_id(now),
        holder=holder_here(FEISHU, item.session_key),
        now=now,
        ttl_ms=30_000,
        drafts=(MessageDraft(role=USER, content=item.text, timestamp=now, inbox_id=item.id),),
    )
    begun = app.store.apply(operation)
    assert isinstance(begun, Begun)
    return lineage_id


@pytest.fixture
def open_door(profile):
    def make(settings=None, **options):
        return Door(profile({"inbox.batch_window_s": 0.0} | (settings or {}), **options))

    return make


@pytest.fixture
def door(open_door):
    return open_door()


# --- one transaction


def test_a_batch_and_the_state_of_its_sender_are_stored_together(door):
    results = door.accept(door.event("one", "m1"), door.event("two", "m2", chat="oc_2"), state=(cursor("7"),))

    assert [(one.id, one.duplicate, one.refused) for one in results] == [(1, False, ""), (2, False, "")]
    assert [door.item(number).text for number in (1, 2)] == ["one", "two"]
    assert door.cursor() == "7"


def test_a_state_that_somebody_else_has_written_stores_nothing_of_the_batch(door):
    door.accept(state=(cursor("7"),))

    with pytest.raises(Conflict):
        door.accept(door.event("one", "m1"), state=(cursor("8", expected_version=5),))

    assert (door.item(1), door.cursor()) == (None, "7")


def test_a_redaction_that_fails_stores_nothing_at_all(open_door):
    door = open_door(plugins=[Redaction()])

    with pytest.raises(PluginError):
        door.accept(door.event("fine", "m1"), door.event("poison", "m2"), state=(cursor("7"),))

    assert (door.item(1), door.cursor()) == (None, None)


def test_what_was_taken_out_at_the_door_is_nowhere_behind_it(open_door):
    door = open_door(plugins=[Redaction()])
    door.accept(door.event("my password is hunter2", "m1"))

    assert door.item(1).text == "my password is ***"
    assert door.work() == ["echo 1: my password is ***"]


# --- redelivery


def test_any_known_identity_makes_a_message_a_duplicate(door):
    door.accept(door.event("hello", "event:1", "message:1"))

    results = door.accept(
        door.event("hello", "event:2", "message:1"), door.event("hello", "event:1"), door.event("new", "event:3")
    )

    assert [(one.id, one.duplicate) for one in results] == [(1, True), (1, True), (2, False)]
    assert door.work() == ["echo 1: hello", "echo 2: new"]


def test_a_message_that_stands_twice_in_a_batch_is_taken_once(door):
    first, second = door.accept(door.event("hello", "m1"), door.event("hello", "m1"))

    assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_redelivery_after_a_restart_is_a_duplicate(open_door):
    door = open_door()
    door.accept(door.event("hello", "m1"))
    assert door.work() == ["echo 1: hello"]
    door.app.close()
    again = open_door()

    (result,) = again.accept(again.event("hello", "m1"))

    assert (result.duplicate, again.work()) == (True, [])


def test_two_of_our_bots_that_receive_one_message_both_answer_it(door):
    second = Entrance("feishu", "second")
    group = {"chat_type": "group"}
    results = door.accept(
        door.event("both of you!", "om_1", source=door.source(**group)),
        door.event("both of you!", "om_1", source=door.source(account_id="second", **group)),
    )

    assert [one.duplicate for one in results] == [False, False]
    assert door.work("echo", FEISHU, second) == ["echo 1: both of you!"] * 2
    (again,) = door.accept(door.event("both of you!", "om_1", source=door.source(account_id="second", **group)))
    assert (again.id, again.duplicate) == (results[1].id, True)


def test_the_accounts_of_two_bots_cannot_be_mixed_up_by_what_stands_in_an_id(door):
    one = door.event("one", "b:om_1", source=door.source(account_id="a"))
    other = door.event("other", "om_1", source=door.source(account_id="a:b"))

    assert [result.duplicate for result in door.accept(one, other)] == [False, False]


# --- what cannot be read


def test_an_unreadable_item_is_kept_apart_and_holds_nothing_up(door):
    door.accept(
        door.event("one", "m1"),
        door.event("", "m2", error="unknown type 'sticker'"),
        door.event("three", "m3"),
        state=(cursor("3"),),
    )

    assert door.work() == ["echo 1: one", "echo 2: three"]
    (kept,) = door.app.store.quarantined()
    assert (kept.error, kept.status, door.cursor()) == ("unknown type 'sticker'", "quarantined", "3")
    (again,) = door.accept(door.event("", "m2", error="unknown type 'sticker'"))
    assert again.duplicate


def test_a_sender_who_cannot_be_told_apart_reaches_nobodys_session(door):
    nameless = SessionSource(platform="feishu")
    results = door.accept(
        door.event("who am I?", "m1", source=nameless), door.event("hello", "m2"), state=(cursor("2"),)
    )

    assert [one.refused for one in results] == ["", ""]
    (kept,) = door.app.store.quarantined()
    assert (kept.text, kept.lineage_id) == ("who am I?", None)
    assert (door.work(), door.cursor()) == (["echo 1: hello"], "2")


# --- what is refused


def test_a_full_queue_refuses_visibly_and_once_however_often_it_is_delivered(open_door):
    door = open_door({"inbox.max_waiting": 2})
    *_, refused = door.accept(*(door.event(f"m{number}", f"m{number}") for number in range(3)))
    (again,) = door.accept(door.event("m2", "m2"))

    assert (refused.id, again.id) == (None, None)
    assert "2 messages wait" in refused.refused
    texts = door.work()
    assert [text for text in texts if "was not taken" in text] == [texts[0]]
    assert texts[1:] == ["echo 1: m0", "echo 2: m1"]


def test_a_refused_message_that_is_delivered_again_later_is_taken(open_door):
    door = open_door({"inbox.max_waiting": 1})
    door.accept(door.event("one", "m1"), door.event("two", "m2"))
    door.work()

    (later,) = door.accept(door.event("two", "m2"))

    assert (later.refused, door.work()[-1]) == ("", "echo 2: two")


def test_a_full_queue_takes_commands_and_what_cannot_be_read(open_door):
    door = open_door({"inbox.max_waiting": 1})

    results = door.accept(door.event("one", "m1"), door.event("/stop", "m2"), door.event("", "m3", error="broken"))

    assert [one.refused for one in results] == ["", "", ""]


def test_the_policy_reject_takes_nothing_while_a_turn_runs_and_says_so_once(open_door):
    door = open_door({"inbox.busy": "reject"})
    door.accept(door.event("one", "m1"))
    begin(door.app, door.item(1))

    first, second, unreadable = door.accept(
        door.event("two", "m2"), door.event("two", "m2"), door.event("", "m3", error="broken")
    )

    assert (first.refused, second.refused, unreadable.refused) == ("busy", "busy", "")
    (notice,) = door.app.store.deliveries()
    assert "still at work" in notice.text


def test_the_policy_reject_takes_commands_while_a_turn_runs(open_door):
    door = open_door({"inbox.busy": "reject"})
    door.accept(door.event("one", "m1"))
    lineage_id = begin(door.app, door.item(1))

    (taken,) = door.accept(door.event("/stop", "m2"))

    assert taken.refused == ""
    assert door.work() == ["Stopped."]
    assert door.app.store.lease(lineage_id).holder is None


# --- interrupt


def test_the_policy_interrupt_stops_the_turn_of_the_same_key_for_good(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo()).then(echo())

    async def scene():
        async with asyncio.timeout(PATIENCE_S):
            await door.app.accept([door.event("first", "m1")])
            serving = asyncio.create_task(door.app.work(door.served(), agent=agent, until_idle=True))
            assert await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
            await door.app.accept([door.event("second", "m2")])
            await serving

    asyncio.run(scene())

    assert door.sender.texts() == ["second"]
    assert door.work(agent) == ["second"]
    assert agent.closed == 1
    assert [door.item(number).status for number in (1, 2)] == ["done", "done"]


def test_the_policy_interrupt_leaves_the_turns_of_others_alone(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    door.accept(door.event("mine", "m1"))
    lineage_id = begin(door.app, door.item(1))

    door.accept(door.event("somebody else", "m2", chat="oc_2"), door.event("", "m3", error="broken"))
    door.accept(door.event("/help", "m4"), door.event("mine", "m1"))

    assert door.app.store.active_turn(lineage_id) is not None


class Quick:
    """A store in which somebody else begins with a message the moment it is accepted."""

    def __init__(self, app):
        self._app, self._store = app, app.store
        self.lineage_id = None

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def perform(self, operation):
        result = await self._store.perform(operation)
        if isinstance(operation, Accept):
            self.lineage_id = begin(self._app, self._store.inbox_item(result[0].id))
        return result


def test_a_message_does_not_stop_the_turn_that_answers_it_already(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    door.app._store = quick = Quick(door.app)

    door.accept(door.event("hello", "m1"))

    assert door.app.store.active_turn(quick.lineage_id).inbox_ids == (1,)


# --- commands


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"text": "/new plan"}, "control"),
        ({"text": "/nothing-of-that-name"}, "control"),
        ({"text": "/usr/bin/env python"}, "message"),
        ({"text": "hello /new"}, "message"),
        ({"text": "/new", "attachments": (Attachment(kind="image", name="a.png"),)}, "message"),
        ({"text": "/new", "kind": "internal"}, "internal"),
    ],
)
def test_a_command_is_a_row_of_its_own_kind(door, event, kind):
    fields = {name: value for name, value in event.items() if name != "text"}
    door.accept(door.event(event["text"], "m1", **fields))

    assert door.item(1).kind == kind


def test_a_control_row_that_is_no_command_is_kept_where_somebody_sees_it(door):
    (result,) = door.accept(door.event("approve it", "m1", kind="control"))

    item = door.item(result.id)
    assert (item.status, item.error) == ("quarantined", "a control row that is no command")


def test_one_text_is_no_set_of_identities():
    with pytest.raises(TypeError, match=r"identities are several texts, such as \('abc',\), not str"):
        MessageEvent(source=SessionSource(platform="feishu"), text="hello", identities="abc", received_at=1)


def test_a_kind_that_does_not_exist_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match="kind"):
        MessageEvent(source=SessionSource(platform="feishu"), text="hello", kind="mesage", received_at=1)
