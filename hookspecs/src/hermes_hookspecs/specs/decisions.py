"""Answers of decision hooks."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hermes_hookspecs.principal import OPERATOR

__all__ = ["AccessDecision", "Allow", "Ignore", "Refuse"]


def _roles(value: object) -> frozenset[str]:
    """Return names of roles. :raises TypeError: it is no collection of names. :raises ValueError: the operator's."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"roles are several names, such as {{{value!r}}}, not {type(value).__name__}")
    found = frozenset(value)
    if not all(isinstance(one, str) and one for one in found):
        raise TypeError(f"each role is a name, unlike one of {sorted(map(repr, found))}")
    if OPERATOR in found:
        raise ValueError(
            f"the role {OPERATOR!r} is the local terminal's; {'admin'!r} is the highest that a message can have"
        )
    return found


@attrs.frozen(kw_only=True)
class Allow:
    """The message comes in.

    Attributes:
        roles: names added to the principal of the message, and stored with it: commands, approvals and tools see them
            whenever they run. ``admin`` is as good as a line in ``admins``; ``operator`` is refused.
    """

    roles: frozenset[str] = attrs.field(default=frozenset(), converter=_roles)


@attrs.frozen(kw_only=True)
class Refuse:
    """The sender is told ``reply``; only identity and ``reason`` are kept."""

    reason: str
    reply: str


@attrs.frozen(kw_only=True)
class Ignore:
    """Nobody is told; the refusal is counted with its ``reason``."""

    reason: str


AccessDecision = Allow | Refuse | Ignore
