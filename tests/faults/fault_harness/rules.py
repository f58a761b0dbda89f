"""What must be true of a run, as pure functions of its facts: each rule yields what breaks it."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import attrs

from fault_harness import compressions
from fault_harness.views import View, by_lineage

__all__ = ["DOUBLED", "INTERLEAVED", "LOST", "RULES", "Breach", "check"]

LOST, DOUBLED, INTERLEAVED = "lost", "doubled", "interleaved"
REPEATABLE = ("read", "idempotent")
MOST_TOGETHER = 100
"""More messages than a turn ever takes."""
MOST_TRIES = 3
"""The first one, and ``gateway.recovery_attempts`` (2) retries."""


@attrs.frozen
class Breach:
    """One thing that must not be: which promise it breaks, by which rule, and what was seen."""

    promise: str
    rule: str
    seen: str

    def __str__(self):
        return f"{self.promise}: {self.rule}: {self.seen}"


def check(facts):
    """Return every breach of every rule, in the order of :data:`RULES`."""
    return [Breach(promise, rule.__name__.replace("_", " "), seen) for promise, rule in RULES for seen in rule(facts)]


# --- nothing is lost


def what_was_acknowledged_is_stored(facts):
    """Every message whose platform was told stands in the inbox."""
    stored = {name for row in facts.inbox for name in row.names}
    return [f"{ack.name} was acknowledged and is not in the inbox" for ack in facts.acks if ack.name not in stored]


def every_message_has_an_outcome(facts):
    """A message is answered, or its sender is told, or a person stopped it or left its session behind."""
    view = View(facts)
    left_behind = {row.id for row in facts.inbox if row.status == "superseded"}
    for row in facts.inbox:
        if row.waits_here or row.kind != "message" or row.status in {"quarantined", "superseded"}:
            continue
        if row.status != "done":
            yield f"message {row.id} is still {row.status}"
            continue
        turn = view.deciding_turn(row.id)
        if turn is None:
            yield f"message {row.id} is done and no turn had it"
        elif turn.outcome != "stopped" and not view.outcomes(row) and turn.inbox_ids[0] not in left_behind:
            yield f"message {row.id} ended with turn {turn.id} as {turn.outcome} and nobody was told"


def every_command_has_a_reply(facts):
    """A command's effect and its reply are there, and the reply went out."""
    replied = {row.inbox_id for row in facts.deliveries}
    for row in facts.inbox:
        if row.kind != "control" or row.waits_here:
            continue
        if row.status != "done":
            yield f"command {row.id} is still {row.status}"
        elif row.id not in replied:
            yield f"command {row.id} is done and was not replied to"


def whoever_left_is_superseded_by_a_command(facts):
    """Messages are superseded only by a younger command of their key."""
    commands = defaultdict(int)
    for row in facts.inbox:
        if row.kind == "control":
            commands[row.key] = max(commands[row.key], row.id)
    for row in facts.inbox:
        if row.status == "superseded" and commands[row.key] < row.id:
            yield f"message {row.id} is superseded and no command came behind it"


def every_delivery_went_out(facts):
    """Each delivery is sent, and the platform has each of its parts."""
    received = {sending.key for sending in facts.sendings}
    for row in facts.deliveries:
        if row.status != "sent":
            yield f"delivery {row.id} is {row.status}"
        for part in row.parts:
            if part.is_sent and part.key not in received:
                yield f"part {part.index} of delivery {row.id} is marked as sent and nobody received it"
        if row.status == "sent" and not (row.parts and all(part.is_sent for part in row.parts)):
            yield f"delivery {row.id} is sent and its parts are not"


def nothing_is_held_for_ever(facts):
    """Once all is quiet nobody holds a lease and no turn is active."""
    for lineage in facts.lineages:
        if lineage.is_held:
            yield f"lineage {lineage.id} is held"
        if lineage.active_turn is not None:
            yield f"turn {lineage.active_turn} of {lineage.id} is active"
    for turn in facts.turns:
        if turn.outcome == "active":
            yield f"turn {turn.id} is active"


def whoever_waited_has_left(facts):
    """A message whose sender waited with it is settled, unless that process died before its turn."""
    for row in facts.inbox:
        died_waiting = row.status == "pending" and row.waiter_pid in facts.dead
        if row.waits_here and row.status in {"pending", "claimed"} and not died_waiting:
            yield f"message {row.id} of a sender who waited is {row.status}"


def whoever_waited_got_his_own_answer(facts):
    """What came back to a terminal is the answer to what was said there, of a turn that is done."""
    outcomes = {turn.id: turn.outcome for turn in facts.turns}
    for ask in facts.asks:
        if ask.name not in ask.text.split():
            yield f"{ask.name} was answered with {ask.text!r}"
        if outcomes.get(ask.turn) != "done":
            yield f"{ask.name} was answered by turn {ask.turn}, which is {outcomes.get(ask.turn)}"


def a_cursor_is_never_ahead(facts):
    """What an adapter stored with a batch says nothing about messages that are not there."""
    stored = {name.rpartition("/")[2] for row in facts.inbox for name in row.names}
    for slot, last in facts.cursors:
        for number in range(1, last + 1):
            if f"{slot}.{number}" not in stored:
                yield f"the cursor of feeder {slot} is at {last}, and message {number} is not in the inbox"


def the_file_is_sound(facts):
    """SQLite finds nothing wrong."""
    return facts.damage


# --- nothing is doubled


def a_message_is_stored_once(facts):
    """No identity stands in two rows."""
    seen = Counter(name for row in facts.inbox for name in row.names)
    return [f"{name} was accepted {count} times" for name, count in seen.items() if count > 1]


def a_message_has_one_outcome(facts):
    """No message has two answers, or an answer and a notice, or two finished turns."""
    view = View(facts)
    finished = Counter(one for turn in facts.turns if turn.outcome == "done" for one in turn.inbox_ids)
    for row in facts.inbox:
        outcomes = view.outcomes(row)
        if len(outcomes) > 1:
            yield f"message {row.id} has the outcomes {', '.join(str(one.id) for one in outcomes)}"
        if finished[row.id] > 1:
            yield f"message {row.id} was answered by {finished[row.id]} turns"


def a_message_is_tried_a_few_times(facts):
    """A message that ends its turns by death is not tried for ever."""
    tries = Counter(one for turn in facts.turns for one in turn.inbox_ids)
    return [f"message {one} was tried {count} times" for one, count in tries.items() if count > MOST_TRIES]


def a_user_row_is_stored_once(facts):
    """The model reads a question once, however often it is tried."""
    seen = Counter(row.inbox_id for row in facts.messages if row.inbox_id is not None)
    return [f"message {one} has {count} user rows" for one, count in seen.items() if count > 1]


def a_part_is_sent_once(facts):
    """A platform receives a part once; again only marked, with the same key, when its first sender died."""
    known = {part.key for row in facts.deliveries for part in row.parts}
    received = defaultdict(list)
    for sending in facts.sendings:
        received[sending.key].append(sending)
    for key, sendings in received.items():
        if key not in known:
            yield f"the platform received {key}, which no delivery has"
        if any(not again.is_marked for again in sendings[1:]):
            yield f"part {key} was sent {len(sendings)} times, not all of them marked"
        for first, again in pairwise(sendings):
            if first.pid not in facts.dead:
                yield f"part {key} was sent again by {again.pid} although {first.pid} lives"


def a_key_names_one_delivery(facts):
    """Keys of deliveries and of parts are unique."""
    keys = Counter([row.key for row in facts.deliveries] + [part.key for row in facts.deliveries for part in row.parts])
    parts = {part.key for row in facts.deliveries for part in row.parts}
    return [f"key {key} stands {count} times" for key, count in keys.items() if count > 1 and key in parts]


def a_tool_runs_once(facts):
    """No call runs twice in its turn."""
    seen = Counter((effect.turn, effect.call) for effect in facts.effects)
    return [f"call {call} of turn {turn} ran {count} times" for (turn, call), count in seen.items() if count > 1]


def what_may_have_happened_is_not_repeated(facts):
    """After a call without a result that changes something, the message is not tried again."""
    view = View(facts)
    effects = {(row.turn, call): effect for row in facts.messages for call, effect in row.calls}
    for row in facts.messages:
        if row.kind != "interrupted" or effects.get((row.turn, row.call_id)) in REPEATABLE:
            continue
        turn = view.turn_of[row.turn]
        again = [one for one in turn.inbox_ids if view.last_turn(one) is not turn]
        if again:
            yield f"messages {again} were tried again after call {row.call_id} of turn {turn.id}"


def a_turn_ends_once(facts):
    """Whoever listens hears at most one end of a turn, and exactly one where its process lived on.

    Who stood still for longer than its lease tells the end of its turn as well as who took it over.
    """
    ends = Counter(event.turn for event in facts.events if event.name == "finish" and event.pid not in facts.frozen)
    ends_there = Counter((event.turn, event.pid) for event in facts.events if event.name == "finish")
    for turn, count in [*ends.items(), *((turn, count) for (turn, _), count in ends_there.items())]:
        if count > 1:
            yield f"turn {turn} ended {count} times"
    for event in facts.events:
        if event.name == "start" and event.pid not in facts.dead and not ends[event.turn]:
            yield f"turn {event.turn} began in {event.pid}, which lived, and its end was not told"


# --- nothing is interleaved


def rows_of_turns_are_not_mixed(facts):
    """In each lineage the rows of one turn stand together, in the order of the turns, and no row is without one."""
    for lineage, rows in by_lineage(facts.messages).items():
        for row in rows:
            if row.turn is None:
                yield f"row {row.id} belongs to no turn ({lineage})"
        for before, behind in pairwise(row for row in rows if row.turn is not None):
            if behind.turn < before.turn:
                yield f"row {behind.id} of turn {behind.turn} stands behind row {before.id} of turn {before.turn}"


def tokens_only_grow(facts):
    """Each turn of a lineage has a higher token than the one before, and none is above the lineage's."""
    last = {lineage.id: lineage.token for lineage in facts.lineages}
    for lineage, turns in by_lineage(facts.turns).items():
        for before, behind in pairwise(turns):
            if behind.token <= before.token:
                yield f"turn {behind.id} has token {behind.token} behind {before.token} ({lineage})"
        if turns[-1].token > last[lineage]:
            yield f"{lineage} has token {last[lineage]} and a turn with {turns[-1].token}"


def tokens_grow_for_a_reason(facts):
    """A token grows by a beginning, by breaking a turn off, and by a command, and by nothing else."""
    keys, commands = defaultdict(set), Counter()
    for row in facts.inbox:
        if row.kind == "control":
            commands[row.key] += 1
        elif row.lineage is not None:
            keys[row.lineage].add(row.key)
    turns = by_lineage(facts.turns)
    for lineage in facts.lineages:
        own = turns[lineage.id]
        broken_off = sum(turn.outcome in {"interrupted", "stopped"} for turn in own)
        revoked = broken_off + sum(commands[key] for key in keys[lineage.id])
        if lineage.token > len(own) + revoked:
            yield f"{lineage.id} has token {lineage.token} after {len(own)} turns and at most {revoked} revocations"


def messages_are_answered_in_order(facts):
    """No turn takes a message while an older one of its entrance still has its turn before it; retries keep places."""
    rows = {row.id: row for row in facts.inbox}
    for lineage, turns in by_lineage(facts.turns).items():
        oldest_to_come = defaultdict(list)
        for turn in reversed(turns):
            if list(turn.inbox_ids) != sorted(turn.inbox_ids):
                yield f"turn {turn.id} took messages {turn.inbox_ids}"
            taken = [one for one in turn.inbox_ids if one in rows and not rows[one].waits_here]
            if not taken:
                continue
            to_come = oldest_to_come[rows[taken[0]].entrance]
            for one in to_come:
                if one < taken[-1] and one not in taken:
                    yield f"turn {turn.id} took messages {taken} and left the older {one} ({lineage})"
            to_come[:] = sorted({*to_come, *taken})[:MOST_TOGETHER]


def answers_arrive_in_order(facts):
    """At each address the platform receives deliveries, and their parts, in the order in which they were stored."""
    place = {part.key: (row.id, part.index) for row in facts.deliveries for part in row.parts}
    last = {}
    for sending in facts.sendings:
        here = place.get(sending.key)
        if here is None:
            continue
        before = last.get(sending.address, (0, 0))
        if here < before:
            yield f"{sending.address} received part {here} behind {before}"
        last[sending.address] = max(here, before)


def every_call_has_one_result(facts):
    """A result answers a call of the newest row with calls; nothing stands between, and none is left open."""
    for lineage, rows in by_lineage(facts.messages).items():
        waiting = []
        for row in rows:
            if row.role == "tool":
                if row.call_id in waiting:
                    waiting.remove(row.call_id)
                else:
                    yield f"row {row.id} answers call {row.call_id}, which does not wait ({lineage})"
                continue
            if waiting:
                yield f"row {row.id} ({row.role}) stands before the results of {waiting} ({lineage})"
            waiting = [call for call, _ in row.calls]
        if waiting:
            yield f"the calls {waiting} at the end of {lineage} have no result"


def the_prompt_only_grows(facts):
    """What a turn's agent was sent is, message by message, the beginning of what the next turn's agent is sent.

    Whoever stood still behind its beginning may ask a model once more; nothing of that is stored. Where a compression
    stands between two turns, the second begins anew, with the summary.
    """
    last = {}
    session_of = {turn.id: turn.session for turn in facts.turns}
    for window in facts.windows:
        before = last.get(window.lineage)
        if before is not None and window.token < before.token:
            continue
        last[window.lineage] = window
        if before is not None and session_of.get(window.turn) != session_of.get(before.turn):
            continue
        if before is not None and window.digests[: len(before.digests)] != before.digests:
            pairs = enumerate(zip(before.digests, window.digests, strict=False))
            place = next((n for n, (one, other) in pairs if one != other), len(window.digests))
            yield f"the prompt of turn {window.turn} differs from that of {before.turn} at row {place}"


def an_answer_is_about_its_messages(facts):
    """The answer of a turn names the messages of that turn, all of them and no others."""
    rows = {row.id: row for row in facts.inbox}
    turns = {turn.id: turn for turn in facts.turns}
    for row in facts.deliveries:
        if row.kind != "answer" or row.turn not in turns:
            continue
        asked = [word for one in turns[row.turn].inbox_ids for word in rows[one].text.split() if word.startswith("#")]
        given = [word for word in row.text.split() if word.startswith("#")]
        if asked != given:
            yield f"delivery {row.id} answers {given}, asked was {asked}"


RULES = (
    (LOST, what_was_acknowledged_is_stored),
    (LOST, every_message_has_an_outcome),
    (LOST, every_command_has_a_reply),
    (LOST, whoever_left_is_superseded_by_a_command),
    (LOST, every_delivery_went_out),
    (LOST, nothing_is_held_for_ever),
    (LOST, whoever_waited_has_left),
    (LOST, whoever_waited_got_his_own_answer),
    (LOST, a_cursor_is_never_ahead),
    (LOST, the_file_is_sound),
    (LOST, compressions.a_lineage_goes_on_in_one_session),
    (LOST, compressions.a_child_has_its_summary),
    (LOST, compressions.no_row_is_lost_by_a_compression),
    (DOUBLED, a_message_is_stored_once),
    (DOUBLED, a_message_has_one_outcome),
    (DOUBLED, a_message_is_tried_a_few_times),
    (DOUBLED, a_user_row_is_stored_once),
    (DOUBLED, a_part_is_sent_once),
    (DOUBLED, a_key_names_one_delivery),
    (DOUBLED, a_tool_runs_once),
    (DOUBLED, what_may_have_happened_is_not_repeated),
    (DOUBLED, a_turn_ends_once),
    (DOUBLED, compressions.a_session_has_one_child),
    (DOUBLED, compressions.a_command_compresses_once),
    (INTERLEAVED, rows_of_turns_are_not_mixed),
    (INTERLEAVED, tokens_only_grow),
    (INTERLEAVED, tokens_grow_for_a_reason),
    (INTERLEAVED, messages_are_answered_in_order),
    (INTERLEAVED, answers_arrive_in_order),
    (INTERLEAVED, every_call_has_one_result),
    (INTERLEAVED, the_prompt_only_grows),
    (INTERLEAVED, an_answer_is_about_its_messages),
)
"""Every rule with the promise that it belongs to."""
