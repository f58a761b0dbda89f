"""The doctor: what it sees of a store and its surroundings, what it puts right, and what it leaves alone."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import contextmanager

import attrs
import pytest

from hermes_core import open_app
from hermes_core.care.sockets import dead_sockets
from hermes_core.leases import holder_here
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Schema
from hermes_core.storage.sqlite.schema import APPLICATION_ID, SCHEMA
from hermes_hookspecs.errors import StorageError, StoreDamaged
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Accept, FailDelivery, ServeEntrances
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.scene import Scene, source_at

ALL = operator()
FEISHU = Entrance("feishu")
DIE_IN_A_TURN = """
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep


async def agent(turn):
    yield AssistantStep(content="I look", tool_calls=(ToolCall(id="c1", name="look"),))
    say("in the turn")
    hear()


open_app(HOME, plugins=False, overrides=FAST).ask("first", ALICE, agent=agent)
"""
SERVE_AND_DIE = """
from hermes_core.leases import holder_here
from hermes_hookspecs.operations import ServeEntrances
from hermes_hookspecs.source import Entrance
app = open_app(HOME, plugins=False, overrides=FAST)
door = Entrance("feishu")
app.store.apply(ServeEntrances(entrances=(door,), holder=holder_here(door, None), now=1))
say("serving")
hear()
"""


def kinds(examination):
    return [finding.kind for finding in examination.findings]


def the(examination, kind):
    (found,) = [finding for finding in examination.findings if finding.kind == kind]
    return found


def the_repaired(examination, kind):
    (found,) = [finding.text for finding in examination.repaired if finding.kind == kind]
    return found


@pytest.fixture
def told(app, alice):
    app.ask("你好", alice)
    entry = app.ask("谢谢", alice).entry
    app.rename_session(entry.lineage_id, "天气")
    return entry


@pytest.fixture
def scene(app):
    return Scene(app.store)


@pytest.fixture
def dead_turn(app, alice, start):
    """Leave a turn behind whose process was killed in the middle; return its program."""
    program = start(DIE_IN_A_TURN)
    assert program.hear() == "in the turn"
    program.kill()
    return program


# ------------------------------------------------------------------ sound stores


def test_a_sound_store_is_sound_and_every_check_is_named(app, told):
    names = []

    result = app.care.examine(progress=names.append)

    assert (result.damage, result.findings, result.repaired, result.backup) == ((), (), (), None)
    assert result.location == app.store.location
    assert result.health.journal_mode == "wal"
    assert list(result.checked) == names
    assert {"store", "integrity", "rows", "log", "leases", "entrances", "outbox", "leftovers"} < set(names)


def test_an_empty_store_is_sound(app):
    assert app.care.examine().findings == ()


def test_a_store_in_memory_is_looked_at_as_far_as_there_is_something(tmp_path, alice):
    with open_app(tmp_path / "home", plugins=False, environ={}, overrides={"storage.backend": "memory"}) as app:
        app.ask("hello", alice, agent="echo")

        result = app.care.examine()
        repaired = app.care.repair()

    assert (result.findings, result.health) == ((), None)
    assert repaired.backup is None


def test_a_repair_of_a_sound_store_copies_nothing(app, told, home):
    result = app.care.repair()

    assert (result.repaired, result.backup) == ((), None)
    assert not (home / "backups").exists()


def test_a_store_of_the_version_before_is_brought_up_and_is_sound(home, open_home):
    home.mkdir()
    before = Schema(application_id=APPLICATION_ID, migrations=SCHEMA.migrations[:1])
    Database.open(home / "state.db", schema=before).close()

    result = open_home().care.examine()

    assert (result.damage, result.findings) == ((), ())
    assert result.health.schema_version == SCHEMA.newest


# ------------------------------------------------------------------ repair


def test_a_repair_copies_first_and_a_second_one_finds_nothing_to_do(app, told, sql, texts, home):
    before = texts()
    sql("UPDATE lineages SET message_count = 99")
    sql("UPDATE sessions SET parent_session_id = 'gone'")

    first = app.care.repair()
    second = app.care.repair()

    assert sorted(finding.kind for finding in first.repaired) == ["dangling-parent", "wrong-counters"]
    assert first.findings == ()
    with open_app(home / "elsewhere", db=first.backup, plugins=False, environ={}) as copy:
        assert copy.store.lineage(told.lineage_id, ALL).message_count == 99
    assert (second.repaired, second.backup) == ((), None)
    assert texts() == before


def test_b16_an_agent_that_dies_of_an_encoding_costs_no_text_and_neither_does_a_repair(app, told, alice, sql, texts):
    before = texts()

    def agent(turn):
        raise UnicodeEncodeError("ascii", "你好", 0, 2, "ordinal not in range(128)")

    with pytest.raises(Exception, match="ascii"):
        app.ask("第三", alice, agent=agent)
    sql("UPDATE lineages SET message_count = 0")
    app.care.repair()

    assert texts(below=before[0]) == before
    assert [row.content for row in app.store.messages(told.lineage_id, ALL)][:3] == ["你好", "echo 1: 你好", "谢谢"]
    assert "第三" in [row.content for row in app.store.messages(told.lineage_id, ALL)]


def test_a_copy_that_cannot_be_made_stops_the_repair(app, told, sql, home):
    sql("UPDATE lineages SET message_count = 99")
    (home / "backups").write_text("in the way")

    with pytest.raises(StorageError, match="backups"):
        app.care.repair()

    assert kinds(app.care.examine()) == ["wrong-counters"]


# ------------------------------------------------------------------ damage


@pytest.fixture
def damaged(app, told, alice, home):
    """Hurt pages in the middle of the file."""
    app.ask("more", alice, agent=lambda turn: "x" * 400_000)
    copy = app.care.backup()
    app.close()
    with open(home / "state.db", "r+b") as file:
        file.seek(-40 * 4096, os.SEEK_END)
        file.write(b"\xff" * 4096 * 20)
    return copy


def test_a_damaged_file_is_told_and_not_touched_and_the_newest_copy_is_named(damaged, open_home, home):
    app = open_home()
    before = (home / "state.db").read_bytes()

    result = app.care.examine()
    with pytest.raises(StoreDamaged, match="nothing was changed") as caught:
        app.care.repair()

    assert result.damage
    assert "rows" not in result.checked
    assert str(damaged) in str(caught.value)
    assert (home / "state.db").read_bytes() == before
    assert [path.name for path in (home / "backups").iterdir()] == [damaged.name]


def test_a_file_that_cannot_even_be_opened_is_damage(app, told, open_home, home):
    app.close()
    (home / "state.db").write_bytes(b"")
    again = open_home()

    result = again.care.examine()
    with pytest.raises(StoreDamaged):
        again.care.repair()

    assert "empty" in result.damage[0]
    assert result.location == str(home / "state.db")
    assert "plugins" in result.checked
    assert (home / "state.db").read_bytes() == b""


def test_a_file_of_somebody_else_is_a_finding(open_home, home):
    home.mkdir()
    (home / "state.db").write_text("mine " * 200)

    result = open_home().care.examine()

    assert the(result, "store-refused").severity == "error"
    assert (home / "state.db").read_text() == "mine " * 200


@contextmanager
def read_only(folder):
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    done = subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this process may not mount a file system")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], capture_output=True, check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def test_a_read_only_folder_is_a_finding(app, told, open_home, home):
    app.close()
    again = open_home()
    with read_only(home):
        result = again.care.examine()

    assert "cannot be written" in the(result, "store-refused").text


# ------------------------------------------------------------------ leases: C08 and C17


def test_leases_are_told_with_turn_holder_and_who_waits(app, scene):
    entry = scene.enter()
    begun = scene.begin(entry.lineage_id, scene.accept("one"), holder=holder_here(FEISHU, None))
    scene.accept("two")

    (row,) = app.care.leases()

    assert (row.lease.lineage_id, row.turn.id, row.lives, row.waiting) == (entry.lineage_id, begun.turn.id, True, 1)
    assert row.lineage.tip == entry.session_id


def test_a_holder_of_another_host_is_unknown(app, scene):
    entry = scene.enter()
    scene.begin(entry.lineage_id, scene.accept("one"))

    (row,) = app.care.leases()

    assert row.lives is None


def test_c08_a_living_process_with_the_same_number_is_not_the_holder(app, scene):
    entry = scene.enter()
    foreign = attrs.evolve(holder_here(FEISHU, None), pid=os.getppid(), started="1")
    scene.begin(entry.lineage_id, scene.accept("one"), holder=foreign)

    (row,) = app.care.leases()
    found = the(app.care.examine(), "dead-lease")

    assert row.lives is False
    assert (found.subject, found.fixable) == (entry.lineage_id, True)
    assert f"process {os.getppid()}" in found.text


def test_c08_c17_a_killed_run_is_seen_closed_and_never_met_by_a_later_message(app, dead_turn, alice):
    (row,) = app.care.leases()
    found = the(app.care.examine(), "dead-lease")

    repaired = app.care.repair()

    assert row.lives is False
    assert found.subject == row.lease.lineage_id
    # The socket at which its turn listened may lie there, too.
    assert {finding.kind for finding in repaired.repaired} - {"dead-socket"} == {"dead-lease"}
    assert the_repaired(repaired, "dead-lease").endswith("is gone; the turn was closed")
    assert app.store.turn(row.turn.id).outcome == "interrupted"
    assert app.care.leases() == []
    assert app.care.examine().findings == ()
    roles = [message.role for message in app.store.messages(row.lease.lineage_id, ALL)]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert app.ask("next", alice).text == "echo 2: next"


def test_a_turn_that_gives_no_sign_of_life_though_its_process_lives_is_named(app, scene):
    entry = scene.enter()
    scene.begin(entry.lineage_id, scene.accept("one"), holder=holder_here(FEISHU, None), now=1, ttl_ms=30_000)

    found = the(app.care.examine(), "stuck-turn")

    assert (found.subject, found.fixable) == (entry.lineage_id, False)
    assert f"process {os.getpid()}" in found.text
    assert os.uname().nodename in found.text


def test_a_lease_of_elsewhere_that_ran_out_is_named(app, scene):
    entry = scene.enter()
    scene.begin(entry.lineage_id, scene.accept("one"), now=1)

    assert the(app.care.examine(), "lost-lease").subject == entry.lineage_id


def test_a_turn_that_renews_is_no_finding(open_home):
    app = open_home(clock=FakeClock())
    scene = Scene(app.store)
    entry = scene.enter()
    scene.begin(
        entry.lineage_id, scene.accept("one", waiter=holder_here(FEISHU, None)), holder=holder_here(FEISHU, None)
    )

    assert app.care.examine().findings == ()


# ------------------------------------------------------------------ entrances, outbox, leftovers


def test_a_dead_server_is_named_with_what_waits_for_it_and_removed(app, scene, start):
    program = start(SERVE_AND_DIE)
    assert program.hear() == "serving"
    scene.enter()
    scene.accept("is anybody there?")
    alive = app.care.examine()
    program.kill()

    found = the(app.care.examine(), "dead-server")
    repaired = app.care.repair()

    assert "dead-server" not in kinds(alive)
    assert "messages wait there" in found.text
    assert the_repaired(repaired, "dead-server").endswith("is gone; its word was taken back")
    assert app.store.servers() == ()
    assert kinds(repaired) == ["unserved"]


def test_a_dead_server_beside_a_living_one_keeps_nobody_waiting(app, scene, start):
    program = start(SERVE_AND_DIE)
    assert program.hear() == "serving"
    program.kill()
    app.store.apply(ServeEntrances(entrances=(FEISHU,), holder=holder_here(FEISHU, None), now=1))
    scene.enter()
    scene.accept("is anybody there?")

    found = the(app.care.examine(), "dead-server")
    repaired = app.care.repair()

    assert (found.severity, found.fixable) == ("note", True)
    assert found.text.endswith("is gone; another process serves it")
    assert the_repaired(repaired, "dead-server").endswith("is gone; its word was taken back")

    assert len(app.store.servers()) == 1


def test_deliveries_that_failed_or_are_late_are_told(open_home):
    app = open_home(clock=FakeClock())
    scene = Scene(app.store)
    claimed = scene.claim(scene.deliver("lost"))
    app.store.apply(FailDelivery(delivery_id=claimed.id, attempt=claimed.attempt, now=scene.now, error="chat is gone"))
    scene.deliver("late", target=source_at("oc_9"))
    app.clock.advance(700)

    result = app.care.examine()

    assert kinds(result) == ["failed-delivery", "overdue-delivery"]
    assert "chat is gone" in the(result, "failed-delivery").text
    assert the(result, "overdue-delivery").subject == "feishu"


def test_what_is_due_where_nobody_serves_is_late_at_once_and_elsewhere_after_ten_minutes(open_home):
    app = open_home(clock=FakeClock())
    scene = Scene(app.store)
    for number in range(7):
        scene.deliver("late", target=source_at(f"oc_{number}"))
    app.clock.advance(90)

    unserved = the(app.care.examine(), "overdue-delivery")
    app.store.apply(ServeEntrances(entrances=(FEISHU,), holder=holder_here(FEISHU, None), now=1))
    served = kinds(app.care.examine())
    app.clock.advance(600)
    late = the(app.care.examine(), "overdue-delivery")

    assert unserved.text == "7 deliveries are due at feishu, the oldest for 1 min; no process serves it, start one"
    assert served == []
    assert late.text.endswith("the oldest for 11 min; look at the process that serves it")


def test_what_a_platform_put_off_is_a_note_with_the_reason(open_home):
    app = open_home(clock=FakeClock())
    scene = Scene(app.store)
    scene.defer(scene.claim(scene.deliver()), due_at=app.clock.now() + 3_600_000, error="too fast")

    found = the(app.care.examine(), "put-off-delivery")

    assert (found.subject, found.severity) == ("feishu", "note")
    assert found.text == "1 delivery is put off at feishu, up to 60 min from now: too fast"


def test_what_could_not_be_read_is_counted_with_the_newest_reason(open_home):
    app = open_home(clock=FakeClock())
    scene = Scene(app.store)
    for error in ("no sender", "no JSON"):
        app.store.apply(Accept(drafts=(scene.incoming(error=error),), now=app.clock.now()))
    app.clock.advance(120)

    found = the(app.care.examine(), "quarantined")

    assert found.severity == "note"
    assert found.text.startswith("2 items from platforms could not be read")
    assert found.text.endswith("the newest came 2 min ago at feishu: no JSON")


def test_a_delivery_whose_sender_died_is_told(app, scene):
    gone = attrs.evolve(holder_here(FEISHU, None), pid=os.getppid(), started="1")
    scene.claim(scene.deliver("half"), owner=gone)

    assert kinds(app.care.examine()) == ["dead-sender"]


@pytest.fixture
def ears(app, told):
    """Leave one socket at which nobody listens and one at which somebody does, with a long way to them."""
    folder = app.wake_folder
    os.makedirs(folder, exist_ok=True)
    here = os.getcwd()
    os.chdir(folder)
    try:
        dead, alive = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
        dead.bind("dead")
        dead.close()
        alive.bind("alive")
        with open("file", "w", encoding="utf-8") as file:
            file.write("no socket")
    finally:
        os.chdir(here)
    yield folder
    alive.close()


def test_sockets_of_the_dead_are_removed_and_nothing_else(app, ears):
    found = the(app.care.examine(), "dead-socket")

    app.care.repair()

    assert found.severity == "note"
    assert sorted(os.listdir(ears)) == ["alive", "file"]
    assert dead_sockets(ears) == []


# ------------------------------------------------------------------ file, plugins, settings


def test_a_journal_of_another_mode_is_told(app, told, sql, home, open_home):
    from hermes_core.care.checks import LONG_LOG, check_health

    health = app.store.care().health()

    assert [one.kind for one in check_health(attrs.evolve(health, journal_mode="delete"))] == ["journal-mode"]
    assert [one.kind for one in check_health(attrs.evolve(health, wal_size=LONG_LOG + 1))] == ["long-log"]


def test_a_place_where_a_store_is_not_safe_is_told(app, told, monkeypatch):
    mounts = f"none / ext4 rw 0 0\nserver:/export {os.path.dirname(app.store.location)} nfs4 rw 0 0\n"
    monkeypatch.setattr("hermes_core.storage.sqlite.files._read_mounts", lambda: mounts)

    assert the(app.care.examine(), "file-system").severity == "error"


def test_who_holds_the_lock_all_the_time_is_named(app, told, start):
    program = start(
        """
import apsw
other = apsw.Connection(HOME + "/state.db")
other.execute("BEGIN IMMEDIATE")
say("held")
hear()
"""
    )
    assert program.hear() == "held"

    found = the(app.care.examine(), "write-lock")

    assert (found.severity, found.fixable) == ("note", False)
    assert str(program.process.pid) in found.text


class Broken:
    @hookimpl
    def hermes_after_turn_finish(self, turn):
        raise RuntimeError("no")


def test_a_plugin_that_is_not_called_any_more_is_told(open_home, alice):
    app = open_home({"plugins.quarantine_after": 1})
    app.hooks.host.register("test.broken", Broken())
    app.ask("hello", alice)
    app.hooks.flush()

    assert the(app.care.examine(), "plugin-quarantined").subject == "test.broken"


def test_a_daily_reset_by_nobodys_clock_is_noted(open_home):
    found = the(open_home({"session_reset.mode": "daily"}).care.examine(), "timezone-unset")

    assert found.severity == "note"


def test_a_policy_that_nobody_brings_is_told(open_home):
    found = the(open_home({"session_reset.mode": "nightly"}).care.examine(), "reset-policies")

    assert found.subject == "session_reset.mode"
    assert found.text.endswith("so nothing is reset there; known: both, daily, idle, none")


def test_a_daily_reset_by_a_named_clock_is_not_noted(open_home):
    app = open_home({"session_reset.mode": "daily", "session_reset.timezone": "Asia/Shanghai"})

    assert app.care.examine().findings == ()


def configured(home, text):
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


def unset_zones(app):
    return [one.subject for one in app.care.examine().findings if one.kind == "timezone-unset"]


DAILY = 'mode = "daily"\nat_hour = 5\n'
ZONED = f'{DAILY}timezone = "Asia/Tokyo"\n'


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (f"[platforms.slack.session_reset]\n{DAILY}", ["platforms.slack.session_reset"]),
        (f"[session_reset.chat_types.group]\n{DAILY}", ["session_reset.chat_types.group"]),
        (f"[platforms.slack.chats.C1.session_reset]\n{DAILY}", ["platforms.slack.chats.C1.session_reset"]),
        (f"[platforms.slack.session_reset]\n{ZONED}", []),
        (f'[session_reset]\ntimezone = "Asia/Tokyo"\n[platforms.slack.session_reset]\n{DAILY}', []),
        (f"[platforms.slack.session_reset]\n{ZONED}[platforms.slack.chats.C1.session_reset]\nidle_minutes = 5\n", []),
        (f'[session_reset]\n{DAILY}[platforms.slack.session_reset]\nmode = "both"\n', ["session_reset"]),
        (f'[session_reset]\n{DAILY}[platforms.slack.session_reset]\nmode = "none"\n', ["session_reset"]),
        (
            f'[platforms.feishu.session_reset]\ntimezone = "Asia/Tokyo"\n[platforms.slack.session_reset]\n{DAILY}',
            ["platforms.slack.session_reset"],
        ),
    ],
)
def test_a_daily_reset_by_nobodys_clock_is_noted_wherever_it_is_set(open_home, home, text, noted):
    configured(home, text)

    assert unset_zones(open_home({})) == [f"{section}.timezone" for section in noted]


def test_a_misspelt_name_of_a_command_for_admins_is_told_with_the_nearest_one(open_home, home):
    configured(
        home, '[commands]\nadmin_only = ["nwe", "/undo"]\n[platforms.slack]\nadmin_only = ["Comprss", "reset"]\n'
    )

    found = [one for one in open_home({}).care.examine().findings if one.kind == "unknown-command"]

    assert [one.subject for one in found] == ["commands.admin_only", "platforms.slack.admin_only"]
    assert "'nwe', which is no command, so it keeps nobody from anything; did you mean 'new'?" in found[0].text
    assert "'Comprss', which is no command of slack," in found[1].text
    assert "did you mean 'compress'?" in found[1].text


def test_whatever_name_a_command_has_may_stand_in_the_list_for_admins(open_home, home):
    configured(
        home,
        '[commands]\nadmin_only = ["new", "reset", "/neu", "/STOP"]\n'
        '[session_reset]\nreset_triggers = ["/neu", "go on"]\n',
    )

    assert [one for one in open_home({}).care.examine().findings if one.kind == "unknown-command"] == []
