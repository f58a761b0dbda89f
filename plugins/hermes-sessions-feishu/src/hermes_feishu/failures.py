"""What the platform refuses, in the errors of the contract.

An answer counts by the ``code`` in its body, whatever its HTTP status says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import AuthFailed, PlatformError, Rejected, RetryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CARD_WRONG",
    "FORMAT_WRONG",
    "GONE",
    "NOT_EDITABLE_SO",
    "NO_CODE",
    "SCOPE_CODES",
    "TOKEN_CODES",
    "TOO_LONG",
    "Answer",
    "error_of",
]

NO_CODE = -1
TOKEN_CODES = frozenset({99991661, 99991663, 99991664, 99991668, 99991671, 99991677})
"""The token is not valid (any more): another one is fetched, once."""
GONE = frozenset({230011, 231003, 230110})
"""The message that is answered or edited was taken back, or deleted."""
FORMAT_WRONG = frozenset({230001, 230099})
"""The content is not what its type asks for."""
CARD_WRONG = frozenset({11310})
"""The same, of a card with too many tables."""
TOO_LONG = 230025
NOT_EDITABLE_SO = frozenset({230001, 230054})
"""The message is of a type that is edited in another way."""

_RATE = frozenset({99991400, 230020, 11232})
SCOPE_CODES = frozenset({99991672, 99991676, 99991679})
_RETRY = frozenset({1, 1000040343})
_REFUSED: Mapping[int, str] = {
    **dict.fromkeys((403, 514, 10003, 10012, 10014, 10015, 1000040344), "check app_id and the app secret"),
    **dict.fromkeys(TOKEN_CODES, "even a new token is refused"),
    230006: "the app has no bot ability, or no published version",
}
_HINTS: Mapping[int, str] = {
    230002: "the bot is not in that chat",
    230025: "the message is too long",
    230027: "the app lacks a permission there",
    230028: "the company's data protection forbids it",
    230031: "it is too old to be edited",
    230071: "it is somebody else's message",
    230072: "it was edited as often as a message can be",
    230075: "it is too old to be edited",
}
_RATE_S = 2.0
_MOST_S = 3000.0
_LONGEST = 200
_SCOPES = re.compile(r"[a-z_]+:[a-z_.]+(?::[a-z_.]+)*")


@attrs.frozen(kw_only=True)
class Answer:
    """An answer of the HTTP API.

    Attributes:
        code: 0 is success, :data:`NO_CODE` where the body has none.
        reset_s: seconds after which a rate limit is over, ``None`` where that was not said.
    """

    status: int
    code: int
    message: str = ""
    data: Mapping[str, object] = attrs.field(factory=dict, repr=False)
    body: Mapping[str, object] = attrs.field(factory=dict, repr=False)
    reset_s: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether it is a success."""
        return self.code == 0 and self.status < 400


def error_of(answer: Answer, what: str) -> PlatformError:
    """Return the error that an answer stands for. ``what``: that was tried, as in *sending*."""
    said = f": {' '.join(answer.message.split())[:_LONGEST]}" if answer.message else ""
    text = f"{what} was refused with {answer.status if answer.code in (0, NO_CODE) else answer.code}{said}"
    if answer.status == 429 or answer.code in _RATE:
        return RetryLater(f"{what} has to wait: rate limit ({answer.code or 429})", after_s=_wait_s(answer))
    if answer.code in _RETRY or (answer.status >= 500 and answer.code not in _REFUSED):
        return RetryLater(text, maybe_sent=True)
    if answer.code == NO_CODE and answer.status not in (401, 403):
        return RetryLater(f"{what}: who answered ({answer.status}) is not the platform", maybe_sent=True)
    if answer.code in SCOPE_CODES:
        scopes = ", ".join(dict.fromkeys(_SCOPES.findall(answer.message))) or "see the message"
        return AuthFailed(f"{what} needs a permission that the app does not have ({scopes}): add it, publish a version")
    if answer.code in _REFUSED or answer.status == 401:
        advice = _REFUSED.get(answer.code, "check app_id and the app secret")
        return AuthFailed(f"{text}; {advice}")
    hint = _HINTS.get(answer.code)
    return Rejected(f"{text} ({hint})" if hint else text)


def _wait_s(answer: Answer) -> float:
    return min(max(answer.reset_s or _RATE_S, 0.1), _MOST_S)
