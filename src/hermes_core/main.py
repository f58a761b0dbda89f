"""The script ``hermes``: opens the configuration and hands the command line to the front end that is installed."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.app import HermesApp
    from hermes_hookspecs.ports.app import FrontEnd

__all__ = ["main"]

SWITCH_INTERVAL_S = 0.0005
"""How long a busy Python thread keeps the interpreter: at the default of 5 ms a busy thread anywhere in the process
holds a store transaction up, and with it everybody else's (measured: mechanics, section 1)."""


def main() -> int:
    """Run the command line and return its exit status."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        return _run(sys.argv[1:])
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
        sys.stderr.write(
            "hermes: no front end is installed, or it is disabled; `pip install hermes-sessions-cli` brings the "
            "terminal\n"
        )
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
    candidate = find_front_end(settings, settings.home / "cache", os.environ)
    if candidate is None:
        return None
    plugin = create(candidate.name, import_plugin(candidate), settings)
    offer = getattr(plugin, "hermes_front_end", None)
    found: FrontEnd | None = None if offer is None else offer()
    return found


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
    return value


def _complain(error: HermesError) -> int:
    sys.stderr.write(f"hermes: {error}\n")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
