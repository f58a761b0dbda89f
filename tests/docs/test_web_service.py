"""The web service of the examples, with two worker processes on one store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from docs_pages import EXAMPLES

from hermes_core import open_app

PATIENCE_S = 60
USER = {"x-user": "ming"}


class Service:
    """uvicorn with two workers; its lines say which processes serve, and where."""

    def __init__(self, home):
        environment = {**os.environ, "HERMES_SESSIONS_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "uvicorn", "--workers", "2", "--port", "0", "web_service:service"]
        self.process = subprocess.Popen(
            command, cwd=EXAMPLES, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.url, self.workers, self.lines = "", [], []

    def wait(self, workers=2):
        """Read lines until so many workers have started."""
        while len(self.workers) < workers or not self.url:
            line = self.process.stderr.readline()
            assert line, "".join(self.lines)
            self.lines.append(line)
            if "running on" in line:
                self.url = next(word for word in line.split() if word.startswith("http"))
            if "Started server process" in line:
                self.workers.append(int(line.rsplit("[", 1)[1].split("]")[0]))
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=PATIENCE_S)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture
def service(tmp_path):
    running = Service(tmp_path / "home")
    try:
        yield running.wait()
    finally:
        running.stop()


def post(service, chat="kitchen", **options):
    return httpx.post(f"{service.url}/chats/{chat}/messages", timeout=PATIENCE_S, **options)


def say(service, text, chat="kitchen", user="ming"):
    response = post(service, chat, json={"text": text}, headers={"x-user": user})
    assert response.status_code == 200, response.text
    return response.json()["answer"]


def read(service, chat="kitchen", user="ming"):
    response = httpx.get(f"{service.url}/chats/{chat}/messages", headers={"x-user": user}, timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    return [row["content"] for row in response.json()]


def test_requests_of_one_chat_are_answered_one_after_another_whichever_worker_they_reach(service):
    texts = [f"message {number}" for number in range(24)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: say(service, text), texts))

    # Each turn saw all that were answered before it: with two turns at once a number would come twice.
    assert sorted(int(answer.partition(":")[0]) for answer in answers) == list(range(1, 25))
    assert sorted(answer.partition(": ")[2] for answer in answers) == sorted(texts)
    rows = httpx.get(f"{service.url}/chats/kitchen/messages", headers=USER, timeout=PATIENCE_S).json()
    assert [row["role"] for row in rows] == ["user", "assistant"] * 24
    assert all(
        answer["content"].endswith(f": {said['content']}") for said, answer in zip(rows[::2], rows[1::2], strict=True)
    )


def test_a_chat_goes_on_after_a_worker_was_killed_and_after_a_restart(service, tmp_path):
    assert say(service, "one") == "1: one"
    os.kill(service.workers[0], signal.SIGKILL)

    assert say_patiently(service, "two") == "2: two"
    service.stop()

    with open_app(tmp_path / "home", environ={}) as app:
        assert app.maintain().recovered == 0
        (lease,) = [app.store.lease(one.lineage_id) for one in app.store.routes()]
        assert lease.holder is None


def test_nobody_reads_or_writes_the_chat_of_another_user(service, tmp_path):
    say(service, "my secret", user="ming")

    assert read(service, user="mallory") == []
    assert say(service, "who is here?", user="mallory") == "1: who is here?"
    assert read(service, user="mallory") == ["who is here?", "1: who is here?"]
    assert read(service, user="ming") == ["my secret", "1: my secret"]
    assert read(service, chat="garden", user="ming") == []
    with open_app(tmp_path / "home", environ={}) as app:
        assert len(app.store.routes()) == 2, "a look at a chat where nobody spoke makes nothing"


@pytest.mark.parametrize(
    "options",
    [
        {"json": {"text": "hello"}},
        {"content": b"{", "headers": USER},
        {"json": ["text"], "headers": USER},
        {"json": {"txt": "hello"}, "headers": USER},
        {"json": {"text": 7}, "headers": USER},
    ],
    ids=("no user", "no JSON", "no object", "no text", "a number"),
)
def test_a_request_that_makes_no_sense_is_refused_with_its_reason(service, options):
    response = post(service, **options)

    assert response.status_code == 400
    assert response.text


def say_patiently(service, text):
    """Say it again where the connection was made to the worker that is gone."""
    for _ in range(10):
        try:
            return say(service, text)
        except httpx.TransportError:
            continue
    raise AssertionError("no worker answers")
