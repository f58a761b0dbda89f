"""What the tables are asked, in some lineages and of some roles only: as far as a table knows of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_fts5.documents import place_of, role_mark
from hermes_fts5.lookup import TEXTS
from hermes_hookspecs.messages import ROLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_fts5.lookup import Lookup

__all__ = ["of_roles", "within_places"]


def within_places(lookup: Lookup, places: Sequence[int] | None) -> str:
    """Return the expression of a look-up, in the lineages of these numbers; ``None`` for all of them."""
    if places is None or lookup.table != TEXTS:
        return lookup.expression
    return f"({lookup.expression}) AND place : ({_any_of(map(place_of, places))})"


def of_roles(table: str, expression: str, roles: Iterable[str]) -> str:
    """Return an expression, for rows of these roles."""
    if table != TEXTS:
        return expression
    wanted = {role_mark(role) for role in roles}
    if "" not in wanted:
        return f"({expression}) AND place : ({_any_of(wanted)})" if wanted else expression
    unwanted = {role_mark(role) for role in ROLES} - wanted
    return f"({expression}) NOT place : ({_any_of(unwanted)})" if unwanted else expression


def _any_of(tokens: Iterable[str]) -> str:
    return " OR ".join(f'"{token}"' for token in sorted(tokens))
