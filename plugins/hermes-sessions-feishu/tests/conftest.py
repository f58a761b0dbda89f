"""A stage of the adapter suite, with the knobs of the fake at hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, settings

from hermes_feishu.testing import FakeFeishu
from hermes_hookspecs.testing.adapters import Stage
from hermes_hookspecs.testing.adapters.stage import Timing

LIMIT_S = 30

# A law is about what holds, not about how busy the machine is that tries it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


class FeishuStage(Stage):
    """A stage whose platform can be configured: set ``settings`` and ``account_settings`` before an account starts."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.settings = {}
        self.account_settings = {}

    @property
    def platform(self):
        from hermes_feishu.platform import FeishuPlatform

        if self._platform is None:
            config = self.fake.config(self._accounts, account=self.account_settings, **self.settings)
            self._platform = FeishuPlatform(config)
        return self._platform

    @property
    def world(self):
        return self.fake.world

    async def written(self, account, content, **how):
        """Let somebody write anything, and return it as it was stored."""
        message_id = self.fake.write(content, **how)
        return await account.stored(message_id)

    async def asked_for(self, method, ending, count=1):
        """Wait until the API was asked so often for something."""

        def asked():
            return [one for one in self.world.requests if one[0] == method and one[1].endswith(ending)]

        await self.world.until(lambda: len(asked()) >= count, LIMIT_S)
        return asked()


@pytest.fixture
def fake():
    return FakeFeishu()


@pytest.fixture
def webhook_fake():
    return FakeFeishu(mode="webhook")


@pytest.fixture
def stage(fake, tmp_path):
    return FeishuStage(fake, tmp_path, timing=Timing(patience_s=10.0))


@pytest.fixture
def both(fake, tmp_path):
    return FeishuStage(fake, tmp_path, accounts=("default", "second"), timing=Timing(patience_s=10.0))


@pytest.fixture
def webhook_stage(webhook_fake, tmp_path):
    return FeishuStage(webhook_fake, tmp_path, timing=Timing(patience_s=10.0))


@pytest.fixture
def webhook_both(webhook_fake, tmp_path):
    return FeishuStage(webhook_fake, tmp_path, accounts=("default", "second"), timing=Timing(patience_s=10.0))


@pytest.fixture
def as_json():
    return lambda value: json.dumps(value, ensure_ascii=False)
