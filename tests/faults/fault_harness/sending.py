"""The platform's side: what it received, in order, from whatever process; now and then it asks to wait."""

from __future__ import annotations

from random import Random

from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.testing.platform import RecordingSender

__all__ = ["PlatformSender"]

TOO_FAST = 0.03
"""Share of the parts that the platform refuses for the moment."""


class PlatformSender(RecordingSender):
    """Appends each received part to a file that all processes share."""

    def __init__(self, path):
        super().__init__(path)
        self._dice = Random()

    async def send(self, part):
        """Receive a part, or ask to send it again a little later."""
        if self._dice.random() < TOO_FAST:
            raise RetryLater("too fast", after_s=0.01)
        return await super().send(part)
