"""What a subclass of the suite says about its platform, and the stage that its tests play on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from hermes_hookspecs.testing.adapters.stage import Stage, Timing
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, RATE_LIMITED, REJECTED

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_hookspecs.testing.fakes import FakePlatform

__all__ = ["AdapterRoom"]


class AdapterRoom:
    """What every part of the suite stands on. Abilities are read from the platform; here is what they do not say.

    Attributes:
        connects: the adapter holds a connection, or polls; ``False``: it listens, and is called.
        groups: several people can talk in one chat. sees_bots: messages of other bots are delivered to us.
        echoes: what we sent ourselves may be delivered to us.
        chat_is_person: the id of a direct chat is its person's, so that one person has one chat.
        identities_name_the_chat: an id alone may mean two messages in two chats, so identities hold the chat.
        failures: the answers of :mod:`~hermes_hookspecs.testing.fakes` that a send of this platform can get.
        needs_secrets: without its secrets in the environment no adapter is made.
        timing: how long is waited, and for what.
    """

    connects: ClassVar[bool] = True
    groups: ClassVar[bool] = True
    sees_bots: ClassVar[bool] = True
    echoes: ClassVar[bool] = True
    chat_is_person: ClassVar[bool] = False
    identities_name_the_chat: ClassVar[bool] = True
    failures: ClassVar[frozenset[str]] = frozenset({RATE_LIMITED, BROKEN, ARRIVED_BUT_FAILED, REJECTED})
    needs_secrets: ClassVar[bool] = True
    timing: ClassVar[Timing] = Timing()

    @pytest.fixture
    def fake(self) -> FakePlatform:
        """Return a fake platform that was not started yet."""
        raise NotImplementedError("give the suite a fake platform")

    @pytest.fixture
    def stage(self, fake: FakePlatform, tmp_path: Path) -> Stage:
        """Return a stage with the account ``default``."""
        return Stage(fake, tmp_path, timing=self.timing)

    @pytest.fixture
    def both(self, fake: FakePlatform, tmp_path: Path) -> Stage:
        """Return a stage with the accounts ``default`` and ``second``."""
        return Stage(fake, tmp_path, accounts=("default", "second"), timing=self.timing)
