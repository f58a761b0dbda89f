"""Every error that the product raises on purpose, in one tree.

::

    HermesError
    ├── ConfigError                  a file, an environment variable or an option is wrong
    ├── PluginError                  a plugin failed at a stage, or inside a hook
    ├── KeyBuildError                a source that cannot be told apart from somebody else's
    ├── AccessDenied                 this principal may not do that
    ├── SessionError
    │   ├── SessionNotFound          no such session, or not yours: the two read the same
    │   ├── AmbiguousReference       several sessions match; nothing was changed
    │   ├── TitleError               a title that breaks the rules, or is taken
    │   ├── ApprovalNotFound         no such request, or not yours to answer: the two read the same
    │   ├── JobNotFound              no such job, or not yours: the two read the same
    │   └── Conflict                 a compare-and-set lost: reload and decide again
    ├── TurnError
    │   ├── LeaseBusy                somebody else runs a turn on this lineage
    │   ├── LeaseLost                the lease went to somebody else; nothing was written
    │   ├── IllegalMessage           a row that would make the transcript illegal
    │   ├── ContextOverflow          the prompt is longer than the model can read: compress, then ask again
    │   └── AgentFailed              the agent raised; the turn is closed
    ├── InboxOverflow                the queue of a lineage is full; the message was refused
    ├── AttachmentRefused            more bytes than an attachment may have; nothing was stored
    ├── DeliveryNotFound             no such row in the outbox
    ├── StorageError
    │   ├── StoreRefused             not our file, newer than the program, unfit file system
    │   ├── StoreBusy                another process kept the lock; nothing was written
    │   ├── StoreOutcomeUnknown      a commit or a sync failed: it may or may not be there
    │   ├── StoreStopped             the store takes no more writes until it is opened again
    │   ├── StoreFull                the disk is full; nothing was written
    │   └── StoreDamaged             the file is not a sound database
    └── PlatformError
        ├── RetryLater               try again after a time
        ├── AuthFailed               the credentials are refused: a person must act
        └── Rejected                 the platform will never accept this

``str(error)`` is one line for people: what failed, with which value, what to do. The data is in attributes.
``exit_code`` is what a command line program ends with (``sysexits.h`` where it has a number for the case).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AccessDenied",
    "AgentFailed",
    "AmbiguousReference",
    "ApprovalNotFound",
    "AttachmentRefused",
    "AuthFailed",
    "ConfigError",
    "Conflict",
    "ContextOverflow",
    "DeliveryNotFound",
    "HermesError",
    "IllegalMessage",
    "InboxOverflow",
    "JobNotFound",
    "KeyBuildError",
    "LeaseBusy",
    "LeaseLost",
    "PlatformError",
    "PluginError",
    "Rejected",
    "RetryLater",
    "SessionError",
    "SessionNotFound",
    "StorageError",
    "StoreBusy",
    "StoreDamaged",
    "StoreFull",
    "StoreOutcomeUnknown",
    "StoreRefused",
    "StoreStopped",
    "TitleError",
    "TurnError",
]


class HermesError(Exception):
    """Root of the tree: catch it where an error is shown to a person."""

    exit_code: ClassVar[int] = 1


class ConfigError(HermesError):
    """A setting is unknown, of the wrong type or out of range.

    :param message: the whole sentence.
    :param origin: file, environment variable or option it came from; ``None`` for a default.
    :param section: dotted section, ``""`` for the top level.
    :param key: the key, ``""`` where the fault is of the whole file or section.
    """

    exit_code = 2

    def __init__(self, message: str, *, origin: str | None = None, section: str = "", key: str = "") -> None:
        super().__init__(message)
        self.origin = origin
        self.section = section
        self.key = key


class PluginError(HermesError):
    """A plugin failed; ``__cause__`` is what it raised.

    :param plugin: entry point name.
    :param stage: ``discover``, ``import``, ``create``, ``register`` or ``call``.
    :param reason: one line.
    """

    def __init__(self, plugin: str, stage: str, reason: str) -> None:
        super().__init__(f"plugin {plugin!r} failed at {stage}: {reason}")
        self.plugin = plugin
        self.stage = stage
        self.reason = reason


class KeyBuildError(HermesError):
    """A source has too little identity for a key of its own; guessing could join two people."""


class AccessDenied(HermesError):
    """The principal may not do this; never used for reads, which answer :class:`SessionNotFound`."""

    exit_code = 77


class SessionError(HermesError):
    """Something about one session or lineage."""


class SessionNotFound(SessionError):
    """No session answers to the reference, or it belongs to somebody else."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"no session answers to {reference!r}; `hermes sessions list` shows what there is")
        self.reference = reference


class AmbiguousReference(SessionError):
    """Several sessions answer to the reference; nothing was changed.

    :param candidates: ``(session id, title or "")``, most recently active first.
    """

    exit_code = 2

    def __init__(self, reference: str, candidates: Sequence[tuple[str, str]]) -> None:
        shown = ", ".join(f"{sid} ({title})" if title else sid for sid, title in candidates[:8])
        more = f" and {len(candidates) - 8} more" if len(candidates) > 8 else ""
        super().__init__(f"{reference!r} could be any of {shown}{more}; give more of the id")
        self.reference = reference
        self.candidates = tuple(candidates)


class TitleError(SessionError):
    """A title that is too long, or that another lineage of the same owner has."""

    exit_code = 2


class ApprovalNotFound(SessionError):
    """No open request has that id, or somebody else has to answer it."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"there is no open request {approval_id!r}" if approval_id else "there is no open request")
        self.approval_id = approval_id


class JobNotFound(SessionError):
    """No job has that id, or it belongs to somebody else's session."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id!r}; `hermes jobs list` shows what there is")
        self.job_id = job_id


class Conflict(SessionError):
    """What was to be changed is no longer what the caller saw; nothing was written."""

    exit_code = 75


class TurnError(HermesError):
    """Something about one turn."""


class LeaseBusy(TurnError):
    """Somebody else holds the lease.

    :param holder: description for people: entrance, host, process, since when.
    """

    exit_code = 75

    def __init__(self, message: str, *, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class LeaseLost(TurnError):
    """The caller's token is no longer the lineage's; the whole operation was refused."""

    exit_code = 75

    def __init__(self, lineage_id: str, token: int) -> None:
        super().__init__(f"the lease of {lineage_id} with token {token} was lost; nothing was written")
        self.lineage_id = lineage_id
        self.token = token


class IllegalMessage(TurnError):
    """A row that no model would accept: a result without its call, or a second result of one call."""


class ContextOverflow(TurnError):
    """The prompt is longer than the model can read; nothing was answered.

    An agent that raises it is run once more in the same turn, with a context that was compressed meanwhile.

    :param limit_tokens: what the model can read, where the endpoint says so.
    """

    def __init__(self, message: str, *, limit_tokens: int | None = None) -> None:
        super().__init__(message)
        self.limit_tokens = limit_tokens


class AgentFailed(TurnError):
    """The agent raised; ``__cause__`` is the exception. The turn is closed, with what it had stored."""


class InboxOverflow(HermesError):
    """The lineage has its most waiting messages already; this one was not accepted."""

    exit_code = 75


class AttachmentRefused(HermesError):
    """More bytes than an attachment may have; nothing was stored."""

    exit_code = 65


class DeliveryNotFound(HermesError):
    """No delivery has that number."""

    def __init__(self, delivery_id: int) -> None:
        super().__init__(f"there is no delivery {delivery_id}; `hermes outbox list --all` shows what there is")
        self.delivery_id = delivery_id


class StorageError(HermesError):
    """The store could not do it."""

    exit_code = 74


class StoreRefused(StorageError):
    """The store was not opened, and its file was not touched."""

    exit_code = 78


class StoreBusy(StorageError):
    """The lock could not be had within ``storage.busy_timeout_s``.

    ``maybe_written`` is true when the operation stays queued and may still be committed.
    """

    exit_code = 75

    def __init__(self, message: str, *, maybe_written: bool = False) -> None:
        super().__init__(message)
        self.maybe_written = maybe_written


class StoreOutcomeUnknown(StorageError):
    """COMMIT or sync failed: the operation may be there after the next start. Ask before repeating."""


class StoreStopped(StorageError):
    """The store stopped writing (failed sync, replaced file, newer schema, fork, close); open it again."""


class StoreFull(StorageError):
    """No space left; nothing of this operation was written, everything acknowledged is there."""


class StoreDamaged(StorageError):
    """The database file is damaged; it was not changed. Restore a backup or run `hermes doctor`."""

    exit_code = 65


class PlatformError(HermesError):
    """A chat platform answered with an error."""

    exit_code = 69


class RetryLater(PlatformError):
    """Temporary.

    :param after_s: seconds the platform asks to wait, ``None`` when it does not say. It holds for the address that was
        sent to; when two addresses of an account get one within a minute, the whole account pauses for the shorter.
    :param maybe_sent: the request left this host, so what it carried may have arrived.
    """

    def __init__(self, message: str, *, after_s: float | None = None, maybe_sent: bool = False) -> None:
        super().__init__(message)
        self.after_s = after_s
        self.maybe_sent = maybe_sent


class AuthFailed(PlatformError):
    """The platform refuses the credentials; retrying does not help."""

    exit_code = 77


class Rejected(PlatformError):
    """The platform will not take this, however often it is sent."""
