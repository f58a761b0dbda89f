"""The sentences of configuration errors: where it is, what is wrong, what was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_core.config.rules import Rule, Unfit, Value, check, parse, rules_of, shown
from hermes_core.config.sections import PLATFORMS, SECTIONS, PlatformSettings
from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Layer", "line_of", "unknown_key", "unknown_section"]


class Layer(NamedTuple):
    """One source of values: a file, an environment variable or an option.

    ``origin``: how it is named to people. ``text``: the file's text, for line numbers; empty for the others.
    """

    origin: str
    text: str = ""

    def checked(self, section: str, key: str, rule: Rule, value: object) -> Value:
        """Return ``value`` as the setting keeps it.

        :raises ConfigError: naming place, section, key and what is allowed.
        """
        try:
            return check(rule, value)
        except Unfit as exc:
            raise self.fault(section, key, f"{key} = {_masked(rule, value)} {exc}") from None

    def parsed(self, section: str, key: str, rule: Rule, text: str) -> Value:
        """Return what the text of an environment variable means.

        :raises ConfigError: naming the variable, section, key and what is allowed.
        """
        try:
            return parse(rule, text)
        except Unfit as exc:
            raise self.fault(section, key, f"{key} = {_masked(rule, text)} {exc}") from None

    def fault(self, section: str, key: str, sentence: str) -> ConfigError:
        """Return the error ``origin:line: [section] sentence``; the line only where the file shows it."""
        line = line_of(self.text, section, key)
        place = f"{self.origin}:{line}" if line else self.origin
        where = f"[{section}] " if section else ""
        return ConfigError(f"{place}: {where}{sentence}", origin=self.origin, section=section, key=key)


def unknown_key(layer: Layer, section: str, key: str, valid: Iterable[str]) -> ConfigError:
    """Return the error for a key that ``section`` does not have: its right section, else the nearest name."""
    homes = [other for other, keys in _keys_by_section() if key in keys and other != section]
    if homes:
        hint = f"it belongs in [{homes[0]}]"
    elif key in SECTIONS or key == PLATFORMS:
        hint = f"[{key}] is a section of its own, at the top level"
    else:
        names = tuple(valid)
        near = _nearest(key, names)
        elsewhere = None if near else _nearest(key, [name for _, keys in _keys_by_section() for name in keys])
        if near:
            hint = f'did you mean "{near}"?'
        elif elsewhere:
            other = next(other for other, keys in _keys_by_section() if elsewhere in keys)
            hint = f'did you mean "{elsewhere}" in [{other}]?'
        else:
            hint = f"valid are {', '.join(names)}"
    return layer.fault(section, key, f"there is no key {shown(key)}; {hint}")


def unknown_section(layer: Layer, name: str, value: object) -> ConfigError:
    """Return the error for a name at the top level that is no section."""
    if not isinstance(value, dict):
        return unknown_key(layer, "", name, SECTIONS)
    names = (*SECTIONS, PLATFORMS)
    near = _nearest(name, names)
    hint = f"did you mean [{near}]?" if near else f"valid are {', '.join(names)}"
    return layer.fault(name, "", f"is no section; {hint}")


def line_of(text: str, section: str, key: str) -> int | None:
    """Return the 1-based line of ``key`` in ``[section]``, of the section's header, or ``None``.

    A search for people's eyes, not a parser: a key it does not find costs a line number and nothing else.
    """
    here = ""
    header = None
    wanted = f"{section}.{key}" if section and key else section or key
    for index, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("["):
            here = line.strip("[] ").split("]", 1)[0].replace('"', "").replace("'", "").replace(" ", "")
            if here == wanted:
                return index
            if here == section and header is None:
                header = index
            continue
        left, equals, _ = line.partition("=")
        if not equals or not key or left.startswith("#"):
            continue
        name = left.replace('"', "").replace("'", "").replace(" ", "")
        if (f"{here}.{name}" if here else name) == wanted:
            return index
    return header


def _keys_by_section() -> list[tuple[str, tuple[str, ...]]]:
    return [
        (section, tuple(key for key, rule in rules_of(kind).items() if rule.in_file))
        for section, kind in {**SECTIONS, f"{PLATFORMS}.<name>": PlatformSettings}.items()
    ]


def _nearest(word: str, names: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only a mistake pays for it

    near = get_close_matches(word.lower(), list(names), n=1, cutoff=0.6)
    return near[0] if near else None


def _masked(rule: Rule, value: object) -> str:
    return "********" if rule.secret else shown(value)
