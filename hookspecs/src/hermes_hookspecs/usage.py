"""What was used, summed up."""

from __future__ import annotations

import attrs

from hermes_hookspecs.turns import Usage

__all__ = ["GROUPINGS", "UsageGroup", "UsageSum"]

GROUPINGS = ("session", "lineage", "owner", "model", "platform", "day")
"""By what usage can be summed: the session or lineage it was used in, to whom that belongs (the stored form of an
:class:`~hermes_hookspecs.principal.Owner`), the model, the platform of the turn, the day in UTC (``2026-01-31``)."""


@attrs.frozen(kw_only=True)
class UsageSum:
    """A sum over reports of usage.

    Attributes:
        calls: reports; 0 for a sum of nothing, whose numbers are unknown. turns: those that reported.
        usage: tokens as far as they were reported, ``None`` where no report had them; its cost is ``None`` as soon as
            one report had none, and its model where there were several.
        unpriced: reports without a cost. known_cost_usd: of all others: a lower bound of the whole.
    """

    calls: int = 0
    turns: int = 0
    usage: Usage = attrs.field(factory=Usage)
    unpriced: int = 0
    known_cost_usd: float = 0.0


@attrs.frozen(kw_only=True)
class UsageGroup:
    """One line of a table of sums; ``name`` is what its grouping says, ``""`` where that is unknown."""

    name: str
    sum: UsageSum
