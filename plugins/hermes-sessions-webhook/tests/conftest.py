"""A stage with either platform, whose settings a test may change before it starts."""

from __future__ import annotations

import pytest

from hermes_hookspecs.testing.adapters import Stage
from hermes_webhook.testing import FakeApi, FakeWebhook


@pytest.fixture
def webhook():
    """The program that posts signed messages; its account has a callback address."""
    return FakeWebhook()


@pytest.fixture
def api():
    """The program that fetches answers."""
    return FakeApi()


@pytest.fixture
def stage_of(tmp_path):
    """Return a function that makes the stage of a fake."""
    return lambda fake: Stage(fake, tmp_path)
