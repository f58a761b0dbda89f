"""``hermes sessions search`` and ``hermes search index``: find what was said, and look after what finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.answers import StatusLine
from hermes_cli.parser import usage_error
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.streams import width_of
from hermes_cli.times import counted, local_time
from hermes_hookspecs.ports.search import BROWSE, DISCOVER, HIT_END, HIT_START, READ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.ports.search import FoundSession, SearchAnswer, ShownMessage

__all__ = ["index_rebuild", "index_status", "index_verify", "run"]

NOTHING_FOUND = 1
_BUDGET_S = 10.0
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BOLD, _PLAIN = "\x1b[1;33m", "\x1b[0m"


def run(call: CliCall) -> int:
    """Print what was found, best first; status 1 where a query finds nothing."""
    from hermes_hookspecs.text.parsing import QueryError

    values = call.values
    words = values["query"]
    query = " ".join(str(word) for word in words) if isinstance(words, tuple) else ""
    around = values["around"]
    if around is not None and not values["session"]:
        raise usage_error("option --around wants --session too", "option --around")
    try:
        answer = call.app.session_search(
            query,
            session_id=_text(values["session"]),
            around_message_id=_number(around),
            window=_number(values["window"]) or 5,
            limit=_number(values["limit"]) or (20 if not query.strip() else 10),
            sort=_text(values["sort"]) or "relevance",
            role_filter=_texts(values["role"]),
            source=_text(values["source"]) or None,
            since=_moment(values["since"], "--since"),
            until=_moment(values["until"], "--until"),
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
        for line in _lines(answer, full=bool(values["full"]), colours=call.width is not None):
            print(line, file=call.out)
    call.out.flush()
    nothing = answer.mode == DISCOVER and not answer.results
    said = [*(["nothing was found"] if nothing and not values["json"] else []), *([answer.note] if answer.note else [])]
    for line in said:
        print(safe_line(line), file=call.err)
    return NOTHING_FOUND if nothing else 0


def index_status(call: CliCall) -> int:
    """Print what the index says of itself."""
    rows = call.app.search_index.status()
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, dict(rows))
        return 0
    margin = max((len(name) for name, _value in rows), default=0)
    for name, value in rows:
        print(f"{safe_line(name):<{margin}}  {safe_line(value)}", file=call.out)
    return 0


def index_rebuild(call: CliCall) -> int:
    """Make the index anew, with progress on a terminal."""
    index = call.app.search_index
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
    findings = call.app.search_index.verify()
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


# --- printing


def _lines(answer: SearchAnswer, *, full: bool, colours: bool) -> Iterator[str]:
    for at, found in enumerate(answer.results):
        if at and answer.mode != BROWSE:
            yield ""
        yield _heading(found)
        if answer.mode == DISCOVER:
            yield f"    {found.matched_role}, message {found.match_message_id}: {_marked(found.snippet, colours)}"
            if full:
                yield from _messages(found.messages)
        elif answer.mode == READ:
            yield from _messages(found.messages)
        elif answer.mode != BROWSE:
            yield from _more(found.messages_before, "before")
            yield from _messages(found.messages)
            yield from _more(found.messages_after, "behind")


def _heading(found: FoundSession) -> str:
    name = found.title or found.preview
    shown = f"{found.session_id}  {name}" if name else found.session_id
    facts = f"{found.source}, {local_time(found.last_active)}, {counted(found.message_count, 'message')}"
    return f"{safe_line(shown)}  ({safe_line(facts)})"


def _messages(rows: tuple[ShownMessage, ...]) -> Iterator[str]:
    """Yield rows, each behind its role and id, so that no text can pass for another row."""
    for row in rows:
        sign = ">" if row.anchor else " "
        name = f"{row.role} {row.tool_name}" if row.tool_name else row.role
        lines = safe_text(row.content).split("\n")
        yield f"  {sign} [{row.message_id}] {safe_line(name)}> {lines[0]}".rstrip()
        yield from (f"        {line}".rstrip() for line in lines[1:])
        for tool, arguments in row.tool_calls:
            yield f"        calls {safe_line(tool)} {safe_line(arguments)}".rstrip()


def _more(count: int, where: str) -> Iterator[str]:
    if count:
        yield f"    ... {counted(count, 'message')} {where} ..."


def _marked(snippet: str, colours: bool) -> str:
    """Return a snippet with its hits in colour on a terminal, between ``>>>`` and ``<<<`` elsewhere."""
    start, end = (_BOLD, _PLAIN) if colours else (">>>", "<<<")
    before, *parts = snippet.replace("\n", " ").split(HIT_START)
    pieces = [safe_text(before)]
    for part in parts:
        hit, _, rest = part.partition(HIT_END)
        pieces += (start, safe_text(hit), end, safe_text(rest))
    return "".join(pieces)


# --- values


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, tuple) else ()


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _moment(value: object, option: str) -> int | None:
    """Return UTC milliseconds of a date (``2026-09-01``, with a time or without, local) or an age (``7d``, ``12h``).

    :raises ConfigError: it is neither.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text[:-1].isdecimal() and text[-1:] in _UNITS:
        import time

        return int(time.time() * 1000) - int(text[:-1]) * _UNITS[text[-1]] * 1000
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        wanted = "a date like 2026-09-01 or 2026-09-01T14:00, or an age like 7d, 12h"
        raise usage_error(f"option {option} wants {wanted}, not {value!r}", f"option {option}") from error
