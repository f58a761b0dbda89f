"""Rows that contradict each other, and what puts each of them right.

One :class:`Rule` a kind of fault. The rules run in order: what one mends, a later one may have to finish (a turn that
is closed lets go of its messages). A mend reconnects or closes rows and counts anew; it changes no message's text.
"""

# ruff: noqa: S608 - statements are put together from constants of this module, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.sqlite import mending
from hermes_hookspecs.ports.care import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue, Transaction

    Row = tuple[SQLiteValue, ...]
    Mend = Callable[[Transaction, SQLiteValue, int], str | None]

__all__ = ["RULES", "Rule"]


@attrs.frozen(kw_only=True)
class Rule:
    """One kind of fault.

    Attributes:
        select: its first column is the subject; the columns after it go into ``text`` as ``{1}``, ``{2}``.
        where: what makes a row a fault. key: the subject's column, to look at one row again. tail: grouping and order.
        mend: puts one subject right at a time in UTC milliseconds, may answer with how it did so; ``None`` where a
            person has to.
        heavy: looking for it reads every message, so that it is looked for outside of the repairing transaction.
    """

    kind: str
    select: str
    where: str
    key: str
    text: str
    tail: str = ""
    severity: str = "warning"
    mend: Mend | None = None
    heavy: bool = False

    def find(self, reader: Reader, subject: SQLiteValue = None) -> list[tuple[SQLiteValue, Finding]]:
        """Return the subjects with this fault, or the one that is named if it still has it."""
        sql = f"{self.select} WHERE ({self.where})"
        if subject is None:
            return [self._found(row) for row in reader.all(f"{sql} {self.tail}")]
        return [self._found(row) for row in reader.all(f"{sql} AND {self.key} = ? {self.tail}", (subject,))]

    def _found(self, row: Row) -> tuple[SQLiteValue, Finding]:
        return row[0], Finding(
            kind=self.kind,
            subject=str(row[0]),
            text=self.text.format(*row),
            fixable=self.mend is not None,
            severity=self.severity,
        )


def _gone(table: str, condition: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {table} WHERE {condition})"


_RUNS = "SELECT 1 FROM turns AS t WHERE t.id = l.turn_id AND t.no = l.turn_no AND t.outcome = 'active'"
_CLAIMING = """
    SELECT 1 FROM turns AS t WHERE t.lineage_id = i.lineage_id AND t.outcome = 'active'
    AND instr(' ' || t.inbox_ids || ' ', ' ' || i.id || ' ')
"""
# A cell that is no JSON cannot be counted, so that the counter is left as it is.
_CALLS = """
    CASE WHEN EXISTS (SELECT 1 FROM messages WHERE lineage_no = l.no AND tool_calls IS NOT NULL
        AND NOT json_valid(tool_calls)) THEN l.tool_call_count
    ELSE (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages WHERE lineage_no = l.no
        AND tool_calls IS NOT NULL) END
"""
_MISCOUNTED = f"""
    l.message_count <> (SELECT count(*) FROM messages WHERE lineage_no = l.no)
    OR l.tool_call_count <> {_CALLS}
    OR l.turn_count <> (SELECT count(*) FROM turns WHERE lineage_id = l.id)
    OR l.segments <> max(1, (SELECT count(*) FROM sessions WHERE lineage_id = l.id))
    OR l.closed_message_count <> (SELECT count(*) FROM messages WHERE lineage_no = l.no AND session_id <> l.tip)
    OR EXISTS (SELECT 1 FROM sessions AS s WHERE s.lineage_id = l.id AND s.message_count IS NOT iif(s.id = l.tip, NULL,
        (SELECT count(*) FROM messages WHERE lineage_no = l.no AND session_id = s.id)))
"""

_STATED = "json(iif(json_valid(l.open_calls), l.open_calls, '[]'))"

RULES = (
    Rule(
        kind="messages-without-lineage",
        select="SELECT m.lineage_no, count(*) FROM messages AS m",
        where=_gone("lineages", "no = m.lineage_no"),
        key="m.lineage_no",
        tail="GROUP BY m.lineage_no ORDER BY m.lineage_no",
        text="{1} rows belong to a conversation (number {0}) that is gone; they are kept, a backup may have the rest",
        severity="error",
        heavy=True,
    ),
    Rule(
        kind="messages-without-session",
        select="SELECT m.session_id, count(*), l.id FROM messages AS m JOIN lineages AS l ON l.no = m.lineage_no",
        where=_gone("sessions", "id = m.session_id") + " AND EXISTS (SELECT 1 FROM sessions WHERE lineage_id = l.id)",
        key="m.session_id",
        tail="GROUP BY m.session_id, l.id ORDER BY m.session_id",
        text="{1} rows of {2} belong to a session {0} that is gone; they are kept, a backup may have the rest",
        severity="error",
        heavy=True,
    ),
    Rule(
        kind="session-without-lineage",
        select="SELECT s.id, s.lineage_id FROM sessions AS s",
        where=_gone("lineages", "id = s.lineage_id"),
        key="s.id",
        tail="ORDER BY s.no",
        text="session {0} belongs to a conversation {1} that is gone; it is kept, a backup may have the rest",
        severity="error",
    ),
    Rule(
        kind="turn-without-lineage",
        select="SELECT t.lineage_id, count(*) FROM turns AS t",
        where=_gone("lineages", "id = t.lineage_id"),
        key="t.lineage_id",
        tail="GROUP BY t.lineage_id ORDER BY t.lineage_id",
        text="{1} turns belong to a conversation {0} that is gone; they are kept, a backup may have the rest",
        severity="error",
    ),
    Rule(
        kind="lineage-without-session",
        select="SELECT l.id, l.tip FROM lineages AS l",
        where=f"{_gone('sessions', 'lineage_id = l.id')} AND {_gone('sessions', 'id = l.tip')}",
        key="l.id",
        tail="ORDER BY l.no",
        text="conversation {0} has lost its session {1}, so that nobody can go on with it",
        severity="error",
        mend=mending.give_session,
    ),
    Rule(
        kind="dangling-tip",
        select="SELECT l.id, l.tip FROM lineages AS l",
        where=f"{_gone('sessions', 'id = l.tip AND lineage_id = l.id')}"
        " AND EXISTS (SELECT 1 FROM sessions WHERE lineage_id = l.id)",
        key="l.id",
        tail="ORDER BY l.no",
        text="conversation {0} goes on in a session {1} that is gone; its newest one takes the place",
        severity="error",
        mend=mending.move_tip,
    ),
    Rule(
        kind="dangling-parent",
        select="SELECT s.id, s.parent_session_id FROM sessions AS s",
        where=f"s.parent_session_id IS NOT NULL AND {_gone('sessions', 'id = s.parent_session_id')}",
        key="s.id",
        tail="ORDER BY s.no",
        text="session {0} continues a session {1} that is gone",
        mend=mending.clear_parent,
    ),
    Rule(
        kind="dangling-route",
        select="SELECT r.key, r.lineage_id FROM routes AS r",
        where=f"r.lineage_id IS NOT NULL AND {_gone('lineages', 'id = r.lineage_id')}",
        key="r.key",
        tail="ORDER BY r.key",
        text="{0} leads to a conversation {1} that is gone; let go, its next message makes a new one",
        severity="error",
        mend=mending.release_route,
    ),
    Rule(
        kind="inbox-without-lineage",
        select="SELECT i.id, i.lineage_id FROM inbox AS i",
        where="i.status IN ('pending', 'claimed') AND i.lineage_id IS NOT NULL"
        f" AND {_gone('lineages', 'id = i.lineage_id')}",
        key="i.id",
        tail="ORDER BY i.id",
        text="message {0} waits in a conversation {1} that is gone; it is routed anew",
        mend=mending.unroute,
    ),
    Rule(
        kind="turn-without-lease",
        select="SELECT t.id, coalesce(l.tip, t.lineage_id) FROM turns AS t"
        " LEFT JOIN lineages AS l ON l.id = t.lineage_id",
        where="t.outcome = 'active' AND (l.id IS NULL OR l.turn_id IS NOT t.id OR l.turn_no IS NOT t.no"
        " OR l.lease_holder IS NULL)",
        key="t.id",
        tail="ORDER BY t.no",
        text="turn {0} of {1} counts as running and has no lease, so that nobody can end it",
        mend=mending.close_turn,
    ),
    Rule(
        kind="lease-without-turn",
        select="SELECT l.id, coalesce(l.lease_label, 'somebody'), l.tip FROM lineages AS l",
        where="(l.lease_holder IS NOT NULL OR l.turn_no IS NOT NULL OR l.turn_id IS NOT NULL)"
        f" AND NOT EXISTS ({_RUNS})",
        key="l.id",
        tail="ORDER BY l.no",
        text="{1} holds the lease of {2} without a turn",
        mend=mending.free_lease,
    ),
    Rule(
        kind="open-calls-without-turn",
        select="SELECT l.id, l.tip FROM lineages AS l",
        where="l.open_calls IS NOT NULL AND l.turn_no IS NULL",
        key="l.id",
        tail="ORDER BY l.no",
        text="{1} waits for results of tools, and no turn runs there",
        mend=mending.drop_open_calls,
    ),
    Rule(
        kind="wrong-open-calls",
        select="SELECT l.id, l.tip FROM lineages AS l",
        where=f"l.turn_no IS NOT NULL AND {_STATED} <> {mending.UNANSWERED}",
        key="l.id",
        tail="ORDER BY l.no",
        text="the running turn of {1} waits for other results of tools than its rows ask for",
        mend=mending.set_open_calls,
    ),
    Rule(
        kind="claimed-without-turn",
        select="SELECT i.id, i.session_key FROM inbox AS i",
        where=f"i.status = 'claimed' AND NOT EXISTS ({_CLAIMING})",
        key="i.id",
        tail="ORDER BY i.id",
        text="message {0} of {1} counts as being answered, and no turn answers it",
        mend=mending.settle_or_wait,
    ),
    Rule(
        kind="dangling-identity",
        select="SELECT d.identity, d.inbox_id FROM inbox_identities AS d",
        where=_gone("inbox", "id = d.inbox_id"),
        key="d.identity",
        tail="ORDER BY d.inbox_id, d.identity",
        text="{0} is known as a message that is gone, so that a new one of that name would be taken for a repetition",
        mend=mending.forget_identity,
    ),
    Rule(
        kind="orphaned-part",
        select="SELECT p.delivery_id, count(*) FROM outbox_parts AS p",
        where=_gone("outbox", "id = p.delivery_id"),
        key="p.delivery_id",
        tail="GROUP BY p.delivery_id ORDER BY p.delivery_id",
        text="{1} parts belong to a delivery {0} that is gone",
        mend=mending.drop_parts,
    ),
    Rule(
        kind="sending-without-owner",
        select="SELECT o.id FROM outbox AS o",
        where="o.status = 'sending' AND o.owner IS NULL",
        key="o.id",
        tail="ORDER BY o.id",
        text="delivery {0} counts as being sent, and nobody sends it",
        mend=mending.send_again,
    ),
    Rule(
        kind="delivery-out-of-place",
        select="SELECT o.id, o.status FROM outbox AS o",
        where="(o.settled_at IS NULL) <> (o.status IN ('waiting', 'sending'))",
        key="o.id",
        tail="ORDER BY o.id",
        text="delivery {0} is {1}, and those behind it are told otherwise",
        mend=mending.place_delivery,
    ),
    Rule(
        kind="wrong-counters",
        select="SELECT l.id, l.tip FROM lineages AS l",
        where=_MISCOUNTED,
        key="l.id",
        tail="ORDER BY l.no",
        text="the numbers that lists show of {1} are not those of its rows",
        mend=mending.count_anew,
        heavy=True,
    ),
)
"""Every kind of fault, in the order in which they are mended."""
