"""The kind of index that this plugin brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import StoreRefused
from hermes_hookspecs.ports.sqlite import sqlite_access

if TYPE_CHECKING:
    from hermes_fts5.config import Fts5Config
    from hermes_fts5.index import Fts5Index
    from hermes_hookspecs.ports.store import Store

__all__ = ["Fts5Source"]

OLDEST_SQLITE = (3, 43)
"""Contentless tables from which rows can be deleted."""


class Fts5Source:
    """Full-text search inside a SQLite store (:class:`~hermes_hookspecs.ports.search.SearchSource`)."""

    name: str = "fts5"
    backends: tuple[str, ...] = ("sqlite",)

    def __init__(self, config: Fts5Config) -> None:
        self._config = config

    def open(self, store: Store) -> Fts5Index:
        """Return the index of an open store; its tables are made when they are first written.

        :raises StoreRefused: the store offers no tables, its SQLite is too old, or the index is of a newer version.
        """
        from hermes_fts5.index import Fts5Index

        access = sqlite_access(store)
        if access is None:
            raise StoreRefused(f"{store.location} is no SQLite store: there is no place for a full-text index")
        if tuple(int(part) for part in access.sqlite_version.split(".")[:2]) < OLDEST_SQLITE:
            raise StoreRefused(f"SQLite {access.sqlite_version} is too old for the index: 3.43 or later is needed")
        return Fts5Index(store, access, self._config)
