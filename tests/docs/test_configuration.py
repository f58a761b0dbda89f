"""docs/configuration.md says what the code does."""

from __future__ import annotations

import re

import attrs
import pytest
from docs_pages import ROOT, fences, pages

from hermes_core.config import load_settings
from hermes_core.config.rules import rules_of, shown
from hermes_core.config.sections import SECTIONS, PlatformSettings

PAGE = ROOT / "docs" / "configuration.md"
DOCUMENTED = {**SECTIONS, "platforms.NAME": PlatformSettings}
FILES = [fence for page in pages() for fence in fences(page, "toml") if not fence.file]


def _default(value: object) -> str:
    return "not set" if value is None else f"`{shown(value)}`"


def _allowed(rule) -> str:
    """Return the words for what a key accepts."""
    if rule.kind == "switch":
        return "`true`, `false`"
    if rule.kind in ("whole", "number"):
        noun = "a whole number" if rule.kind == "whole" else "a number"
        return f"{noun} from {_number(rule.low)} to {_number(rule.high)}"
    if rule.kind == "choice":
        return ", ".join(f"`{one}`" for one in rule.choices)
    if rule.kind == "name":
        usual = ", ".join(f"`{one}`" for one in rule.choices)
        return f"a name: {usual}, or a plugin's" if usual else "a name, or empty"
    return {"texts": "a list", "zone": "an IANA time zone, or empty"}[rule.kind]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _rows(section: str) -> list[tuple[str, ...]]:
    """Return key, default and allowed of each row under the heading of a section."""
    text = PAGE.read_text(encoding="utf-8")
    body = re.search(rf"^### \[{re.escape(section)}\]\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)
    assert body is not None, f"no heading for [{section}]"
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in body[1].splitlines() if "|" in line]
    return [row[:3] for row in cells if row[0].startswith("`")]


@pytest.mark.parametrize("section", DOCUMENTED)
def test_every_key_is_described_with_its_default_and_its_range(section):
    kind = DOCUMENTED[section]
    defaults = {field.name: field.default for field in attrs.fields(kind)}

    assert _rows(section) == [
        (f"`{key}`", _default(defaults[key]), _allowed(rule)) for key, rule in rules_of(kind).items() if rule.in_file
    ]


def test_no_section_is_described_that_does_not_exist():
    headings = re.findall(r"^### \[(.+)\]$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(DOCUMENTED)


def test_every_variable_beside_the_regular_ones_is_described():
    text = PAGE.read_text(encoding="utf-8")

    special = [name for kind in SECTIONS.values() for rule in rules_of(kind).values() for name in rule.env]
    assert [name for name in [*special, "HERMES_SESSIONS_HOME"] if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("fence", FILES, ids=lambda fence: fence.name)
def test_every_configuration_file_on_a_page_is_accepted(fence, tmp_path):
    (tmp_path / "config.toml").write_text(fence.text, encoding="utf-8")

    settings = load_settings(tmp_path, None, {}, {})

    assert str(tmp_path / "config.toml") in settings.origins.values()
