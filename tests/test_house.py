"""The rules of the house: what every distribution has, who may import whom, and that no package can dodge the rules."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = [ROOT, ROOT / "hookspecs", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
PLUGINS = DISTRIBUTIONS[2:]
MOST_LINES = 400


def _pyproject(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def _packages_of(folder):
    return sorted(path for path in (folder / "src").iterdir() if any(path.rglob("*.py")))


def _names(folders):
    return {package.name for folder in folders for package in _packages_of(folder)}


def _product_files():
    files = [file for folder in DISTRIBUTIONS for file in sorted((folder / "src").rglob("*.py"))]
    assert files
    return files


def _all_python_files():
    folders = [ROOT / "tests", ROOT / "tools", ROOT / "benchmarks", *(folder / "tests" for folder in DISTRIBUTIONS[1:])]
    found = [*_product_files(), *(file for folder in folders for file in sorted(folder.rglob("*.py")))]
    return [file for file in found if ".peer" not in file.parts]


def _shown(file):
    return str(file.relative_to(ROOT))


def _contract(name):
    contracts = _pyproject(ROOT)["tool"]["importlinter"]["contracts"]
    return next(each for each in contracts if each["id"] == name)


def _distribution_id(folder):
    return folder.name if folder != ROOT else "core"


# ------------------------------------------------------------------ what every distribution has


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=_distribution_id)
@pytest.mark.parametrize("name", ["README.md", "LICENSE", "changelog.d", "tests"])
def test_every_distribution_has(folder, name):
    assert (folder / name).exists()


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=_distribution_id)
def test_every_distribution_holds_one_typed_package_that_its_pyproject_names(folder):
    (package,) = _packages_of(folder)

    assert package.name == _pyproject(folder)["tool"]["flit"]["module"]["name"]
    assert (package / "py.typed").is_file()


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=_distribution_id)
def test_every_distribution_is_built_and_described_alike(folder):
    table = _pyproject(folder)

    assert table["build-system"]["build-backend"] == "flit_core.buildapi"
    assert table["project"]["name"].startswith("hermes-sessions-")
    assert table["project"]["requires-python"] == ">=3.11"
    assert table["tool"]["towncrier"] == _pyproject(ROOT)["tool"]["towncrier"]


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=_distribution_id)
def test_changelog_fragments_are_of_a_known_type(folder):
    types = {each["directory"] for each in _pyproject(ROOT)["tool"]["towncrier"]["type"]}
    fragments = [file.name for file in (folder / "changelog.d").glob("*.md")]

    assert [name for name in fragments if not re.fullmatch(rf"\+?[\w-]+\.({'|'.join(types)})(\.\d+)?\.md", name)] == []


def test_development_install_names_every_distribution_and_the_contract_first():
    lines = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8").splitlines()
    editable = [line.removeprefix("-e ").partition("[")[0] for line in lines if line.startswith("-e ")]

    assert editable[0] == "./hookspecs"
    assert {(ROOT / path).resolve() for path in editable} == set(DISTRIBUTIONS)


def test_constraints_are_plain_versions_without_addresses():
    lines = (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line)] == []


# ------------------------------------------------------------------ who depends on whom


def _requirements(folder):
    return {re.split(r"[^\w-]", each)[0]: each for each in _pyproject(folder)["project"].get("dependencies", [])}


def test_the_core_depends_on_six_packages():
    assert set(_requirements(ROOT)) == {
        "apsw",
        "attrs",
        "hermes-sessions-hookspecs",
        "importlib-metadata",
        "pluggy",
        "tomli",
    }


@pytest.mark.parametrize("folder", [ROOT, *PLUGINS], ids=_distribution_id)
def test_the_only_first_party_dependency_is_the_contract_within_its_major(folder):
    first_party = [text for name, text in _requirements(folder).items() if name.startswith("hermes")]

    assert first_party == ["hermes-sessions-hookspecs>=0.1,<1"]


@pytest.mark.parametrize("folder", PLUGINS, ids=_distribution_id)
def test_every_plugin_is_found_through_the_entry_point_group_of_this_major(folder):
    (entry_points,) = [_pyproject(folder)["project"]["entry-points"]["hermes.plugins.v1"]]
    (package,) = _packages_of(folder)

    assert entry_points
    assert all(re.fullmatch(rf"{package.name}\.plugin:\w+Plugin", value) for value in entry_points.values())


# ------------------------------------------------------------------ nobody dodges the checks


def test_import_rules_know_every_package():
    assert set(_pyproject(ROOT)["tool"]["importlinter"]["root_packages"]) == _names(DISTRIBUTIONS)


def test_type_check_knows_every_package():
    settings = _pyproject(ROOT)["tool"]["mypy"]
    sources = {path.replace("$MYPY_CONFIG_FILE_DIR", str(ROOT)) for path in settings["mypy_path"].split(":")}

    assert set(settings["packages"]) == _names(DISTRIBUTIONS)
    assert sources == {str(folder / "src") for folder in DISTRIBUTIONS}


def test_import_contracts_name_every_plugin():
    plugins = _names(PLUGINS)

    assert set(_contract("contract-knows-nobody")["forbidden_modules"]) >= plugins | {"hermes_core", "apsw"}
    assert set(_contract("core-imports-no-plugin")["forbidden_modules"]) >= plugins
    assert set(_contract("plugins-see-the-contract")["source_modules"]) == plugins
    assert set(_contract("plugins-are-independent")["modules"]) == plugins


def test_no_import_contract_has_an_exception():
    contracts = _pyproject(ROOT)["tool"]["importlinter"]["contracts"]

    assert [each["id"] for each in contracts if "ignore_imports" in each] == []


ROOMS = [
    "hermes_cli.plugin",
    "hermes_core.hooks",
    "hermes_core.plugins.loader",
    "hermes_core.routing.key",
    "hermes_core.storage.sqlite.writer",
    "hermes_core.turns.engine",
    "hermes_hookspecs.markers",
    "hermes_hookspecs.source",
    "hermes_hookspecs.testing.storage",
]


def _lint_imports(tmp_path, planted):
    """Run import-linter with this repository's rules over a small house in which ``planted`` is one more import."""
    pytest.importorskip("importlinter", reason="import-linter is not installed in this environment")
    for room in ROOMS:
        file = tmp_path / Path(*room.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        for folder in [file.parent, *file.parent.parents]:
            if folder == tmp_path:
                break
            (folder / "__init__.py").touch()
        file.touch()
    (tmp_path / "hermes_core/storage/sqlite/writer.py").write_text("import apsw\n", encoding="utf-8")
    (tmp_path / "hermes_hookspecs/markers.py").write_text("import pluggy\n", encoding="utf-8")
    for importer, statement in planted.items():
        (tmp_path / Path(*importer.split(".")).with_suffix(".py")).write_text(f"{statement}\n", encoding="utf-8")
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-c", lint, str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_house_that_keeps_the_import_rules_passes(tmp_path):
    done = _lint_imports(tmp_path, {"hermes_cli.plugin": "import hermes_hookspecs.source"})

    assert "0 broken" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("importer", "statement", "rule"),
    [
        ("hermes_hookspecs.source", "from hermes_core.routing import key", "The contract knows neither"),
        ("hermes_hookspecs.source", "import apsw", "The contract knows neither"),
        ("hermes_core.turns.engine", "import hermes_cli.plugin", "The core imports no plugin"),
        ("hermes_cli.plugin", "from hermes_core.turns import engine", "Plugins see the contract"),
        ("hermes_core.turns.engine", "import apsw", "apsw is imported by the rooms"),
        ("hermes_cli.plugin", "import apsw", "apsw is imported by the rooms"),
        ("hermes_core.turns.engine", "import pluggy", "pluggy is touched by"),
        ("hermes_core.routing.key", "import hermes_core.turns.engine", "The core is walked front to back"),
    ],
)
def test_a_planted_import_breaks_its_rule(tmp_path, importer, statement, rule):
    done = _lint_imports(tmp_path, {importer: statement})

    assert done.returncode == 1
    verdicts = re.sub(r"\s+", " ", done.stdout).replace(" KEPT", "\n").replace(" BROKEN", " BROKEN\n")
    assert re.search(rf"{re.escape(rule)}.* BROKEN", verdicts), done.stdout + done.stderr


# ------------------------------------------------------------------ product code


def test_no_module_is_longer_than_a_reader_can_hold():
    lengths = {_shown(file): len(file.read_text(encoding="utf-8").splitlines()) for file in _product_files()}

    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_product_module_puts_work_off():
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

    assert [_shown(file) for file in _product_files() if words.search(file.read_text(encoding="utf-8"))] == []


def test_modules_are_named_after_what_they_hold():
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core"}

    assert [_shown(file) for file in _product_files() if file.stem in vague] == []


def _imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), filename=str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_nobody_imports_a_second_sqlite_driver():
    drivers = {"sqlite3", "_sqlite3", "pysqlite3", "aiosqlite"}

    assert [_shown(file) for file in _all_python_files() if drivers & {m.split(".")[0] for m in _imported(file)}] == []


@pytest.mark.parametrize("package", ["hermes_core", "hermes_hookspecs", *sorted(_names(PLUGINS))])
def test_importing_a_package_loads_nothing_heavy(package):
    pytest.importorskip(package)
    heavy = (
        "apsw asyncio attr click concurrent.futures httpx importlib.metadata importlib_metadata json logging pluggy "
    )
    heavy += "prompt_toolkit rich textual tomli"
    probe = f"import sys; before = set(sys.modules); import {package}; print(*(set(sys.modules) - before))"

    done = subprocess.run(
        [sys.executable, "-P", "-c", probe], capture_output=True, text=True, check=True, timeout=60, env=os.environ
    )

    assert set(done.stdout.split()) & set(heavy.split()) == set()
