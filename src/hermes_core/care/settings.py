"""What a look at the settings finds that no single value shows: unnamed zones, policies and commands nobody brings.

Each check is a function that reads and yields findings; none changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ports.care import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from hermes_core.config.overrides import ResetOverride
    from hermes_core.config.sections import Settings

__all__ = ["check_commands", "check_reset"]

_BY_THE_HOUR = ("daily", "both")


def check_commands(settings: Settings, names: Callable[[str], Collection[str]]) -> Iterator[Finding]:
    """Yield what ``admin_only`` lists and is no command: nobody is kept from anything by it.

    :param names: loads the plugins and returns every name of the commands of a platform, of all for ``""``.
    """
    listed = {"commands": ("", settings.commands.admin_only)}
    listed |= {f"platforms.{name}": (name, one.admin_only or ()) for name, one in settings.platforms.items()}
    for section, (platform, names_there) in listed.items():
        if not names_there:
            continue
        try:
            known = names(platform)
        except HermesError:
            return  # what ails the plugins is told by their own check
        for name in names_there:
            wanted = name.removeprefix("/").lower()
            if wanted not in known:
                yield Finding(
                    kind="unknown-command",
                    subject=f"{section}.admin_only",
                    text=f"[{section}] admin_only holds {name!r}, which is no command{_where(platform)}, so it keeps "
                    f"nobody from anything;{_near(wanted, known)} /help lists what there is",
                )


def _where(platform: str) -> str:
    return f" of {platform}" if platform else ""


def _near(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=1)
    return f" did you mean {near[0]!r}?" if near else ""


def check_reset(settings: Settings, policies: Callable[[], Collection[str]]) -> Iterator[Finding]:
    """Yield policies that nobody brings, and daily resets that follow the host's clock where nobody said which.

    :param policies: loads the plugins and returns the names of what they bring.
    """
    yield from _zones(settings)
    wanted = {"session_reset": settings.session_reset.mode}
    wanted |= {each.section: str(each.values["mode"]) for each in settings.reset_overrides if "mode" in each.values}
    if set(wanted.values()) <= {"none"}:
        return
    try:
        there = sorted(policies())
    except HermesError as error:
        yield Finding(kind="reset-policies", subject="session_reset.mode", text=f"nothing is reset: {error}")
        return
    for section, mode in wanted.items():
        if mode not in there:
            text = f"no plugin brings [{section}] mode = {mode!r}, so nothing is reset there; known: {', '.join(there)}"
            yield Finding(kind="reset-policies", subject=f"{section}.mode", text=text)


def _zones(settings: Settings) -> Iterator[Finding]:
    """Yield the tables by which sessions are reset at an hour of no named zone, each as far as more general ones go."""
    general = settings.session_reset
    unset = general.mode in _BY_THE_HOUR and not general.timezone
    if unset:
        yield _zone_unset("session_reset", general.at_hour)
    for override in settings.reset_overrides:
        values: dict[str, object] = {"mode": general.mode, "timezone": general.timezone, "at_hour": general.at_hour}
        for each in settings.reset_overrides:
            if _holds_for_all_of(each, override):
                values |= each.values
            if each is override:
                break
        if "timezone" not in override.values and (unset or "mode" not in override.values):
            continue  # it is told of the table that says so
        if values["mode"] in _BY_THE_HOUR and not values["timezone"]:
            yield _zone_unset(override.section, values["at_hour"])


def _holds_for_all_of(general: ResetOverride, special: ResetOverride) -> bool:
    """Return whether a table holds wherever a more special one does."""
    if general.platform not in {None, special.platform}:
        return False
    return general.place == "" or (general.place, general.name) == (special.place, special.name)


def _zone_unset(section: str, hour: object) -> Finding:
    text = f"sessions are reset at {hour}:00 by the clock of this host, which may move; set [{section}] timezone"
    return Finding(kind="timezone-unset", subject=f"{section}.timezone", text=text, severity="note")
