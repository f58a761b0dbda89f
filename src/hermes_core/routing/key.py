"""The one place where session keys are built, encoded and parsed (``design.md`` section 5).

::

    agent:<profile>:<platform>:<chat type>[:account=…][:scope=…][:chat=…][:thread=…][:user=…]

Every value is percent-encoded as UTF-8 where it holds ``%``, ``:``, ``=``, a blank, a control character or half a
surrogate pair, so the encoding is injective and can be parsed back. A key has at most 512 characters; where it would
be longer the longest values are replaced by ``%h`` and 40 hexadecimal digits of their SHA-256. ``%h`` is no
percent-encoding, so a hashed value is never mistaken for a plain one. Ids are opaque and never folded or trimmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.encoding import decode_text, encode_text
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.source import DEFAULT_ACCOUNT, KeyParts, SessionSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.source import KeyPolicy

__all__ = ["KEY_LIMIT", "LabelledKeyBuilder", "build_session_key", "decode_value", "encode_value"]

KEY_LIMIT = 512
"""Most characters of a key."""
SCOPED_PLATFORMS = frozenset({"slack"})
"""Platforms whose ids are unique only inside a workspace."""

_HASH_MARK = "%h"
_HASH_DIGITS = 40
_LABELS = ("account", "scope", "chat", "thread", "user")


class LabelledKeyBuilder:
    """The built-in builder (:class:`~hermes_hookspecs.ports.policies.KeyBuilder`). Pure.

    Who is in the key:

    - ``dm``: chat, and the thread if there is one. Without chat the participant; without either the thread.
    - other places without thread: chat, and the participant when ``group_sessions_per_user``.
    - threads and topics: chat and thread, shared by their members unless ``thread_sessions_per_user``, which
      ``group_sessions_per_user = false`` does not override.
    - the account whenever it is not ``default``; the scope on platforms that declare one.

    :param scoped: platforms whose scope is part of the key.
    """

    version = 1

    def __init__(self, scoped: frozenset[str] = SCOPED_PLATFORMS) -> None:
        self._scoped = scoped

    def build(self, source: SessionSource, policy: KeyPolicy) -> SessionKey:
        """Return the key of ``source``, at most :data:`KEY_LIMIT` characters.

        :raises KeyBuildError: the source does not say enough to keep it apart from everybody else's.
        """
        return _render(self.parts(source, policy))

    def parts(self, source: SessionSource, policy: KeyPolicy) -> KeyParts:
        """Return what :meth:`build` puts into the key, whether the session is shared, and what could not be had.

        :raises KeyBuildError: as in :meth:`build`.
        """
        if not source.platform or not source.chat_type or not source.profile:
            raise KeyBuildError("a source needs a platform, a chat type and a profile")
        if source.chat_type == "dm":
            chat, thread, user, shared, note = _direct(source)
        else:
            chat, thread, user, shared, note = _place(source, policy)
        return KeyParts(
            profile=source.profile,
            platform=source.platform,
            chat_type=source.chat_type,
            account_id=None if source.account_id in ("", DEFAULT_ACCOUNT) else source.account_id,
            scope_id=source.scope_id if source.platform in self._scoped else None,
            chat_id=chat,
            thread_id=thread,
            user_id=user,
            shared=shared,
            note=note,
        )

    def parse(self, key: SessionKey) -> KeyParts:
        """Return the parts of a key; a hashed value comes back as its ``%h`` form.

        :raises ValueError: not a key of this grammar.
        """
        fields = key.split(":")
        if len(fields) < 4 or fields[0] != "agent" or not all(fields[:4]) or len(key) > KEY_LIMIT:
            raise ValueError(f"{key!r} is not a session key")
        values: dict[str, str] = {}
        last = -1
        for field in fields[4:]:
            label, mark, value = field.partition("=")
            if not mark or not value or label not in _LABELS or _LABELS.index(label) <= last:
                raise ValueError(f"{key!r} is not a session key: {field!r} is out of place")
            last = _LABELS.index(label)
            values[label] = decode_value(value)
        return KeyParts(
            profile=decode_value(fields[1]),
            platform=decode_value(fields[2]),
            chat_type=decode_value(fields[3]),
            account_id=values.get("account"),
            scope_id=values.get("scope"),
            chat_id=values.get("chat"),
            thread_id=values.get("thread"),
            user_id=values.get("user"),
        )

    def alternatives(self, source: SessionSource, policy: KeyPolicy) -> Sequence[SessionKey]:
        """Return the key with the plain ``user_id`` where the key holds the alternative one.

        Platforms begin to send the stable id late (Feishu ``union_id`` beside ``open_id``); the session that was
        begun under the plain id is claimed once.
        """
        parts = self.parts(source, policy)
        if parts.user_id is None or not source.user_id or source.user_id == parts.user_id:
            return ()
        import attrs

        return (_render(attrs.evolve(parts, user_id=source.user_id)),)


def build_session_key(source: SessionSource, policy: KeyPolicy) -> SessionKey:
    """Return the key that the built-in builder makes. :raises KeyBuildError: too little identity."""
    return LabelledKeyBuilder().build(source, policy)


_Choice = tuple[str | None, str | None, str | None, bool, str]


def _direct(source: SessionSource) -> _Choice:
    """Return chat, thread, user, shared and note of a direct message."""
    if source.chat_id is not None:
        return source.chat_id, source.thread_id, None, False, ""
    if source.participant is not None:
        return None, source.thread_id, source.participant, False, ""
    if source.thread_id is not None:
        return None, source.thread_id, None, False, "neither chat nor sender is known; the thread stands for both"
    raise KeyBuildError(
        f"a direct message on {source.platform!r} names neither chat nor sender nor thread; "
        "it could be anybody's and is refused"
    )


def _place(source: SessionSource, policy: KeyPolicy) -> _Choice:
    """Return chat, thread, user, shared and note of a group, channel, thread or topic."""
    thread = source.thread_id or source.prospective_thread_id
    per_user = policy.thread_sessions_per_user if thread else policy.group_sessions_per_user
    user = source.participant if per_user else None
    note = "the sender is not known; the session is the room's" if per_user and user is None else ""
    if source.chat_id is None and thread is None and user is None:
        raise KeyBuildError(
            f"a message in a {source.chat_type!r} on {source.platform!r} names no chat; "
            "it would share one session with every other such message and is refused"
        )
    return source.chat_id, thread, user, user is None, note


def _render(parts: KeyParts) -> SessionKey:
    from hermes_hookspecs.ids import SessionKey

    head = [parts.profile, parts.platform, parts.chat_type]
    labelled = [
        (label, value)
        for label, value in zip(
            _LABELS,
            (parts.account_id, parts.scope_id, parts.chat_id, parts.thread_id, parts.user_id),
            strict=True,
        )
        if value is not None
    ]
    raw = head + [value for _, value in labelled]
    encoded = [encode_value(value) for value in raw]
    prefixes = ["", "", "", *(f"{label}=" for label, _ in labelled)]
    fixed = len("agent") + len(encoded) + sum(map(len, prefixes))
    while fixed + sum(map(len, encoded)) > KEY_LIMIT:
        longest = max(range(len(encoded)), key=lambda index: len(encoded[index]))
        encoded[longest] = _hashed(raw[longest])
    return SessionKey(":".join(["agent", *(p + v for p, v in zip(prefixes, encoded, strict=True))]))


def _hashed(value: str) -> str:
    from hashlib import sha256

    return _HASH_MARK + sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def encode_value(value: str) -> str:
    """Return ``value`` with every character that has a meaning in a key percent-encoded as UTF-8."""
    return encode_text(value)


def decode_value(text: str) -> str:
    """Return the value that :func:`encode_value` made ``text`` from; a hashed value is returned as it is.

    :raises ValueError: not an encoded value.
    """
    if text.startswith(_HASH_MARK):
        digits = text[len(_HASH_MARK) :]
        if len(digits) != _HASH_DIGITS or digits.strip("0123456789abcdef"):
            raise ValueError(f"{text!r} is not an encoded value")
        return text
    return decode_text(text)
