"""The steps of the schema behind the first three: what later work has added to the tables of a store."""

from __future__ import annotations

__all__ = ["FIFTH", "FOURTH", "SEVENTH", "SIXTH"]

FOURTH = """
-- One row per call of a tool. arguments, result: the beginning, within a bound; empty once the lineage is gone.
-- late: the turn had ended by then. approval_id: who was asked, where somebody was.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lineage_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    effect TEXT NOT NULL,
    outcome TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    duration_ms INTEGER,
    late INTEGER NOT NULL,
    platform TEXT NOT NULL,
    account_id TEXT NOT NULL,
    terminal TEXT,
    session_key TEXT,
    user_id TEXT,
    user_name TEXT,
    approval_id TEXT,
    arguments TEXT NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (turn_id, call_id)
) STRICT;
CREATE INDEX audit_by_lineage ON audit (lineage_id, id);
CREATE INDEX audit_by_time ON audit (started_at, id);

-- status: as somebody answered it; one that is open and whose turn has ended is asked by nobody any more.
-- source: where it was asked; answered_by: who answered, in words; person: on whose behalf.
CREATE TABLE approvals (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    lineage_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    effect TEXT NOT NULL,
    status TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    settled_at INTEGER,
    session_key TEXT,
    person TEXT NOT NULL,
    answered_by TEXT NOT NULL DEFAULT '',
    arguments TEXT NOT NULL,
    source TEXT NOT NULL,
    UNIQUE (turn_id, call_id)
) STRICT;
CREATE INDEX approvals_open ON approvals (no) WHERE status = 'open';
CREATE INDEX approvals_by_lineage ON approvals (lineage_id);
CREATE INDEX approvals_by_time ON approvals (asked_at, no);

-- Work that outlives its turn. holder: the process that does it. source, session_key, session_id: where it began.
-- inbox_id: the row by which its session hears of the end. told: the session has heard of it otherwise.
CREATE TABLE jobs (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    lineage_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    settled_at INTEGER,
    cancelled_at INTEGER,
    session_key TEXT NOT NULL,
    inbox_id INTEGER,
    told INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    holder TEXT NOT NULL,
    source TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX jobs_by_lineage ON jobs (lineage_id);
CREATE INDEX jobs_running ON jobs (lineage_id, no) WHERE status = 'running';
CREATE INDEX jobs_untold ON jobs (lineage_id, no) WHERE status <> 'running' AND told = 0;
CREATE INDEX jobs_settled ON jobs (settled_at, no) WHERE settled_at IS NOT NULL;
"""

FIFTH = """
-- branched_from: the session that the lineage was branched off, which may be gone by now.
ALTER TABLE lineages ADD COLUMN branched_from TEXT;
"""

SIXTH = """
-- A line for each route that moved to another key, or was refused one. batch: of what was applied together.
-- key_version, the two policies, owner, shared: of the route and its lineage before.
CREATE TABLE route_moves (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    batch TEXT,
    key TEXT NOT NULL,
    new_key TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    key_version INTEGER NOT NULL,
    group_sessions_per_user INTEGER NOT NULL,
    thread_sessions_per_user INTEGER NOT NULL,
    owner TEXT NOT NULL,
    shared INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX route_moves_of_batch ON route_moves (batch, kind, key) WHERE batch IS NOT NULL;
CREATE INDEX route_moves_by_lineage ON route_moves (lineage_id);
"""

SEVENTH = """
-- files: JSON, what goes along with the text. file: JSON, the one of them that a part is.
ALTER TABLE outbox ADD COLUMN files TEXT;
ALTER TABLE outbox_parts ADD COLUMN file TEXT;
"""
