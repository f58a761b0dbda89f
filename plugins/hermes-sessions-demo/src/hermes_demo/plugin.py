"""The plugin: the command ``hermes demo``, and in the home that it makes the agent that answers there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.ports.agent import Agent

__all__ = ["DemoPlugin"]


class DemoPlugin:
    """Entry point ``demo`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.demo]``: ``agent = true`` brings the agent ``demo``, which has a small book of
        answers and no model. The command writes it into the home that it makes.
    :raises ConfigError: another key, or another value.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_hookspecs.errors import ConfigError

        for key, value in config.items():
            if key != "agent" or not isinstance(value, bool):
                raise ConfigError(f"[plugins.demo] {key} = {value!r}: there is only agent = true or false", key=key)
        self._answers = bool(config.get("agent", False))

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        if not self._answers:
            return None
        from hermes_demo.agent import DemoAgent

        return (DemoAgent(),)

    @hookimpl
    def hermes_cli_commands(self) -> Sequence[CliCommand] | None:
        from hermes_hookspecs.cli import CliCommand, CliOption

        return (
            CliCommand(
                path=("demo",),
                summary="Show on this machine what a session layer is for; no account, no model, no minute.",
                run="hermes_demo.command:run",
                options=(
                    CliOption(
                        names=("--folder",), metavar="DIR",
                        help="Folder for the store that is left behind [default: a new one for temporary files].",
                    ),
                    CliOption(names=("--svg",), metavar="FILE", help="Write what was shown as a picture, too."),
                ),
                details="Three fake platforms on loopback, a gateway in a process of its own that is killed in the"
                " middle of an answer, people who write in two languages. The summary at the end is checked: the exit"
                " status is 0 when nothing was lost, doubled or crossed, and 1 otherwise.",
            ),
        )  # fmt: skip
