"""Programs on the other side, on loopback, for tests of this plugin and of others."""

from __future__ import annotations

from hermes_webhook.testing.api import FakeApi
from hermes_webhook.testing.callers import free_listen
from hermes_webhook.testing.webhook import FakeWebhook

__all__ = ["FakeApi", "FakeWebhook", "free_listen"]
