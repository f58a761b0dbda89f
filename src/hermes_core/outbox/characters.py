"""Where a text may be cut without taking a character apart, as people see characters."""

from __future__ import annotations

from unicodedata import category

__all__ = ["is_border", "last_border"]

_JOINER = "\u200d"
_LONGEST = 64
"""Code points in one visible character; longer heaps of marks are cut."""


def last_border(text: str, start: int, end: int) -> int:
    """Return the last place up to ``end`` where ``text`` may be cut; ``end`` itself where none is near.

    :param start: the cut stands behind it.
    """
    for place in range(end, max(start, end - _LONGEST), -1):
        if is_border(text, place, since=start):
            return place
    return max(end, start + 1)


def is_border(text: str, place: int, *, since: int = 0) -> bool:
    """Return whether a cut before ``text[place]`` parts two characters: no accent from its letter, no emoji in two.

    Close to the rules for grapheme clusters of Unicode (UAX 29), as far as the categories of characters say.

    :param since: a place before it where characters are parted for sure; nothing before that is looked at, so that
        cutting a text of flags at many places takes a time that grows with the text alone.
    """
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if before < "\u0300" and after < "\u0300":
        return (before, after) not in {("\r", "\n"), ("`", "`"), ("~", "~")}
    if _extends(after) or before == _JOINER:
        return False
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, place, since) % 2 == 0
    return not _joins_hangul(before, after)


def _extends(character: str) -> bool:
    return (
        character == _JOINER
        or category(character) in {"Mn", "Mc", "Me"}
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags, as in the flags of regions
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int, since: int) -> int:
    start = place
    while start > since and _is_flag_letter(text[start - 1]):
        start -= 1
    return place - start


def _joins_hangul(before: str, after: str) -> bool:
    """Return whether two conjoining Hangul letters, or a syllable and a letter, make one block."""
    if "\u1160" <= after <= "\u11ff":  # a vowel or a final consonant
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return "\u1100" <= before <= "\u115f" and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")
