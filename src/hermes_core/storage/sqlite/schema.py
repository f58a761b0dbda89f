"""Tables of the store: section 15 of the design names what people know, the rest is ours.

Every place that grows with each message is narrow: ``messages`` and ``changes`` name their lineage and turn by
number. All else names them by the ids that leave the store. What a list or a fence needs stands in ``lineages``, so
that neither reads a second table; the heavy texts of a session stand at the end of its row, where nothing that is
written often touches them. Rows are ordered by their integer ids, never by time.
"""

from __future__ import annotations

from hermes_core.storage.sqlite.migrate import Migration, Schema
from hermes_core.storage.sqlite.migrations import FIFTH, FOURTH, SEVENTH, SIXTH

__all__ = ["APPLICATION_ID", "SCHEMA"]

APPLICATION_ID = 0x48524D53
"""``HRMS``: marks a database file as ours."""

FIRST = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(8))));

-- turn_no, turn_id: the active turn. open_calls: JSON, [[id, name], ...] of its calls without a result.
-- closed_*: counts of the sessions before the tip. written_at: time of the last write, for the change feed.
-- lease_label: the holder in words, so that lists need no JSON.
CREATE TABLE lineages (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tip TEXT NOT NULL,
    owner TEXT NOT NULL,
    room TEXT,
    shared INTEGER NOT NULL,
    platform TEXT NOT NULL,
    title TEXT,
    title_origin TEXT,
    pinned INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    last_activity INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0,
    tool_call_count INTEGER NOT NULL DEFAULT 0,
    closed_message_count INTEGER NOT NULL DEFAULT 0,
    closed_tool_call_count INTEGER NOT NULL DEFAULT 0,
    turn_count INTEGER NOT NULL DEFAULT 0,
    segments INTEGER NOT NULL DEFAULT 1,
    version INTEGER NOT NULL DEFAULT 1,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_renewals INTEGER NOT NULL DEFAULT 0,
    lease_acquired_at INTEGER,
    lease_expires_at INTEGER,
    lease_ttl_ms INTEGER,
    lease_label TEXT,
    lease_holder TEXT,
    turn_no INTEGER,
    turn_id TEXT,
    open_calls TEXT,
    preview TEXT,
    source TEXT NOT NULL
) STRICT;
CREATE INDEX lineages_by_activity ON lineages (archived, last_activity DESC, id DESC);
CREATE UNIQUE INDEX lineages_by_title ON lineages (title, owner) WHERE title IS NOT NULL;

-- message_count, tool_call_count: NULL while the session is the tip, whose rows the lineage counts.
CREATE TABLE sessions (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lineage_id TEXT NOT NULL REFERENCES lineages (id),
    source TEXT NOT NULL,
    account_id TEXT NOT NULL,
    user_id TEXT,
    title TEXT,
    parent_session_id TEXT,
    kept_from INTEGER,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    end_reason TEXT,
    message_count INTEGER,
    tool_call_count INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    estimated_cost_usd REAL,
    model TEXT,
    model_config TEXT,
    system_prompt TEXT
) STRICT;
CREATE INDEX sessions_by_lineage ON sessions (lineage_id);

CREATE TABLE turns (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    lineage_id TEXT NOT NULL REFERENCES lineages (id),
    session_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    platform TEXT NOT NULL,
    account_id TEXT NOT NULL,
    terminal TEXT,
    session_key TEXT,
    user_id TEXT,
    user_name TEXT,
    inbox_ids TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_lineage ON turns (lineage_id);
CREATE UNIQUE INDEX turns_active ON turns (lineage_id) WHERE outcome = 'active';

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lineage_no INTEGER NOT NULL REFERENCES lineages (no),
    session_id TEXT NOT NULL,
    turn_no INTEGER,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    sent TEXT,
    tool_calls TEXT,
    tool_call_id TEXT,
    tool_name TEXT,
    token_count INTEGER,
    finish_reason TEXT,
    reasoning TEXT,
    kind TEXT,
    inbox_id INTEGER,
    attachments TEXT,
    hidden INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX messages_by_lineage ON messages (lineage_no, id);
CREATE INDEX messages_hidden ON messages (lineage_no) WHERE hidden = 1;
CREATE UNIQUE INDEX messages_by_inbox ON messages (lineage_no, inbox_id) WHERE inbox_id IS NOT NULL;

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key TEXT NOT NULL,
    lineage_id TEXT,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    accepted_at INTEGER NOT NULL,
    settled_at INTEGER,
    platform TEXT NOT NULL,
    account_id TEXT NOT NULL,
    terminal TEXT,
    identities TEXT,
    waiter TEXT,
    error TEXT NOT NULL DEFAULT '',
    source TEXT NOT NULL,
    text TEXT NOT NULL,
    attachments TEXT
) STRICT;
CREATE INDEX inbox_by_lineage ON inbox (lineage_id, status, id);
CREATE INDEX inbox_pending ON inbox (session_key, id) WHERE status = 'pending';

CREATE TABLE inbox_identities (
    identity TEXT PRIMARY KEY,
    inbox_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE routes (
    key TEXT PRIMARY KEY,
    lineage_id TEXT,
    profile TEXT NOT NULL,
    platform TEXT NOT NULL,
    account_id TEXT NOT NULL,
    scope_id TEXT,
    chat_type TEXT NOT NULL,
    chat_id TEXT,
    thread_id TEXT,
    user_id TEXT,
    key_version INTEGER NOT NULL,
    group_sessions_per_user INTEGER NOT NULL,
    thread_sessions_per_user INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    pending_title TEXT,
    source TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX routes_by_lineage ON routes (lineage_id) WHERE lineage_id IS NOT NULL;
CREATE INDEX routes_by_use ON routes (updated_at DESC, key);

CREATE TABLE usage (
    id INTEGER PRIMARY KEY,
    turn_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    late INTEGER NOT NULL,
    model TEXT,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    estimated_cost_usd REAL
) STRICT;
CREATE INDEX usage_by_turn ON usage (turn_id);

CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    lineage_no INTEGER NOT NULL,
    message_id INTEGER,
    at INTEGER NOT NULL
) STRICT;
CREATE TRIGGER messages_inserted AFTER INSERT ON messages BEGIN
    INSERT INTO changes (kind, lineage_no, message_id, at)
    SELECT 'insert', no, NEW.id, written_at FROM lineages WHERE no = NEW.lineage_no;
END;

-- Names of lineages that are gone and of their tips, for the changes that were noted before.
CREATE TABLE erased (
    lineage_no INTEGER PRIMARY KEY,
    lineage_id TEXT NOT NULL,
    session_id TEXT NOT NULL
) STRICT;

CREATE TABLE plugin_state (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    person TEXT,
    lineage_id TEXT,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX plugin_state_by_lineage ON plugin_state (lineage_id) WHERE lineage_id IS NOT NULL;
"""

SECOND = """
-- outcome: of a control row, JSON, once its effect ran.
ALTER TABLE inbox ADD COLUMN outcome TEXT;
UPDATE inbox SET settled_at = accepted_at WHERE status = 'quarantined' AND settled_at IS NULL;
CREATE INDEX inbox_work ON inbox (platform, account_id, lineage_id, id)
    WHERE status = 'pending' AND kind <> 'control' AND waiter IS NULL;
CREATE INDEX inbox_controls ON inbox (platform, account_id, id)
    WHERE kind = 'control' AND status IN ('pending', 'applied') AND waiter IS NULL;
CREATE INDEX inbox_quarantined ON inbox (id) WHERE status = 'quarantined';
CREATE INDEX inbox_settled ON inbox (settled_at, id) WHERE settled_at IS NOT NULL;

-- address: of the target, computed when the row is stored; it begins with platform and account.
-- settled_at: NULL while the row is open, which is what holds its place at the address.
-- inbound_seen: a message of the address was accepted since the row was claimed.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    lineage_id TEXT,
    turn_id TEXT,
    inbox_id INTEGER,
    session_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    settled_at INTEGER,
    awaits_inbound INTEGER NOT NULL DEFAULT 0,
    inbound_seen INTEGER NOT NULL DEFAULT 0,
    uncertain INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    owner TEXT,
    target TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX outbox_open ON outbox (address, id) WHERE settled_at IS NULL;
CREATE INDEX outbox_listening ON outbox (address)
    WHERE settled_at IS NULL AND (awaits_inbound = 1 OR status = 'sending');
CREATE INDEX outbox_unsent ON outbox (status, id) WHERE status <> 'sent';
CREATE INDEX outbox_settled ON outbox (settled_at, id) WHERE settled_at IS NOT NULL;
CREATE INDEX outbox_by_lineage ON outbox (lineage_id) WHERE lineage_id IS NOT NULL;

-- attempt: the one that sent the part.
CREATE TABLE outbox_parts (
    delivery_id INTEGER NOT NULL REFERENCES outbox (id),
    part INTEGER NOT NULL,
    key TEXT NOT NULL,
    format TEXT NOT NULL,
    sent_at INTEGER,
    attempt INTEGER,
    platform_message_id TEXT,
    possible_repeat INTEGER NOT NULL DEFAULT 0,
    text TEXT NOT NULL,
    PRIMARY KEY (delivery_id, part)
) STRICT, WITHOUT ROWID;

-- process: what tells one process from all others; holder: the same with what it serves, as it said itself.
CREATE TABLE entrance_servers (
    no INTEGER PRIMARY KEY,
    process TEXT NOT NULL,
    entrance TEXT NOT NULL,
    holder TEXT NOT NULL,
    beats INTEGER NOT NULL,
    since INTEGER NOT NULL,
    UNIQUE (process, entrance)
) STRICT;

CREATE INDEX plugin_state_by_expiry ON plugin_state (expires_at) WHERE expires_at IS NOT NULL;
"""

THIRD = """
DROP INDEX inbox_controls;
CREATE INDEX inbox_controls ON inbox (platform, account_id, session_key, id)
    WHERE kind = 'control' AND status IN ('pending', 'applied') AND waiter IS NULL;
CREATE INDEX inbox_controls_of_key ON inbox (session_key, id)
    WHERE kind = 'control' AND status IN ('pending', 'applied') AND waiter IS NULL;
CREATE INDEX outbox_owed ON outbox (session_key, inbox_id) WHERE settled_at IS NULL AND inbox_id IS NOT NULL;
"""

# Of the tables of a new file; a test knows them and shows the right ones when a migration has changed them.
CHECKSUMS = {
    "approvals": 0x38A4C5E9,
    "audit": 0x88E25325,
    "changes": 0xA4153084,
    "entrance_servers": 0x2506087F,
    "erased": 0x3788470D,
    "inbox": 0x033214F7,
    "inbox_identities": 0xA98CD225,
    "jobs": 0x0245D04D,
    "lineages": 0x8A79E20B,
    "messages": 0x082DCBCC,
    "meta": 0xD695DE9B,
    "outbox": 0xF2733847,
    "outbox_parts": 0x91F80436,
    "plugin_state": 0x3E8E7A0E,
    "route_moves": 0x7C149081,
    "routes": 0xB2573A3A,
    "sessions": 0x0D078575,
    "turns": 0xA8BA8D0E,
    "usage": 0x9E1CF4AC,
}

SCHEMA = Schema(
    application_id=APPLICATION_ID,
    migrations=(
        Migration(1, FIRST),
        Migration(2, SECOND),
        Migration(3, THIRD),
        Migration(4, FOURTH),
        Migration(5, FIFTH),
        Migration(6, SIXTH),
        Migration(7, SEVENTH),
    ),
    checksums=CHECKSUMS,
)
"""What this program makes of a new file and of any older one."""
