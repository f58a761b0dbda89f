"""The chat platform of the examples, killed in mid-turn and asked to leave: every message is answered once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from docs_pages import EXAMPLES

from hermes_core import open_app

PATIENCE_S = 60
CHATS = ("an", "bo", "cheng")
MENU = "tea: 3 yuan\nrice: 2 yuan\n"


class Folder:
    """The platform's side: what people send, what they read, and a menu that can keep the bot waiting."""

    def __init__(self, place):
        self.place = place
        self.menu = place / "menu.txt"
        self._count = 0
        (place / "in").mkdir(parents=True)

    def put(self, chat, text, message=None):
        """Deliver a message as the platform does: a file that is there as a whole, or not."""
        self._count += 1
        said = {"id": message or f"m{self._count}", "chat": chat, "user": chat, "text": text}
        self.put_raw(json.dumps(said))
        return said["id"]

    def put_raw(self, text):
        self._count += 1
        draft = self.place / f"draft-{self._count}"
        draft.write_text(text, encoding="utf-8")
        draft.rename(self.place / "in" / f"{self._count:04}.json")

    def answers(self):
        """Return ``(chat, text, reply_to)`` of what arrived, oldest first."""
        files = sorted((self.place / "out").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        letters = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        return [(letter["chat"], letter["text"], letter["reply_to"]) for letter in letters]

    def all_taken(self):
        return not list((self.place / "in").iterdir())

    def hold_the_menu(self):
        """Let whoever reads the menu wait."""
        os.mkfifo(self.menu)

    def menu_is_read(self):
        """Return the writing end once somebody reads the menu."""
        try:
            return os.open(self.menu, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None

    def write_menu(self):
        draft = self.place / "menu.draft"
        draft.write_text(MENU, encoding="utf-8")
        draft.replace(self.menu)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "folder")


@pytest.fixture
def start(folder, tmp_path):
    """Return a function that starts the program; what still runs at the end is killed."""
    started = []

    def start_one(**settings):
        environment = {**os.environ, "HERMES_SESSIONS_HOME": str(tmp_path / "home"), **settings}
        command = [sys.executable, str(EXAMPLES / "chat_platform.py"), str(folder.place)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "serving\n", process.stderr.read()
        return process

    yield start_one
    for process in started:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def until(condition):
    """Return what ``condition()`` returns once that is true."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)  # the other side is a process that knows nothing of tests
    raise AssertionError("it took too long")


def turns_that_run(home):
    with open_app(home, environ={}) as app:
        return len(app.care.leases())


def test_killed_in_mid_turn_and_started_again_it_answers_every_message_once(folder, start, tmp_path):
    folder.hold_the_menu()
    sent = {folder.put(chat, "tea"): (chat, "tea: 3 yuan") for chat in CHATS}
    process = start(HERMES_INBOX_BATCH_WINDOW_S="0")
    writer = until(folder.menu_is_read)
    until(lambda: turns_that_run(tmp_path / "home") == len(CHATS))
    sent |= {folder.put(chat, "rice"): (chat, "rice: 2 yuan") for chat in CHATS}
    until(folder.all_taken)

    process.kill()
    process.wait(PATIENCE_S)
    os.close(writer)
    assert folder.answers() == []
    folder.write_menu()
    for message, (chat, answer) in sent.items():  # as a platform does that has not heard of their arrival
        folder.put(chat, answer.partition(":")[0], message)
    again = start(HERMES_INBOX_BATCH_WINDOW_S="0")
    until(lambda: len(folder.answers()) >= len(sent) and folder.all_taken())
    again.terminate()
    assert again.wait(PATIENCE_S) == 0

    expected = Counter((chat, answer, message) for message, (chat, answer) in sent.items())
    assert Counter(folder.answers()) == expected
    for chat in CHATS:
        assert [text for where, text, _ in folder.answers() if where == chat] == ["tea: 3 yuan", "rice: 2 yuan"]


def test_asked_to_leave_it_lets_its_turn_end_and_delivers_the_answer(folder, start, tmp_path):
    folder.hold_the_menu()
    folder.put("an", "tea")
    process = start()
    writer = until(folder.menu_is_read)

    process.send_signal(signal.SIGTERM)
    os.write(writer, MENU.encode())
    os.close(writer)

    assert process.wait(PATIENCE_S) == 0, process.stderr.read()
    assert [text for _, text, _ in folder.answers()] == ["tea: 3 yuan"]
    assert turns_that_run(tmp_path / "home") == 0


def test_quick_messages_get_one_answer_and_what_cannot_be_read_holds_nothing_up(folder, start):
    folder.write_menu()
    folder.put_raw("no JSON")
    folder.put_raw("[]")
    for text in ("tea", "and", "rice"):
        folder.put("an", text)

    process = start(HERMES_INBOX_BATCH_WINDOW_S="0.3")
    until(folder.answers)
    process.terminate()

    assert process.wait(PATIENCE_S) == 0, process.stderr.read()
    assert folder.all_taken()
    assert [(chat, text) for chat, text, _ in folder.answers()] == [("an", "tea\nand\nrice: we have none")]
