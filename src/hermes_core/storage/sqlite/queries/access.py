"""What a principal may see, as a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.cleaning import clean_text

if TYPE_CHECKING:
    from hermes_hookspecs.principal import Principal

__all__ = ["visible"]


def visible(principal: Principal) -> tuple[str, tuple[str, ...]]:
    """Condition on ``l.owner``, where ``l`` is the lineage, and its bindings; always true for the operator."""
    if principal.sees_all:
        return "TRUE", ()
    owners = tuple(sorted(clean_text(str(owner)) for owner in principal.owners))
    if not owners:
        return "FALSE", ()
    return f"l.owner IN ({', '.join('?' * len(owners))})", owners
