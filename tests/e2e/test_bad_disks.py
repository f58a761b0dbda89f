"""Homes, disks and exports that cannot be written: one line, an honest exit status, nothing half done."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
from contextlib import contextmanager

import pytest

CHAT = ("-q", "hello", "--agent", "echo")
LIST = ("sessions", "list")


# ------------------------------------------------------------------ homes that cannot be written


@pytest.mark.parametrize("command", [CHAT, LIST], ids=" ".join)
def test_a_file_where_the_home_should_be(hermes, home, command, is_one_line):
    home.write_text("mine")

    ran = hermes(*command)

    is_one_line(ran, ran.status, str(home))
    assert ran.status in (2, 74, 78)
    assert home.read_text() == "mine"


def test_a_home_below_a_file(hermes_at, tmp_path, is_one_line):
    (tmp_path / "file").write_text("mine")

    ran = hermes_at(tmp_path / "file" / "below")(*CHAT)

    is_one_line(ran, ran.status, "file")
    assert ran.status in (2, 74, 78)


@contextmanager
def mounted(folder, options):
    """Mount a small file system of its own at ``folder``, where this process may."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this process may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], capture_output=True, check=True)


@pytest.fixture
def small_disk(home):
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    with mounted(home, "size=2m,mode=700"):
        yield home


def test_a_home_on_a_read_only_disk_is_told(hermes, small_disk, is_one_line):
    hermes(*CHAT)
    remount(small_disk, "ro")

    chat = hermes(*CHAT)
    listed = hermes("sessions", "list", "--json")
    remount(small_disk, "rw")

    is_one_line(chat, chat.status, str(small_disk))
    assert chat.status in (74, 78)
    if listed.status:
        is_one_line(listed, listed.status, str(small_disk))
    else:
        assert '"message_count": 2' in listed.out
    assert hermes.json("sessions", "list")[0]["message_count"] == 2


def test_a_fresh_home_on_a_read_only_disk_is_told(hermes, small_disk, is_one_line):
    remount(small_disk, "ro")

    for command in (CHAT, LIST):
        ran = hermes(*command)
        is_one_line(ran, ran.status, str(small_disk))
        assert ran.status in (74, 78)


# ------------------------------------------------------------------ full disks


def test_a_full_disk_is_told_and_what_was_said_before_is_there(hermes, small_disk):
    first = hermes.json(*CHAT)

    full = hermes("-r", first["session_id"], "--agent", "echo", "-q", "-", stdin="long " * 600_000)

    assert full.status == 74, full
    assert "Traceback" not in full.err
    assert full.err.splitlines()[-1].startswith("hermes: ")
    assert "full" in full.err or "space" in full.err
    (listed,) = hermes.json("sessions", "list")
    assert listed["message_count"] == 2
    again = hermes("-r", first["session_id"], "--agent", "echo", "-q", "short")
    assert (again.status, again.out) == (0, "echo 2: short\n")


def fill(path):
    """Write until nothing more fits."""
    filler = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(filler, bytes(4096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(filler)


def test_a_disk_that_is_full_from_the_beginning_is_told(hermes, small_disk, is_one_line):
    fill(small_disk / "filler")

    is_one_line(hermes(*CHAT), 74, str(small_disk))
    (small_disk / "filler").unlink()
    assert hermes(*CHAT).out == "echo 1: hello\n"
    assert [row["message_count"] for row in hermes.json("sessions", "list")] == [2]


def test_a_limit_on_the_size_of_files_is_told(hermes):
    first = hermes.json(*CHAT)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    full = hermes(
        "-r", first["session_id"], "--agent", "echo", "-q", "-", stdin="long " * 200_000, preexec_fn=limit
    )  # fmt: skip

    assert full.status == 74, full
    assert "Traceback" not in full.err
    assert "this should not happen" not in full.err
    (listed,) = hermes.json("sessions", "list")
    assert listed["message_count"] == 2
    assert hermes("-r", first["session_id"], "--agent", "echo", "-q", "short").out == "echo 2: short\n"


def test_an_export_to_a_full_disk_leaves_no_half_of_a_file(hermes, tmp_path, is_one_line):
    if os.geteuid():
        pytest.skip("only root may mount a file system")
    hermes("--agent", "echo", "-q", "-", stdin="long " * 400_000)
    with mounted(tmp_path / "disk", "size=1m") as disk:
        (disk / "out.jsonl").write_text("what was there\n")

        to_file = hermes("sessions", "export", str(disk / "out.jsonl"))

        is_one_line(to_file, 74, "space")
        assert [(path.name, path.read_text()) for path in disk.iterdir()] == [("out.jsonl", "what was there\n")]
        with open(disk / "redirected", "wb") as target:
            redirected = hermes("sessions", "export", "-", stdout=target)
        assert redirected.status == 74
        assert "Traceback" not in redirected.err


@pytest.mark.parametrize("where", ["missing/out.jsonl", "file/out.jsonl"])
def test_an_export_to_where_no_file_can_be(hermes, tmp_path, where, is_one_line):
    hermes(*CHAT)
    (tmp_path / "file").write_text("mine")

    is_one_line(hermes("sessions", "export", str(tmp_path / where)), 74, where)
