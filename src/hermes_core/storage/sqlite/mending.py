"""The mends of :mod:`~hermes_core.storage.sqlite.faults`: each puts one subject right, and does nothing a second time.

They run in the writer's transaction and are given the subject and the time. A lineage that a mend changes counts a
version and is told to the change feed, so that nobody goes on with what it remembers of it.
"""

# ruff: noqa: S608 - statements are put together from constants of this module, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.audit import without_a_run
from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_core.storage.sqlite.handlers.transcript import closing_rows, store_rows
from hermes_core.storage.sqlite.rows import read_ids, read_open_calls, read_source
from hermes_hookspecs.ids import InboxId, LineageId
from hermes_hookspecs.outbox import delivery_key
from hermes_hookspecs.turns import DONE, INTERRUPTED

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction

__all__ = [
    "UNANSWERED",
    "clear_parent",
    "close_turn",
    "count_anew",
    "drop_open_calls",
    "drop_parts",
    "forget_identity",
    "free_lease",
    "give_session",
    "move_tip",
    "place_delivery",
    "release_route",
    "send_again",
    "set_open_calls",
    "settle_or_wait",
    "unroute",
]

REASON = "closed by a repair: it had no lease"
CHANGED = "UPDATE lineages SET version = version + 1, written_at = max(written_at, ?) WHERE id = ? RETURNING no"
LINEAGE = "SELECT tip, source, platform, created_at FROM lineages WHERE id = ?"
GIVE_SESSION = (
    "INSERT INTO sessions (id, lineage_id, source, account_id, user_id, started_at) VALUES (?, ?, ?, ?, ?, ?)"
)
MOVE_TIP = """
    UPDATE lineages SET tip = (SELECT id FROM sessions WHERE lineage_id = ?1 ORDER BY no DESC LIMIT 1) WHERE id = ?1
"""
COUNT = """
    UPDATE lineages AS l SET
        message_count = (SELECT count(*) FROM messages WHERE lineage_no = l.no),
        closed_message_count = (SELECT count(*) FROM messages WHERE lineage_no = l.no AND session_id <> l.tip),
        turn_count = (SELECT count(*) FROM turns WHERE lineage_id = l.id),
        segments = max(1, (SELECT count(*) FROM sessions WHERE lineage_id = l.id))
    WHERE id = ?
"""
# Only where every cell can be counted.
COUNT_CALLS = """
    UPDATE lineages AS l SET
        tool_call_count = (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages
            WHERE lineage_no = l.no AND tool_calls IS NOT NULL),
        closed_tool_call_count = (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages
            WHERE lineage_no = l.no AND session_id <> l.tip AND tool_calls IS NOT NULL)
    WHERE id = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE lineage_no = l.no AND tool_calls IS NOT NULL
        AND NOT json_valid(tool_calls))
"""
COUNT_SESSIONS = """
    UPDATE sessions AS s SET
        message_count = iif(s.id = l.tip, NULL,
            (SELECT count(*) FROM messages WHERE lineage_no = l.no AND session_id = s.id)),
        tool_call_count = iif(s.id = l.tip, NULL,
            (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages
             WHERE lineage_no = l.no AND session_id = s.id AND tool_calls IS NOT NULL AND json_valid(tool_calls)))
    FROM lineages AS l WHERE l.id = s.lineage_id AND s.lineage_id = ?
"""
ACTIVE = """
    SELECT t.no, l.no, l.tip, l.open_calls, l.turn_no IS t.no AND l.turn_id IS t.id
    FROM turns AS t LEFT JOIN lineages AS l ON l.id = t.lineage_id WHERE t.id = ?
"""
END_TURN = "UPDATE turns SET outcome = 'interrupted', reason = ?, ended_at = ? WHERE no = ?"
FREE = """
    UPDATE lineages SET version = version + 1, written_at = ?, message_count = message_count + ?,
        lease_token = lease_token + 1, lease_renewals = 0, lease_holder = NULL, lease_label = NULL,
        lease_acquired_at = NULL, lease_expires_at = NULL, turn_no = NULL, turn_id = NULL, open_calls = NULL
    WHERE id = ?
"""
# Calls of the newest row of the running turn that has any, without those that a later row answers; as in the cell.
UNANSWERED = """
    (SELECT json_group_array(json_array(json_extract(c.value, '$.id'), json_extract(c.value, '$.name')))
     FROM messages AS m, json_each(iif(json_valid(m.tool_calls), m.tool_calls, '[]')) AS c
     WHERE m.id = (SELECT max(id) FROM messages WHERE lineage_no = l.no AND turn_no = l.turn_no
         AND tool_calls IS NOT NULL)
     AND NOT EXISTS (SELECT 1 FROM messages AS r WHERE r.lineage_no = l.no AND r.id > m.id
         AND r.tool_call_id = json_extract(c.value, '$.id')))
"""
SET_OPEN_CALLS = f"UPDATE lineages AS l SET open_calls = nullif({UNANSWERED}, '[]') WHERE id = ?"
LINEAGE_OF_TURN = "SELECT lineage_id FROM turns WHERE id = ?"
CLAIMED = "SELECT lineage_id, waiter FROM inbox WHERE id = ?"
LAST_TURN = """
    SELECT id, no, outcome, inbox_ids FROM turns WHERE lineage_id = ?
    AND instr(' ' || inbox_ids || ' ', ' ' || ? || ' ') ORDER BY no DESC LIMIT 1
"""
DELIVERED = "SELECT 1 FROM outbox WHERE key = ?"
# A tool that does not say what it does may have done anything.
DID_SOMETHING = """
    SELECT 1 FROM messages AS m JOIN lineages AS l ON l.no = m.lineage_no
    WHERE l.id = ? AND m.turn_no = ? AND m.tool_calls IS NOT NULL AND (NOT json_valid(m.tool_calls) OR EXISTS (
        SELECT 1 FROM json_each(iif(json_valid(m.tool_calls), m.tool_calls, '[]'))
        WHERE coalesce(json_extract(value, '$.effect'), '') NOT IN ('read', 'idempotent')))
    LIMIT 1
"""
WAIT = "UPDATE inbox SET status = 'pending', settled_at = NULL WHERE id = ? AND status = 'claimed'"
SETTLE = "UPDATE inbox SET status = 'done', settled_at = ? WHERE id = ? AND status = 'claimed'"

SEND_AGAIN = """
    UPDATE outbox SET status = 'waiting', due_at = ?1,
        uncertain = EXISTS (SELECT 1 FROM outbox_parts WHERE delivery_id = ?2)
    WHERE id = ?2
"""
PLACE = """
    UPDATE outbox SET settled_at = iif(status IN ('waiting', 'sending'), NULL, coalesce(settled_at, ?)) WHERE id = ?
"""


def _changed(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Count the change, and tell it."""
    found = tx.one(CHANGED, (now, lineage_id))
    if found is not None:
        note_lineage(tx, cast("tuple[int]", found)[0], now)  # what CHANGED returns


def give_session(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Give a lineage without any session the one that its rows name again."""
    found = cast("tuple[str, str, str, int]", tx.one(LINEAGE, (lineage_id,)))  # columns of LINEAGE
    tip, source_text, platform, created_at = found
    source = read_source(source_text)
    tx.run(GIVE_SESSION, (tip, lineage_id, platform, source.account_id, source.participant, created_at))
    count_anew(tx, lineage_id, now)


def move_tip(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Let a lineage go on in its newest session."""
    tx.run(MOVE_TIP, (lineage_id,))
    count_anew(tx, lineage_id, now)


def count_anew(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Count the rows of a lineage and of its sessions."""
    for statement in (COUNT, COUNT_CALLS, COUNT_SESSIONS):
        tx.run(statement, (lineage_id,))
    _changed(tx, lineage_id, now)


def clear_parent(tx: Transaction, session_id: SQLiteValue, now: int) -> None:
    """Let a session continue none."""
    tx.run("UPDATE sessions SET parent_session_id = NULL WHERE id = ?", (session_id,))
    found = tx.one("SELECT lineage_id FROM sessions WHERE id = ?", (session_id,))
    if found is not None:
        _changed(tx, found[0], now)


def release_route(tx: Transaction, key: SQLiteValue, now: int) -> None:  # noqa: ARG001 - as every mend
    """Let a key lead nowhere."""
    tx.run("UPDATE routes SET lineage_id = NULL WHERE key = ?", (key,))


def unroute(tx: Transaction, inbox_id: SQLiteValue, now: int) -> None:  # noqa: ARG001 - as every mend
    """Let a message be routed anew."""
    tx.run("UPDATE inbox SET lineage_id = NULL WHERE id = ?", (inbox_id,))


def close_turn(tx: Transaction, turn_id: SQLiteValue, now: int) -> None:
    """End a turn that nobody holds a lease for, with closing rows where it is the one of its lineage.

    Its messages stay claimed: :func:`settle_or_wait` decides about them.
    """
    found = cast("tuple[int, int | None, str, str | None, int]", tx.one(ACTIVE, (turn_id,)))  # columns of ACTIVE
    turn_no, lineage_no, tip, waiting, is_of_lineage = found
    if lineage_no is not None and is_of_lineage:
        calls = read_open_calls(waiting)
        rows = closing_rows(calls, without_a_run(tx, lineage_no, str(turn_id), calls), INTERRUPTED, REASON, now)
        (lineage_id,) = cast("tuple[str]", tx.one(LINEAGE_OF_TURN, (turn_id,)))  # the turn is there
        tx.run(FREE, (now, len(rows), lineage_id))
        store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)
        note_lineage(tx, lineage_no, now)
    tx.run(END_TURN, (REASON, now, turn_no))


def free_lease(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Take a lease away under which nothing runs; its holder can write nothing with it."""
    tx.run(FREE, (now, 0, lineage_id))
    _changed(tx, lineage_id, now)


def drop_open_calls(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Wait for no results where no turn runs."""
    tx.run("UPDATE lineages SET open_calls = NULL WHERE id = ?", (lineage_id,))
    _changed(tx, lineage_id, now)


def set_open_calls(tx: Transaction, lineage_id: SQLiteValue, now: int) -> None:
    """Let the running turn wait for the results that its rows ask for."""
    tx.run(SET_OPEN_CALLS, (lineage_id,))
    _changed(tx, lineage_id, now)


def settle_or_wait(tx: Transaction, inbox_id: SQLiteValue, now: int) -> str:
    """Let a message wait again that nobody has answered; settle one that was, or whose answer may do harm twice.

    :returns: what became of it.
    """
    lineage_id, waiter = cast("tuple[LineageId | None, str | None]", tx.one(CLAIMED, (inbox_id,)))  # its columns
    number = InboxId(cast("int", inbox_id))  # the rowid is the inbox id
    if waiter is None and not _is_answered(tx, lineage_id, number):
        tx.run(WAIT, (inbox_id,))
        return "it waits again"
    tx.run(SETTLE, (now, inbox_id))
    return "it counts as done; ask again if there was no answer"


def _is_answered(tx: Transaction, lineage_id: LineageId | None, inbox_id: InboxId) -> bool:
    """Whether a message has an answer, or was begun with tools that must not run twice by themselves."""
    if lineage_id is None:
        return False
    found = tx.one(LAST_TURN, (lineage_id, inbox_id))
    if found is None:
        return tx.one(DELIVERED, (delivery_key(lineage_id, inbox_id),)) is not None
    _, turn_no, outcome, ids_text = cast("tuple[str, int, str, str]", found)  # columns of LAST_TURN
    if outcome == DONE or tx.one(DID_SOMETHING, (lineage_id, turn_no)) is not None:
        return True
    # The answer of a turn has the key of its oldest message.
    ids = {inbox_id, *read_ids(ids_text)[:1]}
    return any(tx.one(DELIVERED, (delivery_key(lineage_id, each),)) is not None for each in ids)


def forget_identity(tx: Transaction, identity: SQLiteValue, now: int) -> None:  # noqa: ARG001 - as every mend
    """Forget the name of a message that is gone."""
    tx.run("DELETE FROM inbox_identities WHERE identity = ?", (identity,))


def drop_parts(tx: Transaction, delivery_id: SQLiteValue, now: int) -> None:  # noqa: ARG001 - as every mend
    """Remove the parts of a delivery that is gone: nobody can send them any more."""
    tx.run("DELETE FROM outbox_parts WHERE delivery_id = ?", (delivery_id,))


def send_again(tx: Transaction, delivery_id: SQLiteValue, now: int) -> None:
    """Let a delivery wait that nobody sends; a part of it may have gone out."""
    tx.run(SEND_AGAIN, (now, delivery_id))


def place_delivery(tx: Transaction, delivery_id: SQLiteValue, now: int) -> None:
    """Let a delivery hold its place while it is open, and no longer."""
    tx.run(PLACE, (now, delivery_id))
