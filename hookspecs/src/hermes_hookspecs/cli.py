"""Commands of the command line, as plain descriptions: no object of a command line library crosses the border."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from hermes_hookspecs.ports.app import App

__all__ = ["CliArgument", "CliCall", "CliCommand", "CliOption"]


@attrs.frozen(kw_only=True)
class CliArgument:
    """A positional argument. ``many`` takes the rest of the line (the last one only)."""

    name: str
    help: str = ""
    required: bool = True
    many: bool = False


@attrs.frozen(kw_only=True)
class CliOption:
    """An option.

    Attributes:
        names: ``("--limit", "-n")``; the first gives the key in :attr:`CliCall.values` (``limit``).
        kind: ``flag``, ``text``, ``int``, ``float``, or ``optional``: a text that may be left out and is ``""`` then.
        least, most: inclusive bounds of numbers.
        many: may be given several times; its value is a tuple.
    """

    names: tuple[str, ...]
    help: str = ""
    kind: str = "text"
    default: object = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    many: bool = False
    metavar: str = ""


@attrs.frozen(kw_only=True)
class CliCall:
    """One call of a command line command.

    Attributes:
        values: by the name of argument or option, dashes as underscores.
        out: data goes here. err: talk goes here. width: columns, ``None`` when ``out`` is no terminal.
    """

    app: App
    values: Mapping[str, object]
    out: TextIO
    err: TextIO
    width: int | None


@attrs.frozen(kw_only=True)
class CliCommand:
    """A command of the command line.

    Attributes:
        path: ``("sessions", "list")``. group_summary: of the word before the last, where it is new.
        run: ``module:function``, imported only when it is called; ``(CliCall) -> exit status``.
    """

    path: tuple[str, ...]
    summary: str
    run: str | Callable[[CliCall], int]
    arguments: tuple[CliArgument, ...] = ()
    options: tuple[CliOption, ...] = ()
    group_summary: str = ""
    details: str = ""
