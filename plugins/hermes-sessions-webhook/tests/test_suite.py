"""Both platforms keep the contract."""

from __future__ import annotations

import pytest

from hermes_hookspecs.testing.adapters import PlatformAdapterSuite
from hermes_hookspecs.testing.plugins import PluginSuite
from hermes_webhook.testing import FakeApi, FakeWebhook


class TestWebhookPlugin(PluginSuite):
    """The suite of every plugin."""

    distribution = "hermes-sessions-webhook"
    entry_point = "webhook"


class TestWebhook(PlatformAdapterSuite):
    """Signed POSTs, answered by callbacks."""

    connects = False

    @pytest.fixture
    def fake(self):
        return FakeWebhook()


class TestApiServer(PlatformAdapterSuite):
    """A token, and answers that are fetched: nobody can fail to take them."""

    connects = False
    failures = frozenset()

    @pytest.fixture
    def fake(self):
        return FakeApi()
