"""The plugin: it brings the front end, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from hermes_hookspecs.ports.app import FrontEnd

__all__ = ["CliPlugin"]


class CliPlugin:
    """Entry point ``cli`` of the group ``hermes.plugins.v1``."""

    @hookimpl
    def hermes_front_end(self) -> FrontEnd | None:
        from hermes_cli.front_end import CliFrontEnd

        return CliFrontEnd()
