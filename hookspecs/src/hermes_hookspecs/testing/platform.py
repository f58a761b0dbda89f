"""A platform's sending half for tests: it writes down what arrives, and answers as its script says.

::

    sender = RecordingSender(answers=[RetryLater("busy", after_s=3), arrived_but(OSError("connection lost"))])
    ...
    assert [part.text for part in sender.received()] == ["hello", "(may be a repeat) hello"]

With a path, several processes share one record: each part is one JSON line, added in one write, so that a test can kill
them at any moment and read what their reader would have seen.
"""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.ports.platform import Deferred, Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from hermes_hookspecs.ports.platform import DeliveryPart, SendResult

    Answer = SendResult | BaseException | Callable[[DeliveryPart], Awaitable[SendResult]]

__all__ = ["FindingSender", "ReceivedPart", "RecordingSender", "arrived_but"]


@attrs.frozen(kw_only=True)
class ReceivedPart:
    """One part as it arrived.

    Attributes:
        address: of :func:`~hermes_hookspecs.outbox.address_of`. pid: the process that sent it.
        number: counts what one sender has recorded, from 1. file: name of the file that the part was, ``""`` for a
            text; sha256: of its bytes.
    """

    key: str
    address: str
    text: str
    index: int
    count: int
    possible_repeat: bool
    pid: int
    number: int
    file: str = ""
    sha256: str = ""


class _ArrivedBut(Exception):
    """The part arrives, and the sender raises ``error`` all the same."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def arrived_but(error: BaseException) -> BaseException:
    """Return an answer: the part arrives, but its sender hears ``error``, as of a connection that breaks too late."""
    return _ArrivedBut(error)


class RecordingSender:
    """A :class:`~hermes_hookspecs.ports.platform.Sender` that records. Thread-safe; blocks only for a short write.

    An answer is a ``Sent`` (recorded), a ``Deferred`` or an exception (not recorded), :func:`arrived_but` an exception
    (recorded), or an async function of the part whose result counts, which may wait for a
    :class:`~hermes_hookspecs.testing.agents.Gate` before. Where the script has no answer, a part arrives.

    :param path: file that the record is added to; ``None`` keeps it in memory.
    :param answers: one for each call, in order. answers_to: the same for calls with one part key, asked before.
    :param idempotent: a key that arrived before is acknowledged and not recorded again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        answers: Iterable[Answer] = (),
        answers_to: dict[str, Iterable[Answer]] | None = None,
        idempotent: bool = False,
    ) -> None:
        self.calls: list[DeliveryPart] = []
        """Every part this sender was asked to send, in order, also those that did not arrive."""
        self._path = path
        self._answers = deque(answers)
        self._answers_to = {key: deque(each) for key, each in (answers_to or {}).items()}
        self._idempotent = idempotent
        self._kept: list[ReceivedPart] = []
        self._number = 0
        self._lock = Lock()

    def then(self, *answers: Answer) -> None:
        """Add answers for the calls after those that have one."""
        with self._lock:
            self._answers.extend(answers)

    async def send(self, part: DeliveryPart) -> SendResult:
        """Do what the script says."""
        with self._lock:
            self.calls.append(part)
            answers = self._answers_to.get(part.key) or self._answers
            answer: Answer = answers.popleft() if answers else _sent(part)
        if isinstance(answer, _ArrivedBut):
            self._record(part)
            raise answer.error
        if isinstance(answer, BaseException):
            raise answer
        result = answer if isinstance(answer, Sent | Deferred) else await answer(part)
        if isinstance(result, Sent):
            self._record(part)
            if result.platform_message_id is None:
                result = attrs.evolve(result, platform_message_id=_message_id(part))
        return result

    def received(self) -> tuple[ReceivedPart, ...]:
        """Return what arrived, in order, whoever sent it."""
        return tuple(self._kept) if self._path is None else _lines_of(self._path)

    def texts(self) -> list[str]:
        """Return the texts that arrived, in order."""
        return [part.text for part in self.received()]

    def _record(self, part: DeliveryPart) -> None:
        with self._lock, self._alone():
            if self._idempotent and self._knows(part.key):
                return
            self._number += 1
            arrived = ReceivedPart(
                key=part.key,
                address=address_of(part.target),
                text=part.text,
                index=part.index,
                count=part.count,
                possible_repeat=part.possible_repeat,
                pid=os.getpid(),
                number=self._number,
                file="" if part.media is None else part.media.name,
                sha256="" if part.media is None else sha256(part.media.data).hexdigest(),
            )
            if self._path is None:
                self._kept.append(arrived)
            else:
                _add_line(self._path, json.dumps(attrs.asdict(arrived)))

    def _knows(self, key: str) -> bool:
        return any(each.key == key for each in self.received())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out while a key is looked for and recorded, where that matters."""
        if self._path is None or not self._idempotent:
            yield
            return
        import fcntl

        with open(f"{os.fspath(self._path)}.lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class FindingSender(RecordingSender):
    """A sender of a platform that can be asked whether a part went out.

    Its answers to that are as true as its record. ``finding``: exceptions that the next questions raise, in order.
    """

    finding: tuple[BaseException, ...] = ()
    asked: int = 0

    async def find_sent(self, part: DeliveryPart) -> Sent | None:
        """Return how a part with this key went out, ``None`` when none did."""
        self.asked += 1
        if self.finding:
            first, *rest = self.finding
            self.finding = tuple(rest)
            raise first
        return _sent(part) if self._knows(part.key) else None


def _sent(part: DeliveryPart) -> Sent:
    return Sent(platform_message_id=_message_id(part))


def _message_id(part: DeliveryPart) -> str:
    return f"m-{part.key}"


def _lines_of(path: str | os.PathLike[str]) -> tuple[ReceivedPart, ...]:
    """Return what was received as a whole: of a process that was killed while it wrote, a piece of a line may stand."""
    try:
        with open(path, encoding="ascii") as file:
            lines = file.read().split("\n")
    except FileNotFoundError:
        return ()
    return tuple(ReceivedPart(**json.loads(line)) for line in lines if line.endswith("}"))


def _add_line(path: str | os.PathLike[str], line: str) -> None:
    """Append a line in one write, with a line end on either side: a torn one before it stays apart."""
    with open(path, "ab", buffering=0) as file:
        file.write(f"\n{line}\n".encode())
