"""How many tokens a prompt has: measured where the endpoint said so, estimated and calibrated elsewhere. Pure.

An estimate needs no tokenizer and reads any script: an ASCII letter counts a quarter of a token, and each further byte
of a character's UTF-8 a third, so that Cyrillic comes to 0.6 a letter, Chinese to 0.95, an emoji to 1.3. What an
endpoint has said of an earlier prompt of the same session corrects what is estimated of the rows behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import ASSISTANT, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import SessionId, TurnId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["Measurement", "estimate_tokens", "measurement_of", "prompt_tokens", "row_tokens", "shortened"]

_PER_CHARACTER = 0.25
_PER_FURTHER_BYTE = 0.35
_PER_ROW = 4
"""Tokens around a row: role, separators."""
_PER_TOKEN = 4
"""No token of the estimate has more characters."""
_HEAD = 2 / 3
"""Share of a shortened text that is its beginning: what is wanted mostly stands there."""
_LEAST_RATIO, _MOST_RATIO = 0.25, 4.0
"""A measurement that differs more than this from the estimate measured something else, too."""


@attrs.frozen(kw_only=True)
class Measurement:
    """Tokens of the prompt with which the last model call of a turn began, as its endpoint counted them."""

    turn_id: TurnId
    tokens: int


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has; never less for a longer text that begins with it."""
    further = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return int(len(text) * _PER_CHARACTER + further * _PER_FURTHER_BYTE + 0.5)


def row_tokens(row: Message) -> int:
    """Return about how many tokens a row has as it is sent: its text, its calls, the text form of its attachments."""
    tokens = _PER_ROW + estimate_tokens(row.content if row.sent is None else row.sent)
    for call in row.tool_calls:
        tokens += _PER_ROW + estimate_tokens(call.name) + estimate_tokens(call.arguments)
    if row.role != USER:
        return tokens  # what an answer brought along is not sent
    return tokens + sum(estimate_tokens(one.text or one.name) for one in row.attachments)


def shortened(text: str, most_tokens: int) -> str:
    """Return ``text`` in about ``most_tokens`` tokens: where it is longer, its beginning, a mark, and its end."""
    if estimate_tokens(text) <= most_tokens:
        return text
    mark = f"\n[... {len(text)} characters are too long for the model: the middle is left out here, and kept ...]\n"
    room = most_tokens - estimate_tokens(mark)
    if room < 2:
        return text[: _fitting(text, most_tokens)]
    head = _fitting(text, int(room * _HEAD))
    rest = text[max(head, len(text) - room * _PER_TOKEN) :]
    tail = _fitting(rest[::-1], room - estimate_tokens(text[:head]))
    return f"{text[:head]}{mark}{text[len(text) - tail :] if tail else ''}"


def prompt_tokens(
    rows: Sequence[Message], *, system: str | None, session_id: SessionId, measured: Measurement | None
) -> tuple[int, bool]:
    """Return the tokens of a prompt, and whether most of it was measured rather than estimated.

    :param rows: what is sent behind the system text, oldest first. session_id: of the session that they are sent for.
    :param measured: of an earlier turn; it counts only for rows of the same session, since a compression changed the
        prompt.
    """
    weights = [row_tokens(row) for row in rows]
    head = estimate_tokens(system or "")
    place = None if measured is None else _answer_of(rows, measured.turn_id, session_id)
    if measured is None or place is None:
        return head + sum(weights), False
    before = head + sum(weights[:place])
    ratio = min(max(measured.tokens / max(before, 1), _LEAST_RATIO), _MOST_RATIO)
    return measured.tokens + round(ratio * sum(weights[place:])), True


def measurement_of(reader: StoreReader, rows: Sequence[Message]) -> Measurement | None:
    """Return what the endpoint said of the newest prompt that an answer among ``rows`` was given to."""
    answered = next((row.turn_id for row in reversed(rows) if row.role == ASSISTANT and not row.kind), None)
    if answered is None:
        return None
    reports = [one.usage.input_tokens for one in reader.usage(answered) if not one.late]  # late: of other prompts
    known = [tokens for tokens in reports if tokens]
    return Measurement(turn_id=answered, tokens=known[-1]) if known else None


def _answer_of(rows: Sequence[Message], turn_id: TurnId, session_id: SessionId) -> int | None:
    """Return the place of a turn's last answer, ``None`` where it was given in another session."""
    for place in range(len(rows) - 1, -1, -1):
        row = rows[place]
        if row.turn_id == turn_id and row.role == ASSISTANT and not row.kind:
            return place if row.session_id == session_id else None
    return None


def _fitting(text: str, most_tokens: int) -> int:
    """Return how many characters of the beginning of ``text`` have at most so many tokens."""
    low, high = 0, min(len(text), max(most_tokens, 0) * _PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle]) <= most_tokens:
            low = middle
        else:
            high = middle - 1
    return low
