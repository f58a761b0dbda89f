"""The plugin that talks to people: the script needs it before any other plugin is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.plugins.cache import find_candidates
from hermes_hookspecs.errors import ConfigError, PluginError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.plugins.candidates import Candidate

__all__ = ["DEFAULT_FRONT_END", "FRONT_END_VARIABLE", "find_front_end"]

DEFAULT_FRONT_END: Final = "cli"
FRONT_END_VARIABLE: Final = "HERMES_FRONT_END"


def find_front_end(
    settings: Settings,
    cache_folder: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    *,
    path: Sequence[str] | None = None,
) -> Candidate | None:
    """Return the entry point of the front end, ``None`` when there is none or ``[plugins] disable`` names it.

    It is called ``cli`` unless ``HERMES_FRONT_END`` says otherwise. ``--no-plugins``, ``HERMES_PLUGINS`` and
    ``enable`` do not leave it out: a program without an entrance could not even show what is wrong.

    :raises ConfigError: ``HERMES_FRONT_END`` names a front end that is not installed.
    :raises PluginError: several distributions claim the name.
    """
    named = environ.get(FRONT_END_VARIABLE, "").strip()
    name = named or DEFAULT_FRONT_END
    compatible = [candidate for candidate in find_candidates(cache_folder, path) if candidate.is_compatible]
    found = [candidate for candidate in compatible if candidate.name == name]
    if not found and named:
        there = ", ".join(dict.fromkeys(candidate.name for candidate in compatible)) or "none"
        origin = f"environment {FRONT_END_VARIABLE}"
        raise ConfigError(f"{origin}: no plugin {name!r} is installed; there are: {there}", origin=origin)
    if settings.plugins.disable:
        from hermes_core.plugins.choice import disabled_because

        found = [candidate for candidate in found if not disabled_because(candidate, settings)]
    if len(found) > 1:
        both = " and ".join(candidate.distribution for candidate in found)
        raise PluginError(name, "discover", f"claimed by {both}; disable one of them by its distribution's name")
    return found[0] if found else None
