"""Which of the discovered plugins are to be loaded; the others become rows that say why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.plugins.candidates import normalized
from hermes_core.plugins.report import PluginRow
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.version import API_MAJOR, ENTRY_POINT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.plugins.candidates import Candidate

__all__ = ["blocked_because", "choose", "disabled_because", "unknown_names"]


def choose(
    candidates: Sequence[Candidate], settings: Settings, *, taken: Collection[str], keep: Collection[str]
) -> tuple[list[Candidate], list[PluginRow]]:
    """Return the candidates to load, and a row for each other one. Nothing is imported.

    Incompatible majors go first, then what the settings block, then names that are claimed twice: so blocking one of
    two distributions, by the distribution's name, is the way out of a conflict.

    :param taken: names of built-ins, which no plugin may take.
    :param keep: names that ``enable`` and ``only`` cannot leave out, ``disable`` can: the front end in use.
    """
    rows: list[PluginRow] = []
    wanted: list[Candidate] = []
    for candidate in candidates:
        if not candidate.is_compatible:
            major = candidate.group.removeprefix(ENTRY_POINT_PREFIX)
            reason = f"written for version {major} of the contract, this is version {API_MAJOR}"
            rows.append(_row(candidate, "incompatible", reason))
            continue
        reason = disabled_because(candidate, settings)
        if not reason and candidate.name not in keep:
            reason = blocked_because(candidate, settings)
        if reason:
            rows.append(_row(candidate, "blocked", reason))
        else:
            wanted.append(candidate)
    sound = []
    for candidate in wanted:
        rivals = [other.distribution for other in wanted if other.name == candidate.name]
        if candidate.name in taken:
            rows.append(_refused(candidate, "a built-in plugin has this name"))
        elif len(rivals) > 1:
            both = " and ".join(rivals)
            rows.append(_refused(candidate, f"claimed by {both}; disable one of them by its distribution's name"))
        else:
            sound.append(candidate)
    return sound, rows


def disabled_because(candidate: Candidate, settings: Settings) -> str:
    """Return why ``[plugins] disable`` leaves the plugin out, empty when it does not."""
    plugins = settings.plugins
    if plugins.only is not None or not _is_named(candidate, plugins.disable):
        return ""
    return f"in [plugins] disable ({settings.origins['plugins.disable']})"


def blocked_because(candidate: Candidate, settings: Settings) -> str:
    """Return why ``HERMES_PLUGINS``, ``--no-plugins`` or ``[plugins] enable`` leaves the plugin out, else empty."""
    plugins = settings.plugins
    if plugins.only is not None:
        return "" if _is_named(candidate, plugins.only) else f"left out by {settings.origins['plugins.only']}"
    if plugins.enable and not _is_named(candidate, plugins.enable):
        return f"not in [plugins] enable ({settings.origins['plugins.enable']})"
    return ""


def unknown_names(settings: Settings, candidates: Sequence[Candidate], builtins: Sequence[str]) -> list[str]:
    """Return a line for each plugin that the settings name and nobody has installed, with the nearest name."""
    known = {candidate.name for candidate in candidates} | set(builtins)
    distributions = {normalized(candidate.distribution) for candidate in candidates}
    named = [
        (name, f"[plugins] {key}", f"plugins.{key}")
        for key in ("enable", "disable", "only")
        for name in getattr(settings.plugins, key) or ()
        if normalized(name) not in distributions
    ]
    named += [
        (name, f"[plugins.{name}]", f"plugins.{name}.{key}")
        for name, table in settings.plugin_tables.items()
        for key in list(table)[:1]
    ]
    lines = []
    for name, place, key in named:
        if name in known:
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        origin = settings.origins.get(key, "default")
        where = "it" if place == "[plugins] only" else place  # set by a variable, which its origin names
        lines.append(f"{origin}: {where} names {name!r}, which is not installed{hint}")
    return lines


def _is_named(candidate: Candidate, names: Sequence[str]) -> bool:
    return candidate.name in names or normalized(candidate.distribution) in map(normalized, names)


def _row(candidate: Candidate, stage: str, reason: str) -> PluginRow:
    return PluginRow(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        stage="blocked" if stage == "blocked" else "incompatible",
        reason=reason,
    )


def _refused(candidate: Candidate, reason: str) -> PluginRow:
    return PluginRow(
        name=candidate.name,
        distribution=candidate.distribution,
        version=candidate.version,
        stage="failed",
        failed_at="discover",
        reason=reason,
        error=PluginError(candidate.name, "discover", reason),
    )
