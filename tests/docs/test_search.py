"""docs/search.md says which texts a query finds, and what can be set."""

from __future__ import annotations

import re
import tomllib

import attrs
import pytest
from docs_pages import ROOT, fences

from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import matches

SEARCH = ROOT / "docs" / "search.md"
FTS5 = ROOT / "plugins" / "hermes-sessions-fts5" / "README.md"


def _queries():
    text = SEARCH.read_text(encoding="utf-8")
    rows = text.partition("## Queries")[2].partition("\n- **")[0].splitlines()
    table = [row for row in rows if row.startswith("| `")]
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in table]


def test_there_is_a_table_of_queries():
    assert len(_queries()) > 10


@pytest.mark.parametrize(("query", "found", "not_found"), _queries())
def test_a_query_finds_what_the_table_says_and_nothing_that_it_excludes(query, found, not_found):
    parsed = parse(query.strip("`"))

    assert matches(parsed, found)
    assert not matches(parsed, not_found)


@pytest.mark.parametrize("page", [SEARCH, FTS5], ids=lambda page: page.name)
def test_the_settings_of_the_index_and_their_defaults_are_all_there(page):
    config = pytest.importorskip("hermes_fts5.config").Fts5Config
    (fence,) = [fence for fence in fences(page, "toml") if "[plugins.fts5]" in fence.text]

    assert tomllib.loads(fence.text)["plugins"]["fts5"] == attrs.asdict(config())


def test_the_options_in_the_table_are_those_of_the_command():
    from hermes_cli.search_table import SEARCH_COMMANDS

    (command,) = [one for one in SEARCH_COMMANDS if one.path == ("sessions", "search")]
    table = "\n".join(row for row in SEARCH.read_text(encoding="utf-8").splitlines() if row.startswith("| `--"))

    named = set(re.findall(r"--[a-z]+(?=[` ])", table)) - {"--dry"}
    assert named | {"--full"} == {option.names[0] for option in command.options}
