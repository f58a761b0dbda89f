"""Text as it is stored: halves of surrogate pairs become U+FFFD, everything else stays, NUL characters too."""

from __future__ import annotations

from typing import TypeVar, cast

import attrs

from hermes_hookspecs.principal import Owner

__all__ = ["clean", "clean_text"]

T = TypeVar("T")


def clean_text(text: str) -> str:
    """Return ``text`` with each lone surrogate replaced by U+FFFD, so that it is valid UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)
    return text


def clean(value: T) -> T:
    """Return ``value`` with all text inside it cleaned: text, tuples, frozen sets and attrs values of such.

    A value with nothing to clean is returned as it is.
    """
    return cast("T", _clean(value))  # _clean keeps the type of what it gets, which mypy cannot follow


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, tuple):
        parts = tuple(_clean(part) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if isinstance(value, frozenset):
        return frozenset(_clean(part) for part in value)
    kind = type(value)
    if kind is Owner:
        return value  # it is stored percent-encoded; cleaning it would make two owners one
    return _clean_fields(kind, value) if attrs.has(kind) else value


def _clean_fields(kind: type[attrs.AttrsInstance], value: object) -> object:
    changed: dict[str, object] = {}
    for field in attrs.fields(kind):
        old = getattr(value, field.name)
        new = _clean(old)
        if new is not old:
            changed[field.name] = new
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    return attrs.evolve(value, **changed) if changed else value  # type: ignore[misc]
