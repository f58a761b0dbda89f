"""What a process that serves entrances does beside: indexing as rows come, and a round of maintenance now and then."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import HermesError, StoreStopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_hookspecs.ports.app import App

__all__ = ["kept_up"]

_log = getLogger(__name__)

ROUND_S = 60.0
"""Seconds between two rounds of maintenance."""
SOON_S = 1.0
"""Seconds until the next one where the last was ended by its bound."""


@asynccontextmanager
async def kept_up(app: App) -> AsyncIterator[None]:
    """Look after a store as long as the body runs. One process of all that have it open indexes."""
    index = app.search_index
    janitor = app.store.janitor([lambda budget_s: index.catch_up(budget_s=budget_s)])
    rounds = asyncio.create_task(_rounds(app))
    if janitor is not None:
        janitor.start()
    try:
        yield
    finally:
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
        if janitor is not None:
            await asyncio.to_thread(janitor.close)


async def _rounds(app: App) -> None:
    while True:
        try:
            done = await asyncio.to_thread(app.maintain)
        except StoreStopped:
            return
        except HermesError as error:
            _log.warning("a round of maintenance failed: %s", error)
            await asyncio.sleep(ROUND_S)
        else:
            await asyncio.sleep(SOON_S if done.more else ROUND_S)
