"""Which function runs which operation; the module of each is imported when the first of its kind comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from hermes_core.storage.sqlite.cleaning import clean
from hermes_core.storage.sqlite.group import Unkept
from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import Operation

    Handler = Callable[[object], Callable[[Transaction], object]]

__all__ = ["prepare"]

T = TypeVar("T")

MODULES = {
    "Accept": ("inbox", "accept"),
    "AnswerApproval": ("approvals", "answer_approval"),
    "Append": ("steps", "append"),
    "AskApproval": ("approvals", "ask_approval"),
    "Attach": ("inbox", "attach"),
    "Begin": ("begin", "begin"),
    "BindRoute": ("routes", "bind_route"),
    "Branch": ("branching", "branch"),
    "CancelJob": ("jobs", "cancel_job"),
    "ClaimDelivery": ("sending", "claim_delivery"),
    "Compress": ("compression", "compress"),
    "Control": ("controls", "control"),
    "DeferDelivery": ("sending", "defer_delivery"),
    "Delete": ("lineages", "delete"),
    "Deliver": ("deliveries", "deliver"),
    "DropDelivery": ("deliveries", "drop_delivery"),
    "EndJob": ("jobs", "end_job"),
    "FailDelivery": ("sending", "fail_delivery"),
    "Finish": ("steps", "finish"),
    "ForgetRoute": ("routes", "forget_route"),
    "GetOrCreate": ("entries", "get_or_create"),
    "Hide": ("hiding", "hide"),
    "JoinDeliveries": ("joining", "join_deliveries"),
    "LeaveEntrances": ("servers", "leave_entrances"),
    "MarkSent": ("sending", "mark_sent"),
    "MoveRoutes": ("moves", "move_routes"),
    "PutState": ("plugin_state", "put_state"),
    "RecordAudit": ("audit", "record_audit"),
    "RecordUsage": ("usage", "record_usage"),
    "ReleaseRoute": ("routes", "release_route"),
    "Rename": ("titles", "rename"),
    "Renew": ("leases", "renew"),
    "RetryDelivery": ("deliveries", "retry_delivery"),
    "Revoke": ("leases", "revoke"),
    "ServeEntrances": ("servers", "serve_entrances"),
    "SetFlags": ("lineages", "set_flags"),
    "SplitDelivery": ("sending", "split_delivery"),
    "StartJob": ("jobs", "start_job"),
    "Sweep": ("sweep", "sweep"),
    "TellJobs": ("jobs", "tell_jobs"),
    "Withdraw": ("inbox", "withdraw"),
}

CLEAN_THEMSELVES = frozenset({"append", "finish"})
"""Functions that see to clean text in their own, quicker way."""

_HANDLERS: dict[type, Handler] = {}


def prepare(operation: Operation[T]) -> Callable[[Transaction], T]:
    """The work of an operation, its text clean.

    :raises StorageError: this store does not know the operation.
    """
    kind = type(operation)
    handler = _HANDLERS.get(kind)
    if handler is None:
        handler = _HANDLERS[kind] = _find(kind)
    work = cast("Callable[[Transaction], T]", handler(operation))  # each handler returns its operation's T
    return work if operation.is_kept else Unkept(work)


def _find(kind: type) -> Handler:
    from importlib import import_module

    place = MODULES.get(kind.__name__)
    if place is None:
        raise StorageError(f"the SQLite store does not know the operation {kind.__name__}")
    module, name = place
    handler = cast("Handler", getattr(import_module(f"{__package__}.{module}"), name))  # a function of that module
    if name in CLEAN_THEMSELVES:
        return handler
    return lambda operation: handler(clean(operation))
