"""Commands of plugins, made so that a failure names the plugin and the command, and ends neither program nor chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.plugins.stages import is_of_the_caller, one_line
from hermes_hookspecs.errors import HermesError, PluginError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from hermes_hookspecs.cli import CliCall, CliCommand
    from hermes_hookspecs.commands import Command, CommandCall, CommandReply

__all__ = ["named_cli_command", "named_command"]


def named_command(plugin: str, command: Command) -> Command:
    """Return the slash command with a ``run`` that raises nothing but errors of the contract and cancellation."""
    words = f"/{command.name}"

    async def run(call: CommandCall) -> CommandReply:
        from hermes_hookspecs.commands import CommandReply

        try:
            reply: object = await command.run(call)
            if isinstance(reply, CommandReply):
                return reply
            raise TypeError(f"returned a {type(reply).__name__}, not a CommandReply")
        except BaseException as error:
            if is_of_the_caller(error, awaited=True):
                raise
            _raise(error, plugin, words)

    return attrs.evolve(command, run=run)


def named_cli_command(plugin: str, command: CliCommand) -> CliCommand:
    """Return the command line command with a ``run`` that raises nothing but errors of the contract.

    It returns an exit status: ``None`` counts as 0, and a command may leave by ``SystemExit`` with a number. A pipe
    that nobody reads any more passes: it is the caller's.
    """
    words = " ".join(command.path)

    def run(call: CliCall) -> int:
        function = _function(plugin, words, command.run)
        try:
            return _status(function, call)
        except BaseException as error:
            if is_of_the_caller(error) or isinstance(error, BrokenPipeError):
                raise
            _raise(error, plugin, words)

    return attrs.evolve(command, run=run)


def _status(function: Callable[[CliCall], object], call: CliCall) -> int:
    try:
        status = function(call)
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            raise
        status = error.code
    if status is None:
        return 0
    if not isinstance(status, int):
        raise TypeError(f"returned a {type(status).__name__}, not an exit status")
    return status


def _function(plugin: str, words: str, run: str | Callable[[CliCall], int]) -> Callable[[CliCall], int]:
    """Import what a command runs, where it is ``module:function``."""
    if not isinstance(run, str):
        return run
    from importlib import import_module

    module, _, name = run.partition(":")
    try:
        function: Callable[[CliCall], int] = getattr(import_module(module), name)
    except BaseException as error:
        if is_of_the_caller(error):
            raise
        raise PluginError(plugin, "call", f"command {words!r} cannot be run: {one_line(error)}") from error
    return function


def _raise(error: BaseException, plugin: str, words: str) -> NoReturn:
    """Raise ``error`` as the plugin's; errors of the contract say already what a person must know."""
    if isinstance(error, HermesError):
        error.add_note(f"raised by plugin {plugin!r} in command {words!r}")
        raise error
    raise PluginError(plugin, "call", f"command {words!r}: {one_line(error)}") from error
