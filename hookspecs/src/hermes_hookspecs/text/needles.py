"""What a query looks for in a text, and where it occurs: the truth that an index is measured by.

A needle is found as it is written, punctuation included, in folded text. Where it begins or ends with a word of a
script with spaces, that word must stand there as a whole if it is shorter than three characters, or if the needle says
so; a longer one may be part of a word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.text.folding import GRAM, WORD, fold
from hermes_hookspecs.text.segments import LONGEST_PART, SHORTEST_PART, pieces, segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.text.segments import Segment

__all__ = ["EXACT", "INSIDE", "PREFIX", "SUFFIX", "Needle", "QueryToken", "is_word_or_gram", "occurs", "query_tokens"]

EXACT, PREFIX, SUFFIX, INSIDE = "exact", "prefix", "suffix", "inside"

_WORD_CHARACTER = re.compile(WORD)
_CHARACTER = re.compile(f"[{GRAM}]|{WORD}")


@attrs.frozen
class QueryToken:
    """What a token of the index must be like.

    Attributes:
        text: folded. match: ``exact``; ``prefix``: begins with it; ``suffix``: ends with it; ``inside``: holds it.
        gram: of a script without spaces (then ``exact`` or ``prefix``).
    """

    text: str
    match: str
    gram: bool

    def accepts(self, token: str) -> bool:
        """Return whether a token of the index is one that is looked for."""
        if self.match == EXACT:
            return token == self.text
        if self.match == PREFIX:
            return token.startswith(self.text)
        return token.endswith(self.text) if self.match == SUFFIX else self.text in token


@attrs.frozen
class Needle:
    """A piece of text to be found.

    Attributes:
        text: folded. at_start, at_end: whether the first and last word must stand there as a whole.
    """

    text: str
    at_start: bool
    at_end: bool

    @classmethod
    def of(cls, word: str) -> Needle:
        """Return the needle of a word as it was typed: part of a word where it is long enough."""
        folded, first, last = _edges(word)
        return cls(
            folded,
            first is not None and first.end - first.start < SHORTEST_PART,
            last is not None and last.end - last.start < SHORTEST_PART,
        )

    @classmethod
    def phrase(cls, text: str) -> Needle:
        """Return the needle of a text that begins and ends with whole words."""
        folded, first, last = _edges(text)
        return cls(folded, first is not None, last is not None)

    @classmethod
    def prefix(cls, text: str) -> Needle:
        """Return the needle of a text that begins with a whole word and may end within one."""
        folded, first, _last = _edges(text)
        return cls(folded, first is not None, at_end=False)

    def spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Yield where the needle stands in a folded text, first to last, without overlaps: start, end."""
        if not self.text:
            return
        start = 0
        while (at := folded.find(self.text, start)) >= 0:
            end = at + len(self.text)
            if (self.at_start and at > 0 and _is_word(folded[at - 1])) or (
                self.at_end and end < len(folded) and _is_word(folded[end])
            ):
                start = at + 1
                continue
            yield at, end
            start = end

    def occurs(self, folded: str) -> bool:
        """Return whether the needle stands in a folded text."""
        return next(self.spans(folded), None) is not None

    def is_whole(self, folded: str, span: tuple[int, int]) -> bool:
        """Return whether a place where the needle stands is no part of a longer word at either end."""
        start, end = span
        before = start > 0 and _is_word(folded[start - 1]) and _is_word(folded[start])
        return not before and not (end < len(folded) and _is_word(folded[end]) and _is_word(folded[end - 1]))


def _edges(text: str) -> tuple[str, Segment | None, Segment | None]:
    """Return a text folded, and the words of scripts with spaces that it begins and ends with."""
    folded = fold(text)
    runs = tuple(segments(folded))
    first = runs[0] if runs and runs[0].start == 0 and not runs[0].gram else None
    last = runs[-1] if runs and runs[-1].end == len(folded) and not runs[-1].gram else None
    return folded, first, last


def _is_word(character: str) -> bool:
    return _WORD_CHARACTER.match(character) is not None


def is_word_or_gram(character: str) -> bool:
    """Return whether a character belongs to a word or to a script without spaces, and is no punctuation."""
    return _CHARACTER.match(character) is not None


def occurs(needle: str, text: str) -> bool:
    """Return whether a typed word is found in a text, both as they are written; reads the whole text."""
    return Needle.of(needle).occurs(fold(text))


def query_tokens(needle: Needle) -> Sequence[QueryToken]:
    """Return tokens that stand in every text that holds the needle, one behind the other without a gap.

    So an index may ask for the phrase, or for all tokens in any order, and must verify what it finds. A needle of
    punctuation only has no tokens: it takes a scan. Of parts longer than 64 characters the nearest 64 are looked for.
    """
    runs = tuple(segments(needle.text))
    tokens: list[QueryToken] = []
    for at, run in enumerate(runs):
        text = needle.text[run.start : run.end]
        first, last = at == 0 and run.start == 0, at == len(runs) - 1 and run.end == len(needle.text)
        if run.gram:
            tokens += _grams(text, is_open=last)
        else:
            tokens += _words(text, free_start=first and not needle.at_start, free_end=last and not needle.at_end)
    return tokens


def _grams(run: str, *, is_open: bool) -> Iterator[QueryToken]:
    """Yield the pairs of a run; its last character too where the text's run certainly ends with the needle's."""
    for at in range(len(run) - 1):
        yield QueryToken(run[at : at + 2], EXACT, gram=True)
    if not is_open:
        yield QueryToken(run[-1], EXACT, gram=True)
    elif len(run) == 1:
        yield QueryToken(run, PREFIX, gram=True)


def _words(run: str, *, free_start: bool, free_end: bool) -> Sequence[QueryToken]:
    if not free_start and not free_end:
        return [QueryToken(piece, EXACT, gram=False) for piece in pieces(run)]
    if free_start and free_end:
        return (QueryToken(run[:LONGEST_PART], INSIDE, gram=False),)
    if free_start:
        return (QueryToken(run[-LONGEST_PART:], SUFFIX, gram=False),)
    return (QueryToken(run[:LONGEST_PART], PREFIX, gram=False),)
