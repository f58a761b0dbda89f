"""Text without the differences that a person who searches does not mean.

Folded are: case, width and compatibility forms (NFKC), diacritics of Latin, Greek, Cyrillic, Hebrew and Arabic,
invisible characters, and white space, of which each run, with the control characters in it, counts as one space.
A space between a word and a CJK character is not there at all: ``docker 部署`` is written ``docker部署`` as often.

Marks that carry sound are kept: vowel signs of Thai or Devanagari, the voicing of kana.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["GRAM", "SIGN", "WORD", "fold", "fold_with_origins"]

GRAM = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaadf"  # Burmese, Tai Viet
    "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\uac00-\ud7a3\u3131-\u318e"  # Hangul
    "\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf"  # Khmer, Tai Le, New Tai Lue, Tai Tham
    "\u2600-\u27bf\U0001f000-\U0001faff"  # pictures
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00016fe0-\U00018dff\U0001b170-\U0001b2ff\U00020000-\U0003ffff"  # Tangut, Nushu, Han of the upper planes
    "\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # kana
    "\u3100-\u312f\u31a0-\u31bf\ua000-\ua4cf"  # Bopomofo, Yi
)
"""Characters of a regular expression's class: scripts without spaces between words, which are found by every part."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b"
    "\u08ca-\u0963\u0971-\u0df3\u1b00-\u1b44\ua880-\ua8c5\ua926-\ua92d\ua980-\ua9c0\uabe3-\uabed"
)
WORD = rf"(?:[^\W_{GRAM}]|[{_MARKS}])"
"""A regular expression of one character of a word in a script with spaces; digits belong to words."""
SIGN = rf"(?:[^\w {GRAM}{_MARKS}]|_)"
"""A regular expression of one character of folded text that is neither of a word, nor of CJK, nor a space."""

_JAMO = re.compile("[\u3131-\u318e\uffa0-\uffdc]")
_ACCENTED = re.compile("[\u00c0-\u06ff\u1ab0-\u1aff\u1d00-\u1fff\u20d0-\u20ff\ufe20-\ufe2f]+")
_DIACRITIC = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]+"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x9f]")
_LOOSE_SPACE = re.compile(rf" (?:(?<=[{GRAM}] )(?=[^\W_{GRAM}])|(?<=[^\W_{GRAM}] )(?=[{GRAM}]))")
_UNUSUAL = re.compile(
    "[^\t\n\r -~\u2013\u2014\u2018-\u201f\u2022\u2026\u3000-\u3029\u3041-\u3096\u30a1-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e\uff61-\uff9f]"
)
"""All but the characters of most texts in Chinese, Japanese, Korean and English, which need no look at each."""
_UNLIKE_ONE = re.compile(
    "[^\t\n\r -~\u2013\u2014\u2018-\u201f\u2022\u3001-\u3029\u3041-\u3096\u30a1-\u30fe"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]"
)
"""All but the characters, of most texts, that each fold to one character whatever stands beside them."""
_VOICED = "\uff9e\uff9f"
_VOWELS_AND_TAILS = ("\u1160", "\u11ff")


def fold(text: str) -> str:
    """Return ``text`` folded. Folding twice changes nothing; the length may change."""
    if text.isascii():
        return _join_spaces(text.lower())
    if _UNUSUAL.search(text) is None:
        return _LOOSE_SPACE.sub("", " ".join(unicodedata.normalize("NFKC", text).casefold().split()))
    return _LOOSE_SPACE.sub("", _join_spaces(_fold_letters(_INVISIBLE.sub("", text))))


def _join_spaces(text: str) -> str:
    return " ".join((text if _CONTROL.search(text) is None else _CONTROL.sub(" ", text)).split())


def _fold_letters(text: str) -> str:
    """Fold all but spaces and what is invisible.

    Single Hangul letters stay letters: composed into syllables, a part of them would not be found.
    """
    if _JAMO.search(text) is None:
        return _compose(text)
    pieces: list[str] = []
    done = 0
    for found in _JAMO.finditer(text):
        pieces.append(_compose(text[done : found.start()]))
        pieces.append(_letter(found.group()))
        done = found.end()
    pieces.append(_compose(text[done:]))
    return "".join(pieces)


def _letter(jamo: str) -> str:
    """Return the full-width form of one Hangul letter."""
    narrow = unicodedata.decomposition(jamo)
    return chr(int(narrow.split()[1], 16)) if narrow.startswith("<narrow>") else jamo


def _compose(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENTED.sub(_strip, folded))


def _strip(found: re.Match[str]) -> str:
    return _DIACRITIC.sub("", unicodedata.normalize("NFD", found.group()))


def fold_with_origins(text: str) -> tuple[str, list[int]]:
    """Return :func:`fold` of a text, and for each folded character the index of the cluster it came from.

    A last entry, the length of ``text``, closes the list. Where characters fold to other than one each it costs a
    microsecond or so per character: for the few texts that are shown, not for those that are searched.
    """
    if _UNLIKE_ONE.search(text) is None:
        folded = fold(text)
        if len(folded) == len(text):  # no space was joined to another or left out
            return folded, list(range(len(text) + 1))
    characters: list[str] = []
    origins: list[int] = []
    for start, end in _clusters(text):
        for character in _fold_letters(_INVISIBLE.sub("", text[start:end])):
            space = character.isspace() or _CONTROL.match(character) is not None
            if space and (not characters or characters[-1] == " "):
                continue
            characters.append(" " if space else character)
            origins.append(start)
    if characters and characters[-1] == " ":
        del characters[-1], origins[-1]
    folded = "".join(characters)
    loose = {found.start() for found in _LOOSE_SPACE.finditer(folded)}
    if loose:
        folded = "".join(character for at, character in enumerate(folded) if at not in loose)
        origins = [origin for at, origin in enumerate(origins) if at not in loose]
    return folded, [*origins, len(text)]


def _clusters(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that fold without regard to each other: a character and the marks behind it."""
    starts = [at for at, character in enumerate(text) if at == 0 or not _joins(character)]
    return list(zip(starts, [*starts[1:], len(text)], strict=False))


def _joins(character: str) -> bool:
    if character < "\u0300":
        return False
    first, last = _VOWELS_AND_TAILS
    if first <= character <= last or character in _VOICED or _INVISIBLE.match(character):
        return True
    return unicodedata.category(character)[0] == "M"
