"""What a fake endpoint was sent, and what a real one would say against it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import attrs

__all__ = ["Asked", "complaint_about"]

_CHARACTERS_PER_TOKEN = 4


@attrs.frozen(kw_only=True)
class Asked:
    """One request.

    Attributes:
        raw: the body, byte for byte. headers: names in lower case.
        cached_tokens: of the prompt, as many as the request before it began with, too.
    """

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, object]
    cached_tokens: int = 0

    @property
    def messages(self) -> list[dict[str, object]]:
        """Return the messages, in order."""
        return _objects(self.body.get("messages"))

    @property
    def tools(self) -> list[dict[str, object]]:
        """Return the tools, in order."""
        return _objects(self.body.get("tools"))

    @property
    def is_speech(self) -> bool:
        """Return whether a sound is to be written down: then ``raw`` is a form with the file in it."""
        return self.path.endswith("/audio/transcriptions")

    @property
    def prompt(self) -> bytes:
        """Return tools and messages as bytes: what a provider's cache compares."""
        pieces = [self.tools, *self.messages]
        return b"\n".join(json.dumps(piece, ensure_ascii=False).encode() for piece in pieces)

    @property
    def prompt_tokens(self) -> int:
        """Return the tokens of the prompt, four bytes each."""
        return len(self.prompt) // _CHARACTERS_PER_TOKEN

    @property
    def streams(self) -> bool:
        """Return whether the answer is wanted in pieces."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Return whether usage is wanted at the end of a stream."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    def shared_tokens(self, earlier: Asked) -> int:
        """Return how many tokens of this prompt the earlier one begins with, too."""
        pairs = zip(self.prompt, earlier.prompt, strict=False)
        same = next((number for number, (one, other) in enumerate(pairs) if one != other), None)
        length = min(len(self.prompt), len(earlier.prompt)) if same is None else same
        return length // _CHARACTERS_PER_TOKEN


def complaint_about(asked: Asked) -> str:
    """Return what OpenAI answers to a request that breaks its rules, ``""`` to a legal one."""
    if not isinstance(asked.body.get("model"), str) or not asked.body.get("model"):
        return "you must provide a model parameter"
    if not asked.messages:
        return "[] is too short - 'messages'"
    open_calls: list[str] = []
    for number, message in enumerate(asked.messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in open_calls:
                return _ORPHAN
            open_calls.remove(str(message["tool_call_id"]))
        elif open_calls:
            break
        elif complaint := _complaint_about_message(message, f"messages[{number}]"):
            return complaint
        else:
            open_calls = _call_ids(message)
    return _UNANSWERED + ", ".join(open_calls) if open_calls else ""


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OF = "'^[a-zA-Z0-9_-]+$'."
_ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
_UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)


def _complaint_about_message(message: dict[str, object], place: str) -> str:
    ids = _call_ids(message)
    if message.get("role") not in ("system", "developer", "user", "assistant"):
        return f"Invalid value: {message.get('role')!r} - '{place}.role'"
    if message.get("content") is None and not ids:
        return f"Invalid value for 'content': expected a string, got null. - '{place}.content'"
    if len(set(ids)) < len(ids):
        return f"Duplicate value for 'tool_call_id' of {ids} - '{place}.tool_calls'"
    for number, call in enumerate(_objects(message.get("tool_calls"))):
        function = call.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            where = f"{place}.tool_calls[{number}].function.name"
            return f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern {_OF}"
    return ""


def _call_ids(message: dict[str, object]) -> list[str]:
    return [str(call.get("id")) for call in _objects(message.get("tool_calls"))]


def _objects(value: object) -> list[dict[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
