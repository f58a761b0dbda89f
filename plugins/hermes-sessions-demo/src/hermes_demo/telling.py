"""How the story is told: one line for each thing that happens, with the seconds since the beginning."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hermes_demo.people import REPEAT_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from hermes_demo.people import Line
    from hermes_demo.verdict import Check

__all__ = ["Teller"]

_PLATFORMS: Final = {
    "feishu": ("飞书 Feishu", "cyan"),
    "weixin": ("微信 WeChat", "green"),
    "slack": ("Slack", "magenta"),
    "terminal": ("terminal", "yellow"),
    "gateway": ("gateway", "blue"),
}
_FONT_FACE: Final = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)
_PIPE_WIDTH: Final = 100
_MOST_WIDTH: Final = 120


class Teller:
    """Tells the story on a stream.

    :param width: columns of the terminal, ``None`` where it is none. records: a picture may be asked for at the end.
    """

    def __init__(self, out: TextIO, width: int | None, *, records: bool) -> None:
        self._out = out
        self._console = Console(
            file=out,
            width=min(width or _PIPE_WIDTH, _MOST_WIDTH),
            record=records,
            highlight=False,
            force_terminal=None,
        )
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return how long the story has been told."""
        return time.monotonic() - self._began

    def act(self, title: str) -> None:
        """Begin the next part."""
        self._print(Text())
        self._print(Text(title, style="bold"))

    def says(self, line: Line, where: str = "") -> None:
        """Tell what somebody wrote."""
        self._row(where or line.person.platform, line.person.name, Text(line.text))

    def again(self, line: Line) -> None:
        """Tell that a platform delivers what it has delivered before."""
        self._row(line.person.platform, line.person.name, Text(f"{line.text} (delivered again)", style="dim"))

    def answers(self, line: Line, text: str, where: str = "") -> None:
        """Tell what they were answered."""
        shown = Text()
        if text.startswith(REPEAT_MARK):
            shown.append(REPEAT_MARK, style="yellow")
        shown.append(text.removeprefix(REPEAT_MARK), style="italic")
        self._row(where or line.person.platform, f"→ {line.person.name}", shown)

    def misses(self, line: Line) -> None:
        """Tell that somebody has no answer."""
        self._row(line.person.platform, f"→ {line.person.name}", Text("no answer came", style="bold red"))

    def happens(self, text: str, *, style: str = "") -> None:
        """Tell what becomes of the gateway."""
        self._row("gateway", "", Text(text, style=style))

    def typed(self, command: str, printed: str) -> None:
        """Tell what was typed in a terminal, and what it printed."""
        self._row("terminal", "$", Text(command, style="bold"))
        for line in printed.strip().splitlines():
            self._row("", "", Text(line, style="dim"))

    def summary(self, checks: Sequence[Check]) -> None:
        """Tell what the story has shown, and what it has not."""
        names = max(cell_len(check.name) for check in checks)
        for check in checks:
            mark = ("ok  ", "green") if check.holds else ("NO  ", "bold red")
            line = Text.assemble(mark, _filled(check.name, names + 2), (check.found, "dim"))
            self._print(line)
        for check in checks:
            for complaint in check.complaints:
                self._print(Text(complaint, style="red"))

    def ends(self, *lines: str) -> None:
        """Tell what can be done now."""
        self._print(Text())
        for line in lines:
            self._print(Text(line))

    def picture(self, title: str) -> str:
        """Return what was told as SVG, which loads nothing from elsewhere."""
        return _FONT_FACE.sub("", self._console.export_svg(title=title, clear=False))

    def _print(self, text: Text) -> None:
        """Print one line at once, through a pipe, too; what is too long for the terminal is broken there."""
        self._console.print(text, soft_wrap=True)
        self._out.flush()

    def _row(self, where: str, who: str, what: Text) -> None:
        name, style = _PLATFORMS.get(where, (where, ""))
        at = f"{self.seconds:5.1f} " if where else " " * 6
        head = Text.assemble((at, "dim"), (_filled(name, 12), style), (_filled(who, 9), style))
        margin = Text(" " * head.cell_len)
        lines = what.wrap(self._console, self._console.width - head.cell_len)
        for number, line in enumerate(lines):
            whole = (margin if number or not head.plain.strip() else head) + line
            whole.rstrip()
            self._print(whole)


def _filled(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))
