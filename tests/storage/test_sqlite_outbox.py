"""What the SQLite store promises of deliveries, commands and servers beyond the contract: cells, places, text."""

from __future__ import annotations

import apsw
import attrs
import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.errors import Conflict, HermesError
from hermes_hookspecs.ids import DeliveryId
from hermes_hookspecs.inbox import ControlOutcome
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import (
    ClaimDelivery,
    Control,
    Delete,
    Deliver,
    MarkSent,
    ReleaseRoute,
    Rename,
    ServeEntrances,
    SplitDelivery,
    Sweep,
)
from hermes_hookspecs.outbox import DeliveryDraft, OpenedThread, PartDraft
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, Scene, holder_at, key_of, saying, source_at

FEISHU = Entrance("feishu")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home" / "state.db"


@pytest.fixture
def open_store(path):
    opened = []

    def open_one():
        opened.append(SqliteBackend().open(StoreOptions(path=path)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def scene(store):
    return Scene(store)


@pytest.fixture
def raw(store, path):
    """A connection of the test's own, for what no operation does."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    yield connection
    connection.close()


def drafting(key="k", chat="oc_1", **fields):
    draft = DeliveryDraft(key=key, target=source_at(chat), text="answer", session_key=KEY)
    return attrs.evolve(draft, **fields)


def claiming(scene, delivery_id, attempts=0, **fields):
    operation = ClaimDelivery(
        delivery_id=DeliveryId(delivery_id), owner=holder_at(), expected_attempt=attempts, now=scene.now
    )
    return attrs.evolve(operation, **fields)


def send(scene, delivery_id, *texts, **fields):
    """Claim, split and mark all parts of a delivery that nobody has claimed."""
    scene.run(claiming(scene, delivery_id))
    place = {"delivery_id": DeliveryId(delivery_id), "attempt": 1, "now": scene.now}
    scene.run(SplitDelivery(**place, parts=tuple(PartDraft(text=text) for text in texts)))
    for index in range(len(texts)):
        scene.run(MarkSent(**place, index=index, **fields))


def test_reopening_finds_deliveries_commands_and_servers(store, scene, open_store):
    entry = scene.enter()
    command = scene.accept("/title x", kind="control")
    scene.run(
        Control(inbox_id=command, effect=Rename(lineage_id=entry.lineage_id, title="x", origin="user", now=1), now=1)
    )
    scene.run(Deliver(drafts=(drafting("a"), drafting("b", "oc_2")), now=scene.now))
    send(scene, 1, "one", "two", platform_message_id="om_1", possible_repeat=True)
    scene.run(ServeEntrances(entrances=(FEISHU, Entrance("cli", terminal="pts-1")), holder=holder_at(), now=5))

    def everything(some):
        return (
            some.deliveries(),
            some.deliveries(statuses=("waiting",)),
            some.next_deliveries((FEISHU,)),
            some.delivery_by_key("a"),
            some.controls((FEISHU,)),
            some.servers(),
        )

    before = everything(store)
    store.close()

    assert everything(open_store()) == before
    assert all(before)


@pytest.mark.parametrize("ending", ["finish", "revoke"])
def test_an_end_of_a_turn_that_is_refused_stores_no_delivery(store, scene, ending):
    begun = scene.ask(scene.enter())
    scene.revoke(begun.turn.lineage_id)

    if ending == "finish":
        with pytest.raises(HermesError):
            scene.finish(begun, saying("late"), deliveries=(drafting(),))
    else:
        assert scene.revoke(begun.turn.lineage_id, deliveries=(drafting(),)) is None

    assert store.deliveries() == ()


def test_a_begin_that_finds_older_work_writes_nothing_of_the_dead_turn(store, scene, raw):
    entry = scene.enter()
    dead = scene.ask(entry, "first")
    waits = scene.accept("second", lineage_id=entry.lineage_id)
    again = frozenset(dead.turn.inbox_ids)

    def everything():
        return [raw.execute(f"SELECT * FROM {table}").fetchall() for table in ("inbox", "messages", "outbox", "turns")]

    before = everything()
    answer = scene.try_begin(
        entry.lineage_id, waits, presumed_dead=dead.lease.stamp, again=again, deliveries=(drafting(),)
    )

    assert type(answer).__name__ == "NotYourTurn"
    assert answer.item.id in again
    assert everything() == before


def test_a_retry_gives_its_user_rows_in_order_of_the_drafts_and_then_the_note(scene):
    entry = scene.enter()
    first, second = (scene.accept(text, lineage_id=entry.lineage_id) for text in ("first", "second"))
    dead = scene.begin(entry.lineage_id, second, passed_over=frozenset({first}))
    note = MessageDraft(role=USER, content="once more", kind="recovery", timestamp=1)
    operation = scene.beginning(
        entry.lineage_id, first, second, presumed_dead=dead.lease.stamp, again=frozenset({second}), note=note
    )

    begun = scene.run(operation)
    repeated = scene.run(operation)

    assert [row.content for row in begun.rows] == ["first", "second", "once more"]
    assert begun.rows[1].turn_id == dead.turn.id
    assert begun.rows[2].turn_id == begun.turn.id
    assert begun.turn.inbox_ids == (first, second)
    assert repeated.rows == begun.rows
    assert scene.lineage(entry.lineage_id).message_count == len(scene.rows(entry.lineage_id)) == 4


def test_an_effect_that_fails_leaves_the_command_waiting(store, scene):
    entry, other = scene.enter(), scene.enter(OTHER_KEY, source_at("oc_2"))
    scene.run(Rename(lineage_id=other.lineage_id, title="taken", origin="user", now=1))
    command = scene.accept("/title taken", kind="control")
    rename = Rename(lineage_id=entry.lineage_id, title="taken", origin="user", now=1)

    with pytest.raises(HermesError):
        scene.run(Control(inbox_id=command, effect=rename, now=1))

    assert scene.status(command) == "pending"
    assert store.inbox_item(command).outcome is None


def test_an_operation_that_is_no_effect_changes_nothing(store, scene):
    entry = scene.enter()
    command = scene.accept("/delete", kind="control")

    with pytest.raises(ValueError, match="Delete"):
        scene.run(Control(inbox_id=command, effect=Delete(lineage_id=entry.lineage_id, now=1), now=1))

    assert store.lineage(entry.lineage_id, ALL) is not None
    assert scene.status(command) == "pending"


def test_a_command_that_stops_a_turn_says_so_each_time(scene):
    begun = scene.ask(scene.enter())
    command = scene.accept("/new", kind="control")
    operation = Control(
        inbox_id=command,
        effect=ReleaseRoute(key=KEY, now=2, reason="session_reset", control_id=command),
        now=2,
        settle=True,
    )
    begun = scene.begin(begun.turn.lineage_id, maintenance=True, presumed_dead=begun.lease.stamp)

    first, again = scene.run(operation), scene.run(operation)

    assert first == ControlOutcome(lineage_id=begun.turn.lineage_id, session_id=begun.session.id, stopped=begun.turn.id)
    assert again == attrs.evolve(first, repeated=True)
    assert scene.status(command) == "done"


def test_an_outcome_and_a_server_with_damaged_cells_are_left_out_and_said_in_the_log(store, scene, raw, caplog):
    command = scene.accept("/usage", kind="control")
    scene.run(Control(inbox_id=command, effect=None, now=1))
    scene.run(ServeEntrances(entrances=(FEISHU,), holder=holder_at(), now=5))
    raw.execute("UPDATE inbox SET outcome = '{secret'")
    raw.execute("UPDATE entrance_servers SET entrance = '[1]', holder = 'secret'")

    outcome, (server,) = store.inbox_item(command).outcome, store.servers()

    assert outcome == ControlOutcome()
    assert (server.beats, server.holder.host) == (1, "damaged")
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert "secret" not in caplog.text


def test_text_that_no_utf8_holds_is_cleaned_on_the_way_in(store, scene):
    bad, good = "x\ud800", "x\ufffd"
    door = Entrance("feishu", bad)
    target = source_at(bad, account_id=bad)
    scene.run(Deliver(drafts=(drafting(bad, target=target, text=bad),), now=scene.now))
    scene.run(claiming(scene, 1, owner=attrs.evolve(holder_at(), host=bad)))
    place = {"delivery_id": DeliveryId(1), "attempt": 1, "now": scene.now}
    scene.run(SplitDelivery(**place, parts=(PartDraft(text=bad),)))
    update = StateUpdate(namespace=bad, key=bad, value='"x"')
    scene.run(MarkSent(**place, index=0, platform_message_id=bad, state=(update,)))
    scene.run(ServeEntrances(entrances=(door,), holder=holder_at(), now=1))
    scene.run(Deliver(drafts=(drafting("next", target=target),), now=scene.now))
    command = scene.accept(bad, kind="control", entrance=door)

    found = store.delivery_by_key(bad)

    assert (found.key, found.text, found.target.chat_id, found.owner.host) == (good, good, good, good)
    assert [(part.text, part.platform_message_id) for part in found.parts] == [(good, good)]
    assert store.state(bad, bad, now=1).key == good
    assert [server.entrance.account_id for server in store.servers()] == [good]
    assert [delivery.key for delivery in store.next_deliveries((door,))] == ["next"]
    assert [item.id for item in store.controls((door,))] == [command]


def test_an_entrance_whose_name_begins_another_s_gets_its_own_deliveries_only(store, scene):
    names = ("a", "a:", "ab", "a;", "a%3A")
    for name in names:
        scene.run(Deliver(drafts=(drafting(name, target=source_at(account_id=name)),), now=1))

    heads = {name: [each.key for each in store.next_deliveries((Entrance("feishu", name),))] for name in names}

    assert heads == {name: [name] for name in names}


def test_what_came_into_an_opened_thread_before_its_route_is_not_left_behind(store, scene):
    entry = scene.enter()
    thread = key_of("thread")
    early = scene.accept("early", thread)
    scene.run(Deliver(drafts=(drafting(lineage_id=entry.lineage_id),), now=scene.now))

    opened = OpenedThread(key=thread, key_version=1, source=source_at("thread"), policy=scene.policy)
    send(scene, 1, "one", opened=opened)
    scene.enter(thread, source_at("thread"))

    assert store.route(thread).lineage_id == entry.lineage_id
    assert [item.id for item in store.waiting(entry.lineage_id)] == [early]


def test_a_place_at_an_address_is_kept_until_the_row_is_settled(store, scene):
    scene.run(Deliver(drafts=(drafting("a"), drafting("b"), drafting("c", "oc_2")), now=scene.now))

    refused = scene.run(claiming(scene, 2))
    send(scene, 1, "one")
    taken = scene.run(claiming(scene, 2))

    assert refused is None
    assert taken.status == "sending"
    assert [each.key for each in store.next_deliveries((FEISHU,))] == ["b", "c"]
    with pytest.raises(Conflict):
        scene.run(MarkSent(delivery_id=DeliveryId(1), attempt=2, index=0, now=1))


def test_a_delete_takes_deliveries_and_parts_along(store, scene, raw):
    entry, other = scene.enter(), scene.enter(OTHER_KEY, source_at("oc_2"))
    drafts = (drafting("a", lineage_id=entry.lineage_id), drafting("b", "oc_2", lineage_id=other.lineage_id))
    scene.run(Deliver(drafts=drafts, now=scene.now))
    for delivery_id in (1, 2):
        send(scene, delivery_id, "one", "two")

    scene.run(Delete(lineage_id=entry.lineage_id, now=1))

    assert [each.key for each in store.deliveries()] == ["b"]
    assert raw.execute("SELECT DISTINCT delivery_id FROM outbox_parts").fetchall() == [(2,)]


def test_a_sweep_goes_on_where_the_last_one_stopped_and_leaves_nothing_dangling(store, scene, raw):
    entry = scene.enter()
    for number in range(5):
        begun = scene.begin(entry.lineage_id, scene.accept("q", lineage_id=entry.lineage_id, identities=(f"{number}",)))
        scene.finish(begun, saying("a"), deliveries=(drafting(f"{number}", lineage_id=entry.lineage_id),))
        send(scene, number + 1, "one")
    scene.accept("waits", identities=("waits",))
    later = scene.now + 1
    operation = Sweep(now=later, inbox_before=later, outbox_before=later, limit=2)

    swept = [scene.run(operation) for _ in range(4)]

    assert [(each.inbox, each.outbox, each.more) for each in swept] == [
        (2, 2, True),
        (2, 2, True),
        (1, 1, False),
        (0, 0, False),
    ]
    assert raw.execute("SELECT identity FROM inbox_identities").fetchall() == [("waits",)]
    assert raw.execute("SELECT count(*) FROM outbox_parts").fetchall() == [(0,)]
    assert scene.texts(entry.lineage_id) == ["q", "a"] * 5


def test_a_room_that_is_left_is_told_by_the_feed_once(store, scene):
    entry = scene.enter(source=source_at(chat_type="group"))
    assert scene.lineage(entry.lineage_id).room is not None
    _, cursor = store.changes(None)
    elsewhere = scene.accept("hello", source=source_at("oc_9", chat_type="group"), lineage_id=entry.lineage_id)

    begun = scene.begin(entry.lineage_id, elsewhere)
    told, cursor = store.changes(cursor)
    scene.finish(begun)
    scene.begin(entry.lineage_id, scene.accept("again", source=source_at("oc_9"), lineage_id=entry.lineage_id))
    afterwards, _ = store.changes(cursor)

    assert [change.kind for change in told] == ["lineage", "insert"]
    assert [change.kind for change in afterwards] == ["insert"]


def test_a_steered_message_belongs_to_the_turn(store, scene):
    begun = scene.ask(scene.enter())
    lineage_id = begun.turn.lineage_id
    steered = scene.accept("stop", lineage_id=lineage_id)

    scene.append(begun, MessageDraft(role=USER, content="stop", timestamp=1, inbox_id=steered))

    assert store.turn(begun.turn.id).inbox_ids == (*begun.turn.inbox_ids, steered)
    assert (scene.status(steered), store.inbox_item(steered).attempts) == ("done", 1)
    assert store.waiting(lineage_id) == ()
    assert store.active_turn(lineage_id).id == begun.turn.id
