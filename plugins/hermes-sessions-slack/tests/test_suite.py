"""The adapter passes the suite of the contract, before the fake server, by both ways in."""

from __future__ import annotations

import pytest

from hermes_hookspecs.testing.adapters import PlatformAdapterSuite
from hermes_slack.testing import FakeSlack


class TestSocketMode(PlatformAdapterSuite):
    """The top of a channel is one session here: the suite's answers go where their messages stand."""

    @pytest.fixture
    def fake(self):
        return FakeSlack()


class TestEventsApi(PlatformAdapterSuite):
    """Slack calls us."""

    connects = False

    @pytest.fixture
    def fake(self):
        return FakeSlack("http")
