"""Titles: unique per owner, numbered where nobody chose them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_hookspecs.errors import SessionNotFound, TitleError
from hermes_hookspecs.sessions import TITLE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import Rename

    TitledRow = tuple[int, str, str, str | None, str | None]

__all__ = ["free_title", "rename"]

TITLED = "SELECT no, owner, tip, title, title_origin FROM lineages WHERE id = ?"
# '$' is the character behind '#'.
TAKEN = """
    SELECT title FROM lineages WHERE owner = ?1 AND title = ?2
    UNION ALL
    SELECT title FROM lineages WHERE owner = ?1 AND title >= ?2 || ' #' AND title < ?2 || ' $'
"""
HOLDER = "SELECT tip FROM lineages WHERE title = ? AND owner = ? AND no <> ?"
SET_TITLE = "UPDATE lineages SET title = ?, title_origin = ?, version = version + 1 WHERE no = ?"
SET_TIP_TITLE = "UPDATE sessions SET title = ? WHERE id = ?"


def free_title(tx: Transaction, owner: str, wanted: str) -> str:
    """``wanted``, or with the smallest `` #N`` from 2 on that no lineage of this owner has."""
    taken = {row[0] for row in tx.all(TAKEN, (owner, wanted))}
    title, number = wanted, 2
    while title in taken:
        title, number = f"{wanted} #{number}", number + 1
    return title


def rename(operation: Rename) -> Callable[[Transaction], str | None]:
    """Work of :class:`~hermes_hookspecs.operations.Rename`."""

    def work(tx: Transaction) -> str | None:
        found = tx.one(TITLED, (operation.lineage_id,))
        if found is None:
            raise SessionNotFound(operation.lineage_id)
        lineage_no, owner, tip, now_title, now_origin = cast("TitledRow", found)  # columns of TITLED
        title = operation.title
        if title is not None and not 0 < len(title) <= TITLE_LIMIT:
            raise TitleError(
                f"a title has 1 to {TITLE_LIMIT} characters, this one has {len(title)}; give a shorter one"
            )
        if operation.origin == "auto":
            gone_on = operation.session_id is not None and operation.session_id != tip
            if now_title is not None or gone_on or title is None:
                return now_title
            title = free_title(tx, owner, title)
        elif title is not None:
            _refuse_taken(tx, title, owner, lineage_no)
        origin = None if title is None else operation.origin
        if (title, origin) != (now_title, now_origin):
            tx.run(SET_TITLE, (title, origin, lineage_no))
            tx.run(SET_TIP_TITLE, (title, tip))
            note_lineage(tx, lineage_no, operation.now)
        return title

    return work


def _refuse_taken(tx: Transaction, title: str, owner: str, lineage_no: int) -> None:
    other = tx.one(HOLDER, (title, owner, lineage_no))
    if other is not None:
        raise TitleError(f"the title {title!r} is taken by session {other[0]!s}; choose another one")
