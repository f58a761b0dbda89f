"""Words and grams: what of a text goes into an index.

Scripts with spaces give words, cut where the script changes, so that Latin glued to CJK is found. Scripts without give
overlapping pairs and the last character of each run: every part of two characters or more is a sequence of pairs, and
every single character begins a pair or is a last one. Pairs with one last character beat single characters (a phrase
of frequent characters costs ten times more), triples (which find nothing shorter than three) and dictionaries (which
miss what they do not know).

A very long word is stored as overlapping pieces, so that no entry of an index is longer than 128 characters.
"""

from __future__ import annotations

import re
from operator import add
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.text.folding import GRAM, WORD, fold
from hermes_hookspecs.text.signs import index_signs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "LONGEST_PART",
    "LONGEST_TERM",
    "SHORTEST_PART",
    "IndexTokens",
    "Segment",
    "index_tokens",
    "pieces",
    "segments",
    "term_trigrams",
]

SHORTEST_PART = 3
"""A part of a word is found from this many characters on; a shorter one only as a whole word."""
LONGEST_TERM = 128
"""Characters of the longest word that is one token."""
LONGEST_PART = LONGEST_TERM // 2
"""Characters of a part that is certainly inside one piece of a longer word."""

_RUNS = re.compile(f"([{GRAM}]+)|({WORD}+)")
_ASCII_RUNS = re.compile("[a-z0-9]+")


@attrs.frozen
class Segment:
    """A run of one kind in folded text, from ``start`` to before ``end``. ``gram``: of a script without spaces."""

    start: int
    end: int
    gram: bool


@attrs.frozen
class IndexTokens:
    """What an index stores of one text.

    Attributes:
        tokens: words and grams in the order of the text; their places in it are the positions that phrases need.
            No token holds a space or ASCII punctuation: joined by spaces they can be cut at the spaces again.
        terms: the distinct words (never grams) of at least three characters: the vocabulary for parts of words.
        signs: the distinct signs between them and pairs of neighbours (:mod:`hermes_hookspecs.text.signs`).
    """

    tokens: Sequence[str]
    terms: frozenset[str]
    signs: frozenset[str] = frozenset()


def segments(folded: str) -> Iterator[Segment]:
    """Yield the words and the runs of CJK of a folded text in order; what is between them is punctuation."""
    for found in _RUNS.finditer(folded):
        yield Segment(found.start(), found.end(), found.lastindex == 1)


def index_tokens(text: str) -> IndexTokens:
    """Return the tokens of a text as it is stored (it is folded here)."""
    folded = fold(text)
    tokens: list[str] = []
    terms: set[str] = set()
    if folded.isascii():
        tokens = _ASCII_RUNS.findall(folded)
        if any(len(word) > LONGEST_TERM for word in tokens):
            tokens = [piece for word in tokens for piece in pieces(word)]
        terms.update(tokens)
    else:
        for gram, word in _RUNS.findall(folded):
            if word:
                parts = (word,) if len(word) <= LONGEST_TERM else pieces(word)
                tokens += parts
                terms.update(parts)
            else:
                tokens += map(add, gram, gram[1:])
                tokens.append(gram[-1])
    long_enough = frozenset(term for term in terms if len(term) >= SHORTEST_PART)
    return IndexTokens(tokens, long_enough, index_signs(folded))


def pieces(word: str) -> Sequence[str]:
    """Return a word as it is stored: itself, or pieces of 128 characters, each beginning 64 behind the last.

    So every part of up to 64 characters is inside one piece.
    """
    if len(word) <= LONGEST_TERM:
        return (word,)
    return [word[at : at + LONGEST_TERM] for at in range(0, len(word) - LONGEST_PART, LONGEST_PART)]


def term_trigrams(term: str) -> Sequence[str]:
    """Return the distinct three-character parts of a folded word in order; nothing for a shorter word.

    A part of a word (at least three characters) is inside a term only if all of its trigrams are among the term's.
    """
    return tuple(dict.fromkeys(term[at : at + 3] for at in range(len(term) - 2)))
