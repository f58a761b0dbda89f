"""Text that no UTF-8 can hold: half a surrogate pair becomes U+FFFD before anything is stored or looked up."""

from __future__ import annotations

from operator import is_
from typing import TypeVar, cast

__all__ = ["clean", "clean_text"]

T = TypeVar("T")

_FIELDS: dict[type, tuple[str, ...]] = {}


def clean_text(text: str) -> str:
    """The text with every lone surrogate replaced; the same object when there is none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if 0xD800 <= ord(char) < 0xE000 else char for char in text)
    return text


def clean(value: T) -> T:
    """A value, a tuple, a set, or an attrs value of such, with clean text; the same object when nothing changes.

    Works through nested values; numbers, ``None`` and everything else stay as they are.
    """
    return cast("T", _clean(value))  # the result has the type of the argument, whatever that is


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, tuple | frozenset):
        old = list(value)
        new = [_clean(each) for each in old]
        return value if all(map(is_, new, old)) else type(value)(new)
    return _clean_fields(value)


def _clean_fields(value: object) -> object:
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(field.name for field in getattr(kind, "__attrs_attrs__", ()))
    changed: dict[str, object] = {}
    for name in names:
        old = getattr(value, name)
        if old is None:
            continue
        new = _clean(old)
        if new is not old:
            changed[name] = new
    if not changed:
        return value
    return kind(**{name: changed.get(name, getattr(value, name)) for name in names})
