"""``hermes jobs``: work that goes on behind a turn, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import clip, layout
from hermes_cli.safe_text import safe_line
from hermes_cli.times import ago, utc_time
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.jobs import DONE, FAILED, LOST, RUNNING
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.jobs import Job

__all__ = ["DEFAULT_LIMIT", "cancel", "list_jobs", "wanted_lineage"]

DEFAULT_LIMIT = 50
_INDENT = "    "


def wanted_lineage(call: CliCall) -> LineageId | None:
    """Return the conversation that ``--session`` names, ``None`` without it.

    :raises SessionNotFound, AmbiguousReference: as in ``resolve``.
    """
    reference = call.values["session"]
    return None if reference is None else call.app.resolve(str(reference), operator()).lineage.id


def list_jobs(call: CliCall) -> int:
    """Print jobs, newest first: those that run, with ``--all`` those that have ended, too."""
    limit = call.values["limit"]
    most = limit if isinstance(limit, int) else DEFAULT_LIMIT
    everything, lineage_id = bool(call.values["all"]), wanted_lineage(call)
    desk = call.app.oversight
    found = desk.jobs(operator(), lineage_id=lineage_id, running=not everything, limit=most + 1)
    shown = found[:most]
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, [_record(call, job) for job in shown])
    elif shown:
        for line in _table(call, shown):
            print(line, file=call.out)
    else:
        others = not everything and desk.jobs(operator(), lineage_id=lineage_id, limit=1)
        print("No job runs; --all shows those that have ended." if others else "No job runs.", file=call.err)
    if len(found) > most:
        call.out.flush()
        print("more (--limit shows more)", file=call.err)
    return 0


def _table(call: CliCall, jobs: Sequence[Job]) -> list[str]:
    """Return the lines: in a pipe one a job, on a terminal with what it does, and why it ended, below it."""
    width, now = call.width, call.app.clock.now()
    if width is None:
        cells = [["JOB", "SESSION", "STATE", "STARTED", "ENDED", "KIND", "LABEL"]]
        for job in jobs:
            ended = "-" if job.settled_at is None else utc_time(job.settled_at)
            state, label = call.app.oversight.job_state(job), safe_line(job.label) or "-"
            what = (state, utc_time(job.started_at), ended, safe_line(job.kind) or "-", label)
            cells.append([safe_line(job.id), safe_line(job.session_id), *what])
        return layout(cells, width=None, giving=6)
    cells, below = [["JOB", "SESSION", "STATE", "SINCE"]], ["KIND: LABEL"]
    for job in jobs:
        since = ago(now, job.started_at if job.settled_at is None else job.settled_at)
        cells.append([safe_line(job.id), safe_line(job.session_id), call.app.oversight.job_state(job), since])
        why = f" ({job.reason})" if job.reason else ""
        below.append(safe_line(f"{job.kind}: {job.label}{why}"))
    lines = layout(cells, width=width, giving=2)
    details = [_INDENT + clip(text, width - len(_INDENT)) for text in below]
    return [line for pair in zip(lines, details, strict=True) for line in pair]


def cancel(call: CliCall) -> int:
    """Ask the processes of jobs to end them; one that cannot be cancelled keeps the others from nothing."""
    named = call.values["jobs"]
    status, records = 0, []
    for reference in dict.fromkeys(map(str, named)) if isinstance(named, tuple) else ():
        try:
            job = call.app.oversight.cancel_job(reference.strip(), operator())
        except HermesError as error:
            print(f"hermes: {safe_line(str(error))}", file=call.err)
            status = status or error.exit_code
            continue
        status = status or (1 if job.status in (DONE, FAILED) else 0)
        records.append(_record(call, job))
        if not call.values["json"]:
            print(f"{safe_line(f'{job.id} ({job.label})')} {_became(job)}", file=call.err)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, records)
    return status


def _became(job: Job) -> str:
    if job.status == RUNNING:
        return "is asked to end; its session is told when it has"
    return "is closed as lost: its process is gone" if job.status == LOST else f"has ended already: {job.status}"


def _record(call: CliCall, job: Job) -> dict[str, object]:
    return {
        "job_id": job.id,
        "lineage_id": job.lineage_id,
        "session_id": job.session_id,
        "turn_id": job.turn_id,
        "kind": job.kind,
        "label": job.label,
        "status": job.status,
        "state": call.app.oversight.job_state(job),
        "reason": job.reason,
        "result": job.result,
        "told": job.told,
        "source": job.source.platform,
        "account_id": job.source.account_id,
        "session_key": job.session_key,
        "host": job.holder.host,
        "pid": job.holder.pid,
        "started_at": job.started_at,
        "cancelled_at": job.cancelled_at,
        "settled_at": job.settled_at,
    }
