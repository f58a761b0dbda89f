"""What a principal may see, as a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.principal import Principal

__all__ = ["visible"]


def visible(principal: Principal) -> tuple[str, tuple[str, ...]]:
    """Condition on ``l.owner`` and ``l.room``, where ``l`` is the lineage, and its bindings.

    What :func:`~hermes_hookspecs.principal.may_read` says, as SQL; always true for the operator.
    """
    if principal.sees_all:
        return "TRUE", ()
    owners = tuple(sorted(str(owner) for owner in principal.owners))
    if not owners:
        return "FALSE", ()
    condition = f"l.owner IN ({', '.join('?' * len(owners))})"
    if principal.room is None:
        return condition, owners
    return f"{condition} AND l.room = ?", (*owners, str(principal.room))
