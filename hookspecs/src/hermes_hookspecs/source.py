"""Where a message came from, and which of it decides the session."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

__all__ = ["DEFAULT_ACCOUNT", "DEFAULT_PROFILE", "Entrance", "KeyParts", "KeyPolicy", "SessionSource"]

DEFAULT_ACCOUNT = "default"
"""Alias of the first account of a platform; never part of a key, so that a second one moves nobody."""
DEFAULT_PROFILE = "main"
"""Namespace of the home's own profile in keys."""


def _text_or_none(value: object) -> str | None:
    """Make numbers text and the empty text ``None``: platforms send all three for "not there"."""
    if value is None:
        return None
    text = value if isinstance(value, str) else str(value)
    return text or None


def _required_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _sorted_texts(value: object) -> tuple[str, ...]:
    """Return names in order, each once; one text is refused, since each of its characters would become a name."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"roles are several texts, such as ({value!r},), not {type(value).__name__}")
    return tuple(sorted({str(one) for one in value}))


@attrs.frozen(kw_only=True)
class SessionSource:
    """Where a message came from. Ids are opaque and compared byte for byte; empty text counts as ``None``.

    Attributes:
        platform: open name: ``cli``, ``feishu``, ``weixin``, ``slack``, ``webhook``, ``api_server``, ...
        chat_type: ``dm``, ``group``, ``channel``, ``thread``, ``forum`` or another lower-case word.
        account_id: alias of our account that received it; never an id that a new login changes.
        scope_id: workspace or tenant inside the platform; ``None`` where the platform has none.
        chat_id: address of the conversation.
        thread_id: thread or topic the message stands in.
        prospective_thread_id: thread that the answer will open; ignored in a ``dm``.
        user_id: sender; for Feishu the ``open_id``.
        user_id_alt: more stable id of the same sender; for Feishu the ``union_id``.
        profile: which agent; :data:`DEFAULT_PROFILE` for the home's own.
        user_name, chat_name, chat_topic: labels, data from outside, never part of a key.
        parent_chat_id: channel that owns the thread. message_id: the platform's id of the message itself.
        is_bot: the sender is a bot or a webhook.
        roles: what a plugin's :class:`~hermes_hookspecs.specs.decisions.Allow` added to the sender of this message, in
            order; set at the door of the gateway alone: what an adapter puts here is dropped. Never part of a key.
    """

    platform: str = attrs.field(converter=_required_text)
    chat_type: str = attrs.field(default="dm", converter=_required_text)
    account_id: str = attrs.field(default=DEFAULT_ACCOUNT, converter=_required_text)
    scope_id: str | None = attrs.field(default=None, converter=_text_or_none)
    chat_id: str | None = attrs.field(default=None, converter=_text_or_none)
    thread_id: str | None = attrs.field(default=None, converter=_text_or_none)
    prospective_thread_id: str | None = attrs.field(default=None, converter=_text_or_none)
    user_id: str | None = attrs.field(default=None, converter=_text_or_none)
    user_id_alt: str | None = attrs.field(default=None, converter=_text_or_none)
    profile: str = attrs.field(default=DEFAULT_PROFILE, converter=_required_text)
    user_name: str | None = attrs.field(default=None, converter=_text_or_none)
    chat_name: str | None = attrs.field(default=None, converter=_text_or_none)
    chat_topic: str | None = attrs.field(default=None, converter=_text_or_none)
    parent_chat_id: str | None = attrs.field(default=None, converter=_text_or_none)
    message_id: str | None = attrs.field(default=None, converter=_text_or_none)
    is_bot: bool = False
    roles: tuple[str, ...] = attrs.field(default=(), converter=_sorted_texts)

    @property
    def participant(self) -> str | None:
        """Return the id that stands for the sender: ``user_id_alt`` before ``user_id``."""
        return self.user_id_alt or self.user_id


@attrs.frozen(kw_only=True)
class KeyPolicy:
    """What the operator decided about sharing; stored with every route that it made.

    Attributes:
        group_sessions_per_user: each participant of a group has a session of their own.
        thread_sessions_per_user: the same inside threads; the group's setting does not override it.
    """

    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False


@attrs.frozen(kw_only=True)
class KeyParts:
    """A session key taken apart. Parts that are not in the key are ``None``.

    Attributes:
        shared: several people write into the session behind this key.
        note: why an isolation that was wanted could not be had, ``""`` otherwise.
    """

    profile: str
    platform: str
    chat_type: str
    account_id: str | None = None
    scope_id: str | None = None
    chat_id: str | None = None
    thread_id: str | None = None
    user_id: str | None = None
    shared: bool = False
    note: str = ""


@attrs.frozen
class Entrance:
    """One door: an account of a platform, or one terminal.

    ``str(entrance)`` is what stores and people read: ``feishu``, ``feishu/second``, ``cli/default/pts-3``.
    """

    platform: str
    account_id: str = DEFAULT_ACCOUNT
    terminal: str | None = None

    def __str__(self) -> str:
        """Return the form that is stored and shown."""
        if self.terminal is not None:
            return f"{self.platform}/{self.account_id}/{self.terminal}"
        return self.platform if self.account_id == DEFAULT_ACCOUNT else f"{self.platform}/{self.account_id}"
