"""The fake platforms: each is shipped by its platform's own distribution, and found as plugins are."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.testing.fakes import FAKES_GROUP
from hermes_hookspecs.version import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.testing.fakes import ServesProcesses

__all__ = ["find_fakes", "plugins_for"]


def find_fakes(names: Sequence[str]) -> dict[str, ServesProcesses]:
    """Return a new fake of each platform, by name and in the order of ``names``.

    :raises ConfigError: a platform is not installed, or cannot be imported; the sentence has the command that helps.
    """
    found = {point.name: point for point in entry_points(group=FAKES_GROUP)}
    missing = [name for name in names if name not in found]
    if missing:
        packages = " ".join(f"hermes-sessions-{name}" for name in missing)
        raise ConfigError(
            f"the demo needs platforms that are not installed; run: pip install {packages} "
            f"(in a checkout: pip install {' '.join(f'./plugins/{one}' for one in packages.split())})"
        )
    fakes: dict[str, ServesProcesses] = {}
    for name in names:
        try:
            fakes[name] = found[name].load()()
        except ImportError as error:
            what = f"the fake {name} cannot be imported ({error})"
            raise ConfigError(f"{what}; run: pip install --upgrade hermes-sessions-{name}") from error
    return fakes


def plugins_for(platforms: Sequence[str]) -> tuple[str, ...]:
    """Return the plugins that a gateway and a terminal of the story load: these alone, whatever else is installed."""
    found = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)}
    wanted = ("cli", "demo", *platforms)
    # words are found without an index, too
    return (*wanted, *({"fts5"} & found))
