"""Queued operations: who waits for one, and how he gets his answer."""

from __future__ import annotations

from _thread import allocate_lock
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from hermes_core.storage.sqlite.group import Outcome

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from hermes_core.storage.sqlite.transaction import Transaction

    Work = Callable[[Transaction], object]

__all__ = ["CallRequest", "FutureRequest", "LoopRequest", "Request", "answer"]


class Request(Protocol):
    """One operation in the queue; its methods are called by the writer's thread, and by that of its deadlines.

    :ivar until: until when it may still begin (``time.monotonic`` seconds).
    """

    work: Work
    until: float

    @property
    def is_settled(self) -> bool:
        """Whether nobody waits for it any more: answered, or taken back."""

    def begin(self) -> bool:
        """Mark it as begun, once, after which it cannot be taken back; false where that has happened.

        Whoever begins it settles it. One thread at a time calls this.
        """

    def settle(self, outcome: Outcome) -> None:
        """Answer. Never raises because the caller has left."""


class CallRequest:
    """A request of a thread that waits in its call, perhaps the main thread with a Ctrl-C on its way.

    Every step is one call into C, which an interrupt cannot divide. A future's condition can be left locked by one, and
    the writer would then wait for ever to answer.
    """

    __slots__ = ("_answer", "_begun", "answered", "until", "work")

    def __init__(self, work: Work, until: float) -> None:
        self.work = work
        self.until = until
        self.answered = False
        self._begun = allocate_lock()
        self._answer: SimpleQueue[Outcome] = SimpleQueue()

    @property
    def is_settled(self) -> bool:
        """See :class:`Request`; one that was taken back is found when it is to begin."""
        return self.answered

    def begin(self) -> bool:
        """See :class:`Request`."""
        return self._begun.acquire(blocking=False)

    def take_back(self) -> bool:
        """For the caller: whether it had not begun, and now never will."""
        taken = self._begun.acquire(blocking=False)
        self.answered = self.answered or taken
        return taken

    def settle(self, outcome: Outcome) -> None:
        """See :class:`Request`."""
        self.answered = True
        self._answer.put(outcome)

    def wait(self, timeout_s: float) -> Outcome | None:
        """For the caller: the answer, or ``None`` after ``timeout_s``."""
        try:
            return self._answer.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None


class FutureRequest:
    """A request of a thread that waits for a :class:`concurrent.futures.Future`."""

    __slots__ = ("_begun", "future", "until", "work")

    def __init__(self, work: Work, future: Future[object], until: float) -> None:
        self.work = work
        self.until = until
        self.future = future
        self._begun = False

    @property
    def is_settled(self) -> bool:
        """See :class:`Request`."""
        return self.future.done()

    def begin(self) -> bool:
        """See :class:`Request`."""
        if self._begun or self.future.done():
            return False
        self._begun = self.future.set_running_or_notify_cancel()
        return self._begun

    def settle(self, outcome: Outcome) -> None:
        """See :class:`Request`."""
        if outcome.error is not None:
            self.future.set_exception(outcome.error)
        else:
            self.future.set_result(outcome.value)


class LoopRequest:
    """A request of a coroutine. Its future belongs to the loop's thread; only :func:`answer` reaches into it."""

    __slots__ = ("_begun", "answered", "future", "loop", "outcome", "until", "work")

    def __init__(
        self, work: Work, future: asyncio.Future[object], loop: asyncio.AbstractEventLoop, until: float
    ) -> None:
        self.work = work
        self.until = until
        self.future = future
        self.loop = loop
        self._begun = False
        self.answered = False
        self.outcome: Outcome | None = None

    @property
    def is_settled(self) -> bool:
        """See :class:`Request`."""
        return self.answered or self.future.done()

    def begin(self) -> bool:
        """See :class:`Request`; a cancellation that comes later finds the operation committed."""
        if self._begun or self.future.done():
            return False
        self._begun = True
        return True

    def settle(self, outcome: Outcome) -> None:
        """See :class:`Request`; the answer is kept until the whole group has one."""
        self.answered = True
        self.outcome = outcome

    def deliver(self) -> None:
        """Give the kept answer to the coroutine; in the loop's thread."""
        if self.outcome is None or self.future.done():
            return
        if self.outcome.error is not None:
            self.future.set_exception(self.outcome.error)
        else:
            self.future.set_result(self.outcome.value)


def answer(requests: Iterable[Request], outcomes: Iterable[Outcome]) -> None:
    """Settle every request with its outcome; each event loop is woken once, however many of its coroutines wait.

    Waking it for every answer would hand the interpreter back and forth between the two threads.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[LoopRequest]] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        request.settle(outcome)
        if isinstance(request, LoopRequest):
            by_loop.setdefault(request.loop, []).append(request)
    for loop, answered in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver, answered)
        except RuntimeError:
            # The loop is closed; its operations are committed, and nobody is left to be told.
            continue


def _deliver(answered: list[LoopRequest]) -> None:
    for request in answered:
        request.deliver()
