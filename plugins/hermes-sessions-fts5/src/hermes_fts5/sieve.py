"""What drops rows which certainly do not hold what is looked for, where rows are read one by one.

Reading a row in Python costs ten times more than comparing it in SQLite, which knows nothing of folding. So only plain
ASCII and single Han characters are compared there, and whatever folding could make equal to them passes.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from hermes_hookspecs.text.query import And, Not, Or

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.text.query import Node

__all__ = ["may_hold", "title_may_hold"]

OTHER_TEXTS = "m.tool_calls IS NOT NULL OR m.attachments IS NOT NULL"
NOT_PLAIN = "octet_length(m.content) > length(m.content)"
NAMES = "coalesce(m.tool_name, '')"
COMPATIBLE = (
    (0xA0, 0x24F), (0x2B0, 0x37F), (0x384, 0x386), (0x1E00, 0x214F), (0x2200, 0x22FF), (0x2460, 0x24FF),
    (0x2A70, 0x2A80), (0x3000, 0x303F), (0x3200, 0x33FF), (0xFB00, 0xFB50), (0xFE10, 0xFE70), (0xFF00, 0xFFF0),
    (0x1F100, 0x1F270),
)  # fmt: skip
"""Where the characters stand that folding can turn into ASCII punctuation; more is no harm."""
FIRST_HAN, LAST_HAN = "\u4e00", "\u9fff"
COMPATIBLE_HAN = (
    (0x2E80, 0x3040), (0x3190, 0x31A0), (0x3200, 0x3400), (0xF900, 0xFB00), (0x1F100, 0x1F300), (0x2F800, 0x2FA20),
)  # fmt: skip
"""Where the characters stand that folding can turn into Han characters of the usual block; more is no harm."""


def may_hold(needed: Node) -> tuple[str, tuple[str, ...]]:
    """Return a condition on ``m``, a row of ``messages``, that every row meets which holds what is needed.

    :param needed: a query without exclusions.
    """
    if isinstance(needed, And | Or):
        return _joined([may_hold(part) for part in needed.parts], " AND " if isinstance(needed, And) else " OR ")
    if isinstance(needed, Not):
        return "TRUE", ()
    plain = max(needed.needle.text.split(" "), key=len)
    if not plain.isascii():
        return f"({NOT_PLAIN} OR {OTHER_TEXTS})", ()
    if not any(character.isalnum() for character in plain):
        return _joined([_may_hold_sign(sign) for sign in sorted(set(plain))], " AND ")
    return (
        f"(instr(lower(m.content), ?) OR instr(lower({NAMES}), ?) OR {NOT_PLAIN} OR {OTHER_TEXTS})",
        (plain, plain),
    )


def title_may_hold(needed: Node) -> tuple[str, tuple[str, ...]]:
    """Return a condition on ``title``, a column, that every title meets which holds what is needed."""
    if isinstance(needed, And | Or):
        parts = [title_may_hold(part) for part in needed.parts]
        return _joined(parts, " AND " if isinstance(needed, And) else " OR ")
    if isinstance(needed, Not):
        return "TRUE", ()
    plain = max(needed.needle.text.split(" "), key=len)
    if plain.isascii():
        return "(instr(lower(title), ?) OR octet_length(title) > length(title))", (plain,)
    han = next((character for character in plain if FIRST_HAN <= character <= LAST_HAN), None)
    if han is None:
        return "octet_length(title) > length(title)", ()
    forms = (han, *_forms_of_han().get(han, ()))
    return f"({' OR '.join(['instr(title, ?)'] * len(forms))})", forms


def _joined(parts: Sequence[tuple[str, tuple[str, ...]]], by: str) -> tuple[str, tuple[str, ...]]:
    return f"({by.join(sql for sql, _ in parts)})", tuple(one for _, bindings in parts for one in bindings)


def _may_hold_sign(sign: str) -> tuple[str, tuple[str, ...]]:
    forms = _forms().get(sign, ())
    wide = " OR ".join(["instr(m.content, ?)"] * len(forms)) or "FALSE"
    held = f"instr(m.content, ?) OR instr({NAMES}, ?) OR ({NOT_PLAIN} AND ({wide}))"
    return f"({held} OR {OTHER_TEXTS})", (sign, sign, *forms)


@cache
def _forms_of_han() -> dict[str, tuple[str, ...]]:
    """Characters that fold to a text with a Han character in it, by that."""
    found: dict[str, list[str]] = {}
    for first, end in COMPATIBLE_HAN:
        for character in map(chr, range(first, end)):
            for part in set(unicodedata.normalize("NFKC", character)) - {character}:
                found.setdefault(part, []).append(character)
    return {part: tuple(characters) for part, characters in found.items()}


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Characters that fold to a text with an ASCII sign in it, by the sign."""
    found: dict[str, list[str]] = {}
    for character in _compatible():
        for sign in set(unicodedata.normalize("NFKD", character)):
            if sign.isascii() and not sign.isalnum():
                found.setdefault(sign, []).append(character)
    return {sign: tuple(characters) for sign, characters in found.items()}


def _compatible() -> Iterable[str]:
    for first, end in COMPATIBLE:
        yield from map(chr, range(first, end))
