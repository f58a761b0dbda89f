"""A query as it was understood, and which texts it matches: the truth that every backend answers alike.

:func:`~hermes_hookspecs.text.parsing.parse` makes these values. :func:`matches` reads the whole text; an index narrows
down with :func:`required` and verifies what it finds with :func:`holds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import attrs

from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.needles import Needle

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["And", "Leaf", "Node", "Not", "Or", "Phrase", "Prefix", "Word", "holds", "leaves", "matches", "required"]


@attrs.frozen
class Word:
    """A word as it was typed, punctuation included; found inside longer words too when it is long enough."""

    text: str
    needle: Needle = attrs.field(init=False, repr=False, eq=False)

    @needle.default
    def _make_needle(self) -> Needle:
        return Needle.of(self.text)


@attrs.frozen
class Phrase:
    """What stood between quotes; begins and ends with whole words."""

    text: str
    needle: Needle = attrs.field(init=False, repr=False, eq=False)

    @needle.default
    def _make_needle(self) -> Needle:
        return Needle.phrase(self.text)


@attrs.frozen
class Prefix:
    """A word or phrase with a star behind it: its last word may go on."""

    text: str
    needle: Needle = attrs.field(init=False, repr=False, eq=False)

    @needle.default
    def _make_needle(self) -> Needle:
        return Needle.prefix(self.text)


@attrs.frozen
class And:
    """All of at least two."""

    parts: tuple[Node, ...]


@attrs.frozen
class Or:
    """Any of at least two."""

    parts: tuple[Node, ...]


@attrs.frozen
class Not:
    """What must not be there.

    Attributes:
        unless: folded; a text that holds it behind a space or at its beginning is not excluded. ``-la`` excludes
            ``la`` and still finds the command line ``ls -la``. ``""`` for no such exception.
    """

    part: Node
    unless: str = ""


Leaf: TypeAlias = Word | Phrase | Prefix
Node: TypeAlias = Word | Phrase | Prefix | And | Or | Not


def matches(query: Node, text: str) -> bool:
    """Return whether a text, as it is stored, is one that the query asks for."""
    return holds(query, fold(text))


def holds(query: Node, folded: str) -> bool:
    """Return what :func:`matches` returns, for a text that is folded already."""
    if isinstance(query, And):
        return all(holds(part, folded) for part in query.parts)
    if isinstance(query, Or):
        return any(holds(part, folded) for part in query.parts)
    if isinstance(query, Not):
        return not holds(query.part, folded) or bool(query.unless and f" {query.unless}" in f" {folded}")
    return query.needle.occurs(folded)


def leaves(query: Node) -> Iterator[Leaf]:
    """Yield what is looked for, in the order of the query, without what is excluded."""
    if isinstance(query, And | Or):
        for part in query.parts:
            yield from leaves(part)
    elif not isinstance(query, Not):
        yield query


def required(query: Node) -> Node | None:
    """Return a query without exclusions that holds wherever ``query`` holds: what an index can look up.

    :returns: made of words, phrases, prefixes, :class:`And` and :class:`Or` only; ``None`` where anything could
        match, which is never so for a query that was parsed.
    """
    if isinstance(query, Not):
        return None
    if isinstance(query, And):
        wanted = tuple(part for part in map(required, query.parts) if part is not None)
        return And(wanted) if len(wanted) > 1 else next(iter(wanted), None)
    if isinstance(query, Or):
        branches = tuple(map(required, query.parts))
        whole = tuple(branch for branch in branches if branch is not None)
        return Or(whole) if len(whole) == len(branches) else None
    return query
