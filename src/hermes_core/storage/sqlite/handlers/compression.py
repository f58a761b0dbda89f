"""A lineage goes on in a child session with a summary: the tip and the turn move there, no row is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.steps import finish
from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_core.storage.sqlite.handlers.transcript import ReadyRows, store_rows
from hermes_core.storage.sqlite.queries.lineages import session_of
from hermes_core.storage.sqlite.rows import read_open_calls
from hermes_hookspecs.errors import Conflict, IllegalMessage, LeaseLost, SessionNotFound
from hermes_hookspecs.operations import Compressed, Finish
from hermes_hookspecs.operations.compression import child_title, is_summary
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.operations import Compress

    StandRow = tuple[int, str, int, str | None, str | None, int]

__all__ = ["compress"]

KNOWN = "SELECT s.lineage_id, l.version FROM sessions AS s JOIN lineages AS l ON l.id = s.lineage_id WHERE s.id = ?"
STAND = """
    SELECT no, tip, turn_no, open_calls, title, segments FROM lineages
    WHERE id = ? AND lease_token = ? AND turn_id = ?
"""
MAY_BEGIN = """
    SELECT 1 FROM messages
    WHERE id = ? AND lineage_no = ? AND hidden = 0 AND role <> 'tool' AND kind IS NOT 'summary'
"""
# The end of a parent that had ended before goes along to the child.
INSERT_CHILD = """
    INSERT INTO sessions (id, lineage_id, source, account_id, user_id, title, parent_session_id, kept_from, started_at,
        ended_at, end_reason, model, model_config, system_prompt)
    SELECT ?, lineage_id, source, account_id, user_id, ?, id, ?, ?, ended_at, end_reason, model, model_config,
        system_prompt
    FROM sessions WHERE id = ?
"""
CLOSE_PARENT = """
    UPDATE sessions SET ended_at = ?, end_reason = ?, (message_count, tool_call_count) = (
        SELECT message_count - closed_message_count, tool_call_count - closed_tool_call_count
        FROM lineages WHERE no = ?)
    WHERE id = ?
"""
MOVE_TIP = """
    UPDATE lineages SET tip = ?, segments = segments + 1, version = version + 1, lease_renewals = lease_renewals + 1,
        written_at = ?, closed_message_count = message_count, closed_tool_call_count = tool_call_count,
        message_count = message_count + ?
    WHERE no = ? RETURNING version
"""
MOVE_TURN = "UPDATE turns SET session_id = ? WHERE no = ?"
BEGIN_WITH = "UPDATE sessions SET kept_from = ? WHERE id = ?"


def compress(operation: Compress) -> Callable[[Transaction], Compressed]:
    """Work of :class:`~hermes_hookspecs.operations.Compress`."""
    fence, now, child = operation.fence, operation.now, operation.session_id
    sound = operation.summary is None or is_summary(operation.summary)
    rows = ReadyRows(() if operation.summary is None else (operation.summary,))
    end = finish(Finish(fence=fence, outcome=DONE, now=now, touch=False)) if operation.finish else None

    def work(tx: Transaction) -> Compressed:
        known = tx.one(KNOWN, (child,))
        if known is not None:
            lineage_id, version = cast("tuple[LineageId, int]", known)  # columns of KNOWN
            return _made(tx, operation, lineage_id, version)
        found = tx.one(STAND, (fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        lineage_no, tip, turn_no, waiting, title, segments = cast("StandRow", found)  # columns of STAND
        if tip != operation.expected:
            raise Conflict(f"{fence.lineage_id} goes on in {tip} by now, not in {operation.expected}; look again")
        _check(tx, operation, lineage_no, waiting, sound=sound)
        titled = child_title(title, segments + 1)
        tx.run(INSERT_CHILD, (child, titled, operation.kept_from, now, tip))
        tx.run(CLOSE_PARENT, (now, operation.reason, lineage_no, tip))
        (version,) = cast("tuple[int]", tx.one(MOVE_TIP, (child, now, len(rows), lineage_no)))  # it was there
        tx.run(MOVE_TURN, (child, turn_no))
        ids = store_rows(tx, rows, lineage_no=lineage_no, session_id=child, turn_no=turn_no)
        if operation.kept_from is None:
            tx.run(BEGIN_WITH, (ids[0], child))
        note_lineage(tx, lineage_no, now)
        if end is not None:
            version = end(tx).version
        return _made(tx, operation, fence.lineage_id, version)

    return work


def _check(tx: Transaction, operation: Compress, lineage_no: int, waiting: str | None, *, sound: bool) -> None:
    calls = [call_id for call_id, _ in read_open_calls(waiting)]
    if calls:
        raise IllegalMessage(f"nothing is compressed before the results of {', '.join(calls)}")
    if operation.kept_from is not None and tx.one(MAY_BEGIN, (operation.kept_from, lineage_no)) is None:
        raise IllegalMessage(f"row {operation.kept_from} is none that the context of this lineage may begin with")
    if operation.kept_from is None and operation.summary is None:
        raise IllegalMessage("a context of nothing but its summary needs one")
    if not sound:
        raise IllegalMessage("a summary is a marked system row with text, without calls")


def _made(tx: Transaction, operation: Compress, lineage_id: LineageId, version: int) -> Compressed:
    session = session_of(tx, operation.session_id)
    if session is None:
        raise SessionNotFound(operation.session_id)
    return Compressed(lineage_id=lineage_id, session=session, version=version)
