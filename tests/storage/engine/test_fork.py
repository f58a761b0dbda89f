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


def test_a_child_opens_the_store_for_itself(path, finish):
    out = finish(
        """
import os, sys
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("parent"))
child = os.fork()
if child == 0:
    own = Database.open(sys.argv[1], schema=SCHEMA)
    own.apply(note("child"))
    own.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
db.apply(note("parent again"))
with db.read() as reader:
    print(reader.all("SELECT text FROM notes ORDER BY id"))
db.close()
""",
        path,
    )

    assert out == "[('parent',), ('child',), ('parent again',)]\n"


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

    assert database.apply(lambda t: t.insert("INSERT INTO notes(text) VALUES ('second')"), timeout_s=5) == 2
    os.kill(child, 9)
