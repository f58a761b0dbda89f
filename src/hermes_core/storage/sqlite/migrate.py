"""From any earlier schema to this program's: forward only, each step one transaction together with its number."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite import files
from hermes_core.storage.sqlite.connection import connect, number, translate
from hermes_core.storage.sqlite.gate import Gate, OpenMark, gate_files
from hermes_core.storage.sqlite.locks import describe_holders
from hermes_hookspecs.errors import StoreBusy, StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Migration", "Schema", "bring_up", "checksums", "is_current"]

RETRY_S = 0.002

COLUMNS = """
    SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden
    FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c
    WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    ORDER BY t.rowid, c.cid
"""


class Migration:
    """One step of the schema.

    :param version: its number, which becomes the file's ``user_version``.
    :param sql: any number of statements, without BEGIN and COMMIT.
    :param additive: whether programs that know only the step before can go on reading; one that is not waits until no
        other process has the database open.
    """

    __slots__ = ("additive", "sql", "version")

    def __init__(self, version: int, sql: str, *, additive: bool = True) -> None:
        self.version = version
        self.sql = sql
        self.additive = additive


class Schema:
    """What a database of ours looks like. Plain classes, because every start of the program makes them.

    :param application_id: marks the file as ours; 1 to 2**31 - 1.
    :param migrations: numbered 1, 2, 3 … in this order; the last number is the newest version.
    :param checksums: of a fresh file's tables, see :func:`checksums`. A file whose tables have them is known to lack
        nothing; any other one, and every one where this is empty, is compared with a database made for the purpose.
    """

    __slots__ = ("application_id", "checksums", "migrations", "newest")

    def __init__(
        self, *, application_id: int, migrations: Sequence[Migration], checksums: Mapping[str, int] | None = None
    ) -> None:
        self.application_id = application_id
        self.checksums = {} if checksums is None else dict(checksums)
        self.migrations = tuple(migrations)
        self.newest = len(self.migrations)
        if [step.version for step in self.migrations] != list(range(1, self.newest + 1)):
            raise ValueError("migrations are numbered from 1 without a gap")


class _Column:
    __slots__ = ("declaration", "defaulted", "hidden", "key", "name", "not_null", "table")

    def __init__(self, row: tuple[apsw.SQLiteValue, ...]) -> None:
        self.table = str(row[0])
        self.name = str(row[1])
        self.not_null = bool(row[3])
        self.defaulted = row[4] is not None
        self.key = bool(row[5])
        self.hidden = bool(row[6])
        self.declaration = f"{_quoted(self.name)} {row[2]}"
        if self.not_null:
            self.declaration += " NOT NULL"
        if self.defaulted:
            self.declaration += f" DEFAULT {row[4]}"


def is_current(connection: apsw.Connection, schema: Schema) -> bool:
    """Whether the file needs nothing: WAL, our id, the newest version, no known column missing. Writes nothing."""
    return (
        connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        and connection.execute("PRAGMA application_id").fetchall() == [(schema.application_id,)]
        and connection.execute("PRAGMA user_version").fetchall() == [(schema.newest,)]
        and (_looks_fresh(connection, schema) or not _missing(connection, schema))
    )


def checksums(connection: apsw.Connection) -> dict[str, int]:
    """A number for each table of a file, made of the text that defines it; in no order."""
    from zlib import crc32

    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    return {str(name): crc32(str(sql).encode()) for name, sql in rows}


def _looks_fresh(connection: apsw.Connection, schema: Schema) -> bool:
    """Whether every table is, letter by letter, that of a fresh file: the quick way to know that no column is missing.

    To make a fresh database takes longer than all else that an ordinary open does. A file that was mended, or that
    another version of SQLite altered, may be sound and look different.
    """
    return bool(schema.checksums) and schema.checksums.items() <= checksums(connection).items()


def bring_up(path: str, schema: Schema, mark: OpenMark, *, deadline: float) -> None:
    """Make, migrate and mend the file, alone behind the gate; a file that needs nothing is left as it is.

    :param mark: this process's; shared again when this returns.
    :param deadline: ``time.monotonic`` seconds.
    :raises StoreRefused: meanwhile it turned out to be somebody else's or newer.
    :raises StoreDamaged: it lacks what its version has, or has lost everything.
    :raises StoreBusy: another process kept the gate, the lock, or (where a step needs that) the database open.
    :raises StorageError: a step failed; the file is as it was after the step before.
    """
    gate = _gate(path)
    try:
        if not gate.acquire_until(deadline):
            raise _busy(path, *gate_files(path))
        if files.check_emptied(path, was_made=mark.was_made):
            mark.forget_made()
        files.create(path)
        connection = connect(path, busy_timeout_s=max(0.1, deadline - time.monotonic()), synchronous="FULL")
        with connection.inside:
            try:
                _migrate(connection, path, schema, mark, deadline)
            except apsw.Error as error:
                raise translate(error, f"{path} could not be brought to this program's schema") from error
            finally:
                connection.close()
    finally:
        gate.close()


def _gate(path: str) -> Gate:
    try:
        return Gate(path)
    except OSError as error:
        raise files.side_file_refused(error) from error


def _migrate(connection: apsw.Connection, path: str, schema: Schema, mark: OpenMark, deadline: float) -> None:
    # Rebuilding a table would otherwise delete the rows that refer to it.
    connection.execute("PRAGMA foreign_keys = OFF").fetchall()
    version = _check(connection, path, schema)
    _patiently(path, deadline, lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall())
    pending = schema.migrations[version:]
    if version and not all(step.additive for step in pending) and not mark.claim_until(deadline):
        raise _busy(path, mark.path, why="a migration needs it alone, and it is open in")
    try:
        for step in pending:
            _in_transaction(connection, path, deadline, partial(_take_step, connection, path, schema, step))
        if _missing(connection, schema):
            _in_transaction(connection, path, deadline, partial(_mend, connection, path, schema))
    finally:
        mark.share_until(deadline)


def _check(connection: apsw.Connection, path: str, schema: Schema) -> int:
    """The version of the file, read through the log; somebody else's is refused here for good."""
    found = files.Glance(
        number(connection, "PRAGMA application_id"),
        number(connection, "PRAGMA user_version"),
        tuple(
            str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall()
        ),
    )
    files.refuse_strangers(path, found, application_id=schema.application_id, newest=schema.newest)
    if found.user_version < 0 or (found.application_id == schema.application_id and not found.user_version):
        raise StoreDamaged(f"{path} says that its schema is {found.user_version}, which never was one; {files.WAY_OUT}")
    return found.user_version


def _take_step(connection: apsw.Connection, path: str, schema: Schema, step: Migration) -> None:
    # Somebody without a gate may have been faster; his step is not taken twice.
    if _check(connection, path, schema) >= step.version:
        return
    try:
        connection.execute(step.sql).fetchall()
    except apsw.SQLError as error:
        raise StoreDamaged(
            f"{path} is not what its schema {step.version - 1} says, step {step.version} fails ({error}); "
            f"{files.WAY_OUT}"
        ) from error
    if not step.additive:
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise StoreDamaged(
                f"{path}: schema step {step.version} would leave {len(broken)} rows without their parent"
            )
    connection.execute(f"PRAGMA application_id = {schema.application_id:d}").fetchall()
    connection.execute(f"PRAGMA user_version = {step.version:d}").fetchall()


def _missing(connection: apsw.Connection, schema: Schema) -> list[_Column]:
    """Columns that a fresh database has and this one lacks.

    A renumbered migration once left files that carried the newest number without its column, and every read failed.
    """
    fresh = apsw.Connection(":memory:")
    try:
        for step in schema.migrations:
            fresh.execute(step.sql).fetchall()
        wanted = [_Column(row) for row in fresh.execute(COLUMNS).fetchall()]
    finally:
        fresh.close()
    live = {(str(row[0]), str(row[1])) for row in connection.execute(COLUMNS).fetchall()}
    return [column for column in wanted if (column.table, column.name) not in live]


def _mend(connection: apsw.Connection, path: str, schema: Schema) -> None:
    there = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    for column in _missing(connection, schema):
        if column.table not in there:
            raise StoreDamaged(f"{path} has lost its table {column.table}; {files.WAY_OUT}")
        if column.key or column.hidden or (column.not_null and not column.defaulted):
            raise StoreDamaged(
                f"{path}: table {column.table} lacks its column {column.name}, which cannot be added; restore a backup"
            )
        connection.execute(f"ALTER TABLE {_quoted(column.table)} ADD COLUMN {column.declaration}").fetchall()


def _in_transaction(connection: apsw.Connection, path: str, deadline: float, work: Callable[[], None]) -> None:
    _patiently(path, deadline, lambda: connection.execute("BEGIN IMMEDIATE").fetchall())
    try:
        work()
        connection.execute("COMMIT").fetchall()
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK").fetchall()
        raise


def _patiently(path: str, deadline: float, attempt: Callable[[], object]) -> None:
    while True:
        try:
            attempt()
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise _busy(path, f"{path}-shm", path) from None
            time.sleep(RETRY_S)
        else:
            return


def _busy(path: str, *locked: str, why: str = "it is locked by") -> StoreBusy:
    holder = describe_holders(*locked) or "another process"
    return StoreBusy(f"{path} could not be opened in time: {why} {holder}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
