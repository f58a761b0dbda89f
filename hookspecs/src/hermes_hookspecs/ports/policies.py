"""Ports of what varies by policy: keys, resets, compression, summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hermes_hookspecs.ids import MessageId, SessionKey
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.sessions import Lineage, Session
    from hermes_hookspecs.source import KeyParts, KeyPolicy, SessionSource

__all__ = [
    "Activity",
    "CompressionPolicy",
    "CompressionView",
    "Defer",
    "Keep",
    "KeyBuilder",
    "Reset",
    "ResetDecision",
    "ResetPolicy",
    "ResetSettings",
    "ResetView",
    "Summariser",
]


class KeyBuilder(Protocol):
    """The one function that says which session a source belongs to. Pure."""

    version: int
    """Grows when the same source gets another key; stored with every route."""

    def build(self, source: SessionSource, policy: KeyPolicy) -> SessionKey:
        """Return the key: at most 512 characters, injective, parseable.

        :raises KeyBuildError: too little identity for a key of its own.
        """
        ...

    def parts(self, source: SessionSource, policy: KeyPolicy) -> KeyParts:
        """Return the key of ``source`` taken apart, with whether it is shared and why an isolation failed."""
        ...

    def parse(self, key: SessionKey) -> KeyParts:
        """Return the parts of a key that this builder made (``shared`` and ``note`` are not in it).

        :raises ValueError: not a key of this grammar.
        """
        ...

    def alternatives(self, source: SessionSource, policy: KeyPolicy) -> Sequence[SessionKey]:
        """Return older forms of the same person's key, to be claimed once when the key itself leads nowhere."""
        ...


@attrs.frozen(kw_only=True)
class Activity:
    """Something that runs for a session while nobody talks: a reason not to reset it.

    Attributes:
        kind: ``job``, ``tool``, ``approval``, ... started_at: UTC milliseconds. label: for people.
    """

    kind: str
    label: str
    started_at: int


@attrs.frozen(kw_only=True)
class Keep:
    """The conversation goes on. ``next_check`` says until when this cannot change (UTC milliseconds)."""

    next_check: int | None = None


@attrs.frozen(kw_only=True)
class Reset:
    """The conversation ends. ``reason`` is stored and told; ``at`` is the boundary that was crossed."""

    reason: str
    at: int | None = None


@attrs.frozen(kw_only=True)
class Defer:
    """It would end, but something holds it; ``reason`` is shown by explain."""

    reason: str
    until: int | None = None


ResetDecision = Keep | Reset | Defer


@attrs.frozen(kw_only=True)
class ResetSettings:
    """Effective ``[session_reset]`` of one session. ``timezone`` is an IANA name, ``""`` the host's."""

    mode: str = "none"
    idle_minutes: int = 1440
    at_hour: int = 4
    timezone: str = ""
    bg_process_max_age_hours: float = 24.0


@attrs.frozen(kw_only=True)
class ResetView:
    """What a reset policy sees. ``now`` and ``last_activity`` are aware, in the session's zone."""

    lineage: Lineage
    now: datetime
    last_activity: datetime
    activities: tuple[Activity, ...]
    settings: ResetSettings


class ResetPolicy(Protocol):
    """Decides when a conversation ends. Pure: no I/O, no clock of its own."""

    name: str
    """Value of ``[session_reset] mode``."""

    def decide(self, view: ResetView) -> ResetDecision:
        """Return keep, reset or defer for this moment; the same view gives the same answer.

        A message waits for the answer, on a thread of its own and without a time limit: it must not block.
        """
        ...


@attrs.frozen(kw_only=True)
class CompressionView:
    """What a compression policy sees: the rows of the window, oldest first, and how full it is.

    Attributes:
        tokens: of the next prompt. measured: by the endpoint; estimated otherwise.
        window_tokens: of the model, ``None`` when unknown. forced: a person asked for it.
    """

    session: Session
    rows: tuple[Message, ...]
    tokens: int
    measured: bool
    window_tokens: int | None
    forced: bool = False


class CompressionPolicy(Protocol):
    """Says when to compress, and where to cut. Pure."""

    name: str

    def cut(self, view: CompressionView) -> MessageId | None:
        """Return the first row to keep, ``None`` to leave the context as it is.

        The core moves an illegal cut back: no call is parted from its results, the last user and assistant stay.
        """
        ...


class Summariser(Protocol):
    """Makes the text that stands for the head of a conversation."""

    name: str

    async def summarise(self, rows: Sequence[Message], *, previous: str | None, focus: str | None) -> str:
        """Return the summary of ``rows`` (oldest first), building on the ``previous`` one."""
        ...
