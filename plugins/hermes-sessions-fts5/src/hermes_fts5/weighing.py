"""What rows are worth in one search: bm25 or what stands in for it, age and role, and how near the words stand."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from hermes_fts5.documents import impact
from hermes_fts5.nearness import nearness
from hermes_fts5.ranking import part_score, whole_score
from hermes_fts5.rows import USUAL_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_fts5.config import Fts5Config
    from hermes_fts5.rows import LiveRow
    from hermes_hookspecs.text.query import Leaf

__all__ = ["Weights", "worth"]


class Weights:
    """Weighs the rows of one search.

    :param looked_for: words and phrases of the query, in its order. now: UTC milliseconds, for the age of rows.

    Attributes:
        rarity: of what is looked for, as far as it is known; makes rows inside and outside the index comparable.
    """

    def __init__(self, config: Fts5Config, looked_for: Sequence[Leaf], now: int) -> None:
        self._config = config
        self._looked_for = looked_for
        self._now = now
        self._near_left = config.near_hits if len(looked_for) > 1 else 0
        self.rarity = 1.0

    def note_rarity(self, count: int, every: int) -> None:
        """Take in that of so many rows so many hold what is looked for."""
        self.rarity = max(1e-6, log((every - count + 0.5) / (count + 0.5)) if every > 2 * count else 1e-6)

    def factor(self, role: str, timestamp: int) -> float:
        """What a row's role and age make of its score."""
        return self._config.factor(role, self._now - timestamp)

    def near(self, folded: str) -> float:
        """What the nearness of the words makes of a text's score; at least 1."""
        if len(self._looked_for) < 2 or not self._config.nearness_weight:
            return 1.0
        self._near_left -= 1
        return 1.0 + self._config.nearness_weight * nearness(self._looked_for, folded)

    @property
    def most_by_nearness(self) -> float:
        """The most that :meth:`near` can still make of a score; once enough texts were compared it is 1.

        So nearness orders the best rows, and does not make a search read all that hold the words somewhere.
        """
        return 1.0 + self._config.nearness_weight if self._near_left > 0 else 1.0

    def of_text(self, row: LiveRow) -> float:
        """What a row that was read is worth."""
        found = sum(
            impact(sum(1 for _ in leaf.needle.spans(row.folded)), len(row.folded), USUAL_CHARACTERS)
            for leaf in self._looked_for
        )
        return self.of_impact(found, row.role, row.timestamp) * self.near(row.folded)

    def of_impact(self, weight: float, role: str, timestamp: int) -> float:
        """What an impact makes of a score here."""
        return weight * self.rarity * self.factor(role, timestamp)


def worth(score: float, *, parts: bool) -> float:
    """Return what a score is worth beside others, by whether the words are only parts of others there."""
    return part_score(score) if parts else whole_score(score)
