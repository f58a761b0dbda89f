"""A synthetic corpus for search: the same rows in every run, for any number of them.

What it is made of, by its share of all rows:

======  ==============================================================================================
40 %    English chat: words by Zipf's law (rank ``r`` with weight ``1/r``) from 60 000 made-up words
25 %    Chinese chat: words of one to four characters by the same law from 8 000, with punctuation, a
        Latin word in every sixth row
6 %     Japanese: kana words and Chinese ones between particles
4 %     Korean: words of syllables with particles glued to them
10 %    code: lines of identifiers in snake and camel case
15 %    output of tools: paths, numbers, log lines; rows of the role ``tool``
======  ==============================================================================================

Lengths are exponential around 35 words (tools: 60). 40 rows make a conversation, times run over one year. Planted words
make the classes of queries: ``kwtenth`` in a tenth of all rows, ``kwcommon`` in 1 %, ``kwmid`` in 0.1 %, ``kwrare`` in
0.001 %, and the same in Chinese (``量子``, ``咖啡机``, ``鲸鱼座``, ``饕餮纹``).
"""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.stage import NOW, wanted
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_core.storage.sqlite.store import SqliteStore

__all__ = ["QUERIES", "Written", "store_corpus", "written"]

YEAR_MS = 365 * 24 * 3600 * 1000
ROWS_OF_CONVERSATION = 40
PLANTED = (
    ("kwtenth", 10),
    ("kwcommon", 100),
    ("kwmid", 1000),
    ("kwrare", 100_000),
    ("量子", 10),
    ("咖啡机", 100),
    ("鲸鱼座", 1000),
    ("饕餮纹", 100_000),
)
QUERIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("zh 1 char", ("的", "鲸", "饕")),
    ("zh 2 chars, common", ("量子", "咖啡")),
    ("zh 2 chars, mid", ("鲸鱼",)),
    ("zh 2 chars, rare", ("饕餮",)),
    ("zh 3 chars", ("咖啡机", "鲸鱼座")),
    ("zh 4+ chars", ("咖啡机鲸鱼座", "饕餮纹量子")),
    ("ko word", ("데이터",)),
    ("ja 3 chars", ("データ",)),
    ("en word in a tenth", ("kwtenth",)),
    ("en word common", ("kwcommon",)),
    ("en word mid", ("kwmid",)),
    ("en word rare", ("kwrare",)),
    ("en phrase", ('"kwcommon kwmid"', '"kwtenth kwcommon"')),
    ("en two words", ("kwcommon kwtenth", "kwmid kwtenth")),
    ("OR of zh words", ("量子 OR 鲸鱼座", "咖啡机 OR 饕餮纹")),
    ("zh + en word", ("咖啡机 kwtenth",)),
    ("Latin mid-token", ("wcommo", "wmi")),
    ("punctuation, present", ("src/main.py", "--dry-run")),
    ("punctuation, absent", ("$PATHX", "~/.configx", "=>>")),
)
"""Classes of queries; the queries of a class are asked in turn."""


class Written(NamedTuple):
    """One row: which conversation it belongs to, who wrote it, when (UTC milliseconds), and what."""

    conversation: int
    role: str
    at: int
    text: str


class _Zipf:
    """Draws by Zipf's law from a list."""

    def __init__(self, random_words: random.Random, words: Sequence[str]) -> None:
        self._random = random_words
        self._words = words
        self._sums = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))

    def draw(self, count: int) -> list[str]:
        chance, last, sums, words = self._random.random, self._sums[-1], self._sums, self._words
        return [words[bisect(sums, chance() * last)] for _ in range(count)]


class _Author:
    """Writes rows."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same rows in every run
        self._english = _Zipf(self._random, self._made_up(60_000, "bcdfghjklmnprstvwz", "aeiou"))
        han = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
        self._random.shuffle(han)
        self._chinese = _Zipf(
            self._random, ["的", "了", "是", "在", "我", *self._joined(han, 8000, (1, 2, 2, 2, 3, 4))]
        )
        kana = [chr(code) for code in range(0x3042, 0x3093)]
        self._japanese = _Zipf(self._random, ["データ", "の", "は", "です", *self._joined(kana, 3000, (2, 3, 4))])
        hangul = [chr(code) for code in range(0xAC00, 0xAC00 + 2000, 7)]
        self._korean = _Zipf(self._random, ["데이터", *self._joined(hangul, 3000, (2, 3))])

    def _made_up(self, count: int, consonants: str, vowels: str) -> list[str]:
        words: dict[str, None] = {}
        while len(words) < count:
            syllables = self._random.choice((1, 2, 2, 3, 3, 4))
            words["".join(self._random.choice(consonants) + self._random.choice(vowels) for _ in range(syllables))] = (
                None
            )
            if len(words) % 7 == 0:
                words[f"{self._random.choice(consonants)}{len(words):x}"] = None
        return list(words)[:count]

    def _joined(self, characters: Sequence[str], count: int, lengths: Sequence[int]) -> list[str]:
        return ["".join(self._random.choices(characters, k=self._random.choice(lengths))) for _ in range(count)]

    def _length(self, mean: int) -> int:
        return max(2, min(400, int(self._random.expovariate(1 / mean))))

    def english(self) -> str:
        words = self._english.draw(self._length(35))
        return " ".join(words).capitalize() + self._random.choice((".", "?", "", "!"))

    def chinese(self) -> str:
        words = self._chinese.draw(self._length(30))
        if self._random.random() < 1 / 6:
            words.insert(len(words) // 2, self._english.draw(1)[0])
        for at in range(7, len(words), 9):
            words[at] += "，"
        return "".join(words) + "。"

    def japanese(self) -> str:
        return "は".join(self._japanese.draw(self._length(12))) + "。"

    def korean(self) -> str:
        return " ".join(
            word + self._random.choice(("를", "이", "은", "")) for word in self._korean.draw(self._length(15))
        )

    def code(self) -> str:
        words = self._english.draw(self._length(30) + 3)
        lines = (f"    {a}_{b}({c.title()}{a.title()}, {b}=None)" for a, b, c in zip(*[iter(words)] * 3, strict=False))
        return "def main():\n" + "\n".join(lines)

    def tool(self) -> str:
        words = self._english.draw(self._length(60) + 2)
        number = self._random.randrange(10**6)
        head = f"$ run src/main.py --dry-run {words[0]}/{words[1]}.{number}\n"
        return (
            head
            + "\n".join(f"[{number % 900 + at}] {word}: ok" for at, word in enumerate(words[::3]))
            + " ".join(words)
        )

    def row(self, number: int) -> tuple[str, str]:
        share = number * 37 % 100
        role = USER if number % 2 == 0 else ASSISTANT
        if share < 40:
            text = self.english()
        elif share < 65:
            text = self.chinese()
        elif share < 71:
            text = self.japanese()
        elif share < 75:
            text = self.korean()
        elif share < 85:
            text = self.code()
        else:
            role, text = TOOL, self.tool()
        for planted, every in PLANTED:
            if self._random.random() * every < 1:
                text += f" {planted}"
        return role, text


def written(count: int, *, seed: int = 7) -> Iterator[Written]:
    """Rows in the order of storing; the first ``n`` are the same for every ``count``."""
    author = _Author(seed)
    for number in range(count):
        role, text = author.row(number)
        yield Written(number // ROWS_OF_CONVERSATION, role, NOW - YEAR_MS + number * YEAR_MS // max(count, 1), text)


_ROW = """
    INSERT INTO messages (lineage_no, session_id, role, content, timestamp) VALUES (?, ?, ?, ?, ?)
"""


def store_corpus(store: SqliteStore, count: int, *, first: int = 0) -> None:
    """Store rows ``first`` to ``count`` as messages of their conversations; the change feed hears of each.

    The rows go into the table directly: turns would make the same ones twenty times slower.
    """
    access = store.sqlite_access()
    waiting: list[tuple[int | str, ...]] = []
    lineage_no, name = 0, ""
    for number, row in enumerate(written(count)):
        if number < first:
            continue
        if f"c{row.conversation}" != name:
            name = f"c{row.conversation}"
            store.apply(wanted(name, now=row.at))
            with access.read() as reader:
                found = reader.one("SELECT no FROM lineages WHERE id = ?", (f"L{name}",))
            lineage_no = int(found[0]) if found is not None and isinstance(found[0], int) else 0
        waiting.append((lineage_no, f"S{name}", row.role, row.text, row.at))
        if len(waiting) >= 2000:
            _put(store, waiting)
            waiting = []
    _put(store, waiting)


def _put(store: SqliteStore, rows: list[tuple[int | str, ...]]) -> None:
    store.sqlite_access().apply(lambda writer: writer.run_many(_ROW, rows))
