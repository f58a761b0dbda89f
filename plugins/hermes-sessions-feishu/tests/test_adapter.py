"""The suite of every adapter, over the long connection and over the webhook."""

from __future__ import annotations

import pytest

from hermes_feishu.testing import FakeFeishu
from hermes_hookspecs.testing.adapters import PlatformAdapterSuite


class TestLongConnection(PlatformAdapterSuite):
    """An account that holds a connection."""

    identities_name_the_chat = False  # ids of messages are unique on the whole platform

    @pytest.fixture
    def fake(self):
        return FakeFeishu()


class TestWebhook(PlatformAdapterSuite):
    """An account that is called."""

    identities_name_the_chat = False
    connects = False

    @pytest.fixture
    def fake(self):
        return FakeFeishu(mode="webhook")

    @pytest.mark.skip(reason="its API refuses the secret before anybody calls: see test_webhook.py")
    def test_wrong_secrets_let_nothing_in_and_are_said(self):
        pass
