"""Run by the original's interpreter: does with it what we do with ours. Nothing of this project is imported here."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from contextlib import redirect_stdout, suppress
from itertools import islice
from pathlib import Path

HOME = Path(os.environ["HERMES_HOME"])
VOCABULARY = (
    "the of session and store to a lease turn is in that message it for key was on be with as writer have not"
    " history are but this by from they which one you there her all tool were an token when more said about"
    " reset queue disk agent model prompt inbox answer window search context platform entrance recovery fence"
)
WORDS = VOCABULARY.split()
INSERT = "INSERT INTO messages (session_id, role, content, timestamp, observed, active) VALUES (?, ?, ?, ?, 0, 1)"


def text(number: int, size: int = 200) -> str:
    """An English text of ``size`` bytes."""
    chosen = random.Random(number % 512)  # noqa: S311 - the same texts in every run
    words = ""
    while len(words) < size:
        words += chosen.choice(WORDS) + " "
    return words[:size]


TEXTS = [text(number) for number in range(512)]


def summary(taken: list[int], elapsed_ns: int) -> list[float]:
    """Return p50, p99 and longest in microseconds, and calls a second."""
    ordered = sorted(taken)
    half, most = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return [half / 1000, most / 1000, ordered[-1] / 1000, len(ordered) / (elapsed_ns / 1e9)]


def clocked(call, count: int) -> list[float]:  # noqa: ANN001 - no types of the project here
    """Time ``count`` calls one after the other."""
    taken = []
    began = time.perf_counter_ns()
    for number in range(count):
        before = time.perf_counter_ns()
        call(number)
        taken.append(time.perf_counter_ns() - before)
    return summary(taken, time.perf_counter_ns() - began)


class Worker:
    """One open database of the original at a time."""

    def __init__(self) -> None:
        self.db = None
        self.store = None
        self.sources: list[object] = []
        self.path = HOME / "state.db"

    def open(self, name: str) -> str:
        """Open an empty database; that of ``home`` is where its command line looks."""
        from hermes_state import SessionDB

        if self.db is not None:
            self.db.close()
        self.path = HOME / "state.db" if name == "home" else HOME / f"{name}.db"
        self.path.unlink(missing_ok=True)
        self.db = SessionDB(self.path)
        self.db.create_session("one", "cli")
        return str(self.path)

    def append(self, count: int) -> list[float]:
        """Append to one session."""
        return clocked(lambda number: self.db.append_message("one", "assistant", TEXTS[number % 512]), count)

    def fill(self, name: str, sessions: dict[str, int], size: int = 200) -> str:
        """Make sessions with so many messages, past the original's API but through its triggers."""
        self.open(name)
        texts = TEXTS if size == 200 else [text(number, size) for number in range(512)]
        connection = self.db._conn  # noqa: SLF001 - building 100k rows one commit each takes minutes
        connection.execute("BEGIN")
        for place, (session, messages) in enumerate(sessions.items()):
            connection.execute(
                "INSERT INTO sessions (id, source, started_at, message_count) VALUES (?, 'cli', ?, ?)",
                (session, 1_700_000_000 + place, messages),
            )
            rows = [
                (session, "assistant" if number % 2 else "user", texts[(place + number) % 512], 1_700_000_000 + place)
                for number in range(messages)
            ]
            connection.executemany(INSERT, rows)
        connection.execute("COMMIT")
        return str(self.path)

    def corpus(self, path: str) -> int:
        """Make the messages of a file, lines of ``[session, role, text, seconds]``, through the original's triggers."""
        self.open("corpus")
        connection = self.db._conn  # noqa: SLF001 - as above
        known, count = set(), 0
        with Path(path).open(encoding="utf-8") as file:
            for lines in iter(lambda: list(islice(file, 5000)), []):
                rows = [json.loads(line) for line in lines]
                fresh = {row[0]: row[3] for row in rows if row[0] not in known}
                known.update(fresh)
                connection.execute("BEGIN")
                connection.executemany(
                    "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)", list(fresh.items())
                )
                connection.executemany(INSERT, rows)
                connection.execute("COMMIT")
                count += len(rows)
        return count

    def search(self, queries: list[str], limit: int, count: int) -> list[float]:
        """Ask the queries in turn, for what people and agents said."""
        roles = ["user", "assistant"]
        return clocked(
            lambda number: self.db.search_messages(queries[number % len(queries)], role_filter=roles, limit=limit),
            count,
        )

    def load(self, session: str, count: int) -> list[float]:
        """Load one session as the gateway does."""
        return clocked(lambda _: self.db.get_messages_as_conversation(session), count)

    def last(self, session: str, count: int) -> list[float]:
        """Read the last 50 of 10k messages."""
        return clocked(lambda _: self.db.get_messages(session, limit=50, offset=9950), count)

    def list(self, count: int) -> list[float]:
        """List 20 sessions by last activity."""
        return clocked(lambda _: self.db.list_sessions_rich(limit=20, order_by_last_active=True), count)

    def size(self) -> int:
        """Close the database and return its bytes."""
        self.db.close()
        self.db = None
        return self.path.stat().st_size

    def routes(self, count: int) -> int:
        """Make so many routes; the index is written once, behind the last."""
        from gateway.config import GatewayConfig, Platform
        from gateway.session import SessionSource, SessionStore

        self.store = SessionStore(HOME / "sessions", GatewayConfig())
        self.sources = [
            SessionSource(platform=Platform("feishu"), chat_id=f"oc_{number}", user_id=f"ou_{number}")
            for number in range(count)
        ]
        save = self.store._save  # noqa: SLF001 - a thousand writes of the whole index take a minute
        self.store._save = lambda *_, **__: None  # noqa: SLF001 - as above
        for source in self.sources:
            self.store.get_or_create_session(source)
        self.store._save = save  # noqa: SLF001 - as above
        return len(self.sources)

    def hit(self, count: int) -> list[float]:
        """Find routes that are there."""
        return clocked(lambda number: self.store.get_or_create_session(self.sources[number * 7]), count)

    def processes(self, count: int, seconds: float) -> list[float]:
        """Append from so many processes to one fresh database."""
        folder = tempfile.mkdtemp(dir=HOME)
        self.open(f"{Path(folder).name}/state")
        self.db.close()
        self.db = None
        context = multiprocessing.get_context("fork")
        start, answers = context.Barrier(count), context.Queue()
        workers = [
            context.Process(target=_race, args=(str(self.path), number, seconds, start, answers))
            for number in range(count)
        ]
        for worker in workers:
            worker.start()
        taken = [each for _ in workers for each in answers.get(timeout=seconds + 60)]
        for worker in workers:
            worker.join()
        shutil.rmtree(folder)
        return summary(taken, int(seconds * 1e9))


def _race(path: str, number: int, seconds: float, start, answers) -> None:  # noqa: ANN001 - as above
    from hermes_state import SessionDB

    db = SessionDB(Path(path))
    db.create_session(f"p{number}", "cli")
    start.wait(60)
    taken: list[int] = []
    before = time.perf_counter_ns()
    end = before + int(seconds * 1e9)
    while before < end:
        # A locked database is an error of the original; the time until then counts.
        with suppress(Exception):
            db.append_message(f"p{number}", "assistant", TEXTS[len(taken) % 512])
        now = time.perf_counter_ns()
        taken.append(now - before)
        before = now
    db.close()
    answers.put(taken)


def main() -> None:
    """Answer one line of JSON with another until there are no more."""
    worker = Worker()
    answers = sys.stdout
    for line in sys.stdin:
        order = json.loads(line)
        what = order.pop("do")
        try:
            with redirect_stdout(sys.stderr):
                answer = {"answer": getattr(worker, what)(**order)}
        except Exception as error:  # noqa: BLE001 - it is reported to whoever asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
