"""A fake iLink server on loopback, for tests of this plugin and of others."""

from __future__ import annotations

from hermes_weixin.testing.platform import FakeWeixin
from hermes_weixin.testing.server import LOST, FakeILink

__all__ = ["LOST", "FakeILink", "FakeWeixin"]
