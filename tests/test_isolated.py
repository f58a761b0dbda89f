"""tools/isolated.py: what it plans to install for each distribution, and what it refuses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _load_tool():
    spec = importlib.util.spec_from_file_location("isolated_under_test", ROOT / "tools" / "isolated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


isolated = _load_tool()


def _checkout(root, plugin_table=""):
    for folder, name, table in [
        (".", "hermes-sessions-core", ""),
        ("hookspecs", "hermes-sessions-hookspecs", ""),
        ("plugins/hermes-sessions-toy", "hermes-sessions-toy", plugin_table),
    ]:
        (root / folder).mkdir(parents=True, exist_ok=True)
        text = f'[project]\nname = "{name}"\n{table}\n'
        (root / folder / "pyproject.toml").write_text(text, encoding="utf-8")
    (root / "plugins" / "no-distribution").mkdir()
    return root


WHEELS = {
    "hermes-sessions-core": Path("/w/core.whl"),
    "hermes-sessions-hookspecs": Path("/w/contract.whl"),
    "hermes-sessions-toy": Path("/w/toy.whl"),
}


def test_contract_comes_first_then_the_core_then_the_plugins(tmp_path):
    found = isolated.find_distributions(_checkout(tmp_path))

    assert list(found) == ["hermes-sessions-hookspecs", "hermes-sessions-core", "hermes-sessions-toy"]


def test_every_distribution_of_this_checkout_is_found():
    names = set(isolated.find_distributions(ROOT))

    assert len(names) == 2 + len(list(ROOT.glob("plugins/*/pyproject.toml")))
    assert "hermes-sessions-cli" in names


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("hermes-sessions-hookspecs", ["/w/contract.whl[testing]"]),
        ("hermes-sessions-core", ["/w/contract.whl[testing]", "/w/core.whl"]),
        ("hermes-sessions-toy", ["/w/contract.whl[testing]", "/w/toy.whl"]),
    ],
)
def test_an_environment_gets_the_contract_first_and_nothing_that_was_not_asked_for(tmp_path, name, wanted):
    found = isolated.find_distributions(_checkout(tmp_path))

    assert isolated.packages_to_install(found[name], WHEELS) == wanted


def test_a_plugin_may_ask_for_another_wheel_by_path_and_for_packages_by_name(tmp_path):
    table = '[tool.hermes.isolated]\nwith = ["hermes-sessions-core"]\nrequires = ["pexpect"]'

    found = isolated.find_distributions(_checkout(tmp_path, table))

    wanted = isolated.packages_to_install(found["hermes-sessions-toy"], WHEELS)
    assert wanted == ["/w/contract.whl[testing]", "/w/core.whl", "/w/toy.whl", "pexpect"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('with = ["hermes-sessions-elsewhere"]', "has no such wheel"),
        ('needs = ["pexpect"]', "has no key 'needs'"),
    ],
)
def test_a_wish_that_cannot_be_kept_is_refused(tmp_path, line, complaint):
    with pytest.raises(SystemExit, match=complaint):
        isolated.find_distributions(_checkout(tmp_path, f"[tool.hermes.isolated]\n{line}"))


def test_an_unknown_name_is_answered_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        isolated.main(["--only", "hermes-sessions-nothing"])

    assert "hermes-sessions-hookspecs, hermes-sessions-core" in capsys.readouterr().err


def test_nothing_leads_an_isolated_process_back_into_the_checkout(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("HERMES_SESSIONS_HOME", "somebody's")

    environment = isolated._environment()

    assert "PYTHONPATH" not in environment
    assert "HERMES_SESSIONS_HOME" not in environment
