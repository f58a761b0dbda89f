"""One line for each turn that ends: an event hook, whose failure costs nobody an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_hookspecs.turns import Turn


class TurnLogPlugin:
    """Appends to the file that ``[plugins.turn-log] file`` names."""

    def __init__(self, config: Mapping[str, object]) -> None:
        file = config.get("file")
        if not isinstance(file, str):
            raise ConfigError("file is missing; write the path of the log", key="file")
        self._file = Path(file)

    @hookimpl
    def hermes_after_turn_finish(self, turn: Turn) -> None:
        # Ids only: what was said is nobody's business in a log.
        line = f"{turn.id} {turn.session_id} {turn.entrance} {turn.outcome}\n"
        with self._file.open("a", encoding="utf-8") as log:
            log.write(line)
