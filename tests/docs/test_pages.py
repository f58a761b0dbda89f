"""What the pages show is what happens."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
from docs_pages import EXAMPLES, KINDS, ROOT, fences, masked, pages, played

from hermes_cli.parser import locate
from hermes_cli.table import CHAT, COMMANDS
from hermes_core.config.rules import rules_of
from hermes_core.config.sections import SECTIONS
from hermes_hookspecs.specs import ALL_SPECS

PAGES = pages()
EVERY = [fence for page in PAGES for fence in fences(page)]
PIECES = [fence for fence in EVERY if fence.file]
COMMAND_LINES = [fence for fence in EVERY if fence.kind == "sh"]


def _id(value: object) -> str:
    return str(value.relative_to(ROOT)) if hasattr(value, "relative_to") else value.name


def _prose(page) -> str:
    """Return a page without its fences."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _codes(page) -> list[str]:
    """Return what stands between single back quotes."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", _prose(page))]


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page, "console")], ids=_id)
def test_every_transcript_is_what_a_terminal_shows(page, tmp_path):
    run = [step for _, steps in played(page, tmp_path) for step in steps]

    assert [(command, masked(printed)) for command, _, printed in run] == [
        (command, masked(shown)) for command, shown, _ in run
    ]


def test_every_fence_is_of_a_kind_that_is_checked():
    assert [fence.name for fence in EVERY if fence.kind not in KINDS] == []
    assert [fence.name for fence in EVERY if fence.kind == "python" and not fence.file] == []


@pytest.mark.parametrize("fence", PIECES, ids=_id)
def test_every_example_is_a_piece_of_a_file_that_runs(fence):
    assert fence.text.strip("\n") in (ROOT / fence.file).read_text(encoding="utf-8")


def test_every_example_file_is_on_a_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = [str(file.relative_to(ROOT)) for file in EXAMPLES.rglob("*.py") if file.name != "__init__.py"]

    assert [file for file in files if file not in text] == []


@pytest.mark.parametrize("fence", COMMAND_LINES, ids=_id)
def test_commands_that_are_not_run_name_targets_and_files_that_exist(fence):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    for line in fence.text.splitlines():
        words = shlex.split(line, comments=True)
        assert words, f"{fence.name}: an empty command"
        if words[0] == "make":
            assert words[1] in targets, line
        for word in words:
            if word.startswith(("./docs/", "docs/", "tests/")):
                assert (ROOT / word).exists(), line


def test_the_distributions_depend_on_what_the_readme_says():
    rows = re.findall(r"^\| .*`(hermes-sessions-[\w-]+)`.* \| ([^|]+) \|$", _prose(ROOT / "README.md"), re.MULTILINE)

    assert {name: sorted(cell.strip().split(", ")) for name, cell in rows} == {
        name: sorted(dependencies) for name, dependencies in _distributions().items()
    }


def _distributions() -> dict[str, list[str]]:
    """Return the dependencies of each distribution as the README names them."""
    files = [ROOT / "pyproject.toml", ROOT / "hookspecs" / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")]
    projects = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    names = {project["name"]: [re.match(r"[\w-]+", one)[0] for one in project["dependencies"]] for project in projects}
    return {
        name: ["the contract" if one == "hermes-sessions-hookspecs" else one for one in dependencies]
        for name, dependencies in names.items()
    }


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_command_that_a_page_names_is_one(page):
    for code in _codes(page):
        if not code.startswith("hermes "):
            continue
        words = [word for word in shlex.split(code)[1:] if not re.search(r"[A-Z…|]", word)]
        if words[:1] in (["shout"], ["demo"]):
            continue  # of plugins: the example, and the demo, which has tests of its own
        found = locate(words, COMMANDS, CHAT)
        assert found.unknown is None, code


@pytest.mark.parametrize("page", PAGES, ids=_id)
def test_every_hook_and_setting_that_a_page_names_exists(page):
    hooks = {name for module in ALL_SPECS for name in vars(module) if name.startswith("hermes_")}
    packages = {"hermes_core", "hermes_hookspecs", "hermes_shout"} | {
        folder.name for folder in ROOT.glob("plugins/*/src/hermes_*")
    }
    prose = _prose(page)

    named = set(re.findall(r"`(hermes_[a-z_]+)`", prose))
    assert named - hooks - packages == set()
    for section, key in re.findall(r"`\[(\w+)\] (\w+)", prose):
        assert section in SECTIONS, section
        assert key in rules_of(SECTIONS[section]), key
    for section, key in re.findall(r"`(\w+)\.(\w+)`", prose):
        if section in SECTIONS:
            assert key in rules_of(SECTIONS[section]), key
