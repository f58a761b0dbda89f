"""Settings and secrets: what is wrong is named."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_webhook.addresses import socket_of
from hermes_webhook.config import WebhookConfig
from hermes_webhook.plugin import WebhookPlugin
from hermes_webhook.secret import secret_of

SECRET = "0123456789abcdef"


def test_nothing_is_configured_until_there_are_accounts():
    platforms = WebhookPlugin({}).hermes_platforms()

    assert [(platform.name, platform.accounts()) for platform in platforms] == [("webhook", ()), ("api_server", ())]


def test_accounts_have_paths_and_variables_of_their_own():
    config = WebhookConfig.of({"accounts": {"default": {}, "ci-bot": {}}, "api": {"default": {"listen": "[::1]:9"}}})

    assert [(one.alias, one.path, one.secret_env, one.listen) for one in (*config.webhook, *config.api_server)] == [
        ("default", "/webhook/default", "WEBHOOK_SECRET", "127.0.0.1:8787"),
        ("ci-bot", "/webhook/ci-bot", "WEBHOOK_SECRET_CI_BOT", "127.0.0.1:8787"),
        ("default", "/api/default", "API_SERVER_TOKEN", "[::1]:9"),
    ]


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"listem": "x"}, "listem"),
        ({"listen": "8787"}, "listen"),
        ({"listen": 8787}, "listen"),
        ({"max_body_kib": 0}, "max_body_kib"),
        ({"window_s": 1.5}, "window_s"),
        ({"keep_hours": "3"}, "keep_hours"),
        ({"max_wait_s": True}, "max_wait_s"),
        ({"accounts": []}, "accounts"),
        ({"accounts": {"Default": {}}}, "accounts"),
        ({"accounts": {"default": 1}}, "accounts.default"),
        ({"accounts": {"default": {"secret": SECRET}}}, "accounts.default.secret"),
        ({"accounts": {"default": {"path": "webhook"}}}, "accounts.default.path"),
        ({"accounts": {"default": {"path": "/a/../b"}}}, "accounts.default.path"),
        ({"accounts": {"default": {"secret_env": "A B"}}}, "accounts.default.secret_env"),
        ({"accounts": {"default": {"callback_url": "example.org"}}}, "accounts.default.callback_url"),
        ({"accounts": {"default": {"callback_url": "https://a:b@example.org"}}}, "accounts.default.callback_url"),
        ({"accounts": {"default": {"callback_allow": "https://example.org"}}}, "accounts.default.callback_allow"),
        ({"accounts": {"default": {"callback_allow": ["*"]}}}, "accounts.default.callback_allow"),
        ({"api": {"default": {"callback_url": "https://example.org"}}}, "api.default.callback_url"),
        ({"accounts": {"default": {"path": "/in"}}, "api": {"default": {"path": "/in"}}}, "api.default.path"),
        ({"accounts": {"default": {"path": "/in"}}, "api": {"default": {"path": "/in/api"}}}, "api.default.path"),
    ],
)
def test_a_setting_that_is_wrong_is_named(table, key):
    with pytest.raises(ConfigError) as raised:
        WebhookPlugin(table)

    assert raised.value.key == key
    assert key.rpartition(".")[2] in str(raised.value)


@pytest.mark.parametrize(
    ("listen", "found"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("localhost:8787", ("localhost", 8787)),
        ("[::]:8787", ("::", 8787)),
        ("::1:8787", None),
        (":8787", None),
        ("host:0", None),
        ("host:65536", None),
        ("host:８", None),
        ("http://host:80", None),
        ("host", None),
    ],
)
def test_an_address_to_listen_at_is_host_and_port(listen, found):
    assert socket_of(listen) == found


def account(**settings):
    return WebhookConfig.of({"accounts": {"default": settings}}).webhook[0]


def test_a_secret_comes_from_the_environment_else_from_its_file(tmp_path):
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}-of-the-file\n")
    file.chmod(0o600)
    named = account(secret_file=str(file))

    assert secret_of(named, {"WEBHOOK_SECRET": SECRET}) == SECRET
    assert secret_of(named, {}) == f"{SECRET}-of-the-file"


@pytest.mark.parametrize("secret", ["", "tooshort", "0123456789abcde", "0123456789 abcdef", "0123456789abcdeä"])
def test_a_secret_that_is_none_is_refused_without_being_shown(secret):
    with pytest.raises(ConfigError, match="WEBHOOK_SECRET") as raised:
        secret_of(account(), {"WEBHOOK_SECRET": secret})

    assert not secret or secret not in str(raised.value)


def test_a_file_that_others_can_read_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(0o640)

    with pytest.raises(ConfigError, match="chmod 600"):
        secret_of(account(secret_file=str(file)), {})
    with pytest.raises(ConfigError, match="cannot be read"):
        secret_of(account(secret_file=str(tmp_path / "none")), {})
    with pytest.raises(ConfigError, match="is no file"):
        secret_of(account(secret_file=str(tmp_path)), {})
