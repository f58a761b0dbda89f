"""The commands that show what agents do, as plain descriptions."""

from __future__ import annotations

from typing import Final

from hermes_hookspecs.audit import CALL_OUTCOMES
from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

__all__ = ["OVERSIGHT_COMMANDS", "READERS"]

_JSON = CliOption(names=("--json",), kind="flag", help="Print JSON: an array of them.")
_SESSION = CliOption(names=("--session",), metavar="REF", help="Only this conversation: id, title, beginning of an id.")
_LIMIT = CliOption(
    names=("--limit", "-n"), kind="int", least=1, most=1_000_000, metavar="N", help="Most rows [default: 50]."
)

OVERSIGHT_COMMANDS: Final = (
    CliCommand(
        path=("jobs", "list"),
        group_summary="Work that goes on behind a turn.",
        summary="List the background jobs that run, newest first.",
        run="hermes_cli.jobs:list_jobs",
        options=(
            _SESSION,
            _LIMIT,
            CliOption(names=("--all", "-a"), kind="flag", help="Also those that have ended."),
            _JSON,
        ),
        details="While a job runs, its session is not reset by itself.",
    ),
    CliCommand(
        path=("jobs", "cancel"),
        summary="Ask the processes of jobs to end them; their sessions are told.",
        run="hermes_cli.jobs:cancel",
        arguments=(
            CliArgument(name="jobs", many=True, help="Ids that `hermes jobs list` shows, or beginnings of them."),
        ),
        options=(_JSON,),
        details=(
            "A job whose process is gone is closed as lost at once. The exit status is 1 where one had ended by itself "
            "before, or is not there."
        ),
    ),
    CliCommand(
        path=("audit",),
        summary="List what tools did, newest first: who, where, what, with which result, how long it took.",
        run="hermes_cli.audits:run",
        options=(
            _SESSION,
            CliOption(names=("--tool",), metavar="NAME", help="Only calls of this tool."),
            CliOption(names=("--person",), metavar="ID", help="Only turns of this user: id or name, exactly."),
            CliOption(names=("--outcome",), choices=CALL_OUTCOMES, metavar="OUTCOME", help="Only calls that went so."),
            CliOption(names=("--since",), metavar="WHEN", help="Only from this date on, or this age: 2026-09-01, 7d."),
            CliOption(names=("--until",), metavar="WHEN", help="Only before this date, or this age."),
            _LIMIT,
            _JSON,
        ),
        details=(
            "An outcome is one of running, answered, failed, refused, timed out, broken off. Arguments and results are "
            "kept cut; a row is kept for agent.audit_keep_days, and loses both when its conversation is deleted."
        ),
    ),
)
"""All of them, in the order of the help."""

READERS: Final = frozenset({("jobs", "list"), ("audit",)})
"""Paths of those that read, and nothing else: they load no plugins."""
