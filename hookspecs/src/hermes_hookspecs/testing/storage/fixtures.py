"""What every part of the suite stands on: the store under test and a scene that plays with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from hermes_hookspecs.testing.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.ports.store import Store

__all__ = ["StoreFixtures"]


class StoreFixtures:
    """Fixtures and capabilities of :class:`~hermes_hookspecs.testing.storage.StorageSuite`; a subclass gives ``store``.

    Attributes:
        durable: what was acknowledged survives the process. A durable store also gives :meth:`reopen`.
    """

    durable: ClassVar[bool] = True

    @pytest.fixture
    def store(self) -> Store:
        """Return an open store that is empty, and close it behind the test. To be overridden."""
        raise NotImplementedError("a subclass of StorageSuite gives the fixture `store`: open, empty")

    @pytest.fixture
    def reopen(self) -> Callable[[], Store] | None:
        """Return what closes the store of the test and opens the same place again; ``None`` when not durable."""
        return None

    @pytest.fixture
    def another_store(self) -> Store | None:
        """Return a second, empty store in another place; ``None`` where a test process can have one only."""
        return None

    @pytest.fixture
    def scene(self, store: Store) -> Scene:
        """Return a scene on the store of the test."""
        return Scene(store)
