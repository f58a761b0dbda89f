"""What the entry point names: settings in, hooks out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.commands import Command
    from hermes_hookspecs.ports.agent import Agent

__all__ = ["ShoutPlugin"]


class ShoutPlugin:
    """Brings the agent ``shout``, the command ``/whisper`` and ``hermes shout count``.

    :param config: the table ``[plugins.shout]``; empty where there is none.
    :raises ConfigError: an unknown key, or a mark that is no text.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        for key in config:
            if key != "mark":
                raise ConfigError(f"{key} is unknown; there is only mark", key=key)
        mark = config.get("mark", "!")
        if not isinstance(mark, str):
            raise ConfigError(f"mark = {mark!r} is no text", key="mark")
        self._mark = mark

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        # Imports stand where they are needed: loading a plugin must cost next to nothing.
        from hermes_shout.agent import ShoutAgent

        return (ShoutAgent(self._mark),)

    @hookimpl
    def hermes_commands(self) -> Sequence[Command] | None:
        from hermes_hookspecs.commands import Command
        from hermes_shout.commands import whisper

        return (Command(name="whisper", summary="repeat the last answer in small letters", run=whisper),)

    @hookimpl
    def hermes_cli_commands(self) -> Sequence[CliCommand] | None:
        from hermes_hookspecs.cli import CliCommand, CliOption

        return (
            CliCommand(
                path=("shout", "count"),
                group_summary="What the agent shout remembers.",
                summary="Print how often somebody whispered.",
                run="hermes_shout.commands:count",
                options=(CliOption(names=("--json",), kind="flag", help="Print JSON."),),
            ),
        )
