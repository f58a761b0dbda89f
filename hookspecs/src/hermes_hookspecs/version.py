"""The version of the contract: what a plugin states that it was written for."""

from __future__ import annotations

__all__ = ["API_MAJOR", "ENTRY_POINT_GROUP", "ENTRY_POINT_PREFIX"]

API_MAJOR = 1
"""Major version of the hook specifications; a plugin of another major is listed as incompatible, never imported."""

ENTRY_POINT_PREFIX = "hermes.plugins.v"
"""Every group of plugin entry points begins so; the number behind it is the major."""

ENTRY_POINT_GROUP = f"{ENTRY_POINT_PREFIX}{API_MAJOR}"
"""The group that this version loads: ``name = "package.module:Class"``."""
