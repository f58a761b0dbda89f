"""What a gateway logs, on stderr: a line each, for people or for programs."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Final

from hermes_cli.safe_text import safe_json, safe_line

if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["JsonLines", "TextLines", "show"]

_FIELDS: Final = ("platform", "account", "state", "session_id", "plugin")
"""What a record may carry beside its message."""


class TextLines(logging.Formatter):
    """``2026-09-01T12:03:07Z feishu is connected``; what is wrong says so in front."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        error = _error(record)
        return safe_line(f"{_stamp(record)} {level}{record.getMessage()}{f': {error}' if error else ''}")


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the fields that a record carries."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        held: dict[str, object] = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name in _FIELDS:
            value = getattr(record, name, None)
            if isinstance(value, str | int):
                held[name] = value
        error = _error(record)
        if error:
            held["error"] = error
        return safe_json(json.dumps(held, ensure_ascii=False))


def show(err: TextIO, *, as_json: bool) -> None:
    """Log to ``err`` from now on, from INFO upwards; where somebody has set up logging, theirs stays."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(err)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("hermes_core").setLevel(logging.INFO)


def _stamp(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))


def _error(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return "" if error is None else f"{type(error).__name__}: {error}"
