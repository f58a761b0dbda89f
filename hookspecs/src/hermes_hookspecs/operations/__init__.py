"""Every write of a store, as a value.

An operation is a pure function of the store and its own fields: ids, times and random parts are made before it is
queued, so a rolled-back group can be run again, and a caller who does not know the outcome can ask. Each is one
transaction. ``Store.apply`` runs one and returns its result; ``Store.submit`` returns a future.

Repetition: an operation that carries fresh ids (``session_id``, ``turn_id``, identities) recognises its own work by
them; one that carries a *fence* or an *expected* value is refused the second time; the others are idempotent.
"""

from __future__ import annotations

from hermes_hookspecs.operations.approvals import AnswerApproval, AskApproval
from hermes_hookspecs.operations.audit import RecordAudit
from hermes_hookspecs.operations.branching import Branch
from hermes_hookspecs.operations.compression import COMPRESSION, UNCOMPRESSION, Compress, Compressed
from hermes_hookspecs.operations.hiding import Hid, Hide
from hermes_hookspecs.operations.inbox import (
    Accept,
    Attach,
    Control,
    Withdraw,
)
from hermes_hookspecs.operations.jobs import CancelJob, EndJob, StartJob, TellJobs
from hermes_hookspecs.operations.lineages import (
    BindRoute,
    Claim,
    Delete,
    Deleted,
    ForgetRoute,
    GetOrCreate,
    Released,
    ReleaseRoute,
    Rename,
    SetFlags,
)
from hermes_hookspecs.operations.moving import Moved, MoveRoutes, Rekey
from hermes_hookspecs.operations.operation import ACTIVITY_RESOLUTION_MS, Operation
from hermes_hookspecs.operations.outbox import (
    ClaimDelivery,
    DeferDelivery,
    Deliver,
    DropDelivery,
    FailDelivery,
    JoinDeliveries,
    MarkSent,
    RetryDelivery,
    SplitDelivery,
)
from hermes_hookspecs.operations.state import (
    PutState,
)
from hermes_hookspecs.operations.turns import (
    Append,
    Begin,
    BeginResult,
    Begun,
    Busy,
    Changed,
    Finish,
    Finished,
    NothingWaiting,
    NotYourTurn,
    RecordUsage,
    Renew,
    Revoke,
    Snapshot,
)
from hermes_hookspecs.operations.upkeep import LeaveEntrances, ServeEntrances, Sweep, Swept

__all__ = [
    "ACTIVITY_RESOLUTION_MS",
    "COMPRESSION",
    "UNCOMPRESSION",
    "Accept",
    "AnswerApproval",
    "Append",
    "AskApproval",
    "Attach",
    "Begin",
    "BeginResult",
    "Begun",
    "BindRoute",
    "Branch",
    "Busy",
    "CancelJob",
    "Changed",
    "Claim",
    "ClaimDelivery",
    "Compress",
    "Compressed",
    "Control",
    "DeferDelivery",
    "Delete",
    "Deleted",
    "Deliver",
    "DropDelivery",
    "EndJob",
    "FailDelivery",
    "Finish",
    "Finished",
    "ForgetRoute",
    "GetOrCreate",
    "Hid",
    "Hide",
    "JoinDeliveries",
    "LeaveEntrances",
    "MarkSent",
    "MoveRoutes",
    "Moved",
    "NotYourTurn",
    "NothingWaiting",
    "Operation",
    "PutState",
    "RecordAudit",
    "RecordUsage",
    "Rekey",
    "ReleaseRoute",
    "Released",
    "Rename",
    "Renew",
    "RetryDelivery",
    "Revoke",
    "ServeEntrances",
    "SetFlags",
    "Snapshot",
    "SplitDelivery",
    "StartJob",
    "Sweep",
    "Swept",
    "TellJobs",
    "Withdraw",
]
