"""Whether a database file is structurally sound, as SQLite sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

__all__ = ["damage"]

ORDINARY_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
CHECK = "SELECT * FROM pragma_quick_check(?)"
"""Of one table and its indexes."""


def damage(connection: apsw.Connection) -> list[str]:
    """What the quick check finds wrong with the tables of a file, ``[]`` when they are sound. Reads all of them.

    Search indexes are left out: what is derived can be made anew, and its damage is none of the messages'.

    :raises apsw.Error: the file is so damaged that it cannot be checked.
    """
    names = [str(row[0]) for row in connection.execute(ORDINARY_TABLES).fetchall()]
    found = [str(row[0]) for name in names for row in connection.execute(CHECK, (name,)).fetchall()]
    return [line for line in found if line != "ok"]
