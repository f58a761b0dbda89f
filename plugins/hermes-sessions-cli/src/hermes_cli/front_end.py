"""From the command line to an exit status: find the command, open the app, run, say what went wrong in one line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_cli.parser import global_values, locate, parse, usage_error
from hermes_cli.streams import prepare, silence, width_of
from hermes_cli.table import CHAT, COMMANDS, LOAD_NO_PLUGINS
from hermes_hookspecs.cli import CliCall
from hermes_hookspecs.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from hermes_cli.parser import Located
    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.ports.app import App

__all__ = ["CliFrontEnd"]

DEFAULT_PROFILE = "default"
"""The profile whose folder is the home itself."""
EXIT_USAGE = 2
EXIT_SOFTWARE = 70
EXIT_OUTPUT = 74
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class CliFrontEnd:
    """The front end of the script ``hermes``. Stdout is data, stderr is talk."""

    name = "cli"

    def main(self, arguments: Sequence[str], open_app: Callable[..., App]) -> int:
        """Run one command line and return its exit status; nothing but a signal comes out as an exception."""
        out, err = prepare()
        debug = "--debug" in arguments or os.environ.get("HERMES_DEBUG", "") not in ("", "0")
        try:
            if debug:
                _log_to_stderr()
            status = _Program(list(arguments), open_app, out, err).run()
            out.flush()
        except BrokenPipeError:
            silence(out)
            return EXIT_BROKEN_PIPE
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the top of the program: nobody else could tell the person
            return _report(error, out, err, debug=debug)
        return status


def _report(error: Exception, out: TextIO, err: TextIO, *, debug: bool) -> int:
    """Print one line about ``error`` and return the exit status that belongs to it."""
    from hermes_cli.safe_text import safe_line

    try:
        out.flush()
    except (OSError, ValueError):
        silence(out)
    if debug:
        import traceback

        traceback.print_exception(error, file=err)
    if isinstance(error, HermesError):
        line, status = str(error), error.exit_code
    elif isinstance(error, OSError):
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, (str, bytes)) else ""
        line, status = f"{error.strerror or error}{where}", EXIT_OUTPUT
    else:
        said = safe_line(str(error))
        what = f"{type(error).__name__}: {said}" if said else type(error).__name__
        hint = "" if debug else " (HERMES_DEBUG=1 shows where)"
        line, status = f"this should not happen: {what}{hint}", EXIT_SOFTWARE
    _say(err, f"hermes: {safe_line(line)}")
    return status


def _show_log_lines() -> None:
    """Let what the library logs look like what we say; loads ``logging``, so not for commands that load no plugins."""
    from hermes_cli.log_lines import show_as_lines

    show_as_lines()


def _say(err: TextIO, line: str) -> None:
    try:
        print(line, file=err, flush=True)
    except (OSError, ValueError):
        silence(err)  # nobody listens any more; the exit status still tells


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


class _Program:
    """One run of the program."""

    def __init__(self, tokens: list[str], open_app: Callable[..., App], out: TextIO, err: TextIO) -> None:
        self._tokens = tokens
        self._open_app = open_app
        self._out = out
        self._err = err
        self._width = width_of(out)

    def run(self) -> int:
        found = locate(self._tokens, COMMANDS, CHAT)
        early = global_values(self._tokens)
        if early["version"]:
            return self._versions()
        if early["help"]:
            return self._help(found, early)
        if found.command is not None:
            values = parse(found.command, found.rest)
            with self._opened(values, create=found.command is CHAT) as app:
                return self._call(found.command, values, app)
        if found.path and found.unknown is None:
            return self._incomplete(found)
        return self._of_a_plugin(early)

    def _opened(self, values: Mapping[str, object], *, create: bool = False) -> App:
        """Open the app; only who talks makes a home, a profile or a database that was named and is not there."""
        overrides = {"agent.runner": values["agent"]} if values.get("agent") is not None else {}
        return self._open_app(
            home=values["home"],
            profile=values["profile"],
            db=values["db"],
            overrides=overrides,
            plugins=not values["no_plugins"],
            create=create,
        )

    def _call(self, command: CliCommand, values: Mapping[str, object], app: App) -> int:
        """Run one command, and pass on, once, what the app has to tell people."""
        if command.path not in LOAD_NO_PLUGINS:
            _show_log_lines()
        function = _function(command)
        call = CliCall(app=app, values=values, out=self._out, err=self._err, width=self._width)
        self._note_moved_store(values, app)
        if command is CHAT:
            self._notices(app)  # before the first question, not behind the last answer
        status = function(call)
        self._out.flush()
        self._notices(app)
        return status

    def _note_moved_store(self, values: Mapping[str, object], app: App) -> None:
        """Say that the store is not where programs had it: opening makes a new one, which looks like lost history."""
        folder = app.home if app.profile == DEFAULT_PROFILE else os.path.join(app.home, "profiles", app.profile)
        path = str(values["db"]) if values.get("db") is not None else os.path.join(folder, "state.db")
        if os.path.lexists(path) or not os.path.exists(f"{path}-open"):
            return
        from hermes_cli.safe_text import safe_line

        what = f"{path} is gone, though {os.path.basename(path)}-open says that there was one"
        _say(self._err, safe_line(f"hermes: {what}; a new store begins. If you moved it, put it back first"))

    def _notices(self, app: App) -> None:
        notices = app.notices()
        if notices:
            from hermes_cli.safe_text import safe_line

            for notice in notices:
                _say(self._err, f"hermes: {safe_line(notice)}")

    def _of_a_plugin(self, early: Mapping[str, object]) -> int:
        """Run a command that only a plugin can know."""
        _show_log_lines()
        with self._opened(early) as app:
            commands = _all_commands(app)
            found = locate(self._tokens, commands, CHAT)
            if found.command is not None:
                return self._call(found.command, parse(found.command, found.rest), app)
            if found.unknown is None:
                return self._incomplete(found, commands)
            self._notices(app)  # the plugin that has the command may be the broken one
            raise _unknown_command(found, commands)

    def _incomplete(self, found: Located, commands: Sequence[CliCommand] = COMMANDS) -> int:
        """Show what can stand behind the words; a command is missing, so this is no success."""
        from hermes_cli.help_text import group_help

        _say(self._err, group_help(found.path, commands, self._width))
        return EXIT_USAGE

    def _help(self, found: Located, early: Mapping[str, object]) -> int:
        from hermes_cli.help_text import command_help, group_help, program_help

        if found.command is not None and found.path:
            print(command_help(found.command, self._width), file=self._out)
            return 0
        _show_log_lines()
        try:
            with self._opened(early) as app:
                commands = _all_commands(app)
        except HermesError as error:
            # Help must be there above all when something is broken.
            _say(self._err, f"hermes: without the commands of plugins: {error}")
            commands = COMMANDS
        found = locate(self._tokens, commands, CHAT)
        if found.unknown is not None:
            raise _unknown_command(found, commands)
        if not found.path:
            text = program_help(commands, CHAT, self._width)
        elif found.command is not None:
            text = command_help(found.command, self._width)
        else:
            text = group_help(found.path, commands, self._width)
        print(text, file=self._out)
        return 0

    def _versions(self) -> int:
        from importlib.metadata import PackageNotFoundError, version
        from platform import python_version

        for name in ("hermes-sessions-core", "hermes-sessions-hookspecs", "hermes-sessions-cli"):
            try:
                print(f"{name} {version(name)}", file=self._out)
            except PackageNotFoundError:
                print(f"{name} (not installed)", file=self._out)
        print(f"python {python_version()}", file=self._out)
        return 0


def _function(command: CliCommand) -> Callable[[CliCall], int]:
    """Import what a command runs.

    :raises HermesError: a plugin's cannot be imported; its author is to be told, not we.
    """
    run = command.run
    if not isinstance(run, str):
        return run
    from importlib import import_module

    module, _, name = run.partition(":")
    try:
        function: Callable[[CliCall], int] = getattr(import_module(module), name)
    except Exception as error:
        if command in COMMANDS:
            raise
        words = " ".join(command.path)
        raise HermesError(f"command {words!r} cannot be run: {type(error).__name__}: {error}") from error
    return function


def _all_commands(app: App) -> tuple[CliCommand, ...]:
    """Return our commands and those of plugins; ours win over one with the same words."""
    paths = {command.path for command in COMMANDS}
    return (*COMMANDS, *(command for command in app.cli_commands() if command.path not in paths))


def _unknown_command(found: Located, commands: Sequence[CliCommand]) -> HermesError:
    from hermes_cli.parser import nearest

    depth = len(found.path)
    known = {
        command.path[depth] for command in commands if len(command.path) > depth and command.path[:depth] == found.path
    }
    title = " ".join(("hermes", *found.path))
    hint = nearest(found.unknown or "", sorted(known))
    return usage_error(f"`{title}` has no command {found.unknown!r}{hint} (see `{title} --help`)")
