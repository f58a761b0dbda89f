"""What models used on behalf of a turn beside its agent: descriptions, summaries, the work of tools and jobs.

It is stored with the end of the turn, or behind it where it comes later, and marked late: what an endpoint said of the
newest prompt is read from the other reports alone.
"""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.plugins.stages import one_line
from hermes_core.settling import settled
from hermes_hookspecs.errors import HermesError, StorageError
from hermes_hookspecs.operations import RecordUsage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.turns import Usage

__all__ = ["record_side_usage"]

_log = getLogger(__name__)


async def record_side_usage(around: Surroundings, turn_id: TurnId, usages: Iterable[Usage]) -> None:
    """Add to a turn that has ended what was used on its behalf; what the store cannot write now is owed to it."""
    for usage in usages:
        operation = RecordUsage(turn_id=turn_id, usage=usage, now=around.clock.now())
        try:
            await settled(around.store.perform(operation))
        except StorageError as error:
            around.leftovers.owe(operation, f"what was used for turn {turn_id}", error)
        except HermesError as error:
            _log.warning("what was used for turn %s is not recorded: %s", turn_id, one_line(error))
