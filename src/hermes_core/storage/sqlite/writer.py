"""The writer: every change of a database file goes through it, many operations in one transaction.

What piles up while one group is committed is the next group. Nobody is answered before his row is committed and, with
durability ``full``, on disk.
"""

from __future__ import annotations

import os
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite.committer import Committer
from hermes_core.storage.sqlite.connection import translate
from hermes_core.storage.sqlite.deadlines import Deadlines
from hermes_core.storage.sqlite.group import Outcome
from hermes_core.storage.sqlite.requests import CallRequest, FutureRequest, LoopRequest, Request, answer
from hermes_hookspecs.errors import StoreBusy, StoreStopped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from hermes_core.storage.sqlite.transaction import Transaction

    Work = Callable[[Transaction], object]

__all__ = ["Writer"]

GROUP_LIMIT = 128
"""From so many operations on a group takes no more; what one loop has gathered stays together."""
CANNOT_WRITE = "the store cannot write"


class Writer:
    """One per process and database: a queue, a thread, and the lock for callers that commit by themselves. Thread-safe.

    The thread is started by the first queued operation, so that programs that only read pay nothing.

    :param path: the database file, for messages.
    :param committer: does the work; its connection is used by whoever holds the writer's lock.
    :param busy_timeout_s: how long an operation may wait until it begins.
    :param grown: told after each group how many pages the -wal has.
    :ivar owner: the thread inside an operation, from where waiting for another one would never end; 0 for nobody.
    """

    def __init__(self, path: str, committer: Committer, *, busy_timeout_s: float, grown: Callable[[int], None]) -> None:
        self._path = path
        self._committer = committer
        self._busy_timeout_s = busy_timeout_s
        self._grown = grown
        self._process = os.getpid()
        self._lock = threading.Lock()
        self.owner = 0
        self._queue: SimpleQueue[Sequence[Request] | None] | None = None
        self._thread: threading.Thread | None = None
        self._entering = threading.Lock()
        self._beginning = threading.Lock()
        self._deadlines = Deadlines(self._give_up)
        self._gathered: dict[asyncio.AbstractEventLoop, list[LoopRequest]] = {}
        self._serving: list[Request] = []
        self._closing = False
        self._abandoned = False

    @property
    def is_abandoned(self) -> bool:
        """Whether :meth:`close` has left the thread behind, with the file open."""
        return self._abandoned

    @property
    def has_stopped(self) -> bool:
        """Whether something happened after which nothing of this store may be written any more."""
        return self._committer.stopped is not None

    def call(self, work: Work) -> CallRequest:
        """Queue an operation of a thread that waits for it at once.

        :raises StoreStopped: nothing is written any more.
        """
        request = CallRequest(work, time.monotonic() + self._busy_timeout_s)
        self._put(request)
        return request

    def submit(self, work: Work) -> Future[object]:
        """Queue an operation of a thread.

        :raises StoreStopped: nothing is written any more.
        """
        from concurrent.futures import Future  # it brings logging along, which waiting callers can do without

        future: Future[object] = Future()
        request = FutureRequest(work, future, time.monotonic() + self._busy_timeout_s)
        self._put(request)
        self._deadlines.watch(request)
        return future

    def submit_from_loop(self, work: Work) -> asyncio.Future[object]:
        """Queue an operation of a coroutine of the running event loop.

        What the coroutines of a loop want in one round of it is queued together, so that the writer finds whole groups
        and is woken once for each; nobody overtakes by that.

        :raises StoreStopped: nothing is written any more.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        request = LoopRequest(work, future, loop, time.monotonic() + self._busy_timeout_s)
        with self._entering:
            self._check()
            self._deadlines.watch(request)
            gathered = self._gathered.get(loop)
            if gathered is not None:
                gathered.append(request)
                return future
            self._gathered[loop] = [request]
        loop.call_soon(self._queue_gathered)
        return future

    def _queue_gathered(self) -> None:
        """Queue what coroutines have asked for; in a loop's thread, behind its round."""
        with self._entering:
            if self._gathered:
                self._pour(self._queue or self._start())

    def _pour(self, queue: SimpleQueue[Sequence[Request] | None]) -> None:
        for requests in self._gathered.values():
            for start in range(0, len(requests), GROUP_LIMIT):
                queue.put(requests[start : start + GROUP_LIMIT])
        self._gathered.clear()

    def _put(self, request: Request) -> None:
        with self._entering:
            self._check()
            queue = self._queue or self._start()
            if self._gathered:
                self._pour(queue)
            queue.put([request])

    def _check(self) -> None:
        if self._committer.stopped is not None:
            raise StoreStopped(self._committer.stopped)
        if self._closing:
            raise StoreStopped(f"{self._path} is closed; open it again")

    def _start(self) -> SimpleQueue[Sequence[Request] | None]:
        import atexit

        queue: SimpleQueue[Sequence[Request] | None] = SimpleQueue()
        thread = threading.Thread(target=self._work, args=(queue,), name="hermes-writer", daemon=True)
        thread.start()
        # A daemon, so that a stuck disk never keeps the program from ending; what is queued then is still written.
        atexit.register(self.close)
        self._queue, self._thread = queue, thread
        return queue

    def try_inline(self, work: Work, thread: int) -> Outcome | None:
        """Commit in the caller's thread if nobody else is at work; ``None`` where the operation has to be queued.

        Not for the main thread: Ctrl-C there can fall between two steps and leave a transaction open.

        :param thread: number of the calling thread.
        :raises StorageError: the store cannot write at all.
        """
        queue = self._queue
        if self._gathered or (queue is not None and not queue.empty()) or not self._lock.acquire(blocking=False):
            return None
        committer = self._committer
        try:
            self.owner = thread
            if self._closing:
                self._check()
            outcome = committer.commit_now(work)
        except apsw.Error as error:
            raise translate(error, CANNOT_WRITE) from error
        finally:
            self.owner = 0
            self._lock.release()
        if outcome is not None and committer.stopped is None:
            self._grown(committer.wal_pages)
        return outcome

    def _work(self, queue: SimpleQueue[Sequence[Request] | None]) -> None:
        """The thread, until the queue brings ``None``."""
        going_on = True
        while going_on:
            group, going_on = _take(queue)
            if group:
                self._serving = group
                self._serve(group)
                self._serving = []
                self._deadlines.forget_settled()
                if not self.has_stopped:
                    self._grown(self._committer.wal_pages)
            # Otherwise the operations would live on while the thread waits.
            del group
        with self._lock:
            self._committer.close()

    def _serve(self, group: list[Request]) -> None:
        """Commit one group and answer everybody in it, whatever happens."""
        begun: list[Request] = []

        def take() -> list[Work]:
            begun.extend(self._begin(group))
            return [request.work for request in begun]

        try:
            with self._lock:
                self.owner = threading.get_ident()
                try:
                    outcomes = self._committer.commit(lambda: self._still_wanted(group), take)
                finally:
                    self.owner = 0
        except BaseException as error:  # noqa: BLE001 - nobody may be left waiting
            failure = translate(error, CANNOT_WRITE)
            begun.extend(self._begin(group))
            outcomes = [Outcome(error=failure) for _ in begun]
        answer(begun, outcomes)

    def _still_wanted(self, group: list[Request]) -> bool:
        """Give up those that have waited too long for SQLite's lock; whether anybody is left."""
        now = time.monotonic()
        self._give_up([request for request in group if request.until < now and not request.is_settled])
        return not self._abandoned and not all(request.is_settled for request in group)

    def _begin(self, requests: Iterable[Request]) -> list[Request]:
        """Those that had not begun, and now have: whoever asked for them answers them."""
        with self._beginning:
            return [request for request in requests if request.begin()]

    def _give_up(self, requests: Sequence[Request]) -> None:
        """Tell those that have not begun that they never will."""
        late = self._begin(requests)
        if late:
            error = self.busy_error()
            answer(late, [Outcome(error=error) for _ in late])

    def busy_error(self, waited_s: float | None = None, *, maybe_written: bool = False) -> StoreBusy:
        """See :meth:`Committer.busy_error`."""
        return self._committer.busy_error(waited_s, maybe_written=maybe_written)

    def close(self) -> None:
        """Write what is queued, then close; waits at most the busy timeout. Idempotent; in a forked child nothing."""
        import atexit

        if os.getpid() != self._process:
            return
        with self._entering:
            first, self._closing = not self._closing, True
            if first and self._gathered:
                self._pour(self._queue or self._start())
            patience_s = 0.0 if self._is_stuck_for_nobody() else self._busy_timeout_s
            if first and self._queue is not None:
                self._queue.put(None)
        thread = self._thread
        if thread is None:
            if self._lock.acquire(timeout=self._busy_timeout_s):
                try:
                    self._committer.close()
                finally:
                    self._lock.release()
        elif thread is not threading.current_thread() and not self._abandoned:
            thread.join(patience_s)
            if thread.is_alive():
                self._abandoned = True
                self._refuse_queued()
            atexit.unregister(self.close)
        self._deadlines.close()

    def _is_stuck_for_nobody(self) -> bool:
        """Whether the thread waits in the gate although all have given up; call it with the entrance locked."""
        if self._queue is None or not self._committer.is_queueing:
            return False
        queued: list[Request] = []
        going_on = True
        while going_on:
            group, going_on = _take(self._queue, wait=False)
            queued += group
            going_on = going_on and bool(group)
        if queued:
            self._queue.put(queued)
        return all(request.is_settled for request in (*self._serving, *queued))

    def _refuse_queued(self) -> None:
        """Answer those whom the stuck thread will never serve."""
        going_on = self._queue is not None
        while going_on and self._queue is not None:
            group, going_on = _take(self._queue, wait=False)
            self._give_up(group)
            going_on = going_on and bool(group)
        if self._queue is not None:
            self._queue.put(None)  # should it come back, it closes its connection

    def leave_in_child(self) -> None:
        """In a forked child: the thread is not there, and nothing is taken any more."""
        self._committer.leave_in_child()


def _take(queue: SimpleQueue[Sequence[Request] | None], *, wait: bool = True) -> tuple[list[Request], bool]:
    """What is in the queue, about one group; and whether more may come (``None`` ends it)."""
    group: list[Request] = []
    try:
        requests = queue.get(wait)
        while requests is not None:
            group += requests
            if len(group) >= GROUP_LIMIT:
                return group, True
            requests = queue.get_nowait()
    except Empty:
        return group, True
    return group, False
