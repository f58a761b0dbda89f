"""A fake Feishu on loopback: HTTP API, long connection, and calls of webhooks, for tests of this plugin and of others.

::

    fake = FakeFeishu()                 # or FakeFeishu(mode="webhook")
    await fake.start()
    platform = fake.platform()          # the product's platform, configured for it
    await fake.say("hello", chat_id="oc_1", user_id="ou_1")
    (seen,) = await fake.sent()

``fake.world`` has the knobs that only this platform has: see :class:`~hermes_feishu.testing.world.World`.
"""

from __future__ import annotations

from hermes_feishu.testing.platform import FakeFeishu
from hermes_feishu.testing.world import FakeApp, Kept, World

__all__ = ["FakeApp", "FakeFeishu", "Kept", "World"]
