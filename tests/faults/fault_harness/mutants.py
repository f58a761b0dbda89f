"""Rules that a process can be made to forget: each of them is needed, and breaking it is noticed."""

from __future__ import annotations

from importlib import import_module

__all__ = ["EARLY_ACK", "FOCUS", "MUTANTS", "mutate"]

EARLY_ACK = "early-ack"


def _no_fence():
    """Let a turn write whoever has the lease by now."""
    steps = import_module("hermes_core.storage.sqlite.handlers.steps")
    own = "(SELECT no FROM turns WHERE id = ?{})"
    steps.FENCED = f"SELECT no, tip, {own.format(3)}, open_calls FROM lineages WHERE id = ?1 AND ?2 IS NOT NULL"
    head, _, tail = steps.COUNT_FENCED.partition("AND lease_token = ? AND turn_id = ?")
    steps.COUNT_FENCED = f"{head} AND ?6 IS NOT NULL{tail}".replace("turn_no", own.format(7))


def _no_dedupe():
    """Know no message again."""
    inbox = import_module("hermes_core.storage.sqlite.handlers.inbox")
    inbox.KNOWN = "SELECT inbox_id FROM inbox_identities WHERE identity = ? AND 0"


def _no_release():
    """Keep the lease behind the end of a turn."""
    steps = import_module("hermes_core.storage.sqlite.handlers.steps")
    steps.FINISH = steps.FINISH.replace("lease_holder = NULL, lease_label = NULL, ", "")


def _no_owner():
    """Take deliveries out of the hands of senders who live."""
    owners = import_module("hermes_core.outbox.owners")
    owners.holder_lives = lambda holder: False


def _blind_retry():
    """Try again whatever the interrupted tool may have done."""
    recovery = import_module("hermes_core.turns.recovery")
    recovery.REPEATABLE = ("read", "idempotent", "write")


def _no_recovery():
    """Forget the messages of a dead turn."""
    recovery = import_module("hermes_core.turns.recovery")
    recovery.verdict_on = lambda *_: recovery.Verdict()


def _half_compression():
    """Make the child, and let the parent go on, too."""
    compression = import_module("hermes_core.storage.sqlite.handlers.compression")
    compression.CLOSE_PARENT += " AND 0"


MUTANTS = {
    "no-fence": _no_fence,
    "no-dedupe": _no_dedupe,
    "no-release": _no_release,
    EARLY_ACK: lambda: None,  # the feeder's own mistake
    "no-owner": _no_owner,
    "blind-retry": _blind_retry,
    "no-recovery": _no_recovery,
    "half-compression": _half_compression,
}
"""Name → what makes a process forget the rule; applied inside the process, before it opens the store."""

FOCUS = {
    "no-fence": ("begin.stored:stop", "step.stored:stop"),
    "no-dedupe": ("accept.stored", "ack"),
    "no-release": ("finish.before", "step.stored"),
    EARLY_ACK: ("accept.before", "group.begun"),
    "no-owner": ("deliver.sent", "deliver.claimed"),
    "blind-retry": ("step.stored",),
    "no-recovery": ("begin.stored", "step.stored", "result.stored"),
    "half-compression": ("compress.stored", "group.begun"),
}
"""Where to kill so that a mutant is found quickly."""


def mutate(name):
    """Forget one rule in this process; nothing for ``""``."""
    if name:
        MUTANTS[name]()
