"""The adapter passes the suite of the contract, before the fake server."""

from __future__ import annotations

import pytest

from hermes_hookspecs.testing.adapters import PlatformAdapterSuite
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, RATE_LIMITED
from hermes_weixin.testing import FakeWeixin


class TestWeixin(PlatformAdapterSuite):
    """A direct chat is its person here, logins are files, and bots are never heard."""

    groups = False
    sees_bots = False
    chat_is_person = True
    needs_secrets = False
    identities_name_the_chat = False
    failures = frozenset({RATE_LIMITED, BROKEN, ARRIVED_BUT_FAILED})  # no code is known to mean *never*

    @pytest.fixture
    def fake(self):
        return FakeWeixin()
