"""A fake Slack on loopback, for tests of this plugin and of others."""

from __future__ import annotations

from hermes_slack.testing.platform import FakeSlack
from hermes_slack.testing.server import FakeSlackServer

__all__ = ["FakeSlack", "FakeSlackServer"]
