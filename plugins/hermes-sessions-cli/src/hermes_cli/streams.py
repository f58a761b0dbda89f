"""The standard streams, made fit for data in every script, and for a person's eyes where one looks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

__all__ = ["fitted", "input_lines", "input_text", "is_terminal", "prepare", "silence", "width_of"]


def prepare() -> tuple[TextIO, TextIO]:
    """Return stdout and stderr; what their encoding lacks is printed as ``?``, never an error.

    A stream that the caller closed is replaced by one that leads nowhere.
    """
    streams = []
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PLW2901, SIM115 - lives as long as the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        streams.append(stream)
    return streams[0], streams[1]


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person sits at the other end."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def width_of(out: TextIO) -> int | None:
    """Return the columns of the terminal behind ``out``, ``None`` where there is none."""
    if not is_terminal(out):
        return None
    try:
        given = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        given = 0
    if given > 0:
        return given
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def fitted(text: str, out: TextIO) -> str:
    """Return ``text`` for ``out``: elsewhere as it is, on a terminal in lines that break between words.

    What goes on in another line is indented as its beginning.
    """
    width = width_of(out)
    if width is None:
        return text
    from hermes_cli.columns import wrap

    lines: list[str] = []
    for paragraph in text.split("\n"):
        body = paragraph.lstrip(" ")
        indent = paragraph[: len(paragraph) - len(body)][: width // 2]
        lines += [f"{indent}{line}" for line in wrap(body, width - len(indent))]
    return "\n".join(lines)


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def input_lines() -> Iterator[str]:
    """Yield the lines of stdin without their ends, as they come; bytes that are no UTF-8 become U+FFFD. Blocks."""
    stream = sys.stdin
    if stream is None:
        return
    buffer = getattr(stream, "buffer", None)
    lines = stream if buffer is None else map(_decoded, iter(buffer.readline, b""))
    for line in lines:
        yield line.removesuffix("\n").removesuffix("\r")


def input_text() -> str:
    """Return all of stdin as text. Blocks until its end."""
    stream = sys.stdin
    if stream is None:
        return ""
    buffer = getattr(stream, "buffer", None)
    return stream.read() if buffer is None else _decoded(buffer.read())


def silence(out: TextIO) -> None:
    """Let everything that is still to be written to ``out`` go nowhere: its reader has left."""
    try:
        target = os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, out.fileno())
        os.close(target)
    except (OSError, ValueError):
        pass
