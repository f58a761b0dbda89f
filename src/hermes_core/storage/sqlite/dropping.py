"""Tables of a plugin that are not wanted any more: out of sight at once, off the disk in small steps.

Dropping a table takes as long as it has pages, and a virtual table whose own settings are damaged cannot be opened, and
so not be dropped. Therefore virtual tables are taken out of the schema by hand, which leaves the ordinary tables that
they keep their data in. These get names of their own, a few in a transaction; their rows are deleted a few at a time.
Who dies on the way leaves a plugin that is listed and misses tables: dropping it again goes on with the rest.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import apsw

from hermes_core.storage.sqlite.connection import Connection, connect, disconnect, translate
from hermes_core.storage.sqlite.gate import Gate
from hermes_hookspecs.errors import StoreBusy, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.storage.sqlite.database import Database
    from hermes_core.storage.sqlite.transaction import Transaction

__all__ = ["PREFIX", "clear", "drop", "unlist"]

PREFIX = "dropped_"
"""Tables so named are to be deleted; no plugin may have that name."""
ROWS_OF_STEP = 100
"""A row of an index is a page or so."""
TABLES_OF_STEP = 4
"""To give a table another name takes a millisecond: SQLite reads the whole schema for it."""

FORGET = "DELETE FROM plugin_schema WHERE plugin = ?"
IS_TABLE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
VIRTUAL = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'"
SCHEMA_VERSION = "PRAGMA schema_version"
PUT_ASIDE = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'dropped_*' ORDER BY name"
KEY = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
HAS_NO_ROWID = "SELECT wr FROM pragma_table_list(?)"


def unlist(database: Database, tables: Sequence[str], *, busy_timeout_s: float) -> None:
    """Take those of these tables that are virtual out of the schema, and leave what they kept their data in.

    :raises StoreBusy: another process kept the store locked for too long. :raises StorageError: it could not be done.
    """
    with database.read() as reader:
        listed = {str(name) for (name,) in reader.all(VIRTUAL)}
    virtual = [name for name in tables if name in listed]
    if not virtual:
        return
    gate = Gate(database.path)
    try:
        if not gate.acquire_until(time.monotonic() + busy_timeout_s):
            raise StoreBusy("the tables could not be dropped: another process kept the store locked")
        connection = connect(database.path, busy_timeout_s=busy_timeout_s, synchronous="FULL")
        try:
            with connection.inside:
                _unlist(connection, virtual)
        except apsw.Error as error:
            raise translate(error, "tables of a plugin could not be dropped") from error
        finally:
            disconnect(connection, checkpoint=False)
    finally:
        gate.close()


def _unlist(connection: Connection, tables: Sequence[str]) -> None:
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON; BEGIN IMMEDIATE").fetchall()
    try:
        for name in tables:
            connection.execute(
                "DELETE FROM sqlite_schema WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE VIRTUAL TABLE%'",
                (name,),
            ).fetchall()
        # Others have the old schema in memory until its number changes.
        version = connection.execute(SCHEMA_VERSION).fetchall()[0][0]
        connection.execute(f"PRAGMA schema_version = {cast('int', version) + 1}; COMMIT").fetchall()
    except BaseException:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK").fetchall()
        raise


def drop(database: Database, plugin: str, tables: Sequence[str], *, busy_timeout_s: float) -> None:
    """Take the tables of a plugin out of sight, then forget the plugin, in short transactions.

    :raises StoreBusy: another process kept the store locked for too long. :raises StorageError: it could not be done.
    """
    unlist(database, tables, busy_timeout_s=busy_timeout_s)
    for start in range(0, len(tables), TABLES_OF_STEP):
        database.apply(_put_aside(tables[start : start + TABLES_OF_STEP]))
    database.apply(_forget(plugin))


def _forget(plugin: str) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        if tx.one(IS_TABLE, ("plugin_schema",)) is not None:  # the register may be what was lost
            tx.run(FORGET, (plugin,))

    return work


def _put_aside(tables: Sequence[str]) -> Callable[[Transaction], None]:
    """Work that gives tables, none of them virtual, the name of what is to be deleted."""

    def work(tx: Transaction) -> None:
        for number, name in enumerate(tables):
            if tx.one(IS_TABLE, (name,)) is not None:
                # The number of the schema grows with each change of it, so no name was there before.
                version = cast("tuple[int]", tx.one(SCHEMA_VERSION))[0]
                tx.run(f"ALTER TABLE {_quoted(name)} RENAME TO {PREFIX}{version}_{number}")

    return work


def clear(database: Database, *, budget_s: float) -> int:
    """Delete what was put aside, step by step, for about so many seconds; return how many tables are left.

    A table that is too damaged for that stays where it is, and is told in the log.
    """
    until = time.monotonic() + budget_s
    with database.read() as reader:
        names = [str(name) for (name,) in reader.all(PUT_ASIDE)]
    left = len(names)
    for name in names:
        try:
            while time.monotonic() < until:
                if database.apply(_step(name)):
                    left -= 1
                    break
        except StoreDamaged as error:
            from logging import getLogger

            getLogger(__name__).warning("a dropped table of %s cannot be deleted: %s", database.path, error)
            left -= 1
    return left


def _step(name: str) -> Callable[[Transaction], bool]:
    """Work that deletes some rows of a table, or the table once it has few; says whether that is gone."""

    def work(tx: Transaction) -> bool:
        found = tx.one(HAS_NO_ROWID, (name,))
        if found is None:
            return True  # somebody else was quicker
        columns = [_quoted(str(column)) for (column,) in tx.all(KEY, (name,))] if found[0] else ["rowid"]
        table, key = _quoted(name), ", ".join(columns)
        delete = f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} LIMIT ?)"  # noqa: S608 - names of the schema
        if tx.run(delete, (ROWS_OF_STEP,)) < ROWS_OF_STEP:
            tx.run(f"DROP TABLE {table}")
            return True
        return False

    return work


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
