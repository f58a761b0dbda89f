"""The command line, taken apart along the descriptions of commands.

One small parser for our own commands and for those of plugins: a quick command does not pay for a framework. Global
options stand before or behind the command's words; so do ``--json`` and ``--agent`` where a command has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hermes_hookspecs.cli import CliOption
from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.cli import CliArgument, CliCommand

__all__ = ["GLOBAL_OPTIONS", "Located", "global_values", "key_of", "locate", "nearest", "parse", "usage_error"]

GLOBAL_OPTIONS = (
    CliOption(names=("--home",), metavar="DIR", help="Home of the data [default: ~/.hermes-sessions]."),
    CliOption(names=("--profile",), metavar="NAME", help="Profile inside the home."),
    CliOption(names=("--db",), metavar="PATH", help="Database file to use instead of the profile's."),
    CliOption(names=("--no-plugins",), kind="flag", help="Load no plugins but this terminal."),
    CliOption(names=("--debug",), kind="flag", help="Show tracebacks and log to stderr (also HERMES_DEBUG=1)."),
    CliOption(names=("--version",), kind="flag", help="Print versions and leave."),
    CliOption(names=("--help", "-h"), kind="flag", help="Print help and leave."),
)
"""What every command takes."""

# Options of single commands that people write before the command's words, too.
_EARLY = (*GLOBAL_OPTIONS, CliOption(names=("--json",), kind="flag"), CliOption(names=("--agent",)))


def usage_error(message: str, origin: str = "command line") -> ConfigError:
    """Return the error for a command line that cannot be followed; exit status 2."""
    return ConfigError(message, origin=origin)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` with the known word that is nearest, ``""`` where none is near."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


def key_of(option: CliOption) -> str:
    """Return the name under which the value of an option is found: ``--session-id`` gives ``session_id``."""
    return option.names[0].lstrip("-").replace("-", "_")


class Located:
    """Which command a command line means.

    ``path``: its words as far as they were recognised, empty for the bare program. ``command``: ``None`` where they
    name none. ``rest``: all tokens without those words. ``unknown``: the word that was not recognised.
    """

    __slots__ = ("command", "path", "rest", "unknown")

    def __init__(
        self, path: tuple[str, ...], command: CliCommand | None, rest: list[str], unknown: str | None = None
    ) -> None:
        self.path = path
        self.command = command
        self.rest = rest
        self.unknown = unknown


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _named(word: str, options: Iterable[CliOption]) -> CliOption | None:
    """Return the option that ``word`` names, with or without ``=value``."""
    name = word.partition("=")[0]
    return next((option for option in options if name in option.names), None)


def locate(tokens: Sequence[str], commands: Sequence[CliCommand], default: CliCommand) -> Located:
    """Find the command's words; an option that only a command can know ends the search.

    :param default: what a command line without words means.
    """
    rest: list[str] = []
    path: tuple[str, ...] = ()
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if _is_option(word):
            option = _named(word, _EARLY)
            if option is None:
                break
            takes = 2 if option.kind != "flag" and "=" not in word else 1
            rest += tokens[at : at + takes]
            at = min(at + takes, len(tokens))  # a value that is missing is told by who parses the rest
            continue
        if word == "--" or not any(command.path[: len(path) + 1] == (*path, word) for command in commands):
            break
        path = (*path, word)
        at += 1
    rest += tokens[at:]
    if not path and (at == len(tokens) or tokens[at].startswith("-")):
        return Located((), default, rest)
    command = next((command for command in commands if command.path == path), None)
    unknown = tokens[at] if command is None and at < len(tokens) and not _is_option(tokens[at]) else None
    return Located(path, command, rest, unknown)


def global_values(tokens: Sequence[str]) -> dict[str, object]:
    """Return the values of the global options among ``tokens``; whatever else there is is passed over.

    For the moments in which the command is not known: help, commands of plugins, the way errors are shown.

    :raises ConfigError: one of them has no value, or a blank one.
    """
    values: dict[str, object] = {key_of(option): False if option.kind == "flag" else None for option in GLOBAL_OPTIONS}
    at = 0
    while at < len(tokens) and tokens[at] != "--":
        word = tokens[at]
        at += 1
        option = _named(word, GLOBAL_OPTIONS)
        if option is None:
            continue
        if option.kind == "flag":
            values[key_of(option)] = True
        elif "=" in word:
            values[key_of(option)] = _place(option, option.names[0], word.partition("=")[2])
        elif at < len(tokens):
            values[key_of(option)] = _place(option, option.names[0], tokens[at])
            at += 1
        else:
            raise usage_error(f"option {word} wants {_wanted(option)}", f"option {word}")
    return values


def _place(option: CliOption, name: str, text: str) -> str:
    """Return the value of a global option, all of which name a place. :raises ConfigError: a blank one names none."""
    if not text.strip():
        raise usage_error(f"option {name} wants {_wanted(option)}, not {text!r}", f"option {name}")
    return text


def parse(command: CliCommand, tokens: Sequence[str]) -> dict[str, object]:
    """Return the values of one command's arguments and options, and of the global ones.

    :param tokens: the command line without the command's words.
    :raises ConfigError: it cannot be followed; the sentence names the nearest option.
    """
    return _Reader(command, tokens).read()


class _Reader:
    """One pass over the tokens."""

    def __init__(self, command: CliCommand, tokens: Sequence[str]) -> None:
        self._command = command
        self._tokens = tokens
        self._at = 0
        self._options = (*command.options, *GLOBAL_OPTIONS)
        self._by_name = {name: option for option in reversed(self._options) for name in option.names}
        self._title = " ".join(("hermes", *command.path))
        self._values: dict[str, object] = {}
        self._words: list[str] = []

    def read(self) -> dict[str, object]:
        while self._at < len(self._tokens):
            word = self._tokens[self._at]
            self._at += 1
            if word == "--":
                self._words += self._tokens[self._at :]
                break
            if not _is_option(word):
                self._words.append(word)
            elif word.startswith("--"):
                self._long(word)
            else:
                self._short(word)
        for option in self._options:
            self._values.setdefault(key_of(option), _absent(option))
        self._values.update(self._arguments())
        return self._values

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        option = self._by_name.get(name)
        if option is None:
            self._unknown(name)
        elif option.kind == "flag":
            if equals:
                raise usage_error(f"option {name} takes no value", f"option {name}")
            self._values[key_of(option)] = True
        else:
            self._take(option, name, value if equals else self._next(option, name))

    def _short(self, word: str) -> None:
        name, rest = word[:2], word[2:]
        option = self._by_name.get(name)
        if option is None:
            self._unknown(name if not rest else word)
        elif option.kind != "flag":
            self._take(option, name, rest.removeprefix("=") if rest else self._next(option, name))
        else:
            self._values[key_of(option)] = True
            if rest:
                self._short(f"-{rest}")

    def _unknown(self, name: str) -> NoReturn:
        known = [name for option in self._options for name in option.names if name.startswith("--")]
        what = f"`{self._title}` has no option {name}"
        raise usage_error(f"{what}{nearest(name, known)} (see `{self._title} --help`)", f"option {name}")

    def _next(self, option: CliOption, name: str) -> str:
        """Return the word behind an option as its value; an option with an optional value leaves options alone."""
        following = self._tokens[self._at] if self._at < len(self._tokens) else None
        if option.kind == "optional" and (following is None or following.startswith("-")):
            return ""
        if following is None or following.partition("=")[0] in self._by_name or following == "--":
            raise usage_error(f"option {name} wants {_wanted(option)}", f"option {name}")
        self._at += 1
        return following

    def _take(self, option: CliOption, name: str, text: str) -> None:
        value = _place(option, name, text) if option in GLOBAL_OPTIONS else _value(option, name, text)
        key = key_of(option)
        if option.many:
            before = self._values.get(key, ())
            self._values[key] = (*before, value) if isinstance(before, tuple) else (value,)
        else:
            self._values[key] = value

    def _arguments(self) -> dict[str, object]:
        found: dict[str, object] = {}
        words = self._words
        for argument in self._command.arguments:
            if argument.many:
                if argument.required and not words:
                    self._missing(argument)
                found[_argument_key(argument)] = tuple(words)
                words = []
            elif words:
                found[_argument_key(argument)] = words[0]
                words = words[1:]
            elif argument.required:
                self._missing(argument)
            else:
                found[_argument_key(argument)] = None
        if words:
            raise usage_error(f"`{self._title}` does not take {words[0]!r} (see `{self._title} --help`)")
        return found

    def _missing(self, argument: CliArgument) -> NoReturn:
        raise usage_error(f"`{self._title}` wants {argument.name.upper()} (see `{self._title} --help`)")


def _argument_key(argument: CliArgument) -> str:
    return argument.name.replace("-", "_")


def _absent(option: CliOption) -> object:
    if option.many:
        return option.default if option.default is not None else ()
    return bool(option.default) if option.kind == "flag" else option.default


def _wanted(option: CliOption) -> str:
    """Return what an option wants, as people say it: ``a whole number from 1 to 9``."""
    if option.choices:
        return f"one of {', '.join(option.choices)}"
    kind = {"int": "a whole number", "float": "a number"}.get(option.kind, f"a value ({option.metavar or 'TEXT'})")
    least, most = option.least, option.most
    if least is not None and most is not None:
        return f"{kind} from {_number(least)} to {_number(most)}"
    if least is not None:
        return f"{kind}, at least {_number(least)}"
    return kind if most is None else f"{kind}, at most {_number(most)}"


def _number(value: float) -> str:
    """Return a bound with all its digits: ``1000000`` and not ``1e+06``."""
    return str(int(value)) if value == int(value) else f"{value:g}"


def _value(option: CliOption, name: str, text: str) -> object:
    if option.choices and text not in option.choices:
        raise usage_error(f"option {name} wants {_wanted(option)}, not {text!r}", f"option {name}")
    if option.kind not in ("int", "float"):
        return text
    try:
        number = int(text) if option.kind == "int" else float(text)
    except ValueError:
        number = None
    bounds = (option.least, option.most)
    if number is None or number != number or _outside(number, *bounds):  # noqa: PLR0124 - not a number
        raise usage_error(f"option {name} wants {_wanted(option)}, not {text!r}", f"option {name}")
    return number


def _outside(number: float, least: float | None, most: float | None) -> bool:
    return (least is not None and number < least) or (most is not None and number > most)
