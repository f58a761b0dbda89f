"""How near to each other the words of a query stand in a text: said in one breath, they mean more."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.text.query import Leaf

__all__ = ["nearness"]

REACH = 6
"""So many characters between two words halve what they are worth together: another word, or a few of Chinese."""
PLACES = 100
"""So many places of each word are compared: where it stands more often, others are near anyway."""

Spans = list[tuple[int, int]]


def nearness(looked_for: Sequence[Leaf], folded: str) -> float:
    """Return how near neighbours of the query are in the text, the mean of all pairs of neighbours, in either order.

    :param folded: the text, see :func:`~hermes_hookspecs.text.folding.fold`.
    :returns: 1 where each touches the next one, 0 where no two neighbours are there, or the query has one part only.
    """
    if len(looked_for) < 2:
        return 0.0
    places = [list(islice(leaf.needle.spans(folded), PLACES)) for leaf in looked_for]
    pairs = list(pairwise(places))
    return sum(1 / (1 + _gap(one, other) / REACH) for one, other in pairs if one and other) / len(pairs)


def _gap(one: Spans, other: Spans) -> int:
    """Return the least number of characters between a span of one and a span of the other; both go up."""
    least = max(one[-1][1], other[-1][1])
    at, beside = 0, 0
    while least > 0 and at < len(one) and beside < len(other):
        (begin, end), (start, stop) = one[at], other[beside]
        least = min(least, max(start - end, begin - stop, 0))
        if end <= stop:
            at += 1
        else:
            beside += 1
    return least
