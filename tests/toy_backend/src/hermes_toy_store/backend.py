"""The store: a log of operations behind a file lock, replayed by every process that opens it.

An operation is a pure function of the store and its fields, so the log of those that succeeded *is* the store. Each
record is its length (8 bytes) and a pickle; a record that a dying process left half written is cut off by the next
writer. Read a log only from people you trust: that is what makes this a toy.
"""

from __future__ import annotations

import os
import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_UN, flock
from threading import RLock
from typing import TYPE_CHECKING, TypeVar, cast

import attrs

from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import HermesError, StoreRefused, StoreStopped
from hermes_hookspecs.principal import Owner
from hermes_toy_store import doors, post, talk
from hermes_toy_store.book import Book
from hermes_toy_store.reads import Reads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from hermes_hookspecs.ports.store import Store, StoreOptions, StoreReader

__all__ = ["ToyBackend", "ToyStore"]

T = TypeVar("T")

HEADER = b"hermes-toy-store 1 "
NAME_BYTES = 16
RUN: dict[type, Callable[..., object]] = {
    ops.Accept: doors.accept,
    ops.Append: talk.append,
    ops.Attach: doors.attach,
    ops.Begin: talk.begin,
    ops.BindRoute: doors.bind_route,
    ops.ClaimDelivery: post.claim,
    ops.Compress: talk.compress,
    ops.Control: doors.control,
    ops.DeferDelivery: post.defer,
    ops.Delete: doors.delete,
    ops.Deliver: post.deliver,
    ops.DropDelivery: post.drop,
    ops.FailDelivery: post.fail,
    ops.Finish: talk.finish,
    ops.ForgetRoute: doors.forget_route,
    ops.GetOrCreate: doors.get_or_create,
    ops.JoinDeliveries: post.join,
    ops.LeaveEntrances: post.leave,
    ops.MarkSent: post.mark_sent,
    ops.PutState: doors.put_state,
    ops.RecordUsage: talk.record_usage,
    ops.ReleaseRoute: doors.release_route,
    ops.Rename: doors.rename,
    ops.Renew: talk.renew,
    ops.RetryDelivery: post.retry,
    ops.Revoke: talk.revoke,
    ops.ServeEntrances: post.serve,
    ops.SetFlags: doors.set_flags,
    ops.SplitDelivery: post.split,
    ops.Sweep: post.sweep,
    ops.Withdraw: doors.withdraw,
}


def _clean(value: object) -> object:
    """Return a value whose text is valid UTF-8."""
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value) if not value.isascii() else value
    if isinstance(value, tuple | frozenset):
        return type(value)(map(_clean, value))
    if attrs.has(type(value)) and not isinstance(value, Owner):  # an owner is told apart by its exact text
        fields = {field.name: _clean(getattr(value, field.name)) for field in attrs.fields(type(value))}
        return type(value)(**fields)
    return value


class ToyStore:
    """One log file, open. Thread-safe; every call blocks."""

    name: str = "toy"
    durable: bool = True

    def __init__(self, location: str, *, sync: bool) -> None:
        self.location = location
        self._sync = sync
        self._lock = RLock()
        self._file: int | None = os.open(location, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._threads: ThreadPoolExecutor | None = None
        self._start_over()
        try:
            with self._alone():
                self._catch_up()
        except BaseException:
            self.close()
            raise

    def _start_over(self) -> None:
        self._reads = Reads(Book(), "")
        self._read_up_to = 0
        self._records = 0

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Keep every other thread and process out."""
        with self._lock:
            if self._file is None:
                raise StoreStopped("the toy store is closed; open it again")
            flock(self._file, LOCK_EX)
            try:
                yield self._file
            finally:
                flock(self._file, LOCK_UN)

    def _catch_up(self) -> None:
        """Replay what others have written; cut off what one of them did not finish."""
        file = self._file
        assert file is not None
        head = len(HEADER) + NAME_BYTES
        if self._read_up_to == 0:
            found = os.pread(file, head, 0)
            if not found:
                os.pwrite(file, HEADER + os.urandom(NAME_BYTES // 2).hex().encode(), 0)
                found = os.pread(file, head, 0)
            if len(found) < head or not found.startswith(HEADER):
                raise StoreRefused(f"{self.location} is no log of the toy store; nothing was touched")
            self._reads.name = found[len(HEADER) :].decode()
            self._read_up_to = head
        size = os.fstat(file).st_size
        while self._read_up_to < size:
            length = int.from_bytes(os.pread(file, 8, self._read_up_to), "big")
            record = os.pread(file, length, self._read_up_to + 8)
            if len(record) < length or not record:
                os.ftruncate(file, self._read_up_to)
                break
            operation = pickle.loads(record)
            RUN[type(operation)](self._reads.book, operation)
            self._records += 1
            self._read_up_to += 8 + length

    def apply(self, operation: ops.Operation[T]) -> T:
        wanted = _clean(operation)
        record = pickle.dumps(wanted)
        with self._alone() as file:
            self._catch_up()
            try:
                result = RUN[type(wanted)](self._reads.book, wanted)
            except HermesError:
                self._start_over()  # it may have changed something before it failed
                raise
            data = len(record).to_bytes(8, "big") + record
            while data:
                written = os.pwrite(file, data, self._read_up_to)
                data, self._read_up_to = data[written:], self._read_up_to + written
            if self._sync:
                os.fdatasync(file)
            self._records += 1
        return cast("T", result)

    def submit(self, operation: ops.Operation[T]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(self.apply(operation))
        except Exception as error:  # noqa: BLE001 (a future carries whatever the operation raised)
            future.set_exception(error)
        return future

    def perform(self, operation: ops.Operation[T]) -> Awaitable[T]:
        from asyncio import wrap_future

        return wrap_future(self.submit(operation))

    def submit_read(self, read: Callable[[StoreReader], T]) -> Future[T]:
        def run() -> T:
            with self._alone():
                self._catch_up()
                return read(cast("StoreReader", self._reads))

        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(1, thread_name_prefix="toy-read")
            return self._threads.submit(run)

    def change_mark(self) -> int:
        with self._alone():
            self._catch_up()
            return self._records

    def care(self) -> None:
        return None

    def janitor(self, chores: Sequence[Callable[[float], int]]) -> None:
        return None

    def close(self) -> None:
        with self._lock:
            file, self._file = self._file, None
            threads, self._threads = self._threads, None
            if file is not None:
                os.close(file)
        if threads is not None:
            threads.shutdown()

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Return a read of the port that sees what every process has written."""
        if name.startswith("_") or not hasattr(Reads, name):
            raise AttributeError(name)

        def read(*args: object, **kwargs: object) -> object:
            with self._alone():
                self._catch_up()
                return getattr(self._reads, name)(*map(_clean, args), **kwargs)

        return read


class ToyBackend:
    """``[storage] backend = "toy"``: the log stands beside the path that it is given."""

    name: str = "toy"

    def open(self, options: StoreOptions) -> Store:
        location = f"{os.fspath(options.path)}.toy"
        try:
            os.makedirs(os.path.dirname(location) or ".", mode=0o700, exist_ok=True)
            return cast("Store", ToyStore(location, sync=options.durability == "full"))
        except OSError as error:
            raise StoreRefused(f"{location} cannot be opened: {error.strerror}") from error
