"""docs/storage.md and docs/operations.md say what is there."""

from __future__ import annotations

import re

import apsw
import pytest
from docs_pages import ROOT, fences

from hermes_cli import front_end
from hermes_core import SessionSource, open_app
from hermes_hookspecs.errors import HermesError

STORAGE = ROOT / "docs" / "storage.md"
OPERATIONS = ROOT / "docs" / "operations.md"


def _table(page, heading: str) -> list[list[str]]:
    """Return the cells of the first table under a heading, without its head."""
    text = page.read_text(encoding="utf-8")
    body = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert body is not None, f"no heading {heading!r}"
    rows = [line for line in body[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def _codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _tables(database) -> list[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    return [name for (name,) in database.execute(query)]


@pytest.fixture
def database(home):
    connection = apsw.Connection(str(home / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    yield connection
    connection.close()


def test_every_table_and_every_column_named_is_there(database):
    described = {_codes(row[0])[0]: _codes(row[2]) for row in _table(STORAGE, "Tables")}

    assert sorted(described) == sorted(_tables(database))
    for table, columns in described.items():
        real = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        assert set(columns) - real == set(), table
    assert database.execute("PRAGMA application_id").get == 0x48524D53


def test_every_table_of_the_search_index_is_there(home, database):
    pytest.importorskip("hermes_fts5")
    described = {_codes(row[0])[0]: _codes(row[2]) for row in _table(STORAGE, "Tables of the search index")}
    before = set(_tables(database))

    with open_app(home, environ={}, overrides={"storage.durability": "normal"}) as app:
        app.session_search("tea")

    made = set(_tables(database)) - before
    shadows = {name for name in made for table in made if name.startswith(f"{table}_") and name not in described}
    assert set(described) == made - shadows
    for table, columns in described.items():
        real = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        assert set(columns) - real == set(), table


@pytest.mark.parametrize("fence", fences(STORAGE, "sql"), ids=lambda fence: fence.name)
def test_every_query_works_and_finds_what_it_is_about(database, home, fence):
    with open_app(home, environ={}, overrides={"storage.durability": "normal"}) as app:
        source = SessionSource(platform="api_server", chat_id="kitchen", user_id="ming")

        found = []
        app.ask(
            "Who is there?", source, agent=lambda turn: found.extend(database.execute(fence.text).fetchall()) or "seen"
        )

    assert found != []


def test_every_test_that_is_named_exists():
    named = [code for row in _table(STORAGE, "Promises and their tests") for code in _codes(row[1])]

    for code in named:
        file, name = code.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), code


def test_every_file_of_a_home_is_described(home):
    described = {code for row in _table(OPERATIONS, "Files") for code in _codes(row[0])}

    with open_app(home, environ={}) as app:
        app.store.stats()
        there = {file.name for file in home.iterdir()}

    assert {"state.db", "state.db-wal", "state.db-shm"} <= there
    assert there - described == set()


def test_exit_codes_are_those_of_the_errors_and_of_the_terminal():
    rows = _table(OPERATIONS, "Exit codes")
    described = {int(row[0]): set(_codes(row[1])) for row in rows}

    real: dict[int, set[str]] = {}
    kinds = [HermesError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__ == "hermes_hookspecs.errors":
            real.setdefault(kind.exit_code, set()).add(kind.__name__)
    assert {status: names for status, names in described.items() if names} == real
    own = {value for name, value in vars(front_end).items() if name.startswith("EXIT_")}
    assert own - set(described) == set()


def test_the_group_and_the_log_are_as_long_as_the_page_says():
    from hermes_core.storage.sqlite.checkpoint import LIMIT_PAGES
    from hermes_core.storage.sqlite.writer import GROUP_LIMIT

    text = STORAGE.read_text(encoding="utf-8")
    assert f"at most {GROUP_LIMIT} operations" in text
    assert f"grown to {LIMIT_PAGES} pages" in text
