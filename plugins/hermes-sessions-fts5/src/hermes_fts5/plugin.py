"""The plugin: it brings one kind of search index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.search import SearchSource

__all__ = ["Fts5Plugin"]


class Fts5Plugin:
    """Entry point ``fts5`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.fts5]``, see :class:`~hermes_fts5.config.Fts5Config`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_fts5.config import Fts5Config

        self._config = Fts5Config.of(config)

    @hookimpl
    def hermes_search_sources(self) -> Sequence[SearchSource] | None:
        from hermes_fts5.source import Fts5Source

        return (Fts5Source(self._config),)
