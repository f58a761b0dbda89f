"""The script ``hermes``: opens the configuration and hands the command line to the front end that is installed."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hermes_hookspecs.errors import HermesError, PluginError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.app import HermesApp
    from hermes_hookspecs.ports.app import FrontEnd

__all__ = ["main"]

SWITCH_INTERVAL_S = 0.0005
"""How long a busy Python thread keeps the interpreter: at the default of 5 ms a busy thread anywhere in the process
holds a store transaction up, and with it everybody else's (measured: mechanics, section 1)."""


COLLECT_AFTER = 20_000
"""New objects after which the interpreter looks for garbage. Importing makes many thousand and hardly any garbage: at
the default of 700 a quarter of a quick command goes into looking."""

EXIT_SOFTWARE = 70
EXIT_INTERRUPTED = 130


def main() -> int:
    """Run the command line and return its exit status; what nobody else has caught becomes one line."""
    try:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.set_threshold(COLLECT_AFTER)
        return _run(sys.argv[1:])
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BaseException as error:
        if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
            raise
        # A front end tells of its own errors: this comes from before it, from behind it, or from a plugin's
        # exception that is none. Nobody stands above us.
        return _last_resort(error)
    finally:
        # The interpreter collects garbage once more before it ends, and all of it goes with the process anyway: an
        # eighth of the time of a quick command.
        gc.freeze()


def _run(arguments: Sequence[str]) -> int:
    try:
        front_end = _front_end(arguments)
    except HermesError as error:
        return _complain(error)
    if front_end is None:
        _say("no front end is installed, or it is disabled; `pip install hermes-sessions-cli` brings the terminal")
        return 1
    return front_end.main(arguments, _open)


def _open(
    *,
    home: str | None = None,
    profile: str | None = None,
    db: str | None = None,
    overrides: dict[str, object] | None = None,
    plugins: bool = True,
    create: bool = True,
) -> HermesApp:
    """Open the app as the options say."""
    from hermes_core.app import open_app

    return open_app(home, profile=profile, db=db, overrides=overrides, plugins=plugins, create=create)


def _front_end(arguments: Sequence[str]) -> FrontEnd | None:
    """Return the front end that the settings leave in.

    The options that say where the settings are must be known before the front end can parse them.
    """
    from hermes_core.config import load_settings
    from hermes_core.plugins import find_front_end, import_plugin
    from hermes_core.plugins.stages import create

    home, profile, db = (_option(arguments, name) for name in ("--home", "--profile", "--db"))
    settings = load_settings(
        None if home is None else Path(home), profile, {}, os.environ, db=None if db is None else Path(db)
    )
    # Looking for a front end makes no home: whether it is to be made is known only when the options are understood.
    cache = settings.cache_folder if settings.home.is_dir() else None
    candidate = find_front_end(settings, cache, os.environ)
    if candidate is None:
        return None
    plugin = create(candidate.name, import_plugin(candidate), settings)
    return _offered(candidate.name, plugin)


def _offered(name: str, plugin: object) -> FrontEnd | None:
    """Return what the plugin's hook gives, ``None`` where it gives none.

    :raises PluginError: the hook failed, or gave something else.
    """
    from hermes_core.plugins.results import check_of
    from hermes_core.plugins.stages import is_of_the_caller, one_line

    hook = "hermes_front_end"
    try:
        offer = getattr(plugin, hook, None)
        # The check has said that it is one.
        return None if offer is None else cast("FrontEnd | None", check_of(hook)(name, offer()))
    except BaseException as error:
        if is_of_the_caller(error):
            raise
        raise PluginError(name, "call", f"{hook}: {one_line(error)}") from error


def _option(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option that may stand anywhere, as ``--name VALUE`` or ``--name=VALUE``."""
    value: str | None = None
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument.startswith(f"{name}="):
            value = argument[len(name) + 1 :]
        elif argument == name and place + 1 < len(arguments):
            value = arguments[place + 1]
    return value if value is not None and value.strip() else None  # a blank one is the front end's to refuse


def _complain(error: HermesError) -> int:
    if _debugging():
        _show_traceback(error)
    _say(str(error))
    return error.exit_code


def _last_resort(error: BaseException) -> int:
    """Tell what should not happen in one line; ``HERMES_DEBUG=1`` shows where."""
    from hermes_core.plugins.stages import one_line

    debugging = _debugging()
    if debugging:
        _show_traceback(error)
    _say(f"this should not happen: {one_line(error)}{'' if debugging else ' (HERMES_DEBUG=1 shows where)'}")
    return EXIT_SOFTWARE


def _debugging() -> bool:
    return os.environ.get("HERMES_DEBUG", "") not in ("", "0")


def _show_traceback(error: BaseException) -> None:
    import traceback

    with suppress(OSError, ValueError):
        traceback.print_exception(error)


def _say(text: str) -> None:
    """Print one line to stderr, where there is one: the exit status tells as well."""
    from hermes_core.plugins.stages import printable

    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"hermes: {printable(text)}\n")
            sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
