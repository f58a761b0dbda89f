"""``hermes sessions search`` and ``hermes search index``: find what was said, and look after what finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.answers import StatusLine
from hermes_cli.parser import usage_error
from hermes_cli.safe_text import safe_line
from hermes_cli.streams import width_of
from hermes_cli.times import counted, moment
from hermes_hookspecs.ports.search import BROWSE, DISCOVER

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall

__all__ = ["index_drop", "index_rebuild", "index_status", "index_verify", "run"]

NOTHING_FOUND = 1
_NOTHING = {DISCOVER: "nothing was found", BROWSE: "there are no such conversations"}
_BUDGET_S = 10.0
_STEP_S = 0.25
_NO_INDEX = "scan"
"""Name of what stands in where no index is installed, or none opens: it reads the rows one by one."""


def run(call: CliCall) -> int:
    """Print what was found, best first; status 1 where a query finds nothing."""
    from hermes_hookspecs.text.parsing import QueryError

    values = call.values
    words = values["query"]
    query = " ".join(str(word) for word in words) if isinstance(words, tuple) else ""
    since, until = moment(values["since"], "--since"), moment(values["until"], "--until")
    _check_together(call, is_query=bool(query.strip()), is_range=since is None or until is None or since < until)
    try:
        answer = call.app.session_search(
            query,
            session_id=_text(values["session"]),
            around_message_id=_number(values["around"]),
            window=_number(values["window"]) or 5,
            limit=_number(values["limit"]) or (20 if not query.strip() else 10),
            sort=_text(values["sort"]) or "relevance",
            role_filter=_texts(values["role"]),
            source=_text(values["source"]) or None,
            since=since,
            until=until,
            detail="full" if values["full"] else "adaptive",
            budget_s=_BUDGET_S,
        )
    except QueryError as error:
        raise usage_error(str(error), "query") from error
    if values["json"]:
        from hermes_cli.records import print_json
        from hermes_hookspecs.ports.search import plain

        print_json(call.out, plain(answer))
    else:
        from hermes_cli.found import found_lines

        for line in found_lines(answer, full=bool(values["full"]), width=call.width):
            print(line, file=call.out)
    call.out.flush()
    said = "" if answer.results or values["json"] else _NOTHING.get(answer.mode, "")
    for line in filter(None, (said, answer.note)):
        print(safe_line(line), file=call.err)
    return NOTHING_FOUND if answer.mode == DISCOVER and not answer.results else 0


def _check_together(call: CliCall, *, is_query: bool, is_range: bool) -> None:
    """:raises ConfigError: options that say nothing together."""
    values = call.values
    if values["around"] is not None and not values["session"]:
        raise usage_error("option --around wants --session too", "option --around")
    if is_query and values["session"]:
        said = "a query looks through all conversations, --session reads that one: give one of the two"
        raise usage_error(said, "option --session")
    if not is_range:
        said = f"--since {values['since']} is not before --until {values['until']}: no row can lie between them"
        raise usage_error(said, "option --since")


def index_status(call: CliCall) -> int:
    """Print what the index says of itself."""
    rows = call.app.search_index.status()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, dict(rows))
        return 0
    margin = max((len(name) for name, _value in rows), default=0)
    for name, value in rows:
        print(f"{safe_line(name):<{margin}}  {safe_line(str(value))}", file=call.out)
    return 0


def index_rebuild(call: CliCall) -> int:
    """Make the index anew, with progress on a terminal; status 1 where there is none."""
    index = call.app.search_index
    if _is_missing(call, index.name, {"index": None, "messages": 0}):
        return 1
    line = StatusLine(call.err, width_of(call.err))

    def progress(done: int, total: int) -> None:
        line.show(f"indexing: {done} of {counted(total, 'message')} …")

    try:
        count = index.rebuild(progress=progress)
    finally:
        line.clear()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, {"index": index.name, "messages": count})
    else:
        print(f"the index {safe_line(index.name)} holds {counted(count, 'message')}", file=call.out)
    return 0


def index_verify(call: CliCall) -> int:
    """Print what is wrong with the index; status 1 where an error or a warning is."""
    index = call.app.search_index
    findings = index.verify()
    if not findings and _is_missing(call, index.name, []):
        return 0
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(
            call.out,
            [
                {"kind": one.kind, "subject": one.subject, "text": one.text, "severity": one.severity}
                for one in findings
            ],
        )
    else:
        for one in findings:
            print(safe_line(f"{one.severity}: {one.text}"), file=call.out)
        if not findings:
            print("the index is sound", file=call.out)
    return 1 if any(one.severity != "note" for one in findings) else 0


def index_drop(call: CliCall) -> int:
    """Delete the tables of an index, whether or not its plugin is there; status 1 where it has none.

    :raises ConfigError: no plugin of that name has tables in this store.
    """
    from hermes_hookspecs.ports.sqlite import sqlite_access

    name = _text(call.values["name"])
    access = sqlite_access(call.app.store)
    there = [] if access is None else [plugin for plugin, _version in access.plugins()]
    if access is None or name not in there:
        known = f"there are those of {', '.join(map(safe_line, there))}" if there else "this store has no such tables"
        raise usage_error(f"no tables of {name!r} to drop: {known}", "name")
    access.drop(name)
    line = StatusLine(call.err, width_of(call.err))
    try:
        while left := access.clear_dropped(budget_s=_STEP_S):
            line.show(f"deleting: {counted(left, 'table')} left …")
    finally:
        line.clear()
    print(
        f"the tables of {safe_line(name)} are deleted; if its plugin is there, a search makes them anew", file=call.out
    )
    return 0


def _is_missing(call: CliCall, name: str, record: object) -> bool:
    """Say, and return, that there is no index. record: what ``--json`` prints then."""
    if name != _NO_INDEX:
        return False
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, record)
    print("there is no search index; every search reads the rows one by one", file=call.err)
    return True


# --- values


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, tuple) else ()


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
