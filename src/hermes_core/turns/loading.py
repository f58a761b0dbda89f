"""What the agent of a turn is given: its context and what it may use; a shorter context where that is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_core.context.compression import Context
    from hermes_core.turns.approvals import TurnApprovals
    from hermes_core.turns.engine import Conduct, TurnEngine
    from hermes_core.turns.jobs import TurnJobs
    from hermes_core.turns.outgoing import TurnOutgoing
    from hermes_core.turns.steering import SteeringWheel
    from hermes_hookspecs.errors import ContextOverflow
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.agent import Patience, TurnContext
    from hermes_hookspecs.turns import Fence

__all__ = ["Loading", "Means"]


@attrs.frozen(kw_only=True)
class Means:
    """What an agent may use beside its context; fields as in :class:`~hermes_hookspecs.ports.agent.TurnContext`."""

    steering: SteeringWheel | None
    approvals: TurnApprovals | None
    patience: Patience
    jobs: TurnJobs
    outgoing: TurnOutgoing


class Loading:
    """Loads for one turn."""

    def __init__(self, engine: TurnEngine, begun: Begun, how: Conduct, fence: Fence, means: Means) -> None:
        self._engine = engine
        self._begun = begun
        self._how = how
        self._fence = fence
        self._means = means
        self.session = begun.session

    async def first(self) -> TurnContext:
        """Load. :raises LeaseLost: the lease was taken while the process stood still."""
        return self._turn(await self._engine.load(self._begun, self._how))

    async def shorter(self, error: ContextOverflow) -> TurnContext | None:
        """Compress, whatever the policies say; ``None`` where nothing can go."""
        context = await self._engine.compressor.after_overflow(
            self._fence, self.session, self._how.agent, error.limit_tokens
        )
        return None if context is None else self._turn(context)

    def _turn(self, context: Context) -> TurnContext:
        self.session = context.session
        return self._engine.turn_context(self._begun, self._how, self._means, context)
