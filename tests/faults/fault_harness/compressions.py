"""What must be true of compression: the parent goes on or the child does, never neither and never both."""

from __future__ import annotations

from collections import Counter, defaultdict

from fault_harness.views import by_lineage

__all__ = [
    "COMMANDS",
    "a_child_has_its_summary",
    "a_command_compresses_once",
    "a_lineage_goes_on_in_one_session",
    "a_session_has_one_child",
    "no_row_is_lost_by_a_compression",
]

COMMANDS = ("/compress", "/uncompress")
_COMPRESSED = "compression"


def a_lineage_goes_on_in_one_session(facts):
    """From the first session of a lineage each leads to the next one, and the last one is its tip.

    All but the tip have ended: of being compressed, or taken back. Whether the tip has is a matter of resets.
    """
    sessions = by_lineage(facts.sessions)
    for lineage in facts.lineages:
        own = {one.id: one for one in sessions[lineage.id]}
        if lineage.tip not in own:
            yield f"{lineage.id} goes on in {lineage.tip}, which is not there"
            continue
        chain = []
        at = lineage.tip
        while at in own and at not in chain:
            chain.append(at)
            at = own[at].parent
        beside = sorted(own.keys() - set(chain))
        if beside:
            yield f"{beside} of {lineage.id} lead to no tip"
        for one in chain[1:]:
            if not own[one].is_ended:
                yield f"{lineage.id} goes on in {lineage.tip} and in {one}"


def a_session_has_one_child(facts):
    """Two who compress make one child."""
    seen = Counter(one.parent for one in facts.sessions if one.parent is not None)
    return [f"session {parent} has {count} children" for parent, count in seen.items() if count > 1]


def a_child_has_its_summary(facts):
    """A child begins with one summary and with a row of its lineage, older than everything of its own."""
    ended_by = {one.id: one.end_reason for one in facts.sessions}
    summaries, first, lineage_of = Counter(), {}, {}
    for row in facts.messages:
        lineage_of[row.id] = row.lineage
        first.setdefault(row.session, row.id)
        if row.kind == "summary":
            summaries[row.session] += 1
    for one in facts.sessions:
        if one.parent is None:
            if summaries[one.id]:
                yield f"session {one.id} was not made by compression and has a summary"
            continue
        least = 1 if ended_by.get(one.parent) == _COMPRESSED else 0  # what is taken back has its parent's, or none
        if not least <= summaries[one.id] <= 1:
            yield f"session {one.id} has {summaries[one.id]} summaries"
        if lineage_of.get(one.kept_from) != one.lineage:
            yield f"the context of session {one.id} begins with row {one.kept_from}, which is not of its lineage"
        elif one.kept_from > first.get(one.id, one.kept_from):
            yield f"the context of session {one.id} begins behind its own rows"


def a_command_compresses_once(facts):
    """A command whose process died behind its effect has it once."""
    keys, commands = defaultdict(set), Counter()
    for row in facts.inbox:
        if row.kind == "control" and row.text in COMMANDS:
            commands[row.key] += 1
        if row.lineage is not None:
            keys[row.lineage].add(row.key)
    by_hand = {turn.session for turn in facts.turns if not turn.inbox_ids and turn.outcome == "done"}
    made = Counter(one.lineage for one in facts.sessions if one.parent is not None and one.id in by_hand)
    for lineage, count in made.items():
        asked = sum(commands[key] for key in keys[lineage])
        if count > asked:
            yield f"{lineage} was compressed by hand {count} times, {asked} commands asked for it"


def no_row_is_lost_by_a_compression(facts):
    """Lineages and closed sessions count as many rows as they have."""
    of_lineage = Counter(row.lineage for row in facts.messages)
    of_session = Counter(row.session for row in facts.messages)
    for lineage in facts.lineages:
        if lineage.rows is not None and lineage.rows != of_lineage[lineage.id]:
            yield f"{lineage.id} counts {lineage.rows} rows and has {of_lineage[lineage.id]}"
    for one in facts.sessions:
        if one.rows is not None and one.rows != of_session[one.id]:
            yield f"session {one.id} counts {one.rows} rows and has {of_session[one.id]}"
