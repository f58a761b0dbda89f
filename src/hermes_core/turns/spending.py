"""What one turn has used: by its agent, and beside it; and how much of that is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.operations import Append, Finish

__all__ = ["Spending"]


class Spending:
    """The reports of one turn, in order. What other models report may come on any thread.

    :param side: of models other than the agent's, before the turn began.
    """

    def __init__(self, side: Sequence[Usage]) -> None:
        self._own: list[Usage] = []
        self._side = list(side)
        self._own_stored = self._side_stored = 0

    def add(self, usage: Usage) -> None:
        """Take what the agent reports of its model."""
        self._own.append(usage)

    def add_beside(self, usage: Usage) -> None:
        """Take what another model used on behalf of the turn."""
        self._side.append(usage)

    @property
    def own(self) -> tuple[Usage, ...]:
        """Return what the agent reported and nobody has stored."""
        return tuple(self._own[self._own_stored :])

    @property
    def beside(self) -> tuple[Usage, ...]:
        """Return what others reported and nobody has stored."""
        return tuple(self._side[self._side_stored :])

    def stored(self, operation: Append | Finish) -> None:
        """Take note that an operation has stored what it brought along."""
        self._own_stored += len(operation.usage)
        self._side_stored += len(operation.side_usage)

    def total(self) -> Usage | None:
        """Return the sum: tokens as far as they were reported, a cost only where all had one; ``None`` for nothing."""
        usages = [*self._side, *self._own]
        if not usages:
            return None

        def sum_of(name: str) -> int | None:
            known = [value for value in (getattr(one, name) for one in usages) if value is not None]
            return sum(known) if known else None

        costs = [one.estimated_cost_usd for one in usages]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            model=usages[-1].model,
            input_tokens=sum_of("input_tokens"),
            output_tokens=sum_of("output_tokens"),
            cache_read_tokens=sum_of("cache_read_tokens"),
            cache_write_tokens=sum_of("cache_write_tokens"),
            estimated_cost_usd=sum(known) if len(known) == len(costs) else None,
        )
