"""What the SQLite store promises beyond the contract: its file, its errors, its reads and its start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib import import_module

import apsw
import pytest

from hermes_core.storage.sqlite import handlers
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_core.storage.sqlite.handlers.registry import MODULES
from hermes_core.storage.sqlite.schema import SCHEMA
from hermes_hookspecs.errors import (
    HermesError,
    IllegalMessage,
    LeaseLost,
    SessionNotFound,
    StorageError,
    StoreStopped,
)
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import (
    Append,
    Claim,
    Delete,
    ForgetRoute,
    Operation,
    PutState,
    RecordUsage,
    Rename,
)
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.sessions import SessionFilter
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    Scene,
    asking,
    fence_of,
    key_of,
    result,
    saying,
    source_at,
)
from hermes_hookspecs.turns import Fence, Usage

SOON_S = 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home" / "state.db"


@pytest.fixture
def open_store(path):
    opened = []

    def open_one(**options):
        opened.append(SqliteBackend().open(StoreOptions(path=path, **options)))
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


# ------------------------------------------------------------------ the file


def test_reopening_finds_everything(store, scene, open_store):
    entry = scene.enter()
    begun = scene.ask(entry, "question")
    scene.append(begun, asking("c1"), result("c1"))
    scene.finish(begun, saying("answer"), usage=(Usage(model="m", input_tokens=3, estimated_cost_usd=0.5),))
    scene.accept("waits", lineage_id=entry.lineage_id)
    scene.run(Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now))
    scene.run(PutState(updates=(StateUpdate(namespace="p", key="k", value="1"),), now=scene.now))
    scene.ask(scene.enter(OTHER_KEY, source_at("oc_2")), "still running")

    def everything(some):
        return (
            some.lineage(entry.lineage_id, ALL),
            some.segments(entry.lineage_id, ALL),
            some.messages(entry.lineage_id, ALL),
            some.turns(entry.lineage_id, ALL),
            some.usage(begun.turn.id),
            some.waiting(entry.lineage_id),
            some.routes(),
            some.states("p", now=scene.now),
            some.leases(),
            some.summaries(ALL),
            some.changes(None),
        )

    before = everything(store)
    store.close()

    assert everything(open_store()) == before
    assert all(before)


def test_a_new_file_has_our_mark_and_version(store, path):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    assert connection.execute("PRAGMA application_id").fetchall() == [(SCHEMA.application_id,)]
    assert connection.execute("PRAGMA user_version").fetchall() == [(SCHEMA.newest,)]
    connection.close()


def test_every_table_is_strict(raw):
    loose = raw.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict"
    ).fetchall()

    assert sorted(loose) == [("sqlite_schema",), ("sqlite_sequence",)]


def test_the_tables_have_the_names_that_people_know(raw):
    def columns(table):
        return {row[0] for row in raw.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()}

    assert columns("sessions") >= {
        "id",
        "source",
        "user_id",
        "model",
        "model_config",
        "system_prompt",
        "parent_session_id",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "estimated_cost_usd",
        "title",
        "started_at",
        "ended_at",
        "end_reason",
    }
    assert columns("messages") >= {
        "id",
        "session_id",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "timestamp",
        "token_count",
        "finish_reason",
    }


def test_a_closed_store_refuses_everything(store, scene):
    operation = scene.wanting()
    store.close()
    store.close()

    for use in (
        lambda: store.apply(operation),
        lambda: store.submit(operation).result(SOON_S),
        lambda: store.submit_read(lambda reader: reader.stats()),
        store.stats,
        store.change_mark,
    ):
        with pytest.raises(StoreStopped):
            use()


def test_what_was_queued_is_written_before_the_store_closes(store, scene, open_store):
    begun = scene.ask(scene.enter())
    queued = [store.submit(Append(fence=fence_of(begun), drafts=(saying(f"{n}"),), now=1)) for n in range(20)]

    store.close()

    assert all(one.done() for one in queued)
    texts = [row.content for row in open_store().messages(begun.turn.lineage_id, ALL)]
    assert texts == ["hello", *map(str, range(20))]


def test_the_size_in_the_counts_is_of_the_file_and_its_log(store, scene, path):
    scene.talk(scene.enter(), "x" * 100_000)

    on_disk = sum(os.stat(name).st_size for name in (path, f"{path}-wal"))

    assert store.stats().size == on_disk > 100_000


# ------------------------------------------------------------------ one bad operation, one bad row


def test_a_failing_operation_leaves_the_others_of_its_group(store, scene):
    begun = scene.ask(scene.enter())
    entered, release = threading.Event(), threading.Event()

    def hold(_tx):
        entered.set()
        assert release.wait(SOON_S)

    blocker = store._database.submit(hold)
    assert entered.wait(SOON_S)
    fence = fence_of(begun)
    stale = Fence(fence.lineage_id, fence.turn_id, fence.token - 1)
    queued = [
        store.submit(Append(fence=stale if n == 4 else fence, drafts=(saying(f"{n}"), saying("")), now=1))
        for n in range(8)
    ]
    release.set()

    blocker.result(SOON_S)
    errors = [one.exception(SOON_S) for one in queued]

    assert [type(error) for error in errors] == [type(None)] * 4 + [LeaseLost] + [type(None)] * 3
    assert [text for text in scene.texts(fence.lineage_id) if text] == ["hello", *(str(n) for n in range(8) if n != 4)]
    assert scene.lineage(fence.lineage_id).message_count == 15


def test_a_constraint_reaches_the_caller_as_an_error_of_the_tree(scene):
    entry = scene.enter()

    with pytest.raises(StorageError) as caught:
        scene.enter(OTHER_KEY, lineage_id=entry.lineage_id)

    assert not isinstance(caught.value, apsw.Error)
    assert scene.store.route(OTHER_KEY) is None


def test_an_unknown_operation_is_refused(store):
    class Strange(Operation[None]):
        pass

    with pytest.raises(StorageError, match="Strange"):
        store.apply(Strange())


def test_every_operation_of_the_contract_has_a_handler():
    from hermes_hookspecs import operations

    wanted = {
        name
        for name in operations.__all__
        if isinstance(getattr(operations, name), type)
        and issubclass(getattr(operations, name), Operation)
        and name != "Operation"
    }

    assert set(MODULES) == wanted
    assert all(
        callable(getattr(import_module(f"{handlers.__name__}.{module}"), name)) for module, name in MODULES.values()
    )


def test_a_route_with_a_damaged_source_is_not_claimed_as_one_without_scope(store, scene, raw):
    """Fail closed: what cannot be read any more must not look like "no scope was recorded"."""
    legacy, plain = scene.enter(KEY, source_at(scope_id="T1")), Claim(key=KEY, scope_id=None)
    raw.execute("UPDATE routes SET source = '{' WHERE key = ?", (KEY,))

    refused = scene.enter(OTHER_KEY, claims=(plain,))
    taken = scene.enter(key_of("oc_3"), claims=(Claim(key=KEY, scope_id="T1"),))

    assert refused.created
    assert taken.lineage_id == legacy.lineage_id
    assert taken.claimed == KEY
    assert store.route(KEY) is None


def test_a_forgotten_route_leaves_its_lineage_as_it_was(store, scene):
    entry = scene.enter()
    before = scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id)

    forgotten = [scene.run(ForgetRoute(key=KEY, now=scene.now)) for _ in range(2)]

    assert forgotten == [True, False]
    assert store.route(KEY) is None
    assert (scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id)) == before


def test_a_steered_row_is_stored_once(scene):
    entry = scene.enter()
    begun = scene.ask(entry)
    inbox_id = scene.accept("steer", lineage_id=entry.lineage_id)
    steered = MessageDraft(role=USER, content="steer", timestamp=1, inbox_id=inbox_id)
    scene.append(begun, steered)

    with pytest.raises(IllegalMessage, match="once"):
        scene.append(begun, steered)

    assert scene.texts(entry.lineage_id) == ["hello", "steer"]
    assert scene.lineage(entry.lineage_id).message_count == 2


def test_a_row_with_broken_utf8_is_shown_with_replacement_characters(store, scene, raw):
    """Case B17: one row with truncated UTF-8 made every list and load query fail."""
    entry, other = scene.enter(), scene.enter(OTHER_KEY, source_at("oc_2"))
    scene.talk(entry, "查看日志", "fine")
    scene.talk(other, "untouched")
    raw.execute("UPDATE messages SET content = CAST(x'e69fa5e7' AS TEXT) WHERE content = '查看日志'")
    raw.execute("UPDATE lineages SET preview = CAST(x'e69fa5e7' AS TEXT) WHERE id = ?", (entry.lineage_id,))

    assert scene.texts(entry.lineage_id) == ["查\ufffd", "fine"]
    assert [row.content for row in store.last_messages(entry.lineage_id, ALL, count=2)] == ["查\ufffd", "fine"]
    assert [row.content for row in store.scan(["查"], ALL)] == ["查\ufffd"]
    assert {line.preview for line in store.summaries(ALL)} == {"查\ufffd", "untouched"}
    assert scene.lineage(entry.lineage_id).preview == "查\ufffd"
    assert scene.texts(other.lineage_id) == ["untouched", "hi"]


def test_a_cell_that_should_be_json_is_left_out_and_said_in_the_log(store, scene, raw, caplog):
    entry = scene.enter()
    scene.talk(entry)
    raw.execute("UPDATE messages SET attachments = '{secret' WHERE role = 'user'")

    rows = store.messages(entry.lineage_id, ALL)

    assert [(row.content, row.attachments) for row in rows] == [("hello", ()), ("hi", ())]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "attachments" in caplog.text
    assert "secret" not in caplog.text
    assert [line.session_id for line in store.summaries(ALL)] == [entry.session_id]


def test_ten_megabytes_are_one_message(store, scene, open_store):
    text = "进\x00x" * (10_000_000 // 5)
    entry = scene.enter()

    scene.talk(entry, text, "ok")
    store.close()

    (question, _answer) = open_store().messages(entry.lineage_id, ALL)
    assert question.content == text
    assert len(text.encode()) >= 10_000_000


# ------------------------------------------------------------------ reads


def test_a_routing_hit_needs_no_writer(store, scene, raw):
    made = scene.enter()
    raw.execute("BEGIN IMMEDIATE")

    hit = scene.enter()
    queued = store.submit(scene.wanting()).result(SOON_S)
    raw.execute("ROLLBACK")

    assert hit.session_id == queued.session_id == made.session_id
    assert not hit.created
    assert hit.version == made.version


def test_a_routing_hit_long_after_the_last_one_moves_the_activity(scene):
    made = scene.enter()
    scene.clock.advance(5)

    hit = scene.enter()
    quiet = scene.enter(now=scene.now + 90_000, touch=False)

    assert hit.updated_at == made.updated_at + 5_000
    assert quiet.updated_at == hit.updated_at
    assert quiet.version == made.version


def test_reads_of_one_call_see_one_state(store, scene):
    begun = scene.ask(scene.enter())
    lineage_id = begun.turn.lineage_id
    looked, written = threading.Event(), threading.Event()

    def read_twice(reader):
        before = len(reader.messages(lineage_id, ALL))
        looked.set()
        assert written.wait(SOON_S)
        return before, len(reader.messages(lineage_id, ALL)), reader.lineage(lineage_id, ALL).message_count

    reading = store.submit_read(read_twice)
    assert looked.wait(SOON_S)
    scene.append(begun, saying("later"))
    written.set()

    assert reading.result(SOON_S) == (1, 1, 1)
    assert len(store.messages(lineage_id, ALL)) == 2


def test_the_change_mark_moves_when_another_store_on_the_file_commits(store, scene, open_store):
    begun = scene.ask(scene.enter())
    other = open_store()
    first = other.change_mark()

    assert other.change_mark() == first
    scene.append(begun, saying("more"))
    second = other.change_mark()

    assert second != first
    other.apply(Append(fence=fence_of(begun), drafts=(saying("own"),), now=1))
    assert other.change_mark() != second


def test_changes_of_a_lineage_that_is_gone_still_say_whose_they_were(store, scene):
    entry = scene.enter()
    scene.talk(entry)
    before, _ = store.changes(None)

    scene.run(Delete(lineage_id=entry.lineage_id, now=7))
    after, _ = store.changes(None)

    assert after[: len(before)] == before
    assert [(change.kind, change.lineage_id) for change in after[len(before) :]] == [
        ("delete-lineage", entry.lineage_id)
    ]


def test_numbers_of_deleted_rows_are_not_given_again(store, scene):
    entry = scene.enter()
    scene.talk(entry)
    ids = [row.id for row in scene.rows(entry.lineage_id)]
    inbox_id = scene.accept("last", lineage_id=entry.lineage_id)

    scene.run(Delete(lineage_id=entry.lineage_id, now=7))
    again = scene.enter()  # what waited has come along
    scene.finish(scene.begin(again.lineage_id, inbox_id), saying("hi"))

    assert min(row.id for row in scene.rows(again.lineage_id)) > max(ids)
    assert scene.accept("new") > inbox_id


def test_late_usage_is_marked(store, scene, raw):
    begun = scene.ask(scene.enter())
    scene.revoke(begun.turn.lineage_id)

    scene.run(RecordUsage(turn_id=begun.turn.id, usage=Usage(output_tokens=5), now=2))

    assert raw.execute("SELECT late, output_tokens FROM usage").fetchall() == [(1, 5)]


def test_lists_of_both_flags_keep_their_order_and_pages(store, scene, raw):
    made = []
    for number in range(6):
        scene.clock.advance(1)
        made.append(scene.enter(f"agent:main:feishu:dm:chat={number}", source_at(f"{number}")).lineage_id)
    raw.execute("UPDATE lineages SET archived = 1 WHERE no % 2 = 0")
    newest_first = made[::-1]

    both = SessionFilter(archived=None)
    first = store.summaries(ALL, where=both, limit=4)
    place = (first[-1].last_activity, first[-1].lineage_id)
    rest = store.summaries(ALL, where=SessionFilter(archived=None, before=place))

    assert [line.lineage_id for line in (*first, *rest)] == newest_first
    assert [line.lineage_id for line in store.summaries(ALL)] == newest_first[1::2]


def test_errors_of_lookups_are_of_the_tree(scene):
    with pytest.raises(SessionNotFound):
        scene.run(Rename(lineage_id=LineageId("nobody"), title="x", origin="user", now=1))
    with pytest.raises(HermesError):
        scene.run(Delete(lineage_id=LineageId("nobody\ud800"), now=1))


# ------------------------------------------------------------------ start-up


def test_a_list_loads_only_what_a_list_needs(store, scene, path):
    """The quickest command reads summaries: no JSON, no event loop, no thread pool, none of the write side."""
    begun = scene.ask(scene.enter())
    store.close()
    program = (
        "import sys\n"
        "from hermes_core.storage.sqlite.backend import SqliteBackend\n"
        "from hermes_hookspecs.ports.store import StoreOptions\n"
        "from hermes_hookspecs.principal import operator\n"
        f"store = SqliteBackend().open(StoreOptions(path={str(path)!r}))\n"
        "line, = store.summaries(operator())\n"
        "store.close()\n"
        "print(line.session_id, line.locked_by)\n"
        "heavy = 'json asyncio concurrent.futures logging sqlite3 hermes_hookspecs.operations'.split()\n"
        "print([name for name in sys.modules if name in heavy or '.handlers' in name])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=os.environ
    )

    assert done.stdout.splitlines() == [f"{begun.session.id} cli/default/pts-1 (process 100 on here)", "[]"]


def test_keys_are_looked_up_byte_for_byte(store, scene):
    scene.enter(KEY)

    assert store.route(KEY) is not None
    assert store.route(KEY.upper()) is None
    assert store.route(KEY + " ") is None
