"""What a single setting may be: its kind, its range, its names in the environment.

A section class (:mod:`hermes_core.config.sections`) declares each key with one of the functions below, which carry
default and rule together; :func:`check` and :func:`parse` are the whole validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Rule",
    "Unfit",
    "Value",
    "check",
    "choice",
    "is_name",
    "maybe_switch",
    "maybe_texts",
    "name",
    "number",
    "only_names",
    "parse",
    "rules_of",
    "shown",
    "switch",
    "texts",
    "whole",
    "zone",
]

Value = bool | int | float | str | tuple[str, ...] | None
"""What a setting of the core holds; ``None`` where a key without a default was not given."""

Kind = Literal["switch", "whole", "number", "name", "choice", "texts", "zone"]

_RULE = "hermes_rule"
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-")
_TRUE = frozenset(("true", "1"))
_FALSE = frozenset(("false", "0"))
_SHOWN_CHARACTERS = 60


class Unfit(ValueError):
    """A value breaks its rule; the text goes behind ``key = value`` in the error line."""


class Rule(NamedTuple):
    """What one key accepts.

    ``low`` and ``high`` are inclusive. ``choices``: the valid values of a *choice*, of each of *texts* (any where there
    are none); the usual ones of a *name*. ``empty``: a *name* may be empty. ``env``: further environment variables,
    beside ``HERMES_<SECTION>_<KEY>``. ``option``: the command line option that sets it, where there is one.
    ``in_file``: whether a file may set it. ``secret``: never shown. ``form``: what each of *texts* has to match as a
    whole, in words ``like``.
    """

    kind: Kind
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    empty: bool = False
    env: tuple[str, ...] = ()
    option: str = ""
    in_file: bool = True
    secret: bool = False
    form: str = ""
    like: str = ""


def switch(default: bool) -> bool:
    """Return the field of a setting that is on or off."""
    return attrs.field(default=default, metadata={_RULE: Rule("switch")})


def maybe_switch() -> bool | None:
    """Return the field of a switch that is ``None`` when nobody set it."""
    field: bool | None = attrs.field(default=None, metadata={_RULE: Rule("switch")})
    return field


def whole(default: int, low: int, high: int) -> int:
    """Return the field of a whole number in ``low..high``."""
    return attrs.field(default=default, metadata={_RULE: Rule("whole", low, high)})


def number(default: float, low: float, high: float, *, env: tuple[str, ...] = ()) -> float:
    """Return the field of a number in ``low..high``; whole numbers are fine."""
    return attrs.field(default=default, metadata={_RULE: Rule("number", low, high, env=env)})


def name(default: str, usual: tuple[str, ...] = (), *, option: str = "") -> str:
    """Return the field of a lower-case name: one of ``usual``, or one that a plugin brings. Empty if the default is."""
    return attrs.field(default=default, metadata={_RULE: Rule("name", choices=usual, empty=not default, option=option)})


def choice(default: str, choices: tuple[str, ...]) -> str:
    """Return the field of a text that is one of ``choices``."""
    return attrs.field(default=default, metadata={_RULE: Rule("choice", choices=choices)})


def maybe_choice(choices: tuple[str, ...]) -> str | None:
    """Return the field of a choice that is ``None`` when nobody made it."""
    field: str | None = attrs.field(default=None, metadata={_RULE: Rule("choice", choices=choices)})
    return field


def texts(
    default: tuple[str, ...], choices: tuple[str, ...] = (), *, form: str = "", like: str = ""
) -> tuple[str, ...]:
    """Return the field of a list of texts, none of them empty; each one of ``choices``, where there are some.

    :param form: regular expression that each of them matches as a whole. like: the same in words, for the error.
    """
    return attrs.field(default=default, metadata={_RULE: Rule("texts", choices=choices, form=form, like=like)})


def maybe_texts(*, form: str = "", like: str = "") -> tuple[str, ...] | None:
    """Return the field of a list that is ``None`` when nobody gave one; parameters as in :func:`texts`."""
    rule = Rule("texts", form=form, like=like)
    field: tuple[str, ...] | None = attrs.field(default=None, metadata={_RULE: rule})
    return field


def only_names(env: str, option: str) -> tuple[str, ...] | None:
    """Return the field of a list that only an environment variable or an option sets; ``None`` when neither does."""
    rule = Rule("texts", env=(env,), option=option, in_file=False)
    field: tuple[str, ...] | None = attrs.field(default=None, metadata={_RULE: rule})
    return field


def zone() -> str:
    """Return the field of an IANA time zone name; empty means the host's zone."""
    return attrs.field(default="", metadata={_RULE: Rule("zone", empty=True)})


def rules_of(section: type[attrs.AttrsInstance]) -> dict[str, Rule]:
    """Return key → rule of a section class, in the order of its source."""
    return {field.name: field.metadata[_RULE] for field in attrs.fields(section)}


def check(rule: Rule, value: object) -> Value:
    """Return ``value`` as the setting keeps it: lists as tuples, whole numbers as floats where a number is meant.

    Nothing is guessed: the text ``"false"`` is no switch, ``"60"`` is no number, and ``true`` is not 1.

    :raises Unfit: when the value breaks the rule.
    """
    if rule.kind == "switch":
        if not isinstance(value, bool):
            raise Unfit(f"is {_what(value)}; write true or false{_unquoted(value)}")
        return value
    if rule.kind in ("whole", "number"):
        return _check_number(rule, value)
    if rule.kind == "texts":
        return _check_texts(rule, value)
    if not isinstance(value, str):
        raise Unfit(f"is {_what(value)}; write a text in quotes")
    if rule.kind == "choice":
        if value not in rule.choices:
            raise Unfit(f"is not one of {', '.join(rule.choices)}{_meant(value, rule.choices)}")
    elif rule.kind == "zone":
        _check_zone(value)
    else:
        _check_name(rule, value)
    return value


def parse(rule: Rule, text: str) -> Value:
    """Return the value that the text of an environment variable means, by the kind of the setting.

    Switches are ``true``, ``false``, ``1`` or ``0``; lists are parted by commas, and an empty text is an empty list.

    :raises Unfit: when the text cannot be read, or its value breaks the rule.
    """
    text = text.strip()
    if rule.kind == "texts":
        return check(rule, [part.strip() for part in text.split(",") if part.strip()])
    if rule.kind == "switch":
        lowered = text.lower()
        if lowered not in _TRUE and lowered not in _FALSE:
            raise Unfit("is not one of true, false, 1, 0")
        return lowered in _TRUE
    if rule.kind in ("whole", "number"):
        try:
            parsed: int | float = int(text)
        except ValueError:
            try:
                parsed = float(text)
            except ValueError:
                raise Unfit(f"is no number; write {_range(rule)}") from None
        return check(rule, parsed)
    return check(rule, text)


def is_name(text: str) -> bool:
    """Return whether ``text`` is a name: lower-case ASCII letters, digits, ``_``, ``-``, ``.``; never a path."""
    return bool(text) and text[0] not in ".-" and _NAME_CHARACTERS.issuperset(text)


def shown(value: object) -> str:
    """Return ``value`` on one line in the spelling of the file, cut after 60 characters, without control characters."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in value[: _SHOWN_CHARACTERS + 1])
        text = f'"{escaped}"'
    elif isinstance(value, (list, tuple)):
        text = f"[{', '.join(shown(item) for item in value[:9])}]"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS + 2 else f"{text[:_SHOWN_CHARACTERS]}…"


def _check_number(rule: Rule, value: object) -> int | float:
    accepted = int if rule.kind == "whole" else (int, float)
    if not isinstance(value, accepted) or isinstance(value, bool):
        raise Unfit(f"is {_what(value)}; write {_range(rule)}{_unquoted(value)}")
    # Written so that NaN, which compares false with everything, is refused too.
    if not rule.low <= value <= rule.high:
        raise Unfit(f"is out of range; allowed is {_range(rule)}")
    return value if rule.kind == "whole" else float(value)


def _check_texts(rule: Rule, value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise Unfit(f'is {_what(value)}; write a list of texts, ["…", "…"]')
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise Unfit(f"holds {shown(item)}; every item must be a text that is not empty")
        if rule.choices and item not in rule.choices:
            raise Unfit(f"holds {shown(item)}, not one of {', '.join(rule.choices)}{_meant(item, rule.choices)}")
        if rule.form and not _matches(rule.form, item):
            raise Unfit(f"holds {shown(item)}; write {rule.like}")
    return tuple(value)


def _matches(form: str, item: str) -> bool:
    import re

    return re.fullmatch(form, item, re.DOTALL) is not None


def _check_name(rule: Rule, value: str) -> None:
    if not value:
        if rule.empty:
            return
        raise Unfit("is empty; write a name")
    if not is_name(value):
        also = f" (usual: {', '.join(rule.choices)})" if rule.choices else ""
        raise Unfit(f"is no name of lower-case letters, digits, '_', '-' and '.'{_meant(value, rule.choices)}{also}")


def _check_zone(value: str) -> None:
    if not value:
        return
    from zoneinfo import ZoneInfo  # several milliseconds, and most people set no zone

    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise Unfit('is no time zone known to this host; write an IANA name such as "Europe/Berlin"') from None


def _meant(value: str, choices: Sequence[str]) -> str:
    lowered = value.strip().lower()
    if lowered in choices:
        return f'; did you mean "{lowered}"?'
    from difflib import get_close_matches

    near = get_close_matches(lowered, choices, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def _range(rule: Rule) -> str:
    noun = "a whole number" if rule.kind == "whole" else "a number"
    return f"{noun} from {rule.low:g} to {rule.high:g}" if rule.high < 1e6 else f"{noun} from {rule.low:g} on"


def _unquoted(value: object) -> str:
    return " without quotes" if isinstance(value, str) else ""


def _what(value: object) -> str:
    if isinstance(value, bool):
        return "a switch"
    for kinds, words in (
        (str, "text"),
        (int, "a whole number"),
        (float, "a number with a fraction"),
        (dict, "a table"),
        ((list, tuple), "a list"),
    ):
        if isinstance(value, kinds):
            return words
    return f"a {type(value).__name__}"
