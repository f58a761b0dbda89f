"""On whose behalf history is read, and to whom it belongs.

Two questions decide a read: is it mine, and who hears the answer? A lineage has an *owner* (a person, a direct chat, or
the room where the key is shared), and a *room* when all of it was said in one group, channel or thread. Where others
can read the answer, only that room's own lineages are in reach, whoever asks (``design.md`` section 13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.encoding import decode_text, encode_text

if TYPE_CHECKING:
    from hermes_hookspecs.source import SessionSource

__all__ = ["ADMIN", "OPERATOR", "Owner", "Principal", "may_read", "operator", "owner_of", "principal_of", "room_of"]

OPERATOR = "operator"
"""Role of the local terminal and of an embedding program: reads everything."""
ADMIN = "admin"
"""Role of a person whom the configuration names; reads everything where the configuration says so."""

_FIELDS = 7


@attrs.frozen
class Owner:
    """To whom a lineage belongs, or the room that it was said in.

    Attributes:
        kind: ``person``, ``dm`` (a direct chat whose person is not named) or ``room``.
        profile: which agent. platform, account_id, scope_id: where; two bots of one platform are kept apart.
        id: participant id of a person; chat id of a direct chat or room.
        thread_id: of a thread or topic, ``""`` elsewhere.
    """

    kind: str
    profile: str
    platform: str
    account_id: str
    scope_id: str
    id: str
    thread_id: str = ""

    def __str__(self) -> str:
        """Return the stored form: the fields in order, encoded as in keys and joined by colons."""
        fields = (self.kind, self.profile, self.platform, self.account_id, self.scope_id, self.id, self.thread_id)
        return ":".join(encode_text(field) for field in fields)

    @classmethod
    def parse(cls, text: str) -> Owner:
        """Return the owner whose stored form is ``text``. :raises ValueError: it is nobody's."""
        fields = [decode_text(field) for field in text.split(":")]
        if len(fields) != _FIELDS:
            raise ValueError(f"{text!r} is no owner")
        return cls(*fields)


@attrs.frozen(kw_only=True)
class Principal:
    """On whose behalf a read happens.

    Attributes:
        owners: every owner form of the person (plain and alternative id), of the chat, and of the room spoken in.
        room: where others hear the answer: only lineages of this very room are in reach; ``None`` in private.
        roles: :data:`OPERATOR`, :data:`ADMIN` or names of the configuration.
        name: for people.
    """

    owners: frozenset[Owner] = frozenset()
    room: Owner | None = None
    roles: frozenset[str] = frozenset()
    name: str = ""

    @property
    def sees_all(self) -> bool:
        """Return whether every lineage of the profile may be read."""
        return OPERATOR in self.roles


def may_read(principal: Principal, owner: Owner, room: Owner | None) -> bool:
    """Return whether a lineage of ``owner``, said in ``room`` (``None``: not in one room only), may be read."""
    if principal.sees_all:
        return True
    return owner in principal.owners and (principal.room is None or principal.room == room)


def operator(name: str = "") -> Principal:
    """Return the principal of the local terminal."""
    return Principal(roles=frozenset({OPERATOR}), name=name)


def room_of(source: SessionSource) -> Owner | None:
    """Return the room where others hear what is said to ``source``, ``None`` for a direct message."""
    if source.chat_type == "dm":
        return None
    thread = source.thread_id or source.prospective_thread_id or ""
    return _owner("room", source, source.chat_id or "", thread)


def _owner(kind: str, source: SessionSource, own_id: str, thread: str = "") -> Owner:
    return Owner(kind, source.profile, source.platform, source.account_id, source.scope_id or "", own_id, thread)


def owner_of(source: SessionSource, *, shared: bool) -> Owner:
    """Return to whom a lineage that begins with ``source`` belongs.

    :param shared: whether the key is shared by several people, as the key builder says.
    :returns: the room when shared; the participant otherwise; the chat itself where nobody is named.
    """
    room = room_of(source)
    who = source.participant
    if room is not None and (shared or who is None):
        return room
    if who is None:
        return _owner("dm", source, source.chat_id or "", source.thread_id or "" if source.chat_id is None else "")
    return _owner("person", source, who)


def principal_of(source: SessionSource, *, shared: bool) -> Principal:
    """Return the principal of a message from ``source``.

    In private: the person by every id, and the chat. In a room: the same person, and the room, but of what is theirs
    only what was said in that very room; where the key is shared, the room alone. Roles are those of the source;
    nobody is made the operator by one.
    """
    room = room_of(source)
    owners = {owner_of(source, shared=shared)}
    if room is not None:
        owners.add(room)
    elif source.chat_id is not None:
        owners.add(_owner("dm", source, source.chat_id))
    if not shared:
        owners |= {_owner("person", source, user) for user in (source.user_id, source.user_id_alt) if user}
    name, roles = source.user_name or source.participant or "", frozenset(source.roles) - {OPERATOR}
    return Principal(owners=frozenset(owners), room=room, roles=roles, name=name)
