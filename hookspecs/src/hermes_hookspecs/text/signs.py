"""Signs: what stands between words and is no space, and what an index keeps of it.

Each sign of a text is kept, and each pair of neighbours, without their places. A piece of punctuation is in a text only
if all of its pairs are, so that one which is nowhere is known to be nowhere without reading the rows.
"""

from __future__ import annotations

import re
from operator import add
from typing import TYPE_CHECKING

from hermes_hookspecs.text.folding import SIGN

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["index_signs", "needed_signs"]

_RUNS = re.compile(f"{SIGN}+")
_BESIDE_USUAL_LETTERS = re.compile("[^a-z0-9 \u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
"""Ten times quicker than the class of all signs, and leaves little for that one to look at."""
_LETTERS = str.maketrans(dict.fromkeys("abcdefghijklmnopqrstuvwxyz0123456789", " "))


def index_signs(folded: str) -> frozenset[str]:
    """Return the distinct signs of a folded text, and the distinct pairs of signs that touch each other."""
    found: set[str] = set()
    for run in set(_runs(folded)):
        found.update(run)
        found.update(map(add, run, run[1:]))
    return frozenset(found)


def needed_signs(folded: str) -> Sequence[str]:
    """Return what :func:`index_signs` has of every text that holds ``folded``: pairs, and signs that stand alone."""
    found: dict[str, None] = {}
    for run in _runs(folded):
        found.update(dict.fromkeys(map(add, run, run[1:]) if len(run) > 1 else (run,)))
    return tuple(found)


def _runs(folded: str) -> list[str]:
    if folded.isascii():
        return folded.translate(_LETTERS).split()
    return _RUNS.findall(" ".join(_BESIDE_USUAL_LETTERS.findall(folded)))
