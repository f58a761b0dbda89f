"""``hermes leases``, ``hermes outbox``, ``hermes doctor`` and ``hermes backup``."""

from __future__ import annotations

import json
import os

import apsw
import attrs
import pytest
from wcwidth import wcswidth

from hermes_hookspecs.ids import TurnId
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.messages import MessageDraft
from hermes_hookspecs.operations import (
    Accept,
    Begin,
    ClaimDelivery,
    DeferDelivery,
    Deliver,
    DropDelivery,
    FailDelivery,
    MarkSent,
    SplitDelivery,
)
from hermes_hookspecs.outbox import DeliveryDraft, PartDraft
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.turns import LeaseHolder

FEISHU = Entrance("feishu")


def holder(pid, host="laptop", boot="another boot"):
    return LeaseHolder(host=host, boot_id=boot, pid_namespace="", pid=pid, started="1", entrance=FEISHU)


@pytest.fixture
def running(app, say):
    """Begin a turn in a conversation with a Chinese title, held by ``holder``; a second message waits behind it."""

    def running(title, holder, chat="oc_1"):
        source = SessionSource(platform="feishu", chat_id=chat, user_id="ou_ming", user_name="小明")
        entry = say("你好", source=source).entry
        app.rename_session(entry.lineage_id, title)
        now = app.clock.now()
        draft = InboxDraft(
            session_key=entry.session_key,
            source=source,
            entrance=FEISHU,
            text="在吗",
            accepted_at=now,
            lineage_id=entry.lineage_id,
            waiter=holder,
        )
        first, _ = app.store.apply(Accept(drafts=(draft, draft), now=now))
        row = MessageDraft(role="user", content="在吗", timestamp=now, inbox_id=first.id)
        app.store.apply(
            Begin(
                lineage_id=entry.lineage_id,
                turn_id=TurnId(f"T{chat}"),
                holder=holder,
                now=now,
                ttl_ms=30_000,
                drafts=(row,),
            )
        )
        return entry

    return running


@pytest.fixture
def sent(app):
    """Return a function that stores a delivery and lets it end as ``status`` says; gives its number."""
    numbers = iter(range(1000))

    def sent(text, status="waiting", *, chat="oc_1", error="the chat is gone"):
        now = app.clock.now()
        key = f"k{next(numbers)}"
        target = SessionSource(platform="feishu", chat_id=chat, user_id="ou_ming")
        draft = DeliveryDraft(key=key, target=target, text=text, session_key=f"agent:main:feishu:dm:chat={chat}")
        (number,) = app.store.apply(Deliver(drafts=(draft,), now=now))
        if status == "dropped":
            app.store.apply(DropDelivery(delivery_id=number, now=now))
        elif status != "waiting":
            app.store.apply(ClaimDelivery(delivery_id=number, owner=holder(7), expected_attempt=0, now=now))
            if status == "failed":
                app.store.apply(FailDelivery(delivery_id=number, attempt=1, now=now, error=error))
            else:
                app.store.apply(SplitDelivery(delivery_id=number, attempt=1, parts=(PartDraft(text=text),), now=now))
                app.store.apply(MarkSent(delivery_id=number, attempt=1, index=0, now=now))
        return number

    return sent


@pytest.fixture
def put_off(app):
    """Return a function that lets a delivery wait ``seconds`` with a reason."""

    def put_off(number, seconds, error):
        now = app.clock.now()
        app.store.apply(ClaimDelivery(delivery_id=number, owner=holder(7), expected_attempt=0, now=now))
        app.store.apply(
            DeferDelivery(
                delivery_id=number, attempt=1, now=now, due_at=now + seconds * 1000, error=error, failed=False
            )
        )

    return put_off


@pytest.fixture
def hurt(app):
    """Return a function that changes the file as a stranger would."""

    def hurt(statement):
        connection = apsw.Connection(app.store.location)
        connection.set_busy_timeout(10_000)
        connection.execute("PRAGMA foreign_keys = OFF").fetchall()
        connection.execute(statement).fetchall()
        connection.close()

    return hurt


# ------------------------------------------------------------------ leases


def test_no_lease_is_one_friendly_line(hermes):
    ran = hermes("leases")

    assert (ran.status, ran.out, ran.err) == (0, "", "No turn runs.\n")
    assert json.loads(hermes("leases", "--json").out) == []


def test_leases_show_session_holder_state_and_who_waits(hermes, running):
    entry = running("周报", holder(812))

    head, line = hermes("leases").out.splitlines()

    assert head.split() == ["SESSION", "TITLE", "HOLDER", "SINCE", "STATE", "WAITING"]
    assert line.startswith(f"{entry.session_id}  周报")
    assert "feishu (process 812 on laptop)" in line
    assert line.split()[-3:] == ["unknown", "host", "1"]


def test_leases_keep_their_columns_with_titles_of_every_script(hermes, running, monkeypatch):
    running("周报汇总" * 20, holder(812), "oc_1")
    running("plan", holder(813), "oc_2")
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: 120)

    lines = hermes("leases").out.splitlines()

    assert len({wcswidth(line[: line.index("feishu")]) for line in lines[1:]}) == 1
    assert all("just now" in line for line in lines[1:])
    assert max(wcswidth(line) for line in lines) <= 120


def test_on_a_narrow_terminal_the_holder_has_its_own_line_and_only_the_title_is_cut(hermes, running, monkeypatch):
    entry = running("周报汇总" * 20, holder(812))
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: 80)

    lines = hermes("leases").out.splitlines()

    assert max(map(wcswidth, lines)) <= 80
    assert lines[1:2] == ["    HOLDER"]
    assert lines[2].startswith(f"{entry.session_id}  周报汇总")
    assert lines[2].endswith("just now  unknown host        1")
    assert lines[3] == "    feishu (process 812 on laptop)"


def test_a_lease_whose_process_is_gone_says_so(hermes, running):
    from hermes_core.leases import holder_here

    here = holder_here(FEISHU, None)
    running(
        "plan",
        LeaseHolder(
            **{
                **{a: getattr(here, a) for a in ("host", "boot_id", "pid_namespace", "entrance")},
                "pid": os.getppid(),
                "started": "1",
            }
        ),
    )
    running("mine", here, "oc_2")

    states = {one["title"]: one["state"] for one in json.loads(hermes("leases", "--json").out)}

    assert states == {"plan": "process is gone", "mine": "running"}


# ------------------------------------------------------------------ outbox


def test_an_empty_outbox_is_one_friendly_line(hermes):
    ran = hermes("outbox", "list")

    assert (ran.status, ran.out, ran.err) == (0, "", "Nothing was sent yet.\n")


def test_the_outbox_lists_what_is_open_or_failed_newest_first(hermes, sent):
    failed = sent("周报写好了", "failed")
    sent("old", "sent")
    waiting = sent("second")

    ran = hermes("outbox", "list")

    head, *lines = ran.out.splitlines()
    assert head.split() == ["NO", "TO", "STATUS", "PARTS", "FAILURES", "STORED", "DUE", "TEXT", "ERROR"]
    assert [int(line.split()[0]) for line in lines] == [waiting, failed]
    assert "feishu oc_1  failed" in lines[1]
    assert lines[1].endswith("周报写好了  the chat is gone")


def test_in_a_pipe_a_delivery_is_one_line_with_the_beginning_of_its_text(hermes, sent):
    sent("周报\n" * 100)

    (line,) = hermes("outbox", "list").out.splitlines()[1:]

    text = line[line.index("周报") :].removesuffix("-").rstrip()
    assert wcswidth(text) in range(55, 61)
    assert text.endswith("…")


def test_on_a_terminal_text_and_error_stand_below_and_nothing_is_wider(hermes, sent, app, put_off, monkeypatch):
    number = sent("a report " * 40, chat="oc_5ce6d572455d361153b7cb51da133945")
    put_off(number, 3600, "feishu pauses: " + "too fast " * 20)
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: 80)

    head, line, text, *error = hermes("outbox", "list").out.splitlines()

    assert max(map(wcswidth, (head, line, text, *error))) <= 80
    assert "in 60 min" in line
    assert text.startswith("    a report a report")
    assert " ".join(part.strip() for part in error).startswith("feishu pauses: too fast too fast")


def test_the_list_names_a_sender_that_died(hermes, sent, app):
    from hermes_core.leases import holder_here

    gone = attrs.evolve(holder_here(FEISHU, None), pid=os.getppid(), started="1")
    number = sent("half")
    app.store.apply(ClaimDelivery(delivery_id=number, owner=gone, expected_attempt=0, now=app.clock.now()))

    assert "sending, sender died" in hermes("outbox", "list").out

    assert hermes("outbox", "retry", str(number)).status == 0
    assert app.store.delivery(number).status == "waiting"


def test_the_outbox_lists_everything_or_what_is_asked_for(hermes, sent):
    numbers = {status: sent(status, status) for status in ("failed", "sent", "dropped", "waiting")}

    everything = json.loads(hermes("outbox", "list", "--all", "--json").out)
    some = json.loads(hermes("outbox", "list", "--status", "sent", "--status", "dropped", "--json").out)

    assert [one["id"] for one in everything] == sorted(numbers.values(), reverse=True)
    assert [one["status"] for one in some] == ["dropped", "sent"]
    assert some[1]["parts_sent"] == 1


def test_a_list_of_nothing_says_that_there_are_others(hermes, sent):
    sent("old", "sent")

    assert hermes("outbox", "list").err == "None of these; --all shows the others.\n"


def test_a_limit_says_that_there_is_more(hermes, sent):
    sent("one")
    newest = sent("two")

    ran = hermes("outbox", "list", "--limit", "1")

    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == [str(newest)]
    assert ran.err == "more (--limit shows more)\n"


def test_text_from_outside_commands_no_terminal(hermes, sent):
    sent("\x1b[2Jgone", "failed", error="\x1b]0;title\x07 no")

    assert "\x1b" not in hermes("outbox", "list").out


def test_what_failed_is_retried_by_number_or_all_at_once(hermes, sent, app):
    first, second = sent("one", "failed"), sent("two", "failed")

    by_number = hermes("outbox", "retry", str(first))
    all_at_once = hermes("outbox", "retry", "--failed")
    again = hermes("outbox", "retry", "--failed")

    assert by_number.err == f"{first} to feishu oc_1 is sent as soon as its turn comes and its account may send\n"
    assert all_at_once.err == f"{second} to feishu oc_1 is sent as soon as its turn comes and its account may send\n"
    assert (again.status, again.err) == (0, "nothing failed\n")
    assert {app.store.delivery(number).status for number in (first, second)} == {"waiting"}


def test_one_that_cannot_be_retried_keeps_the_others_from_nothing(hermes, sent, app):
    done, failed = sent("one", "sent"), sent("two", "failed")

    ran = hermes("outbox", "retry", "99", str(done), str(failed))

    assert ran.status == 1
    assert ran.err.count("hermes: ") == 2
    assert "there is no delivery 99" in ran.err
    assert app.store.delivery(failed).status == "waiting"


def test_dropping_wants_a_yes_where_nobody_can_be_asked(hermes, sent, app):
    number = sent("one")

    refused = hermes("outbox", "drop", str(number))
    dropped = hermes("outbox", "drop", str(number), "--yes")

    assert refused.status == 2
    assert "--yes" in refused.err
    assert (dropped.status, dropped.err) == (0, f"{number} to feishu oc_1 is never sent\n")
    assert app.store.delivery(number).status == "dropped"


@pytest.mark.parametrize("verb", [("retry",), ("drop", "--yes")])
def test_what_was_sent_is_no_matter_of_trying_again_later(hermes, sent, verb):
    ran = hermes("outbox", *verb, str(sent("one", "sent")))

    assert ran.status == 1
    assert "is sent" in ran.err


def test_a_question_names_how_many_deliveries_and_where_they_go(hermes, sent):
    numbers = [str(sent("one", chat=f"oc_{at}")) for at in range(5)]

    ran = hermes("outbox", "drop", *numbers)

    assert "5 deliveries to feishu oc_0, feishu oc_1, feishu oc_2 and 2 more places" in ran.err


def test_a_drop_of_nothing_asks_nothing(hermes):
    unknown, none = hermes("outbox", "drop", "99"), hermes("outbox", "drop", "--failed")

    assert (unknown.status, "there is no delivery 99" in unknown.err) == (1, True)
    assert (none.status, none.err) == (0, "nothing failed\n")


def test_a_drop_of_what_went_out_in_part_says_what_is_kept_back(hermes, sent, app):
    number, now = sent("one two"), app.clock.now()
    app.store.apply(ClaimDelivery(delivery_id=number, owner=holder(7), expected_attempt=0, now=now))
    parts = tuple(PartDraft(text=text) for text in "abcd")
    app.store.apply(SplitDelivery(delivery_id=number, attempt=1, parts=parts, now=now))
    app.store.apply(MarkSent(delivery_id=number, attempt=1, index=0, now=now))
    app.store.apply(FailDelivery(delivery_id=number, attempt=1, now=now, error="no"))

    listed = hermes("outbox", "list").out
    ran = hermes("outbox", "drop", str(number), "--yes")

    assert "  1/4  " in listed
    assert ran.err == f"{number} to feishu oc_1 went out in part: parts 2\N{EN DASH}4 are not sent any more\n"


def test_numbers_and_all_that_failed_are_not_both_meant(hermes):
    assert "not both" in hermes("outbox", "drop", "7", "--failed").err


@pytest.mark.parametrize("arguments", [(), ("7", "--failed"), ("seven",), ("-1",)])
def test_wrong_numbers_are_told(hermes, arguments):
    ran = hermes("outbox", "retry", *arguments)

    assert ran.status == 2
    assert ran.err.count("\n") == 1


# ------------------------------------------------------------------ doctor


def test_the_doctor_of_a_sound_store(hermes, say):
    say("hello")

    ran = hermes("doctor")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "result    sound"
    assert json.loads(hermes("doctor", "--json").out)["sound"] is True


def test_the_doctor_names_a_fault_puts_it_right_and_is_content(hermes, say, hurt):
    say("你好")
    hurt("UPDATE lineages SET message_count = 99")

    seen, fixed, again = hermes("doctor"), hermes("doctor", "--fix"), hermes("doctor", "--fix")

    assert seen.status == 1
    assert "warning   wrong-counters: " in seen.out
    assert seen.out.splitlines()[-1] == "result    1 warning; `hermes doctor --fix` puts 1 right"
    assert fixed.status == 0
    assert "copy      " in fixed.out
    assert "repaired  wrong-counters: " in fixed.out
    assert "repaired" not in again.out


def test_what_the_doctor_cannot_put_right_leaves_a_status(hermes, say, hurt):
    say("hello")
    hurt("UPDATE messages SET session_id = 'gone'")

    ran = hermes("doctor", "--fix")

    assert ran.status == 1
    assert "error     messages-without-session: " in ran.out


def test_on_a_terminal_a_finding_is_broken_between_words(hermes, sent, monkeypatch):
    sent("one", "failed", error="the chat is gone " * 8)
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: 80)

    lines = hermes("doctor").out.splitlines()

    at = next(at for at, line in enumerate(lines) if line.startswith("warning   failed-delivery: "))
    assert max(map(wcswidth, lines)) <= 80
    assert lines[at + 1].startswith("          ")
    assert "the chat is gone the chat is gone" in " ".join(line.strip() for line in lines[at:])


def test_a_note_is_no_reason_for_a_status(script, tmp_path):
    script("-q", "hello")
    (tmp_path / "home" / "config.toml").write_text('[session_reset]\nmode = "daily"\n')

    ran = script("doctor")

    assert ran.status == 0
    assert "note      timezone-unset: " in ran.out
    assert ran.out.splitlines()[-1] == "result    1 note"


def test_a_damaged_file_is_told_by_the_doctor_and_refused_by_the_repair(script, tmp_path):
    script("-q", "hello")
    (tmp_path / "home" / "state.db").write_bytes(b"")

    seen, fixed = script("doctor"), script("doctor", "--fix")

    assert seen.status == 1
    assert "damage    " in seen.out
    assert (fixed.status, fixed.out) == (65, "")
    assert fixed.err.startswith("hermes: ")


def test_the_doctor_shows_its_progress_on_a_terminal(spawn, script):
    script("-q", "hello")

    child = spawn("doctor")

    child.expect("comparing the rows")
    child.expect("result    sound")


# ------------------------------------------------------------------ backup


def test_a_backup_prints_where_it_is(hermes, say, tmp_path):
    say("你好")

    ran = hermes("backup")

    (path,) = ran.out.splitlines()
    assert path.startswith(str(tmp_path / "home" / "backups" / "state-"))
    assert ran.err.startswith("copied ")
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("SELECT content FROM messages WHERE role = 'user'").fetchall() == [("你好",)]
    connection.close()


def test_a_backup_goes_where_one_says(hermes, say, tmp_path):
    say("hello")
    (tmp_path / "disk").mkdir()

    named = json.loads(hermes("backup", str(tmp_path / "copy.db"), "--json").out)
    in_folder = hermes("backup", str(tmp_path / "disk"))

    assert named == {"path": str(tmp_path / "copy.db"), "size": (tmp_path / "copy.db").stat().st_size}
    assert in_folder.out.startswith(f"{tmp_path}/disk/state-")


@pytest.mark.parametrize(
    ("named", "status", "said"),
    [("", 2, "wants a file or a folder"), ("-", 2, "not written to stdout"), ("{}/no/", 74, "there is no folder")],
)
def test_a_name_that_is_no_file_is_refused_and_nothing_is_made(hermes, say, tmp_path, named, status, said):
    say("hello")
    before = sorted(tmp_path.rglob("*"))

    ran = hermes("backup", named.format(tmp_path))

    assert (ran.status, said in ran.err, ran.err.count("\n")) == (status, True, 1)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_backup_replaces_nothing(hermes, say, tmp_path):
    say("hello")
    (tmp_path / "mine").write_text("mine")

    ran = hermes("backup", str(tmp_path / "mine"))

    assert ran.status == 74
    assert "is there already" in ran.err
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_backup_shows_its_progress_on_a_terminal(spawn, script):
    script("-q", "hello")

    child = spawn("backup")

    child.expect("copying the store: 100%")
    child.expect("state-.*db")
