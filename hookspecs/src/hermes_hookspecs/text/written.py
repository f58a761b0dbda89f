"""What a text may hold, by its letters as they are written: a look that spares folding most texts.

Folding takes ten times longer than finding a word in a text, and most texts are of characters that it leaves as they
are, or makes signs of. In such a text a word is there as it is written, or not at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_hookspecs.text.query import And, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.text.query import Node

__all__ = ["may_hold_as_written"]

_KEPT = "\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff\uac00-\ud7a3"
"""Characters beside ASCII that folding leaves as they are."""
_SIGNS = "\u2018-\u201f\u2022\u2026\u3000-\u3002\u3008-\u3011\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
_UNUSUAL = re.compile(f"[^\t\n\r -~{_KEPT}{_SIGNS}]")
"""Any other character: folding could make a letter of it."""
_COMPARED = re.compile(f"[a-z0-9]+|[{_KEPT}]+")


def may_hold_as_written(needed: Node) -> Callable[[str], bool]:
    """Return what says of a text, as it is stored, whether it may hold what is needed; false is certain.

    :param needed: any query; what it excludes is not looked at.
    """
    of_usual = _of_usual(needed)
    return lambda text: _UNUSUAL.search(text) is not None or of_usual(text.lower())


def _of_usual(needed: Node) -> Callable[[str], bool]:
    if isinstance(needed, And | Or):
        tests = [_of_usual(part) for part in needed.parts]
        every = all if isinstance(needed, And) else any
        return lambda lower: every(test(lower) for test in tests)
    # A space between a word and a character of CJK may be there or not, so one run of either is compared.
    part = "" if isinstance(needed, Not) else max(_COMPARED.findall(needed.needle.text), key=len, default="")
    return lambda lower: part in lower
