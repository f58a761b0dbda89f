"""Help, drawn from the descriptions of the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import display_width, wrap
from hermes_cli.parser import GLOBAL_OPTIONS
from hermes_cli.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

__all__ = ["command_help", "group_help", "program_help"]

_WIDTH = 80
_LEFT = 28
"""Columns of names; a longer one has its explanation on the next line."""


def _section(title: str, pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    if not pairs:
        return []
    left = min(max(display_width(name) for name, _ in pairs) + 2, _LEFT)
    lines = ["", title]
    for name, text in pairs:
        texts = wrap(safe_line(text), max(width - left - 2, 24))
        if display_width(name) + 2 > left:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name}{' ' * (left - display_width(name))}{texts.pop(0)}".rstrip())
        lines += [f"  {' ' * left}{each}" for each in texts if each]
    return lines


def _option(option: CliOption) -> tuple[str, str]:
    longs = [name for name in option.names if name.startswith("--")]
    shorts = [name for name in option.names if not name.startswith("--")]
    name = ", ".join((*shorts, *longs))
    if option.kind != "flag":
        name = f"{name} {option.metavar or option.kind.upper()}"
    text = option.help
    if option.choices:
        text = f"{text} One of: {', '.join(option.choices)}.".strip()
    return safe_line(name), text


def _argument(argument: CliArgument) -> str:
    name = f"{argument.name.upper()}{'...' if argument.many else ''}"
    return name if argument.required else f"[{name}]"


def _usage(words: Iterable[str]) -> str:
    return f"usage: {' '.join(words)}"


def command_help(command: CliCommand, width: int | None) -> str:
    """Return the help of one command.

    :param width: columns, ``None`` for no terminal.
    """
    room = width or _WIDTH
    words = ["hermes", *command.path, "[OPTIONS]", *map(_argument, command.arguments)]
    lines = [_usage(words), "", *wrap(safe_line(command.summary), room)]
    if command.details:
        lines += ["", *wrap(safe_line(command.details), room)]
    arguments = [(argument.name.upper(), argument.help) for argument in command.arguments]
    lines += _section("arguments:", arguments, room)
    lines += _section("options:", [_option(option) for option in command.options], room)
    lines += _section("options of every command:", [_option(option) for option in GLOBAL_OPTIONS], room)
    return "\n".join(lines)


def group_help(path: Sequence[str], commands: Sequence[CliCommand], width: int | None) -> str:
    """Return the help of a word that stands before commands: ``hermes sessions``."""
    room = width or _WIDTH
    own = [command for command in commands if command.path[: len(path)] == tuple(path)]
    summary = next((command.group_summary for command in own if command.group_summary), "")
    lines = [_usage(["hermes", *path, "COMMAND", "[OPTIONS]"])]
    if summary:
        lines += ["", *wrap(safe_line(summary), room)]
    pairs = [(" ".join(command.path[len(path) :]), command.summary) for command in own]
    lines += _section("commands:", pairs, room)
    lines += ["", f"`hermes {' '.join(path)} COMMAND --help` says more."]
    return "\n".join(lines)


def program_help(commands: Sequence[CliCommand], default: CliCommand, width: int | None) -> str:
    """Return the help of the program: every command, and the options of the default one."""
    room = width or _WIDTH
    lines = [
        _usage(["hermes", "[COMMAND]", "[OPTIONS]"]),
        "",
        *wrap("Talk to an agent, leave, come back, and find what was said.", room),
    ]
    lines += _section("commands:", [(" ".join(one.path), one.summary) for one in _by_first_word(commands)], room)
    lines += _section(
        f"options of `hermes {' '.join(default.path)}`:", [_option(each) for each in default.options], room
    )
    lines += _section("options of every command:", [_option(option) for option in GLOBAL_OPTIONS], room)
    lines += ["", "`hermes COMMAND --help` says more."]
    return "\n".join(lines)


def _by_first_word(commands: Sequence[CliCommand]) -> list[CliCommand]:
    """Return commands in their order, but those that begin with the same word behind the first of them."""
    words = list(dict.fromkeys(command.path[0] for command in commands))
    return sorted(commands, key=lambda command: words.index(command.path[0]))
