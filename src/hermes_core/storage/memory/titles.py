"""Titles: unique per owner, numbered where nobody chose them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import TitleError
from hermes_hookspecs.sessions import TITLE_LIMIT

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.operations import Rename
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.sessions import Lineage

__all__ = ["free_title", "rename"]


def free_title(tables: Tables, owner: Owner, wanted: str) -> str:
    """Return ``wanted``, or with the smallest `` #N`` from 2 on that no lineage of this owner has."""
    taken = {lineage.title for lineage in tables.lineages.values() if lineage.owner == owner}
    title, number = wanted, 2
    while title in taken:
        title, number = f"{wanted} #{number}", number + 1
    return title


def rename(tables: Tables, operation: Rename) -> str | None:
    """Run :class:`~hermes_hookspecs.operations.Rename`."""
    lineage = tables.lineage(operation.lineage_id)
    title = operation.title
    if title is not None and not 0 < len(title) <= TITLE_LIMIT:
        raise TitleError(f"a title has 1 to {TITLE_LIMIT} characters, this one has {len(title)}; give a shorter one")
    if operation.origin == "auto":
        gone_on = operation.session_id is not None and operation.session_id != lineage.tip
        if lineage.title is not None or gone_on or title is None:
            return lineage.title
        return _write(tables, lineage, free_title(tables, lineage.owner, title), operation)
    if title is not None:
        _refuse_taken(tables, lineage, title)
    return _write(tables, lineage, title, operation)


def _refuse_taken(tables: Tables, lineage: Lineage, title: str) -> None:
    for other in tables.lineages.values():
        if other.id != lineage.id and other.owner == lineage.owner and other.title == title:
            raise TitleError(f"the title {title!r} is taken by session {other.tip}; choose another one")


def _write(tables: Tables, lineage: Lineage, title: str | None, operation: Rename) -> str | None:
    origin = None if title is None else operation.origin
    if (title, origin) != (lineage.title, lineage.title_origin):
        tables.lineages[lineage.id] = attrs.evolve(lineage, title=title, title_origin=origin)
        tip = tables.sessions[lineage.tip]
        tables.sessions[tip.id] = attrs.evolve(tip, title=title)
        tables.bump(lineage.id)
        tables.note_lineage(lineage.id, operation.now)
    return title
