"""Write ``docs/from-hermes.md``: the names that readers of the original look for, or check that the page is current.

    python tools/seednames.py            writes the page
    python tools/seednames.py --check    ends with 1, and says where, when it is not what would be written

A row says a name, where it is here, and what differs and why. ``tests/test_seed_names.py`` looks every place up, so a
row that is wrong fails. Add rows to :data:`NAMES` and :data:`GONE`; the page is made of them.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["GONE", "NAMES", "Gone", "Name", "main", "render"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/from-hermes.md")
_HINT = "run `make docs` and commit the result"

API, TABLES, SETTINGS, COMMAND_LINE, SLASH = "Python", "Tables", "Settings", "Command line", "Slash commands"
ROOMS = (API, TABLES, SETTINGS, COMMAND_LINE, SLASH)


class Name(NamedTuple):
    """A name that is here as well.

    ``room``: one of :data:`ROOMS`. ``place``: what can be looked up there: ``module:attribute.attribute``,
    ``table.column``, ``section.key``, a path of the command line with its options, or a slash command.
    """

    name: str
    room: str
    place: str
    differs: str = ""


class Gone(NamedTuple):
    """A name that is not here, where what it did is done now (``place``, looked up like an API name), and why."""

    name: str
    place: str
    why: str


def _columns(table: str, names: str, differs: dict[str, str]) -> tuple[Name, ...]:
    return tuple(Name(f"{table}.{name}", TABLES, f"{table}.{name}", differs.get(name, "")) for name in names.split())


NAMES: tuple[Name, ...] = (
    # Python
    Name(
        "build_session_key(source, …)",
        API,
        "hermes_core:build_session_key",
        "Takes the source and a `KeyPolicy`. Parts are labelled and escaped, so that no two sources share a key; the "
        "account and, on Slack, the workspace are in it. A direct message without any identity is refused.",
    ),
    Name("SessionSource", API, "hermes_hookspecs:SessionSource", "Frozen. Platforms are open strings, not an enum."),
    Name("SessionEntry", API, "hermes_hookspecs:SessionEntry", "Frozen; counters and flags are the lineage's."),
    Name("MessageEvent", API, "hermes_hookspecs:MessageEvent", "Brings the identities by which a redelivery is known."),
    Name("SessionResetPolicy", API, "hermes_hookspecs:SessionResetPolicy", "The settings; who decides is a plugin."),
    Name("SessionStore", API, "hermes_core:SessionStore", "`app.sessions` of an open profile."),
    Name(
        "SessionStore.get_or_create_session(source, force_new, touch_activity)",
        API,
        "hermes_core:SessionStore.get_or_create_session",
        "The same meaning; the route is a row, so that callers of all processes get one session.",
    ),
    Name(
        "SessionStore.switch_session(session_key, session_id)",
        API,
        "hermes_core:SessionStore.switch_session",
        "Leads the key to the lineage of the session and raises `SessionNotFound` instead of returning nothing.",
    ),
    Name(
        "SessionStore.load_transcript(session_id)",
        API,
        "hermes_core:SessionStore.load_transcript",
        "Rows as they are stored; what a model is sent is repaired separately.",
    ),
    Name(
        "SessionStore.export_session(session_id, lineage)",
        API,
        "hermes_core:SessionStore.export_session",
        "With `lineage=True` all segments. Each row names the entrance it came through.",
    ),
    Name(
        "repair_message_sequence(messages)",
        API,
        "hermes_core:repair_message_sequence",
        "Returns a copy instead of a count. Idempotent and monotone: an unanswered call gets a result, and rows merge "
        "within one turn only, so that the prompt's prefix never changes.",
    ),
    Name(
        "session_search(query, session_id, around_message_id, window, limit, sort, role_filter)",
        API,
        "hermes_hookspecs.session_search:session_search",
        "A tool for a model, as the principal of its turn; people have `hermes sessions search`, programs "
        "`App.session_search`. Times are UTC milliseconds. A mistake in a query is told, never zero hits.",
    ),
    # tables
    *_columns(
        "sessions",
        "id source user_id model model_config system_prompt parent_session_id input_tokens output_tokens "
        "cache_read_tokens cache_write_tokens estimated_cost_usd title started_at ended_at end_reason message_count "
        "tool_call_count",
        {
            "id": "Called `session_id` wherever it leaves the table.",
            "title": "A title belongs to the lineage and is unique per owner, not in the whole store.",
            "started_at": "Integer milliseconds UTC, like every time here.",
            "input_tokens": "An unknown number is null, never 0.",
        },
    ),
    *_columns(
        "messages",
        "id session_id role content tool_calls tool_call_id tool_name timestamp token_count finish_reason reasoning",
        {
            "id": "Orders the rows; a timestamp never does.",
            "content": "What was said; `sent` beside it is the exact text a model got, where that differs.",
        },
    ),
    # settings
    Name("[session_reset] mode", SETTINGS, "session_reset.mode", "`none` unless it is set; also a plugin's policy."),
    *(
        Name(f"[session_reset] {key}", SETTINGS, f"session_reset.{key}")
        for key in (
            "idle_minutes",
            "at_hour",
            "notify",
            "notify_exclude_platforms",
            "bg_process_max_age_hours",
            "reset_triggers",
        )
    ),
    Name(
        "group_sessions_per_user",
        SETTINGS,
        "routing.group_sessions_per_user",
        "In `[routing]`, and in `[platforms.<name>]` for one platform.",
    ),
    Name(
        "thread_sessions_per_user",
        SETTINGS,
        "routing.thread_sessions_per_user",
        "The group's setting does not override it.",
    ),
    Name(
        "HERMES_TURN_LEASE_TIMEOUT",
        SETTINGS,
        "turns.lease_wait_s",
        "The environment variable still works; 1800 s (`DEFAULT_LEASE_WAIT`). Who waits longer takes the message back "
        "and never runs beside somebody else's turn.",
    ),
    # command line
    Name("hermes --continue [NAME]", COMMAND_LINE, "chat --continue", "Bare: this terminal's latest session first."),
    Name("hermes --resume REF", COMMAND_LINE, "chat --resume", "Takes the unique beginning of an id, too."),
    Name("hermes --session REF", COMMAND_LINE, "chat --session"),
    Name("hermes sessions list", COMMAND_LINE, "sessions list", "One line a lineage, shown as its tip."),
    Name("hermes sessions search", COMMAND_LINE, "sessions search", "The same query language on every entrance."),
    Name("hermes sessions rename", COMMAND_LINE, "sessions rename", "Any reference, resolved as everywhere."),
    Name("hermes sessions export", COMMAND_LINE, "sessions export", "A lineage in one piece."),
    Name("hermes sessions delete", COMMAND_LINE, "sessions delete", "The lineage; refused while a turn runs."),
    Name("hermes sessions stats", COMMAND_LINE, "sessions stats", "Numbers that add up."),
    # slash commands
    Name("/new", SLASH, "new", "Takes a title for the session to come; refused if the title is taken."),
    Name("/reset", SLASH, "reset", "Another word for `/new`."),
    Name("/resume", SLASH, "resume", "Number of the list, id, title, or the unique beginning of an id."),
    Name("/title", SLASH, "title"),
    Name("/help", SLASH, "help"),
    Name("/sessions", SLASH, "sessions"),
    Name("/status", SLASH, "status"),
)
"""Names that are here, room by room."""

_LEASE = "hermes_hookspecs.turns:Lease"
_BEGIN = "hermes_hookspecs.operations:Begin"

GONE: tuple[Gone, ...] = (
    Gone(
        "SessionTurnLeaseRegistry, _lease_registry, owner_key",
        _LEASE,
        "The lease is part of the lineage's row: it holds across threads, processes and restarts.",
    ),
    Gone(
        "_rebind_turn_lease",
        "hermes_hookspecs.sessions:Lineage",
        "The lease is the lineage's, and a lineage's id does not change by compression: there is nothing to rebind.",
    ),
    Gone(
        "run_generation, _invalidate_session_run_generation, _lease_token",
        "hermes_hookspecs.turns:Fence",
        "The lease's token is the generation. Every write of a turn shows it and is refused when it is an old one.",
    ),
    Gone(
        "_mark_durable_active_turn, active_turn_token",
        _BEGIN,
        "*Begin* takes the lease, writes the turn and claims its messages in one transaction.",
    ),
    Gone(
        "_running_agents, _active_sessions, should_bypass_active_session",
        "hermes_hookspecs.operations:Busy",
        "Who is at work is asked of the lease; a command says itself whether it runs beside a turn (`bypass`).",
    ),
    Gone(
        "_release_turn_lease, _release_running_agent_state, _heal_stale_lock",
        "hermes_hookspecs.operations:Finish",
        "*Finish* frees the lease with the answer; what a dead process left is closed by the next *begin*.",
    ),
    Gone("_quick_key", "hermes_core:build_session_key", "There is one key, made by one builder."),
    Gone(
        "_text_batch_key",
        "hermes_hookspecs.inbox:InboxItem",
        "Batching groups rows of the inbox by the one key, sender and thread.",
    ),
    Gone(
        "async_session_store, SessionDB, hermes_state",
        "hermes_hookspecs.ports.store:Store",
        "A port; `submit` gives a future, so that the same store serves threads and event loops.",
    ),
    Gone(
        "flush_transcript, shutdown_flush",
        "hermes_hookspecs.operations:Append",
        "Each step is stored before the next one begins; there is nothing left to flush.",
    ),
    Gone(
        "suggested_timeout_ms",
        "hermes_hookspecs.source:SessionSource",
        "What WeChat really sends is `longpolling_timeout_ms`; its adapter reads that.",
    ),
    Gone(
        "~/.hermes",
        "hermes_core:open_app",
        "`~/.hermes-sessions`, or `HERMES_SESSIONS_HOME`: the original's files are another program's.",
    ),
)
"""Names that are not here."""

_INTRODUCTION = """\
# From Hermes

<!-- Written by tools/seednames.py; change its rows and run `make docs`. -->

Names that readers of the original look for: where they are here, and what differs and why. A row without a remark
means what it meant there. The last section says where to look for what has another name now.
"""


def render() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION]
    for room in ROOMS:
        rows = [
            f"| `{_cell(one.name)}` | `{_shown(one)}` | {_cell(one.differs)} |" for one in NAMES if one.room == room
        ]
        parts.append("\n".join([f"## {room}\n", "| name | where | what differs |", "| --- | --- | --- |", *rows, ""]))
    rows = [
        f"| {', '.join(f'`{_cell(name)}`' for name in one.name.split(', '))} | `{one.place}` | {_cell(one.why)} |"
        for one in GONE
    ]
    parts.append("\n".join(["## Gone\n", "| name | look at | why |", "| --- | --- | --- |", *rows, ""]))
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Write or check the page under ``root``; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when the page is not current")
    check = bool(parser.parse_args(arguments).check)
    file, wanted = root / PAGE, render()
    if not check:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted, encoding="utf-8")
        return 0
    have = file.read_text(encoding="utf-8") if file.exists() else ""
    if have == wanted:
        return 0
    print(f"{PAGE} is {'not current' if have else 'missing'}: {_HINT}", file=sys.stderr)
    for line in difflib.unified_diff(have.splitlines(), wanted.splitlines(), "committed", "current", lineterm="", n=0):
        print(line, file=sys.stderr)
    return 1


def _shown(one: Name) -> str:
    if one.room == SETTINGS:
        section, _, key = one.place.rpartition(".")
        return f"[{section}] {key}"
    if one.room == COMMAND_LINE:
        return f"hermes {one.place}"
    return f"/{one.place}" if one.room == SLASH else one.place


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
