"""``hermes backup``: a copy of the store while others use it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_cli.answers import StatusLine
from hermes_cli.parser import usage_error
from hermes_cli.safe_text import safe_text
from hermes_cli.streams import width_of
from hermes_cli.times import size_text
from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall

__all__ = ["run"]

_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def run(call: CliCall) -> int:
    """Copy the store and print where the copy is."""
    status = StatusLine(call.err, width_of(call.err))

    def progress(done: int, pages: int) -> None:
        status.show(f"copying the store: {100 * done // max(pages, 1)}%")

    try:
        path = call.app.care.backup(_target(call), progress=progress)
    finally:
        status.clear()
    size = path.stat().st_size
    if call.values["json"]:
        from hermes_cli.records import print_json

        print_json(call.out, {"path": str(path), "size": size})
        return 0
    print(safe_text(str(path)), file=call.out)
    call.out.flush()
    print(f"copied {size_text(size)}", file=call.err)
    return 0


def _target(call: CliCall) -> Path | None:
    """Return the file to make: the one that is named, one in the folder that is named, or the profile's choice.

    A name that ends in a slash is that of a folder. :raises ConfigError: it names nothing, or stdout.
    """
    named = call.values["path"]
    if not isinstance(named, str):
        return None
    if not named.strip():
        raise usage_error(f"PATH wants a file or a folder, not {named!r}")
    if named == "-":
        raise usage_error("a copy is a file and is not written to stdout; name one, or a folder")
    path = Path(named).absolute()
    if named.endswith(_SEPARATORS) and not path.is_dir():
        raise StorageError(f"there is no folder {path}; make it first, or name a file without a slash at its end")
    if path.is_dir():
        return path / time.strftime("state-%Y%m%dT%H%M%SZ.db", time.gmtime(call.app.clock.now() // 1000))
    return path
