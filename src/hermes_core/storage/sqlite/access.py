"""Tables of plugins inside the store's file: migrations, reads with a time limit, steps behind a watermark.

Reads have connections of their own, so that a long search never keeps a transcript waiting. Steps go through the
store's writer like any other operation.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import apsw

from hermes_core.storage.sqlite import dropping, forks
from hermes_core.storage.sqlite.connection import Statements, translate
from hermes_core.storage.sqlite.queries.access import visible
from hermes_core.storage.sqlite.readers import Readers
from hermes_hookspecs.errors import StorageError, StoreRefused
from hermes_hookspecs.ports.sqlite import RESERVED_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_core.storage.sqlite.connection import Connection
    from hermes_core.storage.sqlite.database import Database
    from hermes_core.storage.sqlite.transaction import Bindings, Reader, SQLiteValue, Transaction
    from hermes_hookspecs.ports.sqlite import SqliteReader, SqliteWriter
    from hermes_hookspecs.principal import Principal

__all__ = ["PluginTables"]

T = TypeVar("T")

CONNECTIONS = 3
"""Most reads of plugins at the same time."""
LOOK_EVERY = 2000
"""Steps of SQLite's machine between two looks at the clock: a few microseconds."""

SEARCHED = ("content", "tool_calls", "tool_name", "attachments")

# Texts of table names are never taken from the caller: they are looked up in the schema.
REGISTER = """
    CREATE TABLE IF NOT EXISTS plugin_schema (
        plugin TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        watermark INTEGER NOT NULL,
        tables TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
"""
REGISTERED = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'plugin_schema'"
VERSION = "SELECT version, watermark, tables FROM plugin_schema WHERE plugin = ?"
LISTED = "SELECT plugin, tables FROM plugin_schema"
PLUGINS = "SELECT plugin, version FROM plugin_schema ORDER BY plugin"
LAGGING = """
    SELECT plugin FROM plugin_schema AS p
    WHERE (SELECT at FROM changes AS c WHERE c.id > p.watermark ORDER BY c.id LIMIT 1) < ? ORDER BY plugin
"""
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid"
NEWEST_CHANGE = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)"
NOTE = """
    INSERT INTO plugin_schema VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET version = excluded.version, tables = excluded.tables
"""
ADVANCE = "UPDATE plugin_schema SET watermark = ?1 WHERE plugin = ?2 AND watermark = ?3"


class PluginTables:
    """What plugins keep in one database (:class:`~hermes_hookspecs.ports.sqlite.SqliteAccess`). Thread-safe.

    :param database: the store's, open. busy_timeout_s: patience with other readers.
    """

    def __init__(self, database: Database, *, busy_timeout_s: float = 20.0) -> None:
        self._database = database
        self._busy_timeout_s = busy_timeout_s
        self._readers = Readers(database.path, limit=CONNECTIONS, patience_s=busy_timeout_s)
        self.sqlite_version = database.sqlite_version
        self.searched_columns = SEARCHED
        forks.watch(self)

    # --- reading

    @contextmanager
    def read(self, *, budget_s: float | None = None) -> Iterator[SqliteReader]:
        """A short read transaction whose statements end after ``budget_s`` seconds."""
        self._database.data_version()  # raises where the database must not be used any more
        connection = self._readers.acquire()
        try:
            with connection.inside:
                connection.execute("BEGIN")
            if budget_s is not None:
                until = time.monotonic() + budget_s
                connection.set_progress_handler(lambda: time.monotonic() >= until, LOOK_EVERY)
            yield _TimedReads(connection)
        finally:
            connection.set_progress_handler(None)
            self._readers.release(connection)

    def version(self, plugin: str) -> int:
        """The version of a plugin's tables, 0 where it has none."""
        return self._row(plugin)[0]

    def watermark(self, plugin: str) -> int:
        """The id of the last change that a plugin has taken in."""
        return self._row(plugin)[1]

    def plugins(self) -> Sequence[tuple[str, int]]:
        """Everybody who has tables here, sorted."""
        with self._database.read() as reader:
            if reader.one(REGISTERED) is None:
                return ()
            return tuple(cast("list[tuple[str, int]]", reader.all(PLUGINS)))  # columns of PLUGINS

    def visible(self, principal: Principal) -> tuple[str, tuple[str, ...]]:
        """What a principal may read, as a condition on ``l``."""
        return visible(principal)

    def searched_text(self, cells: Sequence[SQLiteValue]) -> str:
        """The text of a row that is searched."""
        content, calls, tool_name, attachments = cells
        if calls is None and tool_name is None and attachments is None:
            return str(content)
        return _searched(str(content), calls, tool_name, attachments)

    def _row(self, plugin: str) -> tuple[int, int, str]:
        with self._database.read() as reader:
            return _row(reader, plugin)

    # --- writing

    def apply(self, work: Callable[[SqliteWriter], T]) -> T:
        """Run one bounded step and return its result once it is durable."""
        return self._database.apply(work)

    def advance(self, plugin: str, work: Callable[[SqliteWriter], object], *, expected: int, watermark: int) -> bool:
        """Run a step and move the watermark, if it stands where it is expected to."""

        def step(tx: Transaction) -> bool:
            if not tx.run(ADVANCE, (watermark, plugin, expected)):
                return False
            work(tx)
            return True

        return self._database.apply(step)

    def migrate(self, plugin: str, steps: Sequence[str]) -> int:
        """Bring a plugin's tables to version ``len(steps)`` and return the version found."""
        found = self.version(plugin)
        if found > len(steps):
            raise StoreRefused(_newer(plugin, found, len(steps)))
        for number in range(found, len(steps)):
            self._database.apply(_step(plugin, number, steps[number], len(steps)))
        return found

    def drop(self, plugin: str) -> bool:
        """Take every table of a plugin out of sight, sound or not."""
        with self._database.read() as reader:
            tables = _tables_of(reader, plugin)
        if not tables:
            return False
        dropping.drop(self._database, plugin, tables, busy_timeout_s=self._busy_timeout_s)
        return True

    def clear_dropped(self, *, budget_s: float) -> int:
        """Delete what was dropped, in small steps."""
        return dropping.clear(self._database, budget_s=budget_s)

    def lagging(self, before: int) -> Sequence[str]:
        """Plugins for which a change from before then still waits."""
        with self._database.read() as reader:
            if reader.one(REGISTERED) is None:
                return ()
            return tuple(str(name) for (name,) in reader.all(LAGGING, (before,)))

    # --- the end

    def close(self) -> None:
        """Close the connections; before the database is closed."""
        self._readers.close(checkpoint=False)

    def leave_in_child(self) -> None:
        """Told in a forked child, see :mod:`~hermes_core.storage.sqlite.forks`."""
        self._readers.leave_in_child()


class _TimedReads(Statements):
    """Statements that may be ended by the clock, and whose errors are of our tree."""

    __slots__ = ("_inside",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._inside = connection.inside

    def _execute(self, sql: str, bindings: Bindings) -> list[tuple[SQLiteValue, ...]]:
        try:
            with self._inside:
                return super()._execute(sql, bindings)
        except apsw.InterruptError as error:
            raise TimeoutError("the read took longer than it was given") from error
        except apsw.Error as error:
            raise translate(error, "the read failed") from error


def _searched(content: str, calls: SQLiteValue, tool_name: SQLiteValue, attachments: SQLiteValue) -> str:
    from hermes_core.storage.sqlite.rows import read_attachments, read_calls
    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.messages import TOOL, Message
    from hermes_hookspecs.text.rows import searched_text

    return searched_text(
        Message(
            id=MessageId(0),
            lineage_id=LineageId(""),
            session_id=SessionId(""),
            turn_id=None,
            role=TOOL,
            content=content,
            timestamp=0,
            tool_calls=() if calls is None else read_calls(str(calls)),
            tool_name=None if tool_name is None else str(tool_name),
            attachments=() if attachments is None else read_attachments(str(attachments)),
        )
    )


def _row(reader: Reader, plugin: str) -> tuple[int, int, str]:
    if reader.one(REGISTERED) is None:
        return 0, 0, ""
    found = reader.one(VERSION, (plugin,))
    return (0, 0, "") if found is None else cast("tuple[int, int, str]", found)  # columns of VERSION


def _tables_of(reader: Reader, plugin: str) -> tuple[str, ...]:
    """The tables that a plugin is known to have, and those of its names that nobody is known to have."""
    listed = {} if reader.one(REGISTERED) is None else dict(cast("list[tuple[str, str]]", reader.all(LISTED)))
    others = {name for other, tables in listed.items() if other != plugin for name in _names(tables)}
    there = [str(name) for (name,) in reader.all(TABLES)]
    lost = [name for name in there if name.startswith(_own(plugin)) and name not in others]
    return tuple(dict.fromkeys((*_names(listed.get(plugin, "")), *lost)))


def _own(plugin: str) -> tuple[str, ...]:
    """How the names of a plugin's tables begin."""
    return (f"{plugin}_", *RESERVED_TABLES.get(plugin, ()))


def _names(tables: str) -> tuple[str, ...]:
    return tuple(tables.split())


def _newer(plugin: str, found: int, known: int) -> str:
    return (
        f"the tables of plugin {plugin!r} are of version {found}, this plugin knows {known}: nothing was touched. "
        "Install the newer plugin again"
    )


def _step(plugin: str, number: int, sql: str, known: int) -> Callable[[Transaction], None]:
    """Step ``number`` of a plugin's migrations; one that somebody else has taken is not taken twice."""

    def work(tx: Transaction) -> None:
        tx.run(REGISTER)
        version, _, tables = _row(tx, plugin)
        if version > known:
            raise StoreRefused(_newer(plugin, version, known))
        if version > number:
            return
        before = {str(name) for (name,) in tx.all(TABLES)}
        tx.run(sql)
        made = [str(name) for (name,) in tx.all(TABLES) if name not in before]
        if strangers := [name for name in made if not name.startswith(_own(plugin))]:
            raise StorageError(f"plugin {plugin!r} may not make a table {strangers[0]!r}: its tables begin {plugin}_")
        (newest,) = cast("tuple[int]", tx.one(NEWEST_CHANGE))  # a number, always
        listed = dict.fromkeys((*_names(tables), *made))
        tx.run(NOTE, (plugin, number + 1, newest, " ".join(listed)))

    return work
