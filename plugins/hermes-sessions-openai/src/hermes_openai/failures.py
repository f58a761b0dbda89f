"""What went wrong, said in the errors of the contract, and whether it may be tried again."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import AuthFailed, ContextOverflow, HermesError, Rejected, RetryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Failure",
    "cut_off",
    "failure_of_body",
    "failure_of_status",
    "no_connection",
    "nothing_said",
    "out_of_time",
    "silent",
    "too_long",
    "withheld",
]

_MOST_CHARACTERS = 400
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_NO_MONEY = ("insufficient_quota", "billing", "insufficient balance", "credit balance", "payment required")
_OVERFLOW = re.compile(
    r"context.?(length|window|size)|maximum context|too many tokens|prompt is too long|input is too long"
    r"|exceeds? the (available|maximum|model'?s?) (context|input|number of tokens)"
    r"|reduce the length of the (messages|prompt)"
    r"|input token count.*exceeds|range of input length",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:maximum|limit|window)\D{0,60}?(\d{3,9})\b(?: tokens)?", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Failure:
    """One request that failed.

    Attributes:
        error: what is raised when it is not tried again. again: whether that could help.
        after_s: seconds that the endpoint asks to wait, ``None`` where it does not say.
        about: lower-case words of the endpoint, in which a setting that it does not know may be named.
    """

    error: HermesError
    again: bool = False
    after_s: float | None = None
    about: str = ""


def cut_off() -> Failure:
    """Return the failure of an answer that ends in the middle."""
    return Failure(error=RetryLater("the endpoint broke off in the middle of its answer"), again=True)


def nothing_said() -> Failure:
    """Return the failure of an answer without text and calls."""
    return Failure(error=Rejected("the model gave an empty answer"), again=True)


def silent(seconds: float) -> Failure:
    """Return the failure of an endpoint that sent nothing for a time."""
    return Failure(error=RetryLater(f"the endpoint said nothing for {seconds:g} s"), again=True)


def too_long(limit: int) -> Failure:
    """Return the failure of an answer that did not end within a number of bytes."""
    return Failure(error=Rejected(f"the endpoint's answer is longer than {limit} bytes (answer_bytes)"))


def out_of_time() -> Failure:
    """Return the failure of a request that the turn has no time for."""
    return Failure(error=RetryLater("the turn has no time left (turn_timeout_s)"))


def withheld() -> Failure:
    """Return the failure of an answer that a content filter kept."""
    return Failure(error=Rejected("the endpoint's content filter withheld the answer"))


def no_connection(address: str, reason: str) -> Failure:
    """Return the failure of a request that had no answer at all."""
    said = f"{address} cannot be reached: {reason.rstrip('. ')}; is base_url right, and does a server run there?"
    return Failure(error=RetryLater(said), again=True)


def failure_of_status(status: int, text: str, headers: Mapping[str, str], *, now: float) -> Failure:
    """Return the failure of an answer with an error status.

    :param text: its body, JSON or not. headers: names in lower case, or of any case where they are looked up so.
    :param now: UTC epoch seconds, for a hint that is a date.
    """
    words, code = _words(text)
    wish = headers.get("x-should-retry", "")
    return _failure(status, words, code, f"HTTP {status}", after_s=_hint(headers, now), wish=wish)


def failure_of_body(error: object) -> Failure:
    """Return the failure that stands inside an answer whose status was good."""
    if isinstance(error, dict):
        words = str(error.get("message") or error.get("type") or "an error without a message")
        code = error.get("code")
        kind = str(error.get("type") or "")
    else:
        words, code, kind = str(error), None, ""
    status = code if isinstance(code, int) and not isinstance(code, bool) else _STATUS_OF.get(str(code or kind), 0)
    if not status:
        status = _STATUS_OF.get(kind, 400)
    return _failure(status, _one_line(words), f"{code or ''} {kind}", "it answered with an error")


_STATUS_OF = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "overloaded_error": 529,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "timeout": 504,
}


def _failure(status: int, words: str, code: str, what: str, *, after_s: float | None = None, wish: str = "") -> Failure:
    said = f"the endpoint refused: {what}{': ' if words else ''}{words}"
    about = f"{code} {words}".lower()
    if status in (401, 403):
        return Failure(error=AuthFailed(said), about=about)
    if status in (400, 413, 422, 500) and ("context_length" in about or _OVERFLOW.search(words)):
        found = _NUMBER.search(words)
        limit = int(found.group(1)) if found else None
        error = ContextOverflow(f"the prompt is longer than the model can read: {words}", limit_tokens=limit)
        return Failure(error=error, about=about)
    if status == 402 or (status == 429 and any(word in about for word in _NO_MONEY)):
        return Failure(error=Rejected(said), about=about)
    if status == 404:
        said = f"{said.rstrip('. ')}; are base_url and model right?"
    if (status in _AGAIN and wish != "false") or wish == "true":
        return Failure(error=RetryLater(said, after_s=after_s), again=True, after_s=after_s, about=about)
    return Failure(error=Rejected(said), about=about)


def _words(text: str) -> tuple[str, str]:
    """Return the message of an error's body, on one line, and its code and type; any body has something to say."""
    import json

    try:
        body: object = json.loads(text)
    except (ValueError, RecursionError):
        return _of_page(text), ""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return _one_line(text), ""
    error = body.get("error")
    inside = error if isinstance(error, dict) else body
    message = inside.get("message") or inside.get("detail") or (error if isinstance(error, str) else "") or text
    return _one_line(str(message)), f"{inside.get('code') or ''} {inside.get('type') or ''}"


def _of_page(text: str) -> str:
    """Return what a page says: its title, else its text without the marks."""
    if "<" not in text[:1000]:
        return _one_line(text)
    title = re.search(r"<title[^>]*>(.*?)</title>", text[:100_000], re.IGNORECASE | re.DOTALL)
    bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text[:100_000], flags=re.IGNORECASE | re.DOTALL)
    return _one_line(title.group(1) if title else bare)


def _one_line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * _MOST_CHARACTERS]).split())
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 1]}…"


def _hint(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long the endpoint asks to wait: ``retry-after-ms``, ``retry-after`` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if seconds - seconds == 0:
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (TypeError, ValueError):
        return None
