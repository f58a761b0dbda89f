"""Text that no UTF-8 can hold: half a surrogate pair becomes U+FFFD before anything is stored or looked up."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar, cast

from hermes_hookspecs.principal import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_hookspecs.messages import MessageDraft

__all__ = ["clean", "clean_text", "drafts_are_clean"]

T = TypeVar("T")

# An owner stands in the store percent-encoded, halves of surrogate pairs too: cleaning it would make two owners one.
_PLAIN = frozenset({int, float, bool, type(None), Owner})
_COLLECTIONS = frozenset({tuple, frozenset})

# How to take all fields of an attrs class at once: every operation passes here, on its way into the store.
_FIELDS: dict[type, tuple[str, ...]] = {}
_TAKE: dict[type, Callable[[object], tuple[object, ...]]] = {}


def clean_text(text: str) -> str:
    """The text with every lone surrogate replaced; the same object when there is none."""
    if _is_clean(text):
        return text
    return "".join("\ufffd" if 0xD800 <= ord(char) < 0xE000 else char for char in text)


def drafts_are_clean(drafts: Iterable[MessageDraft]) -> bool:
    """Whether no text of some rows needs :func:`clean`; false, too, where only looking at everything tells.

    The same question at an eighth of the price, asked for the kind of rows that there are most of.
    """
    for draft in drafts:
        if (
            draft.tool_calls
            or draft.attachments
            or not _is_clean(draft.content)
            or not draft.role.isascii()
            or not draft.kind.isascii()
        ):
            return False
        for text in (draft.sent, draft.tool_call_id, draft.tool_name, draft.finish_reason, draft.reasoning):
            if text is not None and not _is_clean(text):
                return False
    return True


def clean(value: T) -> T:
    """A value, a tuple, a set, or an attrs value of such, with clean text; the same object when nothing changes.

    Looks into nested values; numbers, ``None`` and everything else stay as they are.
    """
    if _all_clean((value,)):
        return value
    return cast("T", _cleaned(value))  # the result has the type of the argument, whatever that is


def _is_clean(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _all_clean(values: Iterable[object]) -> bool:
    # By exact type, the commonest first: this is a seventh of what an append costs the caller.
    for value in values:
        kind = type(value)
        if kind is str:
            if not (value.isascii() or _is_clean(value)):  # type: ignore[arg-type, attr-defined]  # it is a str
                return False
        elif kind in _PLAIN:
            continue
        elif kind in _COLLECTIONS:
            if value and not _all_clean(value):  # type: ignore[arg-type]  # it is a tuple or a set
                return False
        elif not _all_clean(_fields_of(kind, value)):
            return False
    return True


def _fields_of(kind: type, value: object) -> tuple[object, ...]:
    take = _TAKE.get(kind)
    if take is None:
        names = _FIELDS[kind] = tuple(field.name for field in getattr(kind, "__attrs_attrs__", ()))
        # With a single name, attrgetter would not give a tuple.
        take = _TAKE[kind] = attrgetter(*names, names[0]) if names else _nothing
    return take(value)


def _nothing(_value: object) -> tuple[object, ...]:
    return ()


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, tuple | frozenset):
        return type(value)([_cleaned(each) for each in value])
    kind = type(value)
    if kind in _PLAIN or not _fields_of(kind, value):
        return value
    return kind(**{name: _cleaned(getattr(value, name)) for name in _FIELDS[kind]})
