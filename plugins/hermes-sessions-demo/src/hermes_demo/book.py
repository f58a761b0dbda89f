"""What the agent says to what: a function of a message and of those before it in its session.

The story asks for the same answers, so that one from another conversation, or one too many in it, shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["answer_to", "is_long"]

_CHINESE: Final = re.compile("[\u4e00-\u9fff]")
_QUOTED: Final = 14
_STEPS: Final = (
    "先把面粉、水、盐和酵母揉十分钟；盖上布，醒发一小时；整形，再醒四十分钟；烤箱预热到二百三十度；"
    "加蒸汽烤二十分钟，不加蒸汽再烤二十分钟；出炉以后放凉，一小时以后再切。"
)
_CHINESE_BOOK: Final = (
    ("多少面粉", "四个人的面包：面粉 500 克，水 325 克，盐 10 克，酵母 3 克。"),
    ("老王", "记住了：面粉在老王店里买，他周五不开门。"),
    ("一步一步", _STEPS),
    ("几点", "周六下午三点，在面包店的后院。"),
    ("多久", "揉面到出炉一共三个半小时，其中两小时不用管它。"),
)
_ENGLISH_BOOK: Final = (
    ("oven", "Noted: the oven is repaired on Tuesday at nine."),
    ("croissant", "Thirty croissants for Saturday: 1.2 kg of flour, 750 g of butter, two days."),
    ("invoice", "The invoice goes to the bakery, at the end of the month."),
    ("rye", "Rye needs no kneading, but sixteen hours of patience."),
)
_EARLIER_CHINESE, _EARLIER_ENGLISH = "刚才", "just now"


def is_long(text: str) -> bool:
    """Return whether the answer takes its time."""
    return "一步一步" in text


def answer_to(text: str, earlier: Sequence[str]) -> str:
    """Return the answer, on one line.

    :param earlier: what was said before in this session, oldest first.
    """
    chinese = _CHINESE.search(text) is not None
    if (_EARLIER_CHINESE if chinese else _EARLIER_ENGLISH) in text:
        said = _before(earlier[-1] if earlier else None, chinese=chinese)
    else:
        book, other = (_CHINESE_BOOK, "好的，记下了。") if chinese else (_ENGLISH_BOOK, "All right.")
        said = next((answer for word, answer in book if word in text), other)
    return said + _place(len(earlier) + 1, earlier, chinese=chinese)


def _before(text: str | None, *, chinese: bool) -> str:
    if text is None:
        return "还没说过什么。" if chinese else "Nothing yet."
    return f"刚才说的是“{text}”。" if chinese else f"You just said “{text}”."


def _place(number: int, earlier: Sequence[str], *, chinese: bool) -> str:
    """Return where in its session a message stands: the only thing that another conversation could not say."""
    if not earlier:
        return "（新会话）" if chinese else " (a new session)"
    first = earlier[0] if len(earlier[0]) <= _QUOTED else f"{earlier[0][:_QUOTED]}…"
    if chinese:
        return f"（本会话第{number}句，开头是“{first}”）"
    return f" (message {number} of this session, which began with “{first}”)"
