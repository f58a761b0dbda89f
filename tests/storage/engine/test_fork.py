from __future__ import annotations

import os

import pytest

from hermes_core.storage.sqlite.database import Database

if not hasattr(os, "fork"):
    pytest.skip("this system does not fork", allow_module_level=True)


def test_a_forked_child_is_refused_and_closes_nothing_of_the_parents(path, finish):
    out = finish(
        """
import os, sys
from hermes_hookspecs.errors import StoreStopped
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("before"))
with db.read() as reader:
    reader.one("SELECT 1")
db.data_version()
child = os.fork()
if child == 0:
    said = []
    reads, writes = lambda: db.read().__enter__(), lambda: db.apply(note("child"))
    for use in (writes, reads, lambda: db.submit(note("child")), db.data_version, db.integrity):
        try:
            use()
        except StoreStopped as error:
            said.append(str(error))
    assert len(said) == 5 and all("fork" in line for line in said), said
    db.close()
    del db
    import gc; gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert os.path.exists(sys.argv[1] + "-wal")
db.apply(note("after"))
with db.read() as reader:
    print(reader.all("SELECT text FROM notes ORDER BY id"))
print(db.integrity())
db.close()
""",
        path,
    )

    assert out.splitlines() == ["[('before',), ('after',)]", "[]"]


def test_a_child_that_outlives_its_parent_does_not_take_a_strangers_log_away(path, start, finish, schema):
    parent = start(
        """
import os, sys
db = Database.open(sys.argv[1], schema=SCHEMA)
with db.read() as reader:
    reader.one("SELECT 1 FROM notes")
child = os.fork()
if child == 0:
    sys.stdin.readline()
    sys.exit(0)
db.close()
print("closed", flush=True)
os.waitpid(child, 0)
os._exit(0)
""",
        path,
    )
    assert parent.stdout.readline() == "closed\n"
    finish(
        """
import os, sys
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("stranger, acknowledged"))
os._exit(0)
""",
        path,
    )

    parent.stdin.write("\n")
    parent.stdin.flush()
    parent.wait(10)

    database = Database.open(path, schema=schema)
    with database.read() as reader:
        assert reader.all("SELECT text FROM notes") == [("stranger, acknowledged",)]
    database.close()


def test_a_child_and_its_child_are_refused_the_file_that_was_open_at_the_fork(path, finish, tmp_path):
    """SQLite's lock tables are copied by a fork, its locks are not: rows of such a child were lost."""
    (tmp_path / "link.db").symlink_to(path)
    out = finish(
        """
import os, sys
from hermes_hookspecs.errors import StoreRefused
def refused(path):
    try:
        Database.open(path, schema=SCHEMA)
    except StoreRefused as error:
        assert "spawn" in str(error), error
        return True
    return False
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("parent"))
child = os.fork()
if child == 0:
    assert refused(sys.argv[1]) and refused(sys.argv[2])
    db.close()
    assert refused(sys.argv[1])
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if refused(sys.argv[1]) else 1)
    assert os.waitpid(grandchild, 0)[1] == 0
    other = Database.open(sys.argv[1] + "-another", schema=SCHEMA)
    other.apply(note("another file"))
    other.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
second = Database.open(sys.argv[1], schema=SCHEMA)
second.apply(note("parent again"))
with db.read() as reader:
    print(reader.all("SELECT text FROM notes ORDER BY id"))
db.close()
second.close()
""",
        path,
        str(tmp_path / "link.db"),
    )

    assert out == "[('parent',), ('parent again',)]\n"


def test_a_child_may_open_what_was_closed_before_the_fork_and_a_fresh_process_always(path, finish):
    out = finish(
        """
import os, sys
def write(text):
    db = Database.open(sys.argv[1], schema=SCHEMA)
    db.apply(note(text))
    with db.read() as reader:
        reader.one("SELECT 1")
    db.data_version()
    return db
if len(sys.argv) > 2:
    write("fresh").close()
    sys.exit(0)
write("parent").close()
child = os.fork()
if child == 0:
    write("child").close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
db = write("parent again")
child = os.fork()
if child == 0:
    os.execv(sys.executable, [*sys.orig_argv, "fresh"])
assert os.waitpid(child, 0)[1] == 0
with db.read() as reader:
    print([row[0] for row in reader.all("SELECT text FROM notes ORDER BY id")])
db.close()
""",
        path,
    )

    assert out == "['parent', 'child', 'parent again', 'fresh']\n"


def test_a_child_is_refused_also_while_a_read_keeps_the_closed_file_open(path, finish):
    out = finish(
        """
import os, sys
from hermes_hookspecs.errors import StoreRefused
db = Database.open(sys.argv[1], schema=SCHEMA)
with db.read() as reader:
    reader.one("SELECT 1 FROM notes")
    db.close()
    child = os.fork()
    if child == 0:
        try:
            Database.open(sys.argv[1], schema=SCHEMA)
        except StoreRefused:
            os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        path,
    )

    assert out == "7\n"


def test_a_fork_waits_until_no_thread_is_inside_sqlite(path, finish):
    """A mutex of SQLite that is locked at the fork stays locked in the child, which then never ends."""
    out = finish(
        """
import os, sys, threading
db = None
inside, go, last = threading.Event(), threading.Event(), threading.Event()
forking = []
# Run in the reverse order of their registration: the second one before the database's, the first one after it.
os.register_at_fork(before=lambda: forking.append(last.is_set()))
db = Database.open(sys.argv[1], schema=SCHEMA)
os.register_at_fork(before=go.set)
def hold():
    inside.set()
    assert go.wait(20)
def read():
    with db.read() as reader:
        reader._connection.create_scalar_function("hold", hold, 0)
        reader._connection.create_scalar_function("last", last.set, 0)
        reader.all(
            "SELECT hold() UNION ALL SELECT max(n) FROM (WITH RECURSIVE c(n) AS "
            "(SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 300000) SELECT n FROM c) UNION ALL SELECT last()"
        )
thread = threading.Thread(target=read)
thread.start()
assert inside.wait(20)
child = os.fork()
if child == 0:
    sys.exit(0)
thread.join(20)
print(forking, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
db.close()
""",
        path,
    )

    assert out == "[True] 0\n"


def test_a_fork_waits_for_the_end_of_a_writing_transaction(path, finish):
    """The child would undo it when it ends, in memory that it shares with the parent."""
    out = finish(
        """
import os, sys, threading
inside, go = threading.Event(), threading.Event()
open_at_fork = []
os.register_at_fork(before=lambda: open_at_fork.append(db._writer._committer._parts[0].in_transaction))
db = Database.open(sys.argv[1], schema=SCHEMA)
os.register_at_fork(before=go.set)
def slow(t):
    inside.set()
    assert go.wait(20)
    for number in range(200):
        note(f"row {number}")(t)
future = db.submit(slow)
assert inside.wait(20)
child = os.fork()
if child == 0:
    sys.exit(0)
future.result(20)
print(open_at_fork, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with db.read() as reader:
    print(reader.all("SELECT count(*) FROM notes"))
db.close()
""",
        path,
    )

    assert out == "[False] 0\n[(200,)]\n"


def test_an_operation_that_forks_does_not_wait_for_itself(path, finish):
    out = finish(
        """
import os, sys, time
db = Database.open(sys.argv[1], schema=SCHEMA)
def forking(t):
    note("before")(t)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)[1], time.monotonic() - began < 2
print(db.apply(forking))
db.close()
""",
        path,
    )

    assert out == "(0, True)\n"


def test_a_child_whose_parent_was_closing_at_the_fork_ends_all_the_same(path, finish):
    out = finish(
        """
import os, sys
db = Database.open(sys.argv[1], schema=SCHEMA)
db.submit(note("queued")).result(20)
db._writer._entering.acquire()
child = os.fork()
if child == 0:
    sys.exit(0)
db._writer._entering.release()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
db.close()
""",
        path,
    )

    assert out == "0\n"


def test_a_dead_holder_of_the_gate_is_not_kept_alive_by_his_forked_child(path, start, database):
    program = start(
        """
import os, sys, time
from hermes_core.storage.sqlite.committer import Committer
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("first"))
connection, gate, wal = db._writer._committer._parts
gate.acquire()
child = os.fork()
if child == 0:
    os.close(1); os.close(2)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
sys.stdin.readline()
""",
        path,
    )
    child = int(program.stdout.readline())

    program.kill()
    program.wait(10)

    assert database.apply(lambda t: t.insert("INSERT INTO notes(text) VALUES ('second')"), timeout_s=20) == 2
    os.kill(child, 9)
