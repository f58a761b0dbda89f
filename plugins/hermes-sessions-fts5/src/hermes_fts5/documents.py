"""What the index stores of one message."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.text.segments import index_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AVERAGE_TOKENS", "Document", "document", "impact", "place_of", "role_mark", "strong_mark"]

K1, B = 1.2, 0.75
"""Parameters of bm25, those of FTS5."""
AVERAGE_TOKENS = 40.0
"""Length that counts as usual where the index's own average is not at hand."""
STRONG = 1.45
"""Impact from which a row counts as full of a token: thrice in a usual one, or once in one of nine tokens."""
TALK = frozenset((USER, ASSISTANT))
FIRST_GRAM = "\u0e00"
"""Characters before this one are looked up as words only."""


@attrs.frozen
class Document:
    """One row of the index. ``text``, ``place`` and ``marks`` are joined by spaces; ``terms`` are distinct."""

    id: int
    text: str
    place: str
    marks: str
    terms: frozenset[str]


def impact(count: float, length: float, average: float = AVERAGE_TOKENS) -> float:
    """Return what bm25 makes of a token that stands ``count`` times in a row of ``length`` tokens, without its rarity.

    Between 0 and 2.2; counted in any unit, as long as ``average`` has the same.
    """
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / average)) if count else 0.0


def place_of(lineage_no: int) -> str:
    """Return the token that stands for a lineage."""
    return f"l{lineage_no}"


def strong_mark(token: str) -> str:
    """Return the mark of rows that are full of a token."""
    return f"s{token}"


def role_mark(role: str) -> str:
    """Return the token that stands for a role in ``place``; what people and agents say has none, it is the most."""
    return "" if role in TALK else f"r{role}"


def document(message_id: int, lineage_no: int, role: str, content: str) -> Document | None:
    """Return what is stored of a message, ``None`` where its text has no word: it is found by scanning only."""
    found = index_tokens(content)
    tokens: Sequence[str] = found.tokens
    if not tokens:
        return None
    text = " ".join(tokens)
    characters = () if text.isascii() else {token[0] for token in tokens if token[0] >= FIRST_GRAM}
    least = _strong_from(len(tokens))
    strong = [strong_mark(token) for token, count in Counter(tokens).items() if count >= least]
    place = f"{place_of(lineage_no)} {role_mark(role)}".rstrip()
    return Document(message_id, text, place, " ".join((*sorted(characters), *strong)), found.terms)


def _strong_from(length: int) -> float:
    """How often a token must stand in a row of ``length`` tokens for an :func:`impact` of :data:`STRONG`."""
    return STRONG * K1 * (1 - B + B * length / AVERAGE_TOKENS) / (K1 + 1 - STRONG)
