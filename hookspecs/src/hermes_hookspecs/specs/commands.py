"""Commands and front ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.commands import Command
    from hermes_hookspecs.ports.app import FrontEnd


@hookspec(kind="provider", on_error="skip")
def hermes_commands() -> Sequence[Command] | None:
    """Return slash commands, the same on every entrance.

    Called once, before the first message. All results are joined; of two with one name the plugin asked first wins.
    A failure is logged and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_cli_commands() -> Sequence[CliCommand] | None:
    """Return commands of the command line, as descriptions.

    Called once, when a command is looked up that the front end does not know, and for help. All results are joined;
    a front end's own command wins over one with the same path. A failure is logged and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="raise", firstresult=True)
def hermes_front_end() -> FrontEnd | None:
    """Return what the script ``hermes`` hands the command line to.

    Called on the one plugin named ``cli`` (or by ``HERMES_FRONT_END``) before the others are loaded.

    .. versionadded:: 0.1
    """
