"""How full a context is, and when it is compressed by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.context.compression import load_context, view_of
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ports.conversations import Fullness
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from hermes_core.config.sections import CompressionSettings
    from hermes_hookspecs.ids import SessionId
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["fullness_text", "read_fullness"]


def read_fullness(reader: StoreReader, session_id: SessionId, settings: CompressionSettings, agent: Agent) -> Fullness:
    """Return how full a session's context is; blocks, and reads all of it.

    :param agent: whoever would answer; it may say how much its model reads (``context_tokens``).
    :raises SessionNotFound: no such session.
    """
    session = reader.session(session_id, operator())
    if session is None:
        raise SessionNotFound(session_id)
    context = load_context(reader, session)
    told: object = getattr(agent, "context_tokens", None)
    known = told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None
    window = settings.context_tokens or known
    view = view_of(context, window)
    return Fullness(
        rows=context.size[0],
        tokens=view.tokens,
        measured=view.measured,
        window_tokens=window,
        at_tokens=None if window is None else int(settings.threshold * window),
        at_rows=settings.hygiene_hard_message_limit,
        enabled=settings.enabled,
    )


def fullness_text(full: Fullness) -> str:
    """Return it on one line."""
    about = "" if full.measured else "about "
    rows = f"{full.rows} row{'' if full.rows == 1 else 's'}"
    of_window = "" if full.window_tokens is None else f" of {full.window_tokens} ({_percent(full)} %)"
    said = f"{about}{full.tokens} tokens{of_window}, {rows}"
    if not full.enabled:
        return f"{said}; never compressed by itself"
    if full.at_tokens is None:
        return f"{said}; compressed at {full.at_rows} rows"
    return f"{said}; compressed at {full.at_tokens} tokens or {full.at_rows} rows"


def _percent(full: Fullness) -> int:
    return round(100 * full.tokens / full.window_tokens) if full.window_tokens else 0
