"""What is installed: the entry points of plugins, read from metadata without importing anything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from hermes_hookspecs.version import ENTRY_POINT_GROUP, ENTRY_POINT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class _Named(Protocol):
        """The part of a distribution that is read here."""

        @property
        def name(self) -> str:
            """Name, as in the metadata."""

        @property
        def version(self) -> str:
            """Version, as in the metadata."""


__all__ = ["Candidate", "discover", "normalized"]


class Candidate(NamedTuple):
    """One entry point, not yet imported. A plain tuple, since every command reads these from a cache.

    ``name``: of the entry point. ``distribution``, ``version``: who brings it. ``group``: carries the major.
    ``value``: ``package.module:attribute``.
    """

    name: str
    distribution: str
    version: str
    group: str
    value: str

    @property
    def is_compatible(self) -> bool:
        """Whether the plugin was written for this major of the contract."""
        return self.group == ENTRY_POINT_GROUP


def discover(path: Sequence[str] | None = None) -> tuple[Candidate, ...]:
    """Return every plugin on ``path``, sorted by name, group and distribution; imports none of them.

    A distribution that is there twice counts once, as it does for ``import``: the first on the path wins.
    Names that several distributions claim are all returned; the loader refuses them.

    :param path: folders to look in, ``None`` for ``sys.path``. Blocks on the disk.
    """
    from importlib_metadata import distributions  # costs more than everything else here together

    found: list[Candidate] = []
    seen: set[str] = set()
    for distribution in distributions(path=list(sys.path if path is None else path)):
        # Most distributions have no plugin of ours: look before parsing, and never read their METADATA.
        text = distribution.read_text("entry_points.txt")
        if not text or ENTRY_POINT_PREFIX not in text:
            continue
        name, version = _identity(distribution)
        if normalized(name) in seen:
            continue
        seen.add(normalized(name))
        found += (
            Candidate(entry.name, name, version, entry.group, entry.value)
            for entry in distribution.entry_points
            if entry.group.startswith(ENTRY_POINT_PREFIX)
        )
    return tuple(sorted(found))


def normalized(distribution: str) -> str:
    """Return the name of a distribution as the packaging world compares it: ``My_Plugin`` is ``my-plugin``."""
    return distribution.lower().replace("_", "-").replace(".", "-")


def _identity(distribution: _Named) -> tuple[str, str]:
    """Return name and version, or a stand-in where the metadata is damaged: its plugins may be sound."""
    try:
        return str(distribution.name), str(distribution.version)
    except (OSError, KeyError, ValueError):
        return "(no metadata)", ""
