"""Tables of the configuration that differ from the general one: for resets, and for single chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.rules import Value

__all__ = ["ChatOverride", "ResetOverride"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ResetOverride:
    """One table that differs from ``[session_reset]`` (:mod:`hermes_core.config.resets`).

    Attributes:
        section: its name in the file. platform: ``None`` for all.
        place: ``""`` for the whole platform, else ``chat_types``, ``chats`` or ``users``. name: which one of them.
        values, origins: key → value, and where it was set.
    """

    section: str
    platform: str | None
    place: str
    name: str
    values: Mapping[str, Value]
    origins: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ChatOverride:
    """The table of one chat, which differs from its platform's (:mod:`hermes_core.config.access`).

    Attributes:
        section: its name in the file. values, origins: key → value, and where it was set.
    """

    section: str
    platform: str
    chat: str
    values: Mapping[str, Value]
    origins: Mapping[str, str]
