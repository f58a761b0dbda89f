"""On whose behalf history is read, and to whom it belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.source import SessionSource

__all__ = ["ADMIN", "OPERATOR", "Owner", "Principal", "operator", "owner_of", "principal_of"]

OPERATOR = "operator"
"""Role of the local terminal and of an embedding program: reads everything."""
ADMIN = "admin"
"""Role of a person whom the configuration names; reads everything where the configuration says so."""


@attrs.frozen
class Owner:
    """To whom a lineage belongs: a person, or the room where the key is shared.

    Attributes:
        kind: ``person`` or ``room``.
        platform, account_id, scope_id: where; the account keeps two bots of one platform apart.
        id: participant id of a person; chat id, or chat and thread joined by a line feed, of a room.
    """

    kind: str
    platform: str
    account_id: str
    scope_id: str
    id: str

    def __str__(self) -> str:
        """Return the stored form: five fields joined by U+001F, which no id may hold."""
        return f"{self.kind}\x1f{self.platform}\x1f{self.account_id}\x1f{self.scope_id}\x1f{self.id}"


@attrs.frozen(kw_only=True)
class Principal:
    """On whose behalf a read happens.

    Attributes:
        owners: every owner form of the person (plain and alternative id) and of the room spoken in.
        roles: :data:`OPERATOR`, :data:`ADMIN` or names of the configuration.
        name: for people.
    """

    owners: frozenset[Owner] = frozenset()
    roles: frozenset[str] = frozenset()
    name: str = ""

    @property
    def sees_all(self) -> bool:
        """Return whether every lineage of the profile may be read."""
        return OPERATOR in self.roles


def operator(name: str = "") -> Principal:
    """Return the principal of the local terminal."""
    return Principal(roles=frozenset({OPERATOR}), name=name)


def _room(source: SessionSource) -> Owner:
    place = source.chat_id or ""
    thread = source.thread_id or (source.prospective_thread_id if source.chat_type != "dm" else None)
    if thread:
        place = f"{place}\n{thread}"
    return Owner("room", source.platform, source.account_id, source.scope_id or "", place)


def _person(source: SessionSource, user: str) -> Owner:
    return Owner("person", source.platform, source.account_id, source.scope_id or "", user)


def owner_of(source: SessionSource, *, shared: bool) -> Owner:
    """Return to whom a lineage that begins with ``source`` belongs.

    :param shared: whether the key is shared by several people, as the key builder says.
    :returns: the room when shared or when nobody is named; the participant otherwise.
    """
    who = source.participant
    if shared or who is None:
        if source.chat_type == "dm" and source.chat_id is not None:
            return _person(source, source.chat_id)
        return _room(source)
    return _person(source, who)


def principal_of(source: SessionSource, *, shared: bool) -> Principal:
    """Return the principal of a message from ``source``: its person by every id, or the room alone when shared.

    Where others can read the answer only the room's own history is in reach (``design.md`` section 13).
    """
    owners = {owner_of(source, shared=shared)}
    if not shared:
        owners |= {_person(source, user) for user in (source.user_id, source.user_id_alt) if user}
        if source.chat_type == "dm" and source.chat_id is not None:
            owners.add(_person(source, source.chat_id))
    return Principal(owners=frozenset(owners), name=source.user_name or source.participant or "")
