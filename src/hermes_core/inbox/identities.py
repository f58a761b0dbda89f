"""By what a redelivery is known: a platform's own ids of a message, told apart by where they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.encoding import encode_text

if TYPE_CHECKING:
    from hermes_hookspecs.inbox import MessageEvent

__all__ = ["identities_of", "own_part"]


def identities_of(event: MessageEvent) -> tuple[str, ...]:
    """Return the identities of a message as they are stored: each once, platform and account in front.

    Two platforms may count alike, and what two of our bots receive are two messages. An empty id tells nothing and is
    left out. Half a surrogate pair, which no store can hold, is escaped, so that two ids stay two.
    """
    source = event.source
    place = f"{encode_text(source.platform)}:{encode_text(source.account_id)}"
    return tuple(dict.fromkeys(f"{place}:{_storable(identity)}" for identity in event.identities if identity))


def _storable(identity: str) -> str:
    return "".join(encode_text(one) if one == "%" or 0xD800 <= ord(one) < 0xE000 else one for one in identity)


def own_part(identity: str) -> str:
    """Return what a stored identity says of the message itself, without platform and account."""
    return identity.split(":", 2)[-1]
