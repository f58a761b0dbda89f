"""The kind of store that ``[storage] backend = "sqlite"`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.ports.store import StoreOptions

__all__ = ["SqliteBackend"]


class SqliteBackend:
    """One SQLite file per profile, shared by all processes of this machine."""

    name: str = "sqlite"

    def open(self, options: StoreOptions) -> SqliteStore:
        """Open or create the file; blocks while another process migrates it.

        :raises StoreRefused: the file is not ours, newer, or stands where it cannot work; nothing was touched.
        :raises StoreBusy: another process kept it locked for ``busy_timeout_s``.
        :raises StoreDamaged: the file is broken.
        """
        from hermes_core.storage.sqlite.database import Database
        from hermes_core.storage.sqlite.schema import SCHEMA
        from hermes_core.storage.sqlite.store import SqliteStore

        return SqliteStore(
            Database.open(
                options.path, schema=SCHEMA, durability=options.durability, busy_timeout_s=options.busy_timeout_s
            )
        )
