"""The plugin in a profile: it is found by its name, and ends conversations."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.testing.plugins import PluginSuite

hermes_core = pytest.importorskip("hermes_core")

CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
CONFIG = """
[session_reset]
mode = "reset-cron"
timezone = "Asia/Shanghai"

[plugins.reset-cron]
rules = ["weekdays at 18:00"]
"""


class TestResetCronPlugin(PluginSuite):
    distribution = "hermes-sessions-reset-cron"
    entry_point = "reset-cron"


def test_the_working_day_ends_at_six(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG, encoding="utf-8")
    clock = FakeClock(int(datetime(2026, 3, 13, 9, 30, tzinfo=UTC).timestamp() * 1000))  # Friday, 17:30 in Shanghai
    options = {"storage.backend": "memory", "agent.runner": "echo"}
    environ = {"HERMES_PLUGINS": "reset-cron"}
    with hermes_core.open_app(tmp_path, overrides=options, environ=environ, clock=clock) as app:
        first = app.ask("until when is the office open?", CHAT)
        clock.advance(29 * 60)
        same = app.ask("and today?", CHAT)
        clock.advance(60)

        new = app.ask("good evening", CHAT)

        assert same.entry.session_id == first.entry.session_id
        assert new.text == "echo 1: good evening"
        ended = app.export_session(first.entry.session_id)
        assert ended["end_reason"] == "weekdays at 18:00"
