"""Rows as plain data for ``--json``: the names of the tables, an unknown number is null."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from hermes_hookspecs.ids import SessionId
    from hermes_hookspecs.sessions import SessionSummary

__all__ = ["json_text", "print_json", "summary_record"]


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return ``value`` as JSON that is valid UTF-8 and commands no terminal, with every character kept."""
    import json

    from hermes_cli.safe_text import safe_json

    return safe_json(json.dumps(value, ensure_ascii=False, indent=indent))


def print_json(out: TextIO, value: object) -> None:
    """Print one JSON value to ``out`` as UTF-8, whatever the locale says."""
    text = json_text(value, indent=2)
    if not text.isascii() and (out.encoding or "").lower().replace("-", "") not in ("utf8", "utf8sig"):
        import json

        text = json.dumps(value, indent=2)
    print(text, file=out)


def summary_record(summary: SessionSummary, parent: SessionId | None, turn_state: str) -> dict[str, object]:
    """Return one conversation of a list; ``session_id`` is its tip, times are UTC milliseconds.

    :param parent: the session that the tip continues. turn_state: what runs there, in words; ``""`` for nothing.
    """
    return {
        "session_id": summary.session_id,
        "lineage_id": summary.lineage_id,
        "source": summary.source,
        "account_id": summary.account_id,
        "user_id": summary.user_id,
        "title": summary.title,
        "preview": summary.preview,
        "model": summary.model,
        "parent_session_id": parent,
        "started_at": summary.started_at,
        "last_activity": summary.last_activity,
        "ended_at": summary.ended_at,
        "end_reason": summary.end_reason,
        "message_count": summary.message_count,
        "segments": summary.segments,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
        "cache_read_tokens": summary.cache_read_tokens,
        "cache_write_tokens": summary.cache_write_tokens,
        "estimated_cost_usd": summary.estimated_cost_usd,
        "pinned": summary.pinned,
        "archived": summary.archived,
        "locked_by": summary.locked_by,
        "turn_state": turn_state,
    }
