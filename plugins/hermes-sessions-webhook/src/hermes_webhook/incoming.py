"""What a request says: its JSON taken apart, and as the core takes it.

Everything that is not exactly as documented is refused, unknown fields too: a misspelt ``thread_id`` would put a
message into somebody else's session.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import attrs

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.source import SessionSource

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MESSAGE", "RECALL", "Incoming", "identity_of", "read"]

MESSAGE: Final = "message"
RECALL: Final = "recall"

_LONGEST_ID = 200
_CHAT_TYPES = ("dm", "group", "channel")
_TEXTS = ("type", "id", "chat_id", "chat_type", "chat_name", "thread_id", "user_id", "user_name", "text", "recalls")
_SWITCHES = ("is_bot", "addressed")


@attrs.frozen(kw_only=True)
class Incoming:
    """One message, recall, or something that we do not know (``kind``)."""

    kind: str
    id: str
    chat_id: str
    user_id: str
    chat_type: str = "dm"
    chat_name: str = ""
    thread_id: str = ""
    user_name: str = ""
    text: str = ""
    recalls: str = ""
    is_bot: bool = False
    addressed: bool = True
    callback_url: str = ""

    def event(self, platform: str, account_id: str, now: int) -> MessageEvent:
        """Return it as the core takes it. ``now``: UTC milliseconds."""
        source = SessionSource(
            platform=platform,
            account_id=account_id,
            chat_type=self.chat_type,
            chat_id=self.chat_id,
            chat_name=self.chat_name,
            thread_id=self.thread_id,
            user_id=self.user_id,
            user_name=self.user_name,
            message_id=self.id,
            is_bot=self.is_bot,
        )
        return MessageEvent(
            source=source,
            text=self.text,
            identities=(identity_of(self.chat_id, self.id),),
            received_at=now,
            addressed=self.addressed or self.chat_type == "dm",
            recalls=identity_of(self.chat_id, self.recalls) if self.recalls else "",
        )


def identity_of(chat_id: str, message_id: str) -> str:
    """Return by what a redelivery is known: ids are unique within a chat of an account."""
    return f"{encode_text(chat_id)}:{encode_text(message_id)}"


def read(body: bytes, key: str = "", *, callbacks: bool = False) -> Incoming:
    """Return what a body says.

    :param key: header ``Idempotency-Key``, which stands for ``id`` where the body has none.
    :param callbacks: whether it may name a ``callback_url``.
    :raises ValueError: it is not as documented; the error says what is wrong, in one line.
    """
    said = _object(body)
    texts = (*_TEXTS, "callback_url") if callbacks else _TEXTS
    for field, value in said.items():
        if field not in texts and field not in _SWITCHES:
            raise ValueError(f"the field {field[:40]!r} is unknown; there are {', '.join([*texts, *_SWITCHES])}")
        if field in _SWITCHES and not isinstance(value, bool):
            raise ValueError(f"{field} is neither true nor false")
        if field in texts:
            _check_text(field, value)
    found = {field: str(value) for field, value in said.items() if field in texts}
    kind = found.pop("type", MESSAGE)
    found["id"] = _id_of(found.get("id", ""), key)
    if found.get("chat_type", "dm") not in _CHAT_TYPES:
        raise ValueError(f"chat_type is none of {', '.join(_CHAT_TYPES)}")
    _check_needs(kind, found)
    found.setdefault("chat_id", found["user_id"])
    switches = {field: said[field] is True for field in _SWITCHES if field in said}
    return Incoming(
        kind=kind,
        is_bot=switches.get("is_bot", False),
        addressed=switches.get("addressed", True),
        **found,
    )


def _object(body: bytes) -> Mapping[str, object]:
    try:
        said: object = json.loads(body.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise ValueError("the body is no JSON in UTF-8") from None
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    if not isinstance(said, dict):
        raise ValueError("the body is no JSON object")  # noqa: TRY004 - what was said is wrong, no type of ours
    return said


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("the body names a field twice")
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"the body holds {constant}, which is no JSON")


def _check_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{field} is no text")  # noqa: TRY004 - as above
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{field} holds half a character") from None
    if field in ("text", "callback_url"):
        return
    if len(value) > _LONGEST_ID:
        raise ValueError(f"{field} is longer than {_LONGEST_ID} characters")
    if any(character < " " or character == "\x7f" for character in value):
        raise ValueError(f"{field} holds control characters")


def _id_of(own: str, key: str) -> str:
    if key and own and key != own:
        raise ValueError("id and the header Idempotency-Key differ")
    found = own or key
    if not found:
        raise ValueError("id is missing: without one (or the header Idempotency-Key) a repetition could not be known")
    _check_text("id", found)
    return found


def _check_needs(kind: str, found: Mapping[str, str]) -> None:
    needed = {MESSAGE: ("text", "user_id"), RECALL: ("recalls", "user_id")}.get(kind, ("user_id",))
    if found.get("chat_type", "dm") != "dm":
        needed = (*needed, "chat_id")
    for field in needed:
        if not found.get(field, "").strip():
            raise ValueError(f"{field} is missing")
    if kind != RECALL and found.get("recalls"):
        raise ValueError(f"recalls belongs to the type {RECALL}")
    if kind == RECALL and found.get("text"):
        raise ValueError(f"the type {RECALL} has no text")
