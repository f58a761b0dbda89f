"""Pieces of context for one turn, and the exact text of its first user row.

All providers are asked at once, before the turn has its lease: nobody waits for them, and what they hand in is stored
by *begin* itself, as part of the user row's text. So a piece is in every later prompt just as it was in the first, and
a provider that answers differently tomorrow changes nothing that was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.context.labels import label_of
from hermes_hookspecs.ports.services import ContextPiece

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.services import ContextProvider, TurnOpening

__all__ = ["BUDGET_TOKENS", "PROVIDING_S", "Pieces", "ask_providers", "choose", "with_pieces"]

BUDGET_TOKENS: Final = 2000
"""Tokens of all pieces of one turn together."""
PROVIDING_S: Final = 10.0
"""Seconds that a provider has."""

_END: Final = "[end of context"


@attrs.frozen(kw_only=True)
class Pieces:
    """What goes in front of a user row's text: pieces in order, and how many did not fit."""

    chosen: tuple[ContextPiece, ...] = ()
    left_out: int = 0


async def ask_providers(
    opening: TurnOpening,
    providers: Sequence[ContextProvider],
    *,
    count_tokens: Callable[[str], int],
    budget_tokens: int = BUDGET_TOKENS,
    limit_s: float = PROVIDING_S,
) -> Pieces:
    """Return what the providers hand in, as far as the budget goes.

    One that fails, takes longer than ``limit_s`` seconds, or returns what is no piece, hands in nothing and is logged.
    """
    from asyncio import gather

    named = sorted(providers, key=lambda one: one.name)
    handed = await gather(*(_asked(one, opening, budget_tokens, limit_s) for one in named))
    return choose([piece for pieces in handed for piece in pieces], budget_tokens, count_tokens)


def choose(pieces: Sequence[ContextPiece], budget_tokens: int, count_tokens: Callable[[str], int]) -> Pieces:
    """Return the pieces that go in, highest priority first, else in the order given. Pure.

    One that does not fit is left out and smaller ones behind it may still go in; of two with one text the first does.
    """
    chosen: list[ContextPiece] = []
    texts: set[str] = set()
    left, left_out = budget_tokens, 0
    for piece in sorted(pieces, key=lambda one: -one.priority):
        text = piece.text.strip()
        if not text or text in texts:
            continue
        cost = count_tokens(_block(piece))
        if cost > left:
            left_out += 1
            continue
        left -= cost
        texts.add(text)
        chosen.append(piece)
    return Pieces(chosen=tuple(chosen), left_out=left_out)


def with_pieces(text: str, sent: str | None, pieces: Pieces) -> str | None:
    """Return a user row's text as it is sent, its pieces before it; ``None`` where that is the text itself.

    :param sent: the text with its sender's name, where that differs from ``text``.
    """
    blocks = [_block(piece) for piece in pieces.chosen]
    if pieces.left_out:
        noun = "piece" if pieces.left_out == 1 else "pieces"
        blocks.append(f"[context: {pieces.left_out} more {noun} left out, the budget is spent]")
    if not blocks:
        return sent
    said = text if sent is None else sent
    return "\n\n".join([*blocks, said] if said else blocks)


def _block(piece: ContextPiece) -> str:
    """Return a piece between two lines that its text cannot forge."""
    label = label_of(piece.label) or "context"
    return f"[context: {label}]\n{piece.text.strip().replace(_END, '(end of context')}\n{_END}]"


async def _asked(
    provider: ContextProvider, opening: TurnOpening, budget_tokens: int, limit_s: float
) -> tuple[ContextPiece, ...]:
    import asyncio

    try:
        async with asyncio.timeout(limit_s):
            handed = tuple(await provider.pieces(opening, budget_tokens=budget_tokens))
        if not all(isinstance(one, ContextPiece) for one in handed):
            raise TypeError("it returned something that is no ContextPiece")
    except Exception as error:  # noqa: BLE001 - a provider is a plugin: the message is answered without its pieces
        from logging import getLogger

        getLogger(__name__).warning(
            "the context provider %s hands in nothing (%s)", provider.name, type(error).__name__
        )
        return ()
    return handed
