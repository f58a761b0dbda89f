from __future__ import annotations

from pathlib import Path

import pytest

from hermes_core.config import load_settings
from hermes_hookspecs.errors import ConfigError


def test_the_default_home_is_below_the_users(tmp_path) -> None:
    settings = load_settings(None, None, {}, {"HOME": str(tmp_path)})

    assert settings.home == settings.folder == tmp_path / ".hermes-sessions"
    assert (settings.profile, settings.db_path) == ("default", settings.home / "state.db")
    assert not settings.home.exists()


def test_the_option_counts_more_than_the_variable(tmp_path) -> None:
    environ = {"HOME": "/nowhere", "HERMES_SESSIONS_HOME": str(tmp_path / "variable")}

    assert load_settings(None, None, {}, environ).home == tmp_path / "variable"
    assert load_settings(tmp_path / "option", None, {}, environ).home == tmp_path / "option"
    assert load_settings(None, None, {}, environ | {"HERMES_SESSIONS_HOME": ""}).home == Path(
        "/nowhere/.hermes-sessions"
    )


def test_a_relative_home_becomes_absolute(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert load_settings(Path("here"), None, {}, {}).home == tmp_path / "here"
    assert load_settings(Path(), None, {}, {}).home == tmp_path


def test_a_profile_is_a_folder_of_the_home(tmp_path) -> None:
    settings = load_settings(tmp_path, "work-2", {}, {})

    assert settings.home == tmp_path
    assert settings.folder == tmp_path / "profiles" / "work-2"
    assert settings.db_path == settings.folder / "state.db"


@pytest.mark.parametrize(
    "profile", ["", ".", "..", "../x", "a/b", "a\\b", "A", "-a", "_a", "a b", "a\0", "ü", "x" * 65]
)
def test_a_profile_name_is_never_a_path(tmp_path, profile) -> None:
    with pytest.raises(ConfigError, match="is no profile name") as raised:
        load_settings(tmp_path, profile, {}, {})

    assert raised.value.origin == "option --profile"


def test_a_database_given_by_path_brings_its_own_folder(tmp_path) -> None:
    settings = load_settings(tmp_path, "work", {}, {}, db=tmp_path / "else" / "my.db")

    assert settings.db_path == tmp_path / "else" / "my.db"
    assert settings.folder == tmp_path / "else" / "my.db.d"
    assert settings.home == tmp_path


def test_a_database_by_path_still_follows_the_homes_configuration(tmp_path) -> None:
    (tmp_path / "config.toml").write_text('[agent]\nrunner = "echo"\n', encoding="utf-8")

    assert load_settings(tmp_path, None, {}, {}, db=tmp_path / "my.db").agent.runner == "echo"


@pytest.mark.parametrize("home", ["a\0b", "~nobody-of-this-name/x"])
def test_an_unusable_home_is_one_line(home) -> None:
    with pytest.raises(ConfigError, match="environment HERMES_SESSIONS_HOME: "):
        load_settings(None, None, {}, {"HERMES_SESSIONS_HOME": home})
