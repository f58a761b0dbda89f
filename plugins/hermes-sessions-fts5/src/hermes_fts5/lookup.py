"""From a query to what is asked of the tables.

Two readings: in the first every word stands for itself, and so do most words that people type; in the second it stands
for every word of the vocabulary that it is a part of. What either finds holds every row that the query matches in that
reading, and perhaps others: what cannot be said in the language of the tables is left out of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_fts5.documents import MANY_SIGNS, sign_mark, strong_mark
from hermes_hookspecs.text.needles import EXACT, PREFIX, query_tokens
from hermes_hookspecs.text.query import And, Not, Or, leaves
from hermes_hookspecs.text.signs import needed_signs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_fts5.vocabulary import Vocabulary
    from hermes_hookspecs.text.needles import QueryToken
    from hermes_hookspecs.text.query import Leaf, Node

__all__ = ["MARKS", "NOTHING", "TEXTS", "Lookup", "has_parts", "leaf_expression", "parts_of_words", "whole_words"]

TEXTS, MARKS = "messages_fts", "fts5_marks"
NOTHING = ""
"""An expression that no row answers to."""
ANYTHING = None
"""Rows that cannot be looked up."""
SIGNS_OF_LEAF = 16
"""So many signs of a word or phrase are looked up; the rest is left to verifying."""


@attrs.frozen
class Lookup:
    """What one table is asked.

    Attributes:
        table: :data:`TEXTS` or :data:`MARKS`. expression: of FTS5, :data:`NOTHING` where nothing can be there.
        strong: asks :data:`MARKS` for the rows that are full of it, :data:`NOTHING` where that cannot be asked.
        signs: asks :data:`MARKS` for the rows with all of its punctuation, ``None`` where any row may have that.
    """

    table: str
    expression: str
    strong: str = NOTHING
    signs: str | None = None


def whole_words(query: Node, vocabulary: Vocabulary) -> Lookup | None:
    """Return the first reading of a query without exclusions, ``None`` where it takes a scan."""
    if all(_is_character(leaf) or not query_tokens(leaf.needle) for leaf in leaves(query)):
        marked = _joined(query, lambda leaf: _character(leaf) if _is_character(leaf) else _signs(leaf))
        return None if marked is ANYTHING else Lookup(MARKS, marked, _strong(query))
    signs = _joined(query, _signs)
    expression = _joined(query, lambda leaf: _leaf(leaf, vocabulary, parts=False), vocabulary)
    if expression is ANYTHING:
        return None if signs is ANYTHING else Lookup(MARKS, signs)
    return Lookup(TEXTS, expression, _strong(query), signs)


def has_parts(query: Node) -> bool:
    """Return whether the second reading of a query is another one than the first."""
    tokens = [token for leaf in leaves(query) for token in query_tokens(leaf.needle)]
    return not all(token.match == EXACT or token.gram for token in tokens)


def parts_of_words(query: Node, vocabulary: Vocabulary) -> Lookup | None:
    """Return the second reading of a query without exclusions, ``None`` where it takes a scan.

    That is so for a part of very many words. Rows that hold one are never far apart.
    """
    expression = _joined(query, lambda leaf: _leaf(leaf, vocabulary, parts=True), vocabulary)
    return None if expression is ANYTHING else Lookup(TEXTS, expression)


def _joined(query: Node, of: Callable[[Leaf], str | None], vocabulary: Vocabulary | None = None) -> str | None:
    if isinstance(query, And):
        return _all([_joined(part, of, vocabulary) for part in _telling(query.parts, vocabulary)])
    if isinstance(query, Or):
        return _any([_joined(part, of, vocabulary) for part in query.parts])
    return ANYTHING if isinstance(query, Not) else of(query)


def _telling(parts: Sequence[Node], vocabulary: Vocabulary | None) -> Sequence[Node]:
    """The parts of a conjunction without frequent single characters, if others are left: verifying is cheaper."""
    if vocabulary is None:
        return parts
    left = [
        part
        for part in parts
        if isinstance(part, And | Or | Not) or not _is_character(part) or vocabulary.is_rare(part.needle.text)
    ]
    return left or parts


def _all(expressions: Iterable[str | None]) -> str | None:
    known = [expression for expression in expressions if expression is not ANYTHING]
    if not known:
        return ANYTHING
    return NOTHING if NOTHING in known else f"({' AND '.join(known)})" if len(known) > 1 else known[0]


def _any(expressions: Sequence[str | None]) -> str | None:
    known = [expression for expression in expressions if expression is not ANYTHING]
    if len(known) < len(expressions):
        return ANYTHING
    possible = [expression for expression in known if expression != NOTHING]
    if not possible:
        return NOTHING
    return f"({' OR '.join(possible)})" if len(possible) > 1 else possible[0]


def _is_character(leaf: Leaf | Node) -> bool:
    """Return whether a leaf is one character of a script without spaces."""
    if isinstance(leaf, And | Or | Not):
        return False
    tokens = query_tokens(leaf.needle)
    return len(tokens) == 1 and _is_open_character(tokens[0]) and leaf.needle.text == tokens[0].text


def _is_open_character(token: QueryToken) -> bool:
    return token.gram and token.match == PREFIX


def _character(leaf: Leaf) -> str:
    return _quoted(leaf.needle.text)


def _signs(leaf: Leaf) -> str | None:
    wanted = needed_signs(leaf.needle.text)[:SIGNS_OF_LEAF]
    return _all([_any([_quoted(sign_mark(sign)), _quoted(MANY_SIGNS)]) for sign in wanted])


def leaf_expression(leaf: Leaf, vocabulary: Vocabulary, *, most: int) -> str | None:
    """Return the second reading of one word or phrase, by its first ``most`` tokens; ``None`` where it takes a scan."""
    return _leaf(leaf, vocabulary, parts=True, most=most)


def _leaf(leaf: Leaf, vocabulary: Vocabulary, *, parts: bool, most: int | None = None) -> str | None:
    tokens = list(query_tokens(leaf.needle))[:most]
    if not tokens:
        return ANYTHING
    if len(tokens) > 1 and _is_open_character(tokens[-1]):
        del tokens[-1]  # what stands before it tells more
    wanted: list[str | None] = []
    phrase: list[str] = []
    for token in tokens:
        if _is_open_character(token):
            wanted.append(f"{_quoted(token.text)} *")
        elif token.match == EXACT or not parts:
            phrase.append(token.text)
        else:
            wanted += [_quoted(" ".join(phrase))] if phrase else []
            phrase = []
            wanted.append(_alternatives(token, vocabulary))
    wanted += [_quoted(" ".join(phrase))] if phrase else []
    return _all([f"text : {each}" if each else each for each in wanted])


def _alternatives(token: QueryToken, vocabulary: Vocabulary) -> str | None:
    if token.match == PREFIX:
        return f"{_quoted(token.text)} *"
    terms = vocabulary.holding(token)
    if terms is None:
        return ANYTHING
    return f"({' OR '.join(map(_quoted, terms))})" if terms else NOTHING


def _strong(query: Node) -> str:
    """What asks for rows that are full of what is looked for."""

    def of(leaf: Leaf) -> str | None:
        marks = [
            _quoted(strong_mark(token.text)) + (" *" if _is_open_character(token) else "")
            for token in query_tokens(leaf.needle)[:4]
        ]
        return _all(marks)

    return _joined(query, of) or NOTHING


def _quoted(tokens: str) -> str:
    # No token holds a quote.
    return f'"{tokens}"'
