"""Pairing: a stranger gets a code, tells it to the operator, and the operator lets them in.

What is remembered stands in plugins' state under :data:`NAMESPACE`: ``asked:`` entries, which expire with their code,
and ``paired:`` entries, which stay until they are revoked. Of a code only its hash is kept.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import attrs

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.ports.gateway import Pairing
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.state import ABSENT, StateUpdate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.state import StateEntry

__all__ = [
    "CODE_LIFE_MS",
    "MOST_OPEN",
    "NAMESPACE",
    "PairingRecord",
    "approval",
    "find_code",
    "is_paired",
    "new_code",
    "records",
    "request",
    "revocation",
    "standing",
]

NAMESPACE: Final = "access"
CODE_LIFE_MS: Final = 3_600_000
MOST_OPEN: Final = 50
"""Codes of one account that may be open at a time; who comes behind them is ignored until one expires."""

_ASKED, _PAIRED = "asked:", "paired:"
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""What nobody mistakes for something else when it is read aloud."""
_LENGTH = 8
_LONGEST_NAME = 100


@attrs.frozen(kw_only=True)
class PairingRecord:
    """One entry, read. ``code_hash`` is ``""`` for who was let in; ``target`` is where they are told."""

    entry: StateEntry
    pairing: Pairing
    code_hash: str
    target: SessionSource


def new_code() -> str:
    """Return a code that nobody guesses: 40 random bits, as people can read them out."""
    from secrets import choice

    letters = "".join(choice(_LETTERS) for _ in range(_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def standing(reader: StoreReader, source: SessionSource, now: int) -> str:
    """Return ``paired``, ``asked`` or ``""``: what is remembered of a sender, by each of their ids."""
    for prefix, word in ((_PAIRED, "paired"), (_ASKED, "asked")):
        if any(reader.state(NAMESPACE, key, now=now) is not None for key in _keys(prefix, source)):
            return word
    return ""


def is_paired(reader: StoreReader, source: SessionSource, now: int) -> bool:
    """Return whether an operator let the sender in."""
    return standing(reader, source, now) == "paired"


def request(reader: StoreReader, source: SessionSource, code: str, now: int) -> StateUpdate | None:
    """Return what remembers that a stranger was sent a code; ``None`` where too many codes are open already."""
    place = _place(Entrance(source.platform, source.account_id))
    if len(reader.states(NAMESPACE, now=now, prefix=f"{_ASKED}{place}:")) >= MOST_OPEN:
        return None
    return StateUpdate(
        namespace=NAMESPACE,
        key=_keys(_ASKED, source)[0],
        value=_value(source, now, name=source.user_name or "", code_hash=_hash(code)),
        expected_version=ABSENT,
        person=source.participant,
        expires_at=now + CODE_LIFE_MS,
    )


def records(reader: StoreReader, now: int) -> Sequence[PairingRecord]:
    """Return everybody who asked or was let in, in order of platform, account and id, who was let in first."""
    found = [*reader.states(NAMESPACE, now=now, prefix=_PAIRED), *reader.states(NAMESPACE, now=now, prefix=_ASKED)]
    read = [record for record in map(_read, found) if record is not None]
    return sorted(read, key=lambda one: (str(one.pairing.entrance), one.pairing.user_id, not one.pairing.approved))


def find_code(found: Sequence[PairingRecord], code: str) -> PairingRecord | None:
    """Return who was sent a code; blanks, dashes and case do not matter. Takes as long whichever it is."""
    from hmac import compare_digest

    wanted, match = _hash(code), None
    for one in found:
        if compare_digest(one.code_hash or "-", wanted):
            match = one
    return match


def approval(record: PairingRecord, now: int) -> tuple[StateUpdate, ...]:
    """Return what lets somebody in and uses their code up; refused where somebody else did either meanwhile."""
    entry = record.entry
    return (
        StateUpdate(namespace=NAMESPACE, key=entry.key, value=None, expected_version=entry.version),
        StateUpdate(
            namespace=NAMESPACE,
            key=_PAIRED + entry.key.removeprefix(_ASKED),
            value=_value(record.target, now, name=record.pairing.user_name),
            person=entry.person,
        ),
    )


def revocation(record: PairingRecord) -> StateUpdate:
    """Return what forgets an entry."""
    return StateUpdate(namespace=NAMESPACE, key=record.entry.key, value=None)


def _keys(prefix: str, source: SessionSource) -> tuple[str, ...]:
    """Return the keys of a sender, the one under which they are remembered first."""
    place = _place(Entrance(source.platform, source.account_id))
    names = dict.fromkeys(name for name in (source.user_id_alt, source.user_id) if name)
    return tuple(f"{prefix}{place}:{encode_text(source.scope_id or '')}:{encode_text(name)}" for name in names)


def _place(entrance: Entrance) -> str:
    return f"{encode_text(entrance.platform)}:{encode_text(entrance.account_id)}"


def _hash(code: str) -> str:
    letters = "".join(character for character in code.upper() if character.isalnum())
    return sha256(letters.encode("utf-8", "surrogatepass")).hexdigest()


def _value(source: SessionSource, at: int, *, name: str, code_hash: str = "") -> str:
    ids = {
        name: getattr(source, name)
        for name in ("platform", "account_id", "scope_id", "chat_id", "thread_id", "user_id", "user_id_alt")
    }
    return json.dumps({"source": ids, "name": name[:_LONGEST_NAME], "at": at, "code_hash": code_hash})


def _read(entry: StateEntry) -> PairingRecord | None:
    """Return an entry taken apart, ``None`` for one that nobody here wrote."""
    try:
        held = json.loads(entry.value)
        target = SessionSource(**held["source"])
        at, name, code_hash = int(held["at"]), str(held["name"]), str(held["code_hash"])
    except (ValueError, TypeError, KeyError):
        return None
    pairing = Pairing(
        entrance=Entrance(target.platform, target.account_id),
        user_id=target.participant or "",
        since=at,
        approved=entry.key.startswith(_PAIRED),
        scope_id=target.scope_id,
        user_name=name,
        expires_at=entry.expires_at,
    )
    return PairingRecord(entry=entry, pairing=pairing, code_hash=code_hash, target=target)
