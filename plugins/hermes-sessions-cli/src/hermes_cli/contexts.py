"""``hermes sessions show REF --context``: what the model would be sent now, and how it came about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import layout, wrap
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.times import counted
from hermes_hookspecs.context import REPAIR_REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_hookspecs.cli import CliCall
    from hermes_hookspecs.context import Repair, WindowReport
    from hermes_hookspecs.messages import Message

__all__ = ["context_lines", "run"]

_ARGUMENTS = 200
"""Most characters of a call's arguments."""
_MARGIN = 10
_INDENT = "    "
_ROWS = 5
"""Most rows of one repair that are named."""


def run(call: CliCall) -> int:
    """Print the context of the session that goes on, whichever of its segments was named."""
    from hermes_hookspecs.principal import operator

    found = call.app.resolve(str(call.values["ref"]), operator())
    report = call.app.context_report(found.lineage.tip)
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, record_of(report))
    else:
        for line in context_lines(report, call.width):
            print(line, file=call.out)
    return 0


def context_lines(report: WindowReport, width: int | None = None) -> Iterator[str]:
    """Yield the lines: what it is made of, what was left out, what repair changed and why, then all of it.

    :param width: columns of the screen, which no line passes; ``None`` (no terminal) breaks nothing.
    """
    yield from _fact("context", safe_line(report.session_id), width)
    yield from _fact("tokens", f"about {report.tokens}, without the tools' descriptions", width)
    cells = [
        ("sent    ", part.name, counted(part.messages, "message"), f"about {counted(part.tokens, 'token')}")
        for part in report.parts
    ]
    yield from layout(cells, width=width, giving=1, right=frozenset({2, 3}))
    for left in report.left_out:
        yield from _fact("left out", f"{counted(left.messages, 'message')}: {left.reason}", width)
    for repair in report.repairs:
        yield from _fact("repaired", _repair_text(repair), width)
    for row in report.messages:
        yield ""
        yield from _message_lines(row, width)


def _fact(name: str, text: str, width: int | None) -> Iterator[str]:
    """Yield a name and what is to be said of it, the further lines behind the name."""
    broken = [text] if width is None else wrap(text, width - _MARGIN)
    for number, line in enumerate(broken):
        yield f"{'' if number else name:<{_MARGIN}}{line}".rstrip()


def _repair_text(repair: Repair) -> str:
    ids = ", ".join(str(one) for one in repair.message_ids[:_ROWS])
    more = f" and {len(repair.message_ids) - _ROWS} more" if len(repair.message_ids) > _ROWS else ""
    noun = "row" if len(repair.message_ids) == 1 else "rows"
    return f"{repair.kind}, {noun} {ids}{more}: {REPAIR_REASONS.get(repair.kind, '')}".rstrip(": ")


def _message_lines(row: Message, width: int | None) -> Iterator[str]:
    """Yield one message: the role on its own margin, so that nothing in the text can pass for another message."""
    label = row.role if not row.kind else f"{row.role} ({row.kind})"
    if row.role == "tool" and row.tool_name:
        label = f"tool {row.tool_name}"
    text = f"{safe_line(label)}> {safe_text(row.content)}"
    for number, line in enumerate(_broken(text, width)):
        yield f"{_INDENT if number else ''}{line}".rstrip()
    for each in row.tool_calls:
        arguments = safe_line(each.arguments)
        if len(arguments) > _ARGUMENTS:
            arguments = f"{arguments[:_ARGUMENTS]}..."
        for line in _broken(f"calls {safe_line(each.name)} {arguments}", width):
            yield f"{_INDENT}{line}".rstrip()


def _broken(text: str, width: int | None) -> list[str]:
    return text.split("\n") if width is None else wrap(text, width - len(_INDENT))


def record_of(report: WindowReport) -> dict[str, object]:
    """Return the report as plain data, in the order in which it is printed."""
    return {
        "session_id": report.session_id,
        "tokens": report.tokens,
        "parts": [{"name": one.name, "messages": one.messages, "tokens": one.tokens} for one in report.parts],
        "left_out": [{"reason": one.reason, "messages": one.messages} for one in report.left_out],
        "repairs": [
            {"kind": one.kind, "message_ids": list(one.message_ids), "reason": REPAIR_REASONS.get(one.kind, "")}
            for one in report.repairs
        ],
        "messages": [
            {
                "id": row.id,
                "role": row.role,
                "kind": row.kind,
                "content": row.content,
                "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in row.tool_calls],
                "tool_call_id": row.tool_call_id,
            }
            for row in report.messages
        ],
    }
