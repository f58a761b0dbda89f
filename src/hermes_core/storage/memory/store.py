"""The in-memory store itself: one lock, one set of tables, replaced as a whole by every write."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

from hermes_core.storage.memory.reads import MemoryReader
from hermes_core.storage.memory.tables import Tables
from hermes_core.storage.memory.text import clean
from hermes_hookspecs.errors import StoreStopped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.ports.care import Janitor, StoreCare
    from hermes_hookspecs.ports.store import Store, StoreOptions, StoreReader

__all__ = ["MemoryBackend", "MemoryStore"]

T = TypeVar("T")


def _handlers() -> Mapping[type, Callable[..., object]]:
    """Return what runs each operation."""
    from hermes_core.storage.memory import (
        approvals,
        audit,
        branching,
        compression,
        hiding,
        inbox,
        jobs,
        lineages,
        moves,
        outbox,
        plugin_state,
        routes,
        titles,
        turns,
        upkeep,
    )
    from hermes_hookspecs import operations

    return {
        operations.Accept: inbox.accept,
        operations.AnswerApproval: approvals.answer_approval,
        operations.Append: turns.append,
        operations.AskApproval: approvals.ask_approval,
        operations.Attach: inbox.attach,
        operations.Begin: turns.begin,
        operations.BindRoute: routes.bind_route,
        operations.Branch: branching.branch,
        operations.CancelJob: jobs.cancel_job,
        operations.ClaimDelivery: outbox.claim_delivery,
        operations.Compress: compression.compress,
        operations.Control: inbox.control,
        operations.DeferDelivery: outbox.defer_delivery,
        operations.Delete: lineages.delete,
        operations.Deliver: outbox.deliver,
        operations.DropDelivery: outbox.drop_delivery,
        operations.EndJob: jobs.end_job,
        operations.FailDelivery: outbox.fail_delivery,
        operations.Finish: turns.finish,
        operations.ForgetRoute: routes.forget_route,
        operations.GetOrCreate: routes.get_or_create,
        operations.Hide: hiding.hide,
        operations.JoinDeliveries: outbox.join_deliveries,
        operations.LeaveEntrances: upkeep.leave_entrances,
        operations.MarkSent: outbox.mark_sent,
        operations.MoveRoutes: moves.move_routes,
        operations.PutState: plugin_state.put_state,
        operations.RecordAudit: audit.record_audit,
        operations.RecordUsage: turns.record_usage,
        operations.ReleaseRoute: routes.release_route,
        operations.Rename: titles.rename,
        operations.Renew: turns.renew,
        operations.RetryDelivery: outbox.retry_delivery,
        operations.Revoke: turns.revoke,
        operations.ServeEntrances: upkeep.serve_entrances,
        operations.SetFlags: lineages.set_flags,
        operations.SplitDelivery: outbox.split_delivery,
        operations.StartJob: jobs.start_job,
        operations.Sweep: upkeep.sweep,
        operations.TellJobs: jobs.tell_jobs,
        operations.Withdraw: inbox.withdraw,
    }


class MemoryStore(MemoryReader):
    """A store that lives as long as its object. Thread-safe; nothing blocks longer than another write runs.

    A write copies the tables (not the values in them), so its cost grows slowly with what is stored: made for tests
    and for conversations that need not survive.
    """

    name: str = "memory"
    location: str = "memory"
    durable: bool = False

    def __init__(self) -> None:
        from os import urandom

        super().__init__(Tables(), urandom(8).hex())
        self._lock = Lock()
        self._run = _handlers()
        self._mark = 0
        self._closed = False
        self._threads: ThreadPoolExecutor | None = None

    def apply(self, operation: Operation[T]) -> T:
        """Run one operation and return its result; when it raises, nothing of it was written.

        :raises StoreStopped: the store is closed.
        """
        wanted = clean(operation)
        with self._lock:
            if self._closed:
                raise StoreStopped("the memory store is closed; open another one")
            tables = self._tables.copy()
            result = self._run[type(operation)](tables, wanted)
            self._tables = tables
            self._mark += 1
        return cast("T", result)  # the table of handlers pairs each operation with the function that returns its T

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Run one operation at once; return a future that has ended."""
        from concurrent.futures import Future

        future: Future[T] = Future()
        try:
            future.set_result(self.apply(operation))
        except Exception as error:  # noqa: BLE001 (a future carries whatever the operation raised)
            future.set_exception(error)
        return future

    def perform(self, operation: Operation[T]) -> Awaitable[T]:
        """Run one operation at once; return its future, for the running event loop."""
        from asyncio import wrap_future

        return wrap_future(self.submit(operation))

    def submit_read(self, read: Callable[[StoreReader], T]) -> Future[T]:
        """Run ``read`` on a thread of the store, on the store as it is now."""
        from concurrent.futures import ThreadPoolExecutor

        view = MemoryReader(self._tables, self._instance)
        with self._lock:
            if self._closed:
                raise StoreStopped("the memory store is closed; open another one")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(2, thread_name_prefix="hermes-memory-read")
            return self._threads.submit(read, view)

    def change_mark(self) -> int:
        """Return a number that grows with every write."""
        return self._mark

    def care(self) -> StoreCare | None:
        """Return ``None``: there is no file to take care of."""
        return None

    def janitor(self, chores: Sequence[Callable[[float], int]]) -> Janitor | None:
        """Return ``None``: nothing here is derived from anything."""
        return None

    def close(self) -> None:
        """Wait for running reads and take no more writes; a second call does nothing."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


class MemoryBackend:
    """``[storage] backend = "memory"``: every open makes a fresh, empty store."""

    name: str = "memory"

    def open(self, options: StoreOptions) -> Store:
        """Return an empty store; the options do not matter."""
        return MemoryStore()
