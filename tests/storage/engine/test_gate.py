from __future__ import annotations

import os
import time

from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.gate import Gate, OpenMark, gate_files
from hermes_core.storage.sqlite.locks import describe_holders, holders

HOLDER = """
import sys
from hermes_core.storage.sqlite.gate import Gate
gate = Gate(sys.argv[1])
gate.acquire()
print("held", flush=True)
sys.stdin.readline()
gate.release()
print("free", flush=True)
sys.stdin.readline()
"""


def test_one_is_inside_at_a_time_and_the_next_comes_in_after_him(tmp_path, start):
    path = str(tmp_path / "state.db")
    holder = start(HOLDER, path)
    assert holder.stdout.readline() == "held\n"
    gate = Gate(path)

    assert not gate.try_acquire()
    assert not gate.acquire_until(time.monotonic() + 0.02)
    assert holders(gate_files(path)[0]) == [holder.pid]
    assert str(holder.pid) in describe_holders(path, *gate_files(path))
    holder.stdin.write("\n")
    holder.stdin.flush()
    gate.acquire()

    assert holder.stdout.readline() == "free\n"
    assert holders(gate_files(path)[0]) == [os.getpid()]
    assert describe_holders(*gate_files(path)) == ""
    gate.close()
    gate.close()


def test_who_waits_in_line_is_not_overtaken_by_one_who_only_tries(tmp_path, start):
    path = str(tmp_path / "state.db")
    holder, waiter = start(HOLDER, path), None
    assert holder.stdout.readline() == "held\n"
    waiter = start(HOLDER, path)
    deadline = time.monotonic() + 10
    while not holders(gate_files(path)[1]):
        assert time.monotonic() < deadline
    gate = Gate(path)
    holder.stdin.write("\n")
    holder.stdin.flush()

    assert waiter.stdout.readline() == "held\n"
    assert not gate.try_acquire()
    gate.close()


def test_a_killed_holder_frees_the_gate_and_the_side_files_stay(tmp_path, start):
    path = str(tmp_path / "state.db")
    holder = start(HOLDER, path)
    assert holder.stdout.readline() == "held\n"
    inodes = [os.stat(side).st_ino for side in gate_files(path)]

    holder.kill()
    gate = Gate(path)
    gate.acquire()

    assert [os.stat(side).st_ino for side in gate_files(path)] == inodes
    gate.close()


def test_two_gates_of_one_process_exclude_each_other(tmp_path):
    first, second = Gate(str(tmp_path / "state.db")), Gate(str(tmp_path / "state.db"))

    first.acquire()
    refused = second.try_acquire()
    first.release()

    assert not refused
    assert second.try_acquire()
    first.close()
    second.close()


def test_a_claim_waits_for_all_who_have_it_open(tmp_path):
    path = str(tmp_path / "state.db")
    first, second, claimer = OpenMark(path), OpenMark(path), OpenMark(path)
    now = time.monotonic()

    assert first.share_until(now)
    assert second.share_until(now)
    assert not claimer.claim_until(now)
    first.close()
    assert not claimer.claim_until(now)
    second.close()
    assert claimer.claim_until(now)
    claimer.close()


def test_six_processes_open_a_fresh_home_at_once_and_none_fails(tmp_path, start, schema):
    for attempt in range(3):
        path = str(tmp_path / str(attempt) / "home" / "state.db")
        programs = [
            start(
                """
import sys
print("ready", flush=True)
sys.stdin.readline()
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note(sys.argv[2]))
db.close()
""",
                path,
                str(number),
            )
            for number in range(6)
        ]
        for program in programs:
            assert program.stdout.readline() == "ready\n"
        for program in programs:
            program.stdin.write("\n")
            program.stdin.flush()
        for program in programs:
            _, err = program.communicate(timeout=30)
            assert program.returncode == 0, err
        database = Database.open(path, schema=schema)
        with database.read() as reader:
            assert reader.one("SELECT count(*) FROM notes") == (6,)
        assert database.integrity() == []
        database.close()


def test_four_processes_write_side_by_side_and_nothing_is_lost(path, start, database):
    programs = [
        start(
            """
import sys, time
db = Database.open(sys.argv[1], schema=SCHEMA)
longest = 0
for number in range(150):
    began = time.monotonic()
    db.apply(note(f"{sys.argv[2]}-{number}"))
    longest = max(longest, time.monotonic() - began)
db.close()
print(longest)
""",
            path,
            str(number),
        )
        for number in range(4)
    ]
    longest = []
    for program in programs:
        out, err = program.communicate(timeout=60)
        assert program.returncode == 0, err
        longest.append(float(out))

    with database.read() as reader:
        rows = reader.all("SELECT text FROM notes")
    assert {row[0] for row in rows} == {f"{worker}-{number}" for worker in range(4) for number in range(150)}
    # SQLite's own waiting starves somebody for seconds
    assert max(longest) < 2
