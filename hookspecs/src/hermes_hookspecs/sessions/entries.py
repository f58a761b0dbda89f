"""Sessions, lineages and routes as they are read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.source import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, MessageId, SessionId, SessionKey
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["TITLE_LIMIT", "Lineage", "Route", "Session", "SessionEntry"]

TITLE_LIMIT = 100
"""Most characters of a title after cleaning."""


@attrs.frozen(kw_only=True)
class SessionEntry:
    """What a key leads to right now: the answer of get-or-create.

    Attributes:
        session_id: the tip, where the next row goes. version: of the lineage; grows with every write.
        created: this very call made the session.
        created_at, updated_at: UTC milliseconds of the lineage; ``updated_at`` is its last activity.
        shared: several people write here. claimed: the legacy key this route was claimed from.
        superseded: waiting messages that this very call settled instead of taking them along.
    """

    session_key: SessionKey
    session_id: SessionId
    lineage_id: LineageId
    source: SessionSource
    created_at: int
    updated_at: int
    version: int
    title: str | None = None
    shared: bool = False
    created: bool = False
    claimed: SessionKey | None = None
    superseded: int = 0


@attrs.frozen(kw_only=True)
class Session:
    """One segment of a lineage. A number that is not known is ``None``, never 0.

    Attributes:
        source: platform name. user_id: participant of the first message.
        kept_from: first row of the lineage that stays in the context behind this session's summary; the summary itself
            where nothing of what was said before stays.
        end_reason: why it ended: ``session_reset``, ``session_switch``, ``compression``, ``new_session``, ...
        message_count: rows that are not hidden.
    """

    id: SessionId
    lineage_id: LineageId
    source: str
    account_id: str = DEFAULT_ACCOUNT
    user_id: str | None = None
    model: str | None = None
    model_config: str | None = None
    system_prompt: str | None = None
    parent_session_id: SessionId | None = None
    kept_from: MessageId | None = None
    title: str | None = None
    started_at: int
    ended_at: int | None = None
    end_reason: str | None = None
    message_count: int = 0
    tool_call_count: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    estimated_cost_usd: float | None = None


@attrs.frozen(kw_only=True)
class Lineage:
    """A conversation: what lists, fences and titles need, in one row.

    Attributes:
        tip: the session that goes on. version: grows by one with every write.
        title_origin: ``user``, ``auto`` or ``None``; automatic titles never replace a person's.
        preview: beginning of the first user text, at most 80 characters.
        shared: several people write here. segments: how many sessions it has.
        room: the one group, channel or thread in which all of it was said; ``None`` for anything said in private, and
            once it was gone on with at another place.
        branched_from: the session that it was branched off, which may be gone by now; ``None`` for one that was not.
    """

    id: LineageId
    tip: SessionId
    owner: Owner
    source: SessionSource
    shared: bool
    title: str | None
    title_origin: str | None
    pinned: bool
    archived: bool
    created_at: int
    last_activity: int
    message_count: int
    turn_count: int
    segments: int
    preview: str
    version: int
    room: Owner | None = None
    branched_from: SessionId | None = None


@attrs.frozen(kw_only=True)
class Route:
    """A key and the lineage it leads to.

    Attributes:
        lineage_id: ``None`` after a reset: the next message makes a session.
        key_version: version of the key grammar. policy: what was in force when the key was made.
        pending_title: title given to ``/new``, for the session to come.
    """

    key: SessionKey
    source: SessionSource
    lineage_id: LineageId | None
    key_version: int
    policy: KeyPolicy
    created_at: int
    updated_at: int
    pending_title: str | None = None
