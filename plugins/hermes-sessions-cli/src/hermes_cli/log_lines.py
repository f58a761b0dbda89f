"""What the library logs, shown as this program talks: one line each, that begins with ``hermes:``."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_cli.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["muted", "show_as_lines"]


class _Lines(logging.Handler):
    """Prints warnings and errors to the stderr of the moment; whoever wants tracebacks asks with ``--debug``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line, whatever the message holds."""
        try:
            text = record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                text = f"{text}: {type(error).__name__}: {error}"
            print(f"hermes: {safe_line(text).removeprefix('hermes: ')}", file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - a log that cannot be shown must not end what was being done
            self.handleError(record)


def show_as_lines() -> None:
    """Replace what shows warnings where nobody has configured logging; a second call changes nothing."""
    if not isinstance(logging.lastResort, _Lines):
        logging.lastResort = _Lines(logging.WARNING)


@contextmanager
def muted() -> Iterator[None]:
    """Show no warnings meanwhile: what is at fault is about to be printed as a table."""
    before = logging.lastResort
    logging.lastResort = logging.NullHandler()
    try:
        yield
    finally:
        logging.lastResort = before
