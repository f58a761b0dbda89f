"""Files that an older program made are brought up with all that is in them, and look like new ones afterwards."""

from __future__ import annotations

import apsw
import pytest

from hermes_core.storage.sqlite import migrate
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Schema
from hermes_core.storage.sqlite.schema import APPLICATION_ID, SCHEMA
from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.ids import InboxId, LineageId
from hermes_hookspecs.operations import Begun, Sweep
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, KEY, Scene

OLDER = 1

# As the first program wrote them: a lineage with a route, a message in each state, a turn that its process left behind.
OLD_ROWS = """
INSERT INTO lineages (id, tip, owner, shared, platform, created_at, last_activity, written_at, lease_token, source)
    VALUES ('L1', 'S1', 'person:feishu::default::ou_1', 0, 'feishu', 1, 1, 1, 1, '{"platform":"feishu"}');
INSERT INTO sessions (id, lineage_id, source, account_id, started_at) VALUES ('S1', 'L1', 'feishu', 'default', 1);
INSERT INTO routes (key, lineage_id, profile, platform, account_id, chat_type, key_version, group_sessions_per_user,
    thread_sessions_per_user, created_at, updated_at, source)
    VALUES ('agent:main:feishu:dm:chat=oc_1', 'L1', 'main', 'feishu', 'default', 'dm', 1, 1, 0, 1, 1,
    '{"platform":"feishu"}');
INSERT INTO inbox (session_key, lineage_id, kind, status, accepted_at, settled_at, platform, account_id, identities,
    error, source, text)
    VALUES
    ('agent:main:feishu:dm:chat=oc_1', 'L1', 'message', 'done', 10, 20, 'feishu', 'default', '["a"]', '',
        '{"platform":"feishu"}', 'answered'),
    ('agent:main:feishu:dm:chat=oc_1', NULL, 'message', 'quarantined', 11, NULL, 'feishu', 'default', '["b"]', 'torn',
        '{"platform":"feishu"}', ''),
    ('agent:main:feishu:dm:chat=oc_1', 'L1', 'message', 'pending', 12, NULL, 'feishu', 'default', '["c"]', '',
        '{"platform":"feishu"}', 'waits');
INSERT INTO inbox_identities VALUES ('a', 1), ('b', 2), ('c', 3);
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state.db")


@pytest.fixture
def old_file(path):
    schema = Schema(application_id=APPLICATION_ID, migrations=SCHEMA.migrations[:1])
    database = Database.open(path, schema=schema)
    database.apply(lambda tx: tx.all(OLD_ROWS))
    database.close()
    return path


@pytest.fixture
def store(old_file):
    store = SqliteBackend().open(StoreOptions(path=old_file))
    yield store
    store.close()


def _structure(path):
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return (
            connection.execute("PRAGMA user_version").fetchall(),
            connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall(),
            connection.execute("PRAGMA foreign_key_check").fetchall(),
        )
    finally:
        connection.close()


def test_an_old_file_looks_like_a_new_one(store, old_file, tmp_path):
    new = str(tmp_path / "new.db")
    SqliteBackend().open(StoreOptions(path=new)).close()

    assert _structure(old_file) == _structure(new)


@pytest.mark.parametrize("age", ["new", "old"])
def test_an_ordinary_open_knows_the_tables_without_making_them(age, request, tmp_path, monkeypatch):
    path = request.getfixturevalue("old_file") if age == "old" else str(tmp_path / "new.db")
    SqliteBackend().open(StoreOptions(path=path)).close()
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    found = {name: number for name, number in migrate.checksums(connection).items() if not name.startswith("sqlite_")}
    connection.close()
    compared = []
    monkeypatch.setattr(migrate, "_missing", lambda *_: compared.append("slowly") or [])

    SqliteBackend().open(StoreOptions(path=path)).close()

    assert {name: f"0x{number:08X}" for name, number in found.items()} == {
        name: f"0x{number:08X}" for name, number in SCHEMA.checksums.items()
    }
    assert compared == []


def test_a_column_that_is_missing_in_spite_of_its_number_is_added(path):
    SqliteBackend().open(StoreOptions(path=path)).close()
    connection = apsw.Connection(path)
    connection.execute("ALTER TABLE outbox DROP COLUMN error").fetchall()
    connection.close()

    for _ in range(2):
        store = SqliteBackend().open(StoreOptions(path=path))
        scene = Scene(store)
        assert scene.delivery(scene.deliver()).error == ""
        store.close()


def test_what_waits_in_an_old_file_is_answered(store):
    scene = Scene(store)
    waits = InboxId(3)

    begun = scene.try_begin(LineageId("L1"), waits)

    assert isinstance(begun, Begun)
    assert [item.text for item in begun.items] == ["waits"]
    assert [item.outcome for item in begun.items] == [None]
    assert store.route(KEY).lineage_id == "L1"
    assert store.lineage(LineageId("L1"), ALL).message_count == 1


def test_what_an_old_program_put_aside_is_swept_by_the_time_of_its_acceptance(store):
    quarantined = [item.id for item in store.quarantined()]

    swept = store.apply(Sweep(now=100, inbox_before=12, outbox_before=12))

    assert quarantined == [2]
    assert swept.inbox == 1
    assert store.quarantined() == ()
    assert store.inbox_item(InboxId(1)).text == "answered"


def test_a_step_that_fails_half_way_leaves_the_old_file(old_file):
    before = _structure(old_file)
    connection = apsw.Connection(old_file)
    connection.execute("CREATE TABLE entrance_servers (in_the_way TEXT)").fetchall()
    connection.close()

    with pytest.raises(StorageError):
        SqliteBackend().open(StoreOptions(path=old_file))

    after = _structure(old_file)
    assert after[0] == before[0] == [(OLDER,)]
    assert [row for row in after[1] if row[1] != "entrance_servers"] == before[1]


def test_a_program_of_before_leaves_a_newer_file_alone(store, old_file):
    store.close()

    with pytest.raises(StorageError):
        Database.open(old_file, schema=Schema(application_id=APPLICATION_ID, migrations=SCHEMA.migrations[:1]))
