"""The plugin that brings the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.store import StoreBackend

__all__ = ["ToyStorePlugin"]


class ToyStorePlugin:
    """Entry point ``toy`` of the group ``hermes.plugins.v1``; takes no settings."""

    @hookimpl
    def hermes_store_backends(self) -> Sequence[StoreBackend] | None:
        from hermes_toy_store.backend import ToyBackend

        return (ToyBackend(),)
