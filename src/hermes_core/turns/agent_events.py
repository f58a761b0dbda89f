"""What an agent yields: looked over before anything of it is stored, and as rows of the transcript.

An agent is somebody else's code, and nothing but its own tests holds it to the types of its port. A value that the
store cannot take would fail the end of the turn, long behind the step that brought it: it is refused where it comes in,
by the name of its field.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from hermes_hookspecs.messages import ASSISTANT, TOOL, Attachment, MessageDraft, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check = tuple[Callable[[object], bool], str]

__all__ = ["assistant_draft", "fault_of", "result_draft"]

_MOST = 2**53
"""The largest whole number that every reader of JSON takes as it is."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_unknown(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_count_or_unknown(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_cost_or_unknown(value: object) -> bool:
    if value is None or isinstance(value, float):
        return value is None or isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value <= _MOST


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


def _is_usage(value: object) -> bool:
    return isinstance(value, Usage)


def _is_calls(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(one, ToolCall) for one in value)


def _is_files(value: object) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(one, Attachment) for one in value)


_FILES: Check = (_is_files, "a tuple of what outgoing.add() returned")
_TEXT: Check = (_is_text, "a text")
_MAYBE_TEXT: Check = (_is_text_or_unknown, "a text or None")
_COUNT: Check = (_is_count_or_unknown, "a whole number from 0 to 2**53 or None")
_COST: Check = (_is_cost_or_unknown, "a finite number or None")

_CALL: Mapping[str, Check] = {
    "id": _TEXT,
    "name": _TEXT,
    "arguments": _TEXT,
    "effect": _TEXT,
    "in_order": (_is_truth, "True or False"),
}
_USAGE: Mapping[str, Check] = {
    "model": _MAYBE_TEXT,
    "input_tokens": _COUNT,
    "output_tokens": _COUNT,
    "cache_read_tokens": _COUNT,
    "cache_write_tokens": _COUNT,
    "estimated_cost_usd": _COST,
}
_EVENTS: Mapping[type, Mapping[str, Check]] = {
    TextDelta: {"text": _TEXT},
    AssistantStep: {
        "content": _TEXT,
        "tool_calls": (_is_calls, "a tuple of ToolCall"),
        "reasoning": _MAYBE_TEXT,
        "finish_reason": _MAYBE_TEXT,
        "token_count": _COUNT,
        "files": _FILES,
    },
    ToolResult: {
        "call_id": _TEXT,
        "name": _TEXT,
        "content": _TEXT,
        "token_count": _COUNT,
        "outcome": _TEXT,
        "duration_ms": _COUNT,
        "files": _FILES,
    },
    Progress: {"label": _TEXT},
    UsageReport: {"usage": (_is_usage, "a Usage")},
}


def fault_of(event: object) -> str:
    """Return what is wrong with something that an agent yielded; the empty text for an event with sound values.

    :returns: one phrase for people that names event and field, never the value.
    """
    for kind, fields in _EVENTS.items():
        if isinstance(event, kind):
            return _fault(event, kind, fields) or _fault_inside(event)
    return f"an agent yields its events, not {type(event).__name__}"


def _fault_inside(event: object) -> str:
    if isinstance(event, AssistantStep) and event.tool_calls:
        faults = (_fault(call, ToolCall, _CALL) for call in event.tool_calls)
        return next(filter(None, faults), "")
    if isinstance(event, UsageReport):
        return _fault(event.usage, Usage, _USAGE)
    return ""


def _fault(value: object, kind: type, fields: Mapping[str, Check]) -> str:
    for name, (is_sound, wanted) in fields.items():
        found = getattr(value, name)
        if not is_sound(found):
            return f"{kind.__name__}.{name} must be {wanted}, not this {type(found).__name__}"
    return ""


def assistant_draft(step: AssistantStep, now: int) -> MessageDraft:
    """Return the assistant row of a step. ``now``: UTC milliseconds."""
    return MessageDraft(
        role=ASSISTANT,
        content=step.content,
        timestamp=now,
        tool_calls=tuple(step.tool_calls),
        token_count=step.token_count,
        finish_reason=step.finish_reason,
        reasoning=step.reasoning,
        attachments=tuple(step.files),
    )


def result_draft(result: ToolResult, now: int) -> MessageDraft:
    """Return the row of a tool's result. ``now``: UTC milliseconds."""
    return MessageDraft(
        role=TOOL,
        content=result.content,
        timestamp=now,
        tool_call_id=result.call_id,
        tool_name=result.name,
        token_count=result.token_count,
        attachments=tuple(result.files),
    )
