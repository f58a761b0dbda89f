"""Reads of text that is not valid UTF-8: shown with replacement characters instead of failing the query.

SQLite stores any bytes as text; one cell cut in the middle of a character (an older program, a damaged page)
makes the driver raise for the whole result. The statement is then run once more with every text column taken
as bytes, and decoded here. Only SELECT, WITH and VALUES can be wrapped so; they are the only ones needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from hermes_hookspecs.errors import StoreDamaged

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Bindings, SQLiteValue

__all__ = ["select_replacing"]


def select_replacing(
    connection: apsw.Connection, sql: str, bindings: Bindings, error: UnicodeDecodeError
) -> list[tuple[SQLiteValue, ...]]:
    """Rows of a reading statement, invalid bytes of text replaced by U+FFFD; order and types are kept.

    :param error: what the plain run failed with, the cause of the error raised here.
    :raises StoreDamaged: the statement is not a query that can be wrapped.
    """
    names = [f"c{number}" for number in range(_count_columns(connection, sql, bindings, error))]
    cells = ", ".join(
        f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in names
    )
    # The line break ends a comment that the statement may end with.
    wrapped = f"WITH plain({', '.join(names)}) AS ({sql.rstrip().rstrip(';')}\n) SELECT {cells} FROM plain"  # noqa: S608 - names are c0, c1 …
    try:
        rows = connection.execute(wrapped, bindings).fetchall()
    except apsw.SQLError:
        raise _unreadable(error) from error
    return [tuple(_decode(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True)) for row in rows]


def _decode(kind: SQLiteValue, value: SQLiteValue) -> SQLiteValue:
    if kind == "text" and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _count_columns(connection: apsw.Connection, sql: str, bindings: Bindings, error: UnicodeDecodeError) -> int:
    """Columns of the statement, found while it is prepared and before it runs a step."""
    found = 0

    def look(cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
        nonlocal found
        found = len(cursor.get_description()) if cursor.is_readonly else 0
        return False

    cursor = connection.cursor()
    cursor.set_exec_trace(look)
    try:
        cursor.execute(sql, bindings)
    except apsw.ExecTraceAbort:
        pass
    finally:
        cursor.close(True)
    if not found:
        raise _unreadable(error) from error
    return found


def _unreadable(error: UnicodeDecodeError) -> StoreDamaged:
    return StoreDamaged(f"a text of the database is not valid UTF-8 ({error.reason}) and could not be shown")
