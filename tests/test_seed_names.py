"""Names that people know: every row of tools/seednames.py is looked up where it says, and the page is made of them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path

import apsw
import pytest

from hermes_core import SessionStore, build_session_key, open_app, repair_message_sequence
from hermes_core.config.sections import SECTIONS
from hermes_hookspecs.session_search import session_search
from hermes_hookspecs.source import SessionSource

ROOT = Path(__file__).resolve().parent.parent


def _load_tool():
    spec = importlib.util.spec_from_file_location("seednames_under_test", ROOT / "tools" / "seednames.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


seednames = _load_tool()


def named(room):
    return [pytest.param(one, id=one.place) for one in seednames.NAMES if one.room == room]


def look_up(place):
    module, _, path = place.partition(":")
    found = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with open_app(tmp_path_factory.mktemp("home"), environ={}, plugins=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def columns(app):
    """Return the columns of the tables that a fresh store has."""
    app.get_or_create_session(SessionSource(platform="cli", chat_id="pts-1"))
    connection = apsw.Connection(str(app.settings.db_path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'"
    ).fetchall()
    connection.close()
    return {f"{table}.{column}" for table, column in rows}


@pytest.mark.parametrize("one", named(seednames.API))
def test_a_name_of_the_api_is_there(one):
    assert callable(look_up(one.place))


@pytest.mark.parametrize("one", seednames.GONE, ids=lambda one: one.name.split(",")[0])
def test_what_is_gone_leads_to_something_that_is_there(one):
    assert look_up(one.place)
    assert one.why.endswith(".")


@pytest.mark.parametrize("one", named(seednames.TABLES))
def test_a_column_has_its_name(one, columns):
    assert one.place in columns


@pytest.mark.parametrize("one", named(seednames.SETTINGS))
def test_a_setting_has_its_name(one):
    section, _, key = one.place.rpartition(".")

    assert key in {field.name for field in SECTIONS[section].__attrs_attrs__}


def test_the_environment_variable_of_the_lease_still_works(tmp_path):
    with open_app(tmp_path, environ={"HERMES_TURN_LEASE_TIMEOUT": "77"}, plugins=False) as app:
        assert app.setting("turns", "lease_wait_s") == 77.0
    with open_app(tmp_path, environ={}, plugins=False) as app:
        assert app.setting("turns", "lease_wait_s") == 1800.0


@pytest.mark.parametrize("one", named(seednames.COMMAND_LINE))
def test_the_command_line_has_the_command_and_its_options(one):
    table = pytest.importorskip("hermes_cli.table")
    described = {command.path: command for command in vars(table)[_commands_of(table)]}
    words = one.place.split()
    path = tuple(word for word in words if not word.startswith("--"))

    options = {name for option in described[path].options for name in option.names}
    assert {word for word in words if word.startswith("--")} <= options


def _commands_of(table):
    """Return the name of the tuple of commands in the table of the terminal."""
    tuples = {name: value for name, value in vars(table).items() if isinstance(value, tuple) and value}
    described = {name: value for name, value in tuples.items() if hasattr(value[0], "path")}
    return max(described, key=lambda name: len(described[name]))


@pytest.mark.parametrize("one", named(seednames.SLASH))
def test_a_slash_command_is_known_by_its_name_or_an_alias(one, app):
    known = {name for command in app.commands("cli") for name in (command.name, *command.aliases)}

    assert one.place in known


def test_the_functions_take_what_readers_of_the_original_give_them():
    create = inspect.signature(SessionStore.get_or_create_session).parameters

    assert list(create) == ["self", "source", "force_new", "touch_activity"]
    assert (create["force_new"].default, create["touch_activity"].default) == (False, True)
    assert list(inspect.signature(SessionStore.switch_session).parameters) == ["self", "session_key", "session_id"]
    assert list(inspect.signature(SessionStore.load_transcript).parameters) == ["self", "session_id"]
    assert list(inspect.signature(SessionStore.export_session).parameters) == ["self", "session_id", "lineage"]
    assert list(inspect.signature(build_session_key).parameters) == ["source", "policy"]
    assert list(inspect.signature(repair_message_sequence).parameters) == ["messages"]
    search = list(inspect.signature(session_search.function).parameters)
    assert search[1:8] == ["query", "session_id", "around_message_id", "window", "limit", "sort", "role_filter"]


def test_a_source_has_the_fields_that_people_know():
    fields = {field.name for field in SessionSource.__attrs_attrs__}

    assert fields >= {
        *("platform", "account_id", "scope_id", "chat_id", "chat_type", "thread_id"),
        *("user_id", "user_id_alt", "profile"),
    }


def test_no_name_has_two_rows():
    names = [one.name for one in seednames.NAMES] + [name for one in seednames.GONE for name in one.name.split(", ")]

    assert len(names) == len(set(names))


# ------------------------------------------------------------------ the page


def test_the_page_in_the_repository_is_current(capsys):
    assert seednames.main(["--check"]) == 0, capsys.readouterr().err


def test_the_page_has_every_name_in_its_room():
    page = seednames.render()

    for one in seednames.NAMES:
        assert f"| `{one.name}` |" in page.partition(f"## {one.room}\n")[2].partition("\n## ")[0]
    for one in seednames.GONE:
        assert one.why in page.partition("## Gone\n")[2]


@pytest.mark.parametrize("stale", [None, "# Old\n"])
def test_check_fails_names_the_page_and_the_way_out(tmp_path, capsys, stale):
    if stale is not None:
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "from-hermes.md").write_text(stale, encoding="utf-8")

    assert seednames.main(["--check"], root=tmp_path) == 1

    said = capsys.readouterr().err
    assert said.startswith(f"docs/from-hermes.md is {'missing' if stale is None else 'not current'}: run `make docs`")
    assert seednames.main([], root=tmp_path) == 0
    assert seednames.main(["--check"], root=tmp_path) == 0
