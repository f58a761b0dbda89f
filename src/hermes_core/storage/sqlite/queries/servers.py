"""Who serves which entrance, as they said themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_entrance, read_holder
from hermes_hookspecs.inbox import EntranceServer

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader

    ServerRow = tuple[str, str, int, int]

__all__ = ["servers"]

# As many rows as there are doors and processes: a handful.
SERVERS = "SELECT entrance, holder, beats, since FROM entrance_servers ORDER BY no"


def servers(reader: Reader) -> tuple[EntranceServer, ...]:
    """All who serve, in order of entrance and beginning."""
    rows = cast("list[ServerRow]", reader.all(SERVERS))  # columns of SERVERS
    found = [
        EntranceServer(entrance=read_entrance(entrance), holder=read_holder(holder), beats=beats, since=since)
        for entrance, holder, beats, since in rows
    ]
    return tuple(sorted(found, key=lambda server: (str(server.entrance), server.since)))
