"""Settings and secrets: what is wrong is named, with its place and with what to do, and no secret is shown."""

from __future__ import annotations

import os

import pytest

from hermes_feishu.config import FeishuConfig
from hermes_feishu.credentials import credentials_of, variable_of
from hermes_feishu.platform import FeishuPlatform
from hermes_hookspecs.errors import ConfigError

SECRET = "a-secret-that-nobody-sees"


def one(**account):
    return FeishuConfig.of({"accounts": {"default": {"app_id": "cli_a"} | account}}).accounts["default"]


def test_an_app_id_is_all_that_is_needed():
    account = one()

    assert (account.domain, account.mode, account.listen) == (
        "https://open.feishu.cn", "connection", ("127.0.0.1", 9321),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"imagined": 1}, r"\[plugins.feishu\] imagined is unknown; there are accounts,"),
        ({"accounts": 7}, r"write \[plugins.feishu.accounts.default\]"),
        ({"accounts": {"Über": {}}}, "is no alias"),
        ({"accounts": {"default": 7}}, r"write \[plugins.feishu.accounts.default\] and app_id below it"),
        ({"accounts": {"default": {}}}, "app_id is missing; it stands on the page of the app"),
        ({"accounts": {"default": {"app_id": ""}}}, "no id of an app, such as cli_"),
        ({"accounts": {"default": {"app_id": "cli a"}}}, "no id of an app, such as cli_"),
        ({"accounts": {"default": {"app_id": 7}}}, "app_id = 7 is no text"),
        ({"accounts": {"default": {"app_id": "cli_a", "secret": "x"}}}, "secret is unknown; there are app_id"),
        ({"accounts": {"a": {"app_id": "cli_a"}, "b": {"app_id": "cli_a"}}}, "is the one of account 'a', too"),
        ({"max_characters": 9}, "max_characters = 9 is not between 100 and 8000"),
        ({"max_characters": 200.5}, "no whole number"),
        ({"timeout_s": "soon"}, "timeout_s = 'soon' is no number"),
        ({"timeout_s": True}, "timeout_s = True is no number"),
        ({"cards": "yes"}, "cards = 'yes' is neither true nor false"),
    ],
)
def test_a_setting_that_is_wrong_is_named(table, says):
    with pytest.raises(ConfigError, match=says):
        FeishuConfig.of(table)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("domain", "larks", "neither feishu nor lark nor an address"),
        ("domain", "ftp://x", "neither feishu nor lark nor an address"),
        ("domain", "https://user@host", "neither feishu nor lark nor an address"),
        ("mode", "socket", "neither connection nor webhook"),
        ("listen", "9321", "no host and port"),
        ("listen", "host:99999", "no host and port"),
        ("path", "feishu", "no path"),
        ("proxy", "host:1", "without a name or a password"),
        ("quote", 1, "neither true nor false"),
        ("max_age_minutes", -1, "is not between 0 and"),
        ("path", "/x\n", "is no text"),
    ],
)
def test_a_setting_of_an_account_that_is_wrong_is_named_with_its_section(key, value, says):
    with pytest.raises(ConfigError, match=says) as raised:
        one(**{key: value})
    assert str(raised.value).startswith("[plugins.feishu.accounts.default] ")


def test_an_account_that_is_not_there_is_named(stage):
    with pytest.raises(ConfigError, match=r"\[plugins.feishu.accounts.other\] is not there"):
        FeishuPlatform(FeishuConfig.of({})).adapter(stage.setup("other"))


# --- secrets


@pytest.mark.parametrize(
    ("alias", "variable"),
    [
        ("default", "FEISHU_APP_SECRET"),
        ("lark", "FEISHU_LARK_APP_SECRET"),
        ("team-a.b", "FEISHU_TEAM_A_B_APP_SECRET"),
    ],
)
def test_each_account_has_variables_of_its_own(alias, variable):
    assert variable_of(alias, "app_secret") == variable


def secrets(tmp_path, text, *, mode=0o600, environ=None, **account):
    file = tmp_path / "secrets.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return credentials_of("default", one(**account), environ=environ or {}, folder=tmp_path)


def test_a_secret_stands_in_a_file_of_mode_0600_or_in_the_environment_which_wins(tmp_path):
    text = f'app_secret = "{SECRET}"\nencrypt_key = "k"\n'

    assert secrets(tmp_path, text).app_secret == SECRET
    found = secrets(tmp_path, text, environ={"FEISHU_APP_SECRET": "another "})
    assert (found.app_secret, found.encrypt_key, found.verification_token) == ("another", "k", "")
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"app_secret = {SECRET}", "is no TOML; write: app_secret = "),
        (f'secret = "{SECRET}"', "may hold app_secret, encrypt_key, verification_token"),
        ("app_secret = 7", "each a text"),
        (f'app_secret = "{SECRET} "\nencrypt_key = "with blanks in it"', "the encrypt_key holds what none has"),
        ("", "set FEISHU_APP_SECRET, or write it as app_secret into"),
        ("\xff", "is no TOML"),
    ],
)
def test_a_file_that_is_not_sound_is_named_and_nothing_of_it_is_shown(tmp_path, text, says):
    with pytest.raises(ConfigError, match=says) as raised:
        secrets(tmp_path, text)
    assert SECRET not in str(raised.value)


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused_with_the_command_that_helps(tmp_path, mode):
    with pytest.raises(ConfigError, match="run: chmod 600"):
        secrets(tmp_path, f'app_secret = "{SECRET}"', mode=mode)


def test_a_file_that_is_named_and_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="is not there"):
        secrets(tmp_path, "", secrets_file=str(tmp_path / "elsewhere.toml"))
