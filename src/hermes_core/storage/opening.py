"""Opening the store that ``[storage] backend`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.ports.store import StoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_core.config.sections import Settings
    from hermes_hookspecs.ports.store import Store, StoreBackend

__all__ = ["open_store"]


def open_store(settings: Settings, others: Callable[[], Mapping[str, StoreBackend]]) -> Store:
    """Return the open store of a profile.

    :param others: the backends of plugins, asked only for a name that is not built in.
    :raises ConfigError: there is no backend of that name. :raises StorageError: it cannot be opened.
    """
    name = settings.storage.backend
    backend = _built_in(name)
    if backend is None:
        found = others()
        backend = found.get(name)
        if backend is None:
            known = ", ".join(sorted({"sqlite", "memory", *found}))
            origin = settings.origins["storage.backend"]
            raise ConfigError(
                f"{origin}: [storage] backend = {name!r}: there is no such backend; there are: {known}",
                origin=origin,
                section="storage",
                key="backend",
            )
    return backend.open(
        StoreOptions(
            path=settings.db_path,
            durability=settings.storage.durability,
            busy_timeout_s=settings.storage.busy_timeout_s,
            settings=settings.plugin_table(name),
        )
    )


def _built_in(name: str) -> StoreBackend | None:
    if name == "sqlite":
        from hermes_core.storage.sqlite.backend import SqliteBackend

        return SqliteBackend()
    if name == "memory":
        from hermes_core.storage.memory import MemoryBackend

        return MemoryBackend()
    return None
