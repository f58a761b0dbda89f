"""What may be a title.

Rules of the original (upstream behaviour, section 3.6): control, zero-width and bidirectional characters are removed,
white space is collapsed, blank is no title, and more than 100 characters are refused rather than cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import TitleError
from hermes_hookspecs.sessions import TITLE_LIMIT

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Owner

__all__ = ["base_of", "clean_title", "free_title"]

_SHAPELESS = frozenset({"Cc", "Cf", "Cs", "Co"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2065\u3164\uffa0")
"""Letters and marks that are drawn as nothing: a title of them alone could not be seen."""


def clean_title(text: str | None) -> str | None:
    """Return a title that is safe to store and show, ``None`` for a blank one.

    :raises TitleError: longer than 100 characters after cleaning.
    """
    if text is None:
        return None
    if text.isascii() and text.isprintable() and "  " not in text:
        clean = text.strip()
    else:
        clean = " ".join(_visible(text).split())
    if len(clean) > TITLE_LIMIT:
        raise TitleError(
            f"a title has at most {TITLE_LIMIT} characters, this one has {len(clean)}; nothing was changed"
        )
    return clean or None


def free_title(reader: StoreReader, text: str | None, owner: Owner) -> str | None:
    """Return a clean title that a session of ``owner`` could have now. :raises TitleError: too long, or taken."""
    from hermes_hookspecs.principal import operator

    clean = clean_title(text)
    if clean is not None:
        for lineage in reader.lineages_by_title(clean, operator()):
            if lineage.owner == owner:
                raise TitleError(f"the title {clean!r} is taken by {lineage.tip}; nothing was changed")
    return clean


def base_of(title: str) -> str:
    """Return a title without the `` #N`` that a lineage's later sessions carry."""
    base, mark, number = title.rpartition(" #")
    return base if mark and number.isascii() and number.isdigit() else title


def _visible(text: str) -> str:
    """Drop what has no shape of its own; a zero-width joiner between two emoji is part of one picture and stays."""
    from unicodedata import category

    kept: list[str] = []
    for index, character in enumerate(text):
        if character.isspace():
            kept.append(" ")
        elif character == "\u200d":
            kept.append(character if _joins(text, index) else "")
        elif category(character) not in _SHAPELESS and character not in _BLANK and not _is_nothing(ord(character)):
            kept.append(character)
    return "".join(kept)


def _is_nothing(code: int) -> bool:
    """Return whether a code point is no character for ever; one that this Python does not know yet may be an emoji."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _joins(text: str, index: int) -> bool:
    """Return whether the joiner at ``index`` stands between two emoji (variation selectors and skin tones aside)."""
    before = text[:index].rstrip("\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")[-1:]
    after = text[index + 1 : index + 2]
    return _is_emoji(before) and _is_emoji(after)


def _is_emoji(character: str) -> bool:
    return bool(character) and (ord(character) >= 0x1F000 or 0x2190 <= ord(character) <= 0x2BFF)
