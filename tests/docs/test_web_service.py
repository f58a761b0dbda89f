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


def say(service, text, chat="kitchen"):
    response = httpx.post(f"{service.url}/chats/{chat}/messages", json={"text": text}, headers=USER, timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    return response.json()["answer"]


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


def say_patiently(service, text):
    """Say it again where the connection was made to the worker that is gone."""
    for _ in range(10):
        try:
            return say(service, text)
        except httpx.TransportError:
            continue
    raise AssertionError("no worker answers")
