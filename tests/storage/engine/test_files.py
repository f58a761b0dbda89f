from __future__ import annotations

import gc
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from hermes_core.storage.sqlite import files
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.gate import OpenMark
from hermes_core.storage.sqlite.migrate import Migration, Schema
from hermes_hookspecs.errors import StoreDamaged, StoreRefused

APPLICATION_ID = 0x48535465


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


def refused(path: Path, schema) -> str:
    before = contents(path.parent)
    with pytest.raises(StoreRefused) as caught:
        Database.open(path, schema=schema)
    assert contents(path.parent) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def foreign(path: Path, sql: str, *, journal: str = "DELETE") -> None:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {journal}; {sql}").fetchall()
    connection.close()


@pytest.mark.parametrize("content", [b"hello", b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_untouched(tmp_path, schema, content):
    path = tmp_path / "state.db"
    path.write_bytes(content)

    assert str(path) in refused(path, schema)


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_the_state_of_the_original_is_refused_and_its_import_named(tmp_path, schema, journal):
    path = tmp_path / "state.db"
    foreign(path, "CREATE TABLE sessions(id); CREATE TABLE messages(id); PRAGMA user_version = 11", journal=journal)

    assert "hermes sessions import" in refused(path, schema)


def test_a_database_of_another_program_is_refused_by_its_tables_and_by_its_id(tmp_path, schema):
    tables, marked = tmp_path / "tables.db", tmp_path / "marked.db"
    foreign(tables, "CREATE TABLE bookmarks(id)")
    foreign(marked, "PRAGMA application_id = 77; CREATE TABLE notes(id)")

    assert "bookmarks" in refused(tables, schema)
    assert "another program" in refused(marked, schema)


def test_a_newer_schema_is_refused_untouched(path, schema, database):
    database.close()
    foreign(Path(path), "PRAGMA user_version = 2", journal="WAL")

    assert "newer version" in refused(Path(path), schema)


def test_what_stands_only_in_the_log_of_a_living_program_is_seen_and_left_alone(tmp_path, schema):
    path = tmp_path / "state.db"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; CREATE TABLE sessions(id); CREATE TABLE messages(id)").fetchall()
    before = {name: data for name, data in contents(tmp_path).items() if not name.endswith("-shm")}

    with pytest.raises(StoreRefused, match="original Hermes"):
        Database.open(path, schema=schema)

    assert {name: data for name, data in contents(tmp_path).items() if not name.endswith("-shm")} == before
    connection.close()


def test_what_stands_only_in_the_log_of_a_dead_program_is_seen_and_left_alone(tmp_path, schema, finish):
    path = tmp_path / "state.db"
    finish(
        """
import apsw, os, signal, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL; CREATE TABLE sessions(id); CREATE TABLE messages(id)").fetchall()
os._exit(0)
""",
        str(path),
    )

    assert "original Hermes" in refused(path, schema)


def test_looking_at_a_file_does_not_drop_the_locks_of_this_process(path, database):
    def own_locks() -> set[tuple[str, ...]]:
        with open("/proc/locks", encoding="ascii") as table:
            lines = [tuple(line.split()[1:]) for line in table]
        return {line for line in lines if "POSIX" in line and str(os.getpid()) in line}

    if not os.path.exists("/proc/locks"):
        pytest.skip("this system does not show its locks")
    before = own_locks()

    for _ in range(3):
        assert files.glance(path) is not None

    assert before
    assert own_locks() == before


def test_an_old_sqlite_is_refused_by_name():
    with pytest.raises(StoreRefused, match=r"SQLite 3\.45\.3 is too old"):
        files.check_sqlite("3.45.3")
    files.check_sqlite("3.46.0")
    files.check_sqlite("3.54.1")


MOUNTS = r"""
/dev/vda / ext4 rw 0 0
server:/x /home/me nfs4 rw 0 0
/dev/vdb /home/me/local ext4 rw 0 0
C:\134 /mnt/c 9p rw 0 0
share /mnt/two\040words virtiofs rw 0 0
/dev/vdc /mnt/over ext4 rw 0 0
//server/x /mnt/over cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/.hermes/state.db", "nfs4"),
        ("/mnt/c/state.db", "9p"),
        ("/mnt/two words/state.db", "virtiofs"),
        ("/mnt/over/state.db", "cifs"),
        ("/home/me/local/state.db", None),
        ("/home/mean/state.db", None),
        ("/state.db", None),
    ],
)
def test_network_and_cross_vm_file_systems_are_refused_by_their_longest_mount_point(path, kind):
    if kind is None:
        files.check_file_system(path, MOUNTS)
    else:
        with pytest.raises(StoreRefused, match=kind) as caught:
            files.check_file_system(path, MOUNTS)
        assert "--home" in str(caught.value)


def test_files_are_private_and_so_is_a_folder_that_we_make(path, database):
    database.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('a')"))

    modes = {
        name: stat.S_IMODE(os.stat(os.path.join(os.path.dirname(path), name)).st_mode)
        for name in os.listdir(os.path.dirname(path))
    }

    assert set(modes) == {
        "state.db",
        "state.db-wal",
        "state.db-shm",
        "state.db-gate",
        "state.db-gate-next",
        "state.db-open",
    }
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path, schema):
    with pytest.raises(StoreRefused, match="is a folder"):
        Database.open(tmp_path, schema=schema)


@pytest.mark.parametrize("name", [":memory:", "a\0b", "a\udc80b"])
def test_names_that_cannot_be_a_file_are_refused(tmp_path, schema, name, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreRefused):
        Database.open(name, schema=schema)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a b.db", "50%.db", "who?.db", "#1.db", "会话.db", "file:x.db"])
def test_odd_names_are_just_names(tmp_path, schema, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        database = Database.open(name, schema=schema)
        database.apply(lambda t: t.run("INSERT INTO counters(name) VALUES ('a') ON CONFLICT DO NOTHING"))
        database.close()

    assert sorted(os.listdir(tmp_path)) == sorted([name, f"{name}-gate", f"{name}-gate-next", f"{name}-open"])


@pytest.mark.parametrize("side", ["-open", "-gate", "-gate-next"])
@pytest.mark.parametrize("kind", ["symbolic link", "folder"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_lock_file_that_is_none_is_named_with_the_way_out(tmp_path, schema, side, kind):
    path = str(tmp_path / "state.db")
    if kind == "folder":
        os.mkdir(path + side)
    else:
        os.symlink(tmp_path / "elsewhere", path + side)

    with pytest.raises(StoreRefused, match=f"state.db{side} is a {kind}") as caught:
        Database.open(path, schema=schema)
    gc.collect()

    assert "remove it" in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert not os.path.exists(path)


def test_a_lock_file_that_is_none_is_named_also_when_it_is_first_needed_for_writing(path, schema, database):
    database.close()
    os.remove(path + "-gate")
    os.mkdir(path + "-gate")
    opened = Database.open(path, schema=schema)

    with pytest.raises(StoreRefused, match=r"state\.db-gate is a folder"):
        opened.apply(lambda t: t.run("DELETE FROM notes"))

    opened.close()


def damaged(path: str, schema) -> str:
    """Open it twice: it is refused both times, and not changed."""
    for _ in range(2):
        before = contents(Path(path).parent)
        with pytest.raises(StoreDamaged) as caught:
            Database.open(path, schema=schema)
        after = contents(Path(path).parent)
        assert {name: data for name, data in after.items() if name in before} == before
        assert set(after) - set(before) <= {"state.db-gate", "state.db-gate-next", "state.db-wal", "state.db-shm"}
    assert "\n" not in str(caught.value)
    assert "begin anew" in str(caught.value)
    return str(caught.value)


def test_a_store_that_was_emptied_is_damaged_and_not_made_anew(path, schema, database):
    database.close()
    os.truncate(path, 0)

    assert "is empty, and was not before" in damaged(path, schema)

    os.remove(path)
    Database.open(path, schema=schema).close()


def test_a_store_that_was_removed_and_emptied_while_it_was_made_anew_can_be_opened(path, schema, database):
    database.close()
    os.remove(path)
    Path(path).touch()
    with pytest.raises(StoreDamaged):
        Database.open(path, schema=schema)
    os.remove(path)

    # what a kill between the making of the file and its first transaction leaves behind
    mark = OpenMark(path)
    mark.forget_made()
    mark.close()
    Path(path).touch()

    Database.open(path, schema=schema).close()


@pytest.mark.parametrize("gone", ["missing", "empty"])
def test_a_log_without_its_database_is_not_thrown_away(path, schema, finish, gone):
    finish(
        """
import os, sys
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("acknowledged"))
os._exit(0)
""",
        path,
    )
    if gone == "missing":
        os.remove(path)
    else:
        os.truncate(path, 0)

    assert f"is {gone}, and its log" in damaged(path, schema)


@pytest.mark.parametrize("version", [-1, 0])
def test_a_schema_that_never_was_is_damage(path, schema, database, version):
    database.close()
    foreign(Path(path), f"PRAGMA user_version = {version}", journal="WAL")

    assert f"schema is {version}" in damaged(path, schema)


def test_a_lost_table_is_damage_and_named(path, schema, database):
    database.close()
    foreign(Path(path), "DROP TABLE counters", journal="WAL")

    assert "has lost its table counters" in damaged(path, schema)


def breaks_first_page(path: str) -> bytes:
    """Break the page that says which tables there are, but not the header; return the file as it was."""
    sound = Path(path).read_bytes()
    Path(path).write_bytes(sound[:100] + b"\xff" * 900 + sound[1000:])
    return sound


def test_a_broken_schema_page_is_damage(path, schema, database):
    database.close()
    breaks_first_page(path)

    assert "is damaged" in damaged(path, schema)


def test_a_page_that_somebody_is_writing_while_we_look_is_looked_at_again(path, schema, database, monkeypatch):
    database.close()
    sound = breaks_first_page(path)
    monkeypatch.setattr(files, "time", SimpleNamespace(sleep=lambda _seconds: Path(path).write_bytes(sound)))

    found = files.inspect(path, application_id=schema.application_id, newest=schema.newest)

    assert found is not None
    assert found.user_version == schema.newest


def test_a_version_older_than_the_tables_is_damage(path):
    first = Migration(1, "CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
    second = Migration(2, "ALTER TABLE notes ADD COLUMN at INTEGER; CREATE TABLE more(id)")
    schema = Schema(application_id=APPLICATION_ID, migrations=[first, second])
    Database.open(path, schema=schema).close()
    foreign(Path(path), "PRAGMA user_version = 1", journal="WAL")

    assert "is not what its schema 1 says" in damaged(path, schema)


def test_a_link_leads_to_the_same_side_files(tmp_path, path, schema, database):
    link = tmp_path / "link.db"
    link.symlink_to(path)

    linked = Database.open(link, schema=schema)

    assert linked.path == database.path
    linked.close()


@pytest.fixture
def foreign_folder() -> Iterator[str]:
    # not tmp_path: nobody else can even look into that
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    yield folder
    os.chmod(folder, 0o755)
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_written_is_refused(foreign_folder, start):
    # root may write everywhere, so somebody else has to try
    program = start(
        """
import os, sys
from hermes_hookspecs.errors import StoreRefused
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
else:
    os.chmod(sys.argv[1], 0o555)
for place in ("state.db", "new/state.db"):
    try:
        Database.open(os.path.join(sys.argv[1], place), schema=SCHEMA)
    except StoreRefused as error:
        print(error)
print(os.listdir(sys.argv[1]))
""",
        foreign_folder,
    )
    out, err = program.communicate(timeout=30)

    *lines, listing = out.splitlines()
    assert listing == "[]", err
    assert len(lines) == 2
    assert all(foreign_folder in line for line in lines)
