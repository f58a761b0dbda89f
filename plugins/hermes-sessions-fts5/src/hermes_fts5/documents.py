"""What the index stores of one message."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.text.segments import index_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AVERAGE_TOKENS",
    "LONG_MARK",
    "MANY_SIGNS",
    "OVERLAP",
    "PARTS_FROM",
    "TOKENS_OF_PART",
    "Document",
    "document",
    "impact",
    "message_of",
    "part_id",
    "place_of",
    "role_mark",
    "sign_mark",
    "strong_mark",
]

K1, B = 1.2, 0.75
"""Parameters of bm25, those of FTS5."""
AVERAGE_TOKENS = 40.0
"""Length that counts as usual where the index's own average is not at hand."""
STRONG = 1.45
"""Impact from which a row counts as full of a token: thrice in a usual one, or once in one of nine tokens."""
TALK = frozenset((USER, ASSISTANT))
TOKENS_OF_PART = 2000
"""A row with more tokens than this is stored in parts, each in a step of its own."""
OVERLAP = 32
"""So many tokens in a row are always together in one part."""
PARTS_FROM = 1 << 40
"""Row ids of the index from here on are further parts of long rows; no message has such an id."""
LONG_MARK = "p"
"""The token in ``place`` that stands for a long row."""
MOST_SIGNS = 1500
"""A row with more distinct signs and pairs of them than this, which is no text, has the mark of many instead."""
MANY_SIGNS = "p"
FIRST_GRAM = "\u0e00"
"""Characters before this one are looked up as words only."""


@attrs.frozen
class Document:
    """One row of the index. ``text``, ``place`` and ``marks`` are joined by spaces; ``terms`` are distinct.

    ``rest``: further parts of a long row, rows of their own.
    """

    id: int
    text: str
    place: str
    marks: str
    terms: frozenset[str]
    rest: tuple[Document, ...] = ()


def part_id(message_id: int, number: int) -> int:
    """Return the row id in the index of a part of a message; part 0 is its beginning."""
    return number * PARTS_FROM + message_id


def message_of(row_id: int) -> int:
    """Return the id of the message that a row of the index is of."""
    return row_id % PARTS_FROM


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


@lru_cache(10_000)
def sign_mark(sign: str) -> str:
    """Return the mark of rows that hold a sign, or two signs beside each other."""
    return f"p{'x'.join(f'{ord(character):x}' for character in sign)}"


def role_mark(role: str) -> str:
    """Return the token that stands for a role in ``place``; what people and agents say has none, it is the most."""
    return "" if role in TALK else f"r{role}"


def document(message_id: int, lineage_no: int, role: str, content: str) -> Document | None:
    """Return what is stored of a message, ``None`` where its text is empty."""
    found = index_tokens(content)
    tokens: Sequence[str] = found.tokens
    if not tokens and not found.signs:
        return None
    characters = () if content.isascii() else {token[0] for token in tokens if token[0] >= FIRST_GRAM}
    least = _strong_from(len(tokens))
    strong = [strong_mark(token) for token, count in Counter(tokens).items() if count >= least]
    signs = sorted(map(sign_mark, found.signs)) if len(found.signs) <= MOST_SIGNS else (MANY_SIGNS,)
    marks = " ".join((*sorted(characters), *strong, *signs))
    place = f"{place_of(lineage_no)} {role_mark(role)}".rstrip()
    if len(tokens) <= TOKENS_OF_PART:
        return Document(message_id, " ".join(tokens), place, marks, found.terms)
    parts = [
        _part(part_id(message_id, number), tokens[at : at + TOKENS_OF_PART], place, found.terms)
        for number, at in enumerate(range(0, len(tokens) - OVERLAP, TOKENS_OF_PART - OVERLAP))
    ]
    head = parts[0]
    return Document(message_id, head.text, head.place, marks, head.terms, tuple(parts[1:]))


def _part(row_id: int, tokens: Sequence[str], place: str, terms: frozenset[str]) -> Document:
    return Document(row_id, " ".join(tokens), f"{place} {LONG_MARK}", "", terms.intersection(tokens))


def _strong_from(length: int) -> float:
    """How often a token must stand in a row of ``length`` tokens for an :func:`impact` of :data:`STRONG`."""
    return STRONG * K1 * (1 - B + B * length / AVERAGE_TOKENS) / (K1 + 1 - STRONG)
