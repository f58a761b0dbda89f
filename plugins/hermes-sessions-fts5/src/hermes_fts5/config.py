"""What can be set in ``[plugins.fts5]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Fts5Config"]


@attrs.frozen(kw_only=True)
class Fts5Config:
    """How hits are weighed, and how much work a search may do.

    The score of a row is its bm25, times ``1 + recency_weight / (1 + age / recency_days)``, times ``user_weight`` where
    a person wrote it, times ``tool_weight`` for the output of a tool, times ``1 + nearness_weight * nearness``, where
    nearness is 1 if the words of the query touch each other and less with each character between them.

    With a weight of recency of 0.05 the newer of equal rows comes first, and no row comes before one that is more than
    a twentieth better. The defaults were chosen on the judged set in ``benchmarks/judged``, where more weight on age or
    person only did harm, and tried on topics that nothing was chosen by.

    A title that matches adds its own bm25, times ``title_weight``, to the score of its conversation's best row.

    Attributes:
        recency_weight: 0 to 4. recency_days: age in days at which half of it is left.
        user_weight, tool_weight: 0.1 to 10. title_weight: 0 to 10; with 0 a title is found and lifts nothing.
        nearness_weight: 0 to 4. near_hits: so many rows, the best without it, are compared for nearness.
        exact_hits: up to so many hits every one is scored; above, the newest and the strongest are.
        newest_hits, strong_hits: how many of each.
        tail_limit: with more changes than this waiting to be indexed, a search first indexes some.
    """

    recency_weight: float = 0.05
    recency_days: float = 30.0
    user_weight: float = 1.0
    tool_weight: float = 0.8
    title_weight: float = 1.0
    nearness_weight: float = 0.5
    near_hits: int = 200
    exact_hits: int = 5000
    newest_hits: int = 300
    strong_hits: int = 200
    tail_limit: int = 2000

    @classmethod
    def of(cls, table: Mapping[str, object]) -> Fts5Config:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, or a number out of range; it names the key.
        """
        known = {field.name: field for field in attrs.fields(cls)}
        values: dict[str, float] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"{key} is unknown; there are {', '.join(known)}", key=key)
            low, high = _BOUNDS[key]
            whole = isinstance(known[key].default, int)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
                raise ConfigError(f"{key} = {value!r} is no {'whole number' if whole else 'number'}", key=key)
            if not low <= value <= high:
                raise ConfigError(f"{key} = {value!r} is out of range: {low:g} to {high:g}", key=key)
            values[key] = value if whole else float(value)
        # every value was compared with the type of its field's default
        return cls(**values)  # type: ignore[arg-type]

    @property
    def greatest_factor(self) -> float:
        """The most that age and role can make of a score."""
        return (1 + self.recency_weight) * self.greatest_role

    @property
    def greatest_role(self) -> float:
        """The most that the role can make of a score."""
        return max(self.user_weight, self.tool_weight, 1.0)

    def factor(self, role: str, age_ms: int) -> float:
        """What a row's score is multiplied with; positive."""
        days = max(0, age_ms) / 86_400_000
        weight = {"user": self.user_weight, "tool": self.tool_weight}.get(role, 1.0)
        return (1 + self.recency_weight / (1 + days / self.recency_days)) * weight


_BOUNDS: dict[str, tuple[float, float]] = {
    "recency_weight": (0, 4),
    "recency_days": (0.01, 100_000),
    "user_weight": (0.1, 10),
    "tool_weight": (0.1, 10),
    "title_weight": (0, 10),
    "nearness_weight": (0, 4),
    "near_hits": (0, 100_000),
    "exact_hits": (0, 1_000_000),
    "newest_hits": (10, 100_000),
    "strong_hits": (0, 100_000),
    "tail_limit": (0, 1_000_000),
}
