"""The login: every state of it, and what is kept."""

from __future__ import annotations

import asyncio
import io
import os
from types import SimpleNamespace

import pytest

from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import AuthFailed, ConfigError, RetryLater
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import AccountSetup
from hermes_hookspecs.source import SessionSource
from hermes_weixin import commands
from hermes_weixin.credentials import load
from hermes_weixin.plugin import WeixinPlugin
from hermes_weixin.testing import FakeWeixin

CONFIRMED = {
    "status": "confirmed",
    "bot_token": "fake-bot-token-001",
    "ilink_bot_id": "aa11bb22cc33@im.bot",
    "ilink_user_id": "oFAKEuser0001@im.wechat",
}


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Run one command against a fake server whose login goes through given states."""

    def call(command, *states, account=None, answers=(), **values):
        digits = iter(answers)
        monkeypatch.setattr("builtins.input", lambda prompt: next(digits))
        out, err = io.StringIO(), io.StringIO()

        def account_folder(platform, alias):
            folder = tmp_path / platform / alias
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return str(folder)

        app = SimpleNamespace(account_folder=account_folder, clock=SystemClock())
        fake = FakeWeixin()
        given = {"account": account, **values}

        async def main():
            await fake.start()
            fake.server.qr_states.extend(states)
            call_values = SimpleNamespace(app=app, values=given, out=out, err=err, width=80)
            try:
                return await asyncio.to_thread(command, fake.config(), call_values)
            finally:
                await fake.stop()

        monkeypatch.setattr("hermes_weixin.login._PAUSE_S", 0)
        code = asyncio.run(main())
        return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue(), server=fake.server)

    call.folder = tmp_path / "weixin" / "default"
    return call


def test_a_login_is_kept_in_a_file_that_its_owner_alone_reads(called):
    found = called(commands.login, {"status": "wait"}, {"status": "scaned"}, {"status": "scaned"}, CONFIRMED)

    kept = load(called.folder)
    assert found.code == 0
    assert (kept.bot_id, kept.user_id) == ("aa11bb22cc33@im.bot", "oFAKEuser0001@im.wechat")
    assert (called.folder / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert found.err.count("confirm on the phone") == 1
    assert "fake-bot-token" not in found.err + found.out + repr(kept)
    assert "▀" in found.err or "█" in found.err, "no code was drawn"


def test_digits_are_asked_for_until_they_are_right(called):
    found = called(
        commands.login, {"status": "need_verifycode"}, {"status": "need_verifycode"}, {"status": "scaned"}, CONFIRMED,
        answers=("11", "22"),
    )  # fmt: skip

    assert found.code == 0
    assert found.server.verify_codes == ["11", "22"]


def test_a_code_that_runs_out_is_replaced_and_a_server_that_fails_is_waited_for(called):
    found = called(commands.login, 524, {"status": "expired"}, {"status": "verify_code_blocked"}, CONFIRMED)

    assert found.code == 0
    assert found.err.count("scan this with WeChat") == 3


def test_after_three_codes_it_is_over(called):
    with pytest.raises(AuthFailed, match="3 codes"):
        called(commands.login, *[{"status": "expired"}] * 3)


def test_a_redirection_is_followed_to_a_host_and_to_nothing_else(called):
    with pytest.raises(AuthFailed, match="no host"):
        called(commands.login, {"status": "scaned_but_redirect", "redirect_host": "a/b@c"})


def test_a_bot_that_is_bound_already_keeps_its_login(called):
    called(commands.login, CONFIRMED)

    found = called(commands.login, {"status": "binded_redirect"})

    assert found.code == 0
    assert found.server.qr_tokens == ["fake-bot-token-001"]
    with pytest.raises(AuthFailed, match="another alias"):
        called(commands.login, {"status": "binded_redirect"}, account="second")


def test_a_confirmation_without_a_bot_keeps_nothing(called):
    with pytest.raises(AuthFailed, match="which bot"):
        called(commands.login, {"status": "confirmed", "bot_token": "x"})
    assert load(called.folder) is None


def test_nobody_scans(called, monkeypatch):
    monkeypatch.setattr("hermes_weixin.login._MOST_S", 0.3)
    with pytest.raises(RetryLater, match="nobody scanned"):
        called(commands.login)


def test_accounts_and_logout(called):
    called(commands.login, CONFIRMED, account="second")

    listed = called(commands.accounts)
    gone = called(commands.logout, account="second")

    assert "default  logged out" in listed.out
    assert "second   logged in  not in [plugins.weixin] accounts" in listed.out
    assert gone.code == 0
    assert called(commands.logout, account="second").code == 1
    assert "fake-bot-token" not in listed.out


def test_status_says_whether_the_login_holds(called):
    assert (called(commands.status).code, called(commands.status).out) == (
        1,
        "default: logged out (run: hermes weixin login default)\n",
    )
    called(commands.login, CONFIRMED)

    refused = called(commands.status, json=True)

    assert refused.code == 1
    assert '"state": "unknown"' in refused.out or '"state": "refused"' in refused.out


def setup_in(folder):
    return AccountSetup(account_id="default", state=None, folder=folder, clock=SystemClock(), environ={})


def test_an_account_that_nobody_logged_in_says_what_to_do(tmp_path):
    (platform,) = WeixinPlugin({"accounts": ("default",)}).hermes_platforms()

    with pytest.raises(ConfigError, match="hermes weixin login default"):
        platform.adapter(setup_in(tmp_path))


def test_a_login_that_others_can_read_is_refused(called):
    called(commands.login, CONFIRMED)
    os.chmod(called.folder / "credentials.json", 0o644)

    with pytest.raises(ConfigError, match="chmod 600"):
        load(called.folder)


def test_whoever_logged_in_may_talk_and_others_are_left_to_the_rules(called):
    called(commands.login, CONFIRMED)
    plugin = WeixinPlugin({"accounts": ("default",)})
    (platform,) = plugin.hermes_platforms()
    platform.adapter(setup_in(called.folder))

    def decided(user, chat_type="dm"):
        source = SessionSource(platform="weixin", chat_type=chat_type, chat_id=user, user_id=user)
        return plugin.hermes_decide_access(MessageEvent(source=source, text="hi", received_at=1))

    assert decided("oFAKEuser0001@im.wechat") is not None
    assert decided("oFAKEuser0001@im.wechat", "group") is None
    assert decided("somebody") is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"acounts": []}, "acounts is unknown"),
        ({"accounts": "default"}, "is no list"),
        ({"accounts": ("A b",)}, "is no alias"),
        ({"accounts": ("a", "a")}, "twice"),
        ({"quota": 0}, "between 1 and 1000"),
        ({"quota": True}, "no whole number"),
        ({"base_url": "ftp://x"}, "no address"),
        ({"bot_agent": "has space"}, "Name/Version"),
        ({"channel_version": "2"}, "no version"),
    ],
)
def test_a_wrong_setting_is_named(table, words):
    with pytest.raises(ConfigError, match=words):
        WeixinPlugin(table)
