"""Long rows: the index holds them in parts, so that no step is longer than others, and finds them part by part.

A row of more than a few thousand tokens stands in the index under its own id with its beginning, and under further ids
with what follows. Parts overlap: so many tokens in a row are always together in one. Where one part holds everything
that is looked for, the row is worth what its best part is. What is looked for may also be scattered over several parts:
for that each word and phrase is looked up by itself.
"""

# ruff: noqa: S608 - statements are put together from constants; values are always bound

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import LONG_MARK, OVERLAP, PARTS_FROM, message_of, part_id
from hermes_fts5.lookup import NOTHING, leaf_expression
from hermes_hookspecs.text.needles import query_tokens
from hermes_hookspecs.text.query import And, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_fts5.vocabulary import Vocabulary
    from hermes_hookspecs.ports.sqlite import SqliteReader
    from hermes_hookspecs.text.query import Node

__all__ = ["ANY_LONG", "best_of_parts", "long_rows", "needs_parts_apart", "parts_of"]

LONG = f'place : "{LONG_MARK}"'
ANY_LONG = f"SELECT 1 FROM messages_fts WHERE messages_fts MATCH '{LONG}' LIMIT 1"
FOUND = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?"
IS_THERE = "SELECT 1 FROM messages_fts_docsize WHERE id = ?"


def parts_of(reader: SqliteReader, message_id: int, *, beyond: int = 0) -> list[int]:
    """Return the ids under which the index holds parts of a message, behind the first ``beyond`` of them."""
    found: list[int] = []
    number = beyond + 1
    while reader.one(IS_THERE, (part_id(message_id, number),)) is not None:
        found.append(part_id(message_id, number))
        number += 1
    return found


def best_of_parts(
    ranked: Sequence[tuple[int, float]],
) -> tuple[Sequence[tuple[int, float]], Sequence[tuple[int, float]]]:
    """Return what was found under ids of messages, each with the rank of its best part, and messages found otherwise.

    :param ranked: ``(row id in the index, rank)``, ids going up; of two ranks the lower one is better.
    :returns: ``(message id, rank)``, ids going up; those of which only further parts were found, in any order.
    """
    heads = bisect_left(ranked, PARTS_FROM, key=itemgetter(0))
    if heads == len(ranked):
        return ranked, ()
    best: dict[int, float] = {}
    for row_id, rank in ranked[heads:]:
        message_id = message_of(row_id)
        best[message_id] = min(rank, best.get(message_id, rank))
    found = [(message_id, min(rank, best.pop(message_id, rank))) for message_id, rank in ranked[:heads]]
    return found, tuple(best.items())


def needs_parts_apart(needed: Node) -> bool:
    """Return whether a long row may hold what is needed, and none of its parts all of it: not one word or phrase."""
    return isinstance(needed, And | Or | Not) or len(query_tokens(needed.needle)) > OVERLAP


def long_rows(reader: SqliteReader, needed: Node, vocabulary: Vocabulary, within: Callable[[str], str]) -> set[int]:
    """Return the ids of the long messages that may hold what is needed; others do not.

    :param needed: a query without exclusions. within: narrows an expression to lineages and roles.
    """
    if reader.one(ANY_LONG) is None:
        return set()

    def ids(expression: str) -> set[int]:
        rows = reader.all(FOUND, (within(f"({expression}) AND {LONG}"),))
        return {message_of(cast("int", row[0])) for row in rows}

    def holding(node: Node) -> set[int] | None:
        """``None`` where that cannot be looked up: any row may."""
        if isinstance(node, Not):
            return None
        if isinstance(node, And | Or):
            found = [holding(part) for part in node.parts]
            known = [each for each in found if each is not None]
            if isinstance(node, And):
                return set.intersection(*known) if known else None
            return set.union(*known) if len(known) == len(found) else None
        expression = leaf_expression(node, vocabulary, most=OVERLAP)
        if expression == NOTHING:
            return set()
        return None if expression is None else ids(expression)

    found = holding(needed)
    if found is None:
        rows = reader.all(FOUND, (within(LONG),))
        return {message_of(cast("int", row[0])) for row in rows}
    return found
