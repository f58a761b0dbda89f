"""What a fake endpoint answers: each function returns one answer, to be put into a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from typing import Final

import attrs

from hermes_openai.testing.requests import Asked

__all__ = [
    "CUT",
    "Answer",
    "Frame",
    "Reply",
    "answer",
    "calls",
    "cut",
    "drop",
    "hold",
    "raw",
    "refuse",
    "stream_of",
    "transcript",
    "whole",
]


class _Cut:
    """The place where a connection breaks."""


CUT: Final = _Cut()
"""The connection breaks here."""

Frame = bytes | Event | _Cut
"""Bytes that are sent at once, an event that is waited for, or the place where the connection breaks."""


@attrs.frozen(kw_only=True)
class Answer:
    """An answer on the wire. Without a status the connection breaks before a byte was sent."""

    status: int | None = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    frames: tuple[Frame, ...] = ()


Reply = Callable[[Asked], Answer]
"""Makes the answer to a request."""

_EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}
_JSON = {"Content-Type": "application/json"}
_DONE = b"data: [DONE]\n\n"


def answer(
    *pieces: str,
    reasoning: Sequence[str] = (),
    finish_reason: str = "stop",
    usage: Mapping[str, object] | None = None,
    reasoning_name: str = "reasoning_content",
) -> Reply:
    """Return an answer in pieces; whole for a request that wants no stream.

    :param usage: as it is told; counted from the texts where not given, ``{}`` for none.
    """

    def made(asked: Asked) -> Answer:
        if not asked.streams:
            message: dict[str, object] = {"role": "assistant", "content": "".join(pieces)}
            return _document(asked, message, finish_reason, usage)
        deltas: list[Mapping[str, object]] = [{"role": "assistant", "content": ""}]
        deltas += [{reasoning_name: piece} for piece in reasoning]
        deltas += [{"content": piece} for piece in pieces]
        return _streamed(asked, deltas, finish_reason, usage)

    return made


def calls(*wanted: tuple[str, str] | tuple[str, str, str], text: str = "") -> Reply:
    """Return an answer that asks for tools: ``(name, arguments)`` or ``(name, arguments, id)`` each.

    In a stream the arguments come in pieces, those of one call after those of another.
    """

    def made(asked: Asked) -> Answer:
        named = [
            (name, arguments, rest[0] if rest else f"call_{len(asked.messages)}_{number}")
            for number, (name, arguments, *rest) in enumerate(wanted)
        ]
        if not asked.streams:
            listed = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for name, arguments, call_id in named
            ]
            return _document(
                asked, {"role": "assistant", "content": text or None, "tool_calls": listed}, "tool_calls", None
            )
        deltas: list[Mapping[str, object]] = [{"role": "assistant", "content": text or None}]
        for index, (name, arguments, call_id) in enumerate(named):
            function = {"name": name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
            middle = len(arguments) // 2
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in (arguments[:middle], arguments[middle:])
            ]
        return _streamed(asked, deltas, "tool_calls", None)

    return made


def cut(*pieces: str) -> Reply:
    """Return a stream that breaks behind its pieces."""
    return stream_of([{"content": piece} for piece in pieces], end=CUT)


def drop() -> Reply:
    """Return a connection that breaks before a byte was sent."""
    return lambda _asked: Answer(status=None)


def hold(gate: Event, *pieces: str) -> Reply:
    """Return a stream that stands still behind its pieces until the gate is open, then ends as it should."""
    return stream_of([{"content": piece} for piece in pieces], end=gate)


def stream_of(deltas: Iterable[Mapping[str, object]], *, end: Frame = b"", finish_reason: str | None = "stop") -> Reply:
    """Return a stream of just these deltas, whatever is wanted.

    :param end: what stands between them and the end; behind :data:`CUT` there is none.
    """
    listed = list(deltas)

    def made(asked: Asked) -> Answer:
        pieces: list[Frame] = [_event(_chunk(asked, {"delta": delta})) for delta in listed]
        last = [_event(_chunk(asked, {"delta": {}, "finish_reason": finish_reason}))] if finish_reason else []
        return Answer(headers=_EVENTS, frames=(*pieces, end, *last, _DONE))

    return made


def whole(text: str) -> Reply:
    """Return one JSON document, also to a request that wants a stream: a server that knows nothing else."""
    return lambda asked: _document(asked, {"role": "assistant", "content": text}, "stop", None)


def transcript(words: str, *, usage: Mapping[str, object] | None = None) -> Reply:
    """Return what was said in a sound. usage: as it is told; nothing is where it is not given."""
    told = {} if usage is None else {"usage": usage}
    return raw(json.dumps({"text": words} | told), content_type="application/json")


def raw(*frames: str | Frame, status: int = 200, content_type: str = "text/event-stream", **headers: str) -> Reply:
    """Return just these bytes. ``headers`` are named with ``_`` for ``-``."""
    named = {"Content-Type": content_type} | {name.replace("_", "-"): value for name, value in headers.items()}
    made = tuple(frame.encode() if isinstance(frame, str) else frame for frame in frames)
    return lambda _asked: Answer(status=status, headers=named, frames=made)


def refuse(
    status: int, message: str, *, code: str | None = None, kind: str = "invalid_request_error", **headers: str
) -> Reply:
    """Return an error as OpenAI words it. ``headers`` are named with ``_`` for ``-``: ``retry_after="2"``."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return raw(json.dumps(body), status=status, content_type="application/json", **headers)


def _streamed(
    asked: Asked, deltas: Iterable[Mapping[str, object]], finish_reason: str, usage: Mapping[str, object] | None
) -> Answer:
    listed = list(deltas)
    frames = [_event(_chunk(asked, {"delta": delta})) for delta in listed]
    frames.append(_event(_chunk(asked, {"delta": {}, "finish_reason": finish_reason})))
    if asked.wants_usage and usage != {}:
        told = _usage(asked, json.dumps(listed)) if usage is None else usage
        frames.append(_event(_chunk(asked, None) | {"usage": told}))
    return Answer(headers=_EVENTS, frames=(*frames, _DONE))


def _document(
    asked: Asked, message: Mapping[str, object], finish_reason: str, usage: Mapping[str, object] | None
) -> Answer:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    body: dict[str, object] = {**_head(asked), "object": "chat.completion", "choices": [choice]}
    if usage != {}:
        body["usage"] = _usage(asked, json.dumps(message)) if usage is None else usage
    return Answer(headers=_JSON, frames=(json.dumps(body).encode(),))


def _chunk(asked: Asked, choice: Mapping[str, object] | None) -> dict[str, object]:
    choices = [] if choice is None else [{"index": 0, "logprobs": None, "finish_reason": None, **choice}]
    return {**_head(asked), "object": "chat.completion.chunk", "choices": choices}


def _head(asked: Asked) -> dict[str, object]:
    return {"id": "chatcmpl-1", "created": 1_700_000_000, "model": asked.body.get("model")}


def _usage(asked: Asked, said: str) -> dict[str, object]:
    completion = len(said) // 4
    return {
        "prompt_tokens": asked.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": asked.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": asked.cached_tokens, "audio_tokens": 0},
    }


def _event(piece: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(piece)}\n\n".encode()
