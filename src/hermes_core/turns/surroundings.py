"""What all turns of one process work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.context.documents import DocumentWords
from hermes_core.context.opening import Opener
from hermes_core.turns.outgoing import OutgoingLimits
from hermes_core.turns.queue import LineageQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.hooks import Hooks
    from hermes_core.turns.jobs import JobRunner
    from hermes_core.turns.leftovers import Leftovers
    from hermes_core.turns.presence import Presence
    from hermes_core.turns.queue import LeaseTimes
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.services import AttachmentDescriber, AttachmentStore
    from hermes_hookspecs.ports.store import Store

__all__ = ["Surroundings"]


@attrs.frozen(kw_only=True, eq=False)
class Surroundings:
    """The collaborators of a turn, and the times that are in force.

    Attributes:
        leftovers: takes the end of a turn that the store could not write. presence: who serves which entrance.
        inactivity_s: seconds without a sign of life after which an agent is given up.
        cleanup_s: seconds for which an agent may clean up when its turn ends without it.
        recovery_attempts: retries of an interrupted turn. files: where the bytes of attachments are,
            ``None`` for nowhere. approval_timeout_s: seconds for which a request for approval is open.
            outgoing: what files an answer may bring along.
    """

    store: Store
    clock: Clock
    hooks: Hooks
    waker: LocalWaker
    leftovers: Leftovers
    presence: Presence
    times: LeaseTimes
    inactivity_s: float
    cleanup_s: float
    recovery_attempts: int
    files: Callable[[], AttachmentStore | None] = lambda: None
    approval_timeout_s: float = 900.0
    outgoing: OutgoingLimits = attrs.field(factory=OutgoingLimits)
    _runners: list[JobRunner] = attrs.field(factory=list, init=False)

    @property
    def jobs(self) -> JobRunner:
        """Return what runs the background jobs of this process."""
        if not self._runners:
            from hermes_core.turns.jobs import JobRunner

            self._runners.append(JobRunner(self))
        return self._runners[0]

    def close(self) -> None:
        """End what runs beside turns. Blocks for seconds at most."""
        for runner in self._runners:
            runner.close()

    @property
    def opener(self) -> Opener:
        """Return what prepares messages for their turn."""
        describers: tuple[AttachmentDescriber, ...] = (*self.hooks.attachment_describers(), DocumentWords())
        return Opener(self.files(), describers, self.hooks.context_providers())

    def queue(self, lineage_id: LineageId) -> LineageQueue:
        """Return a fresh look-out over the queue of a lineage."""
        return LineageQueue(
            lineage_id,
            clock=self.clock,
            times=self.times,
            presence=self.presence,
            recovery_attempts=self.recovery_attempts,
        )
