"""Copy a store while programs use it: ``python backup.py FROM TO``. Goes through SQLite, as everybody must."""

from __future__ import annotations

import os
import sys

import apsw


def back_up(source: str, target: str) -> None:
    """Write a sound copy of the database ``source`` to the new file ``target``, readable by its owner alone."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    reading = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
    writing = apsw.Connection(target)
    try:
        with writing.backup("main", reading, "main") as backup:
            while not backup.done:
                backup.step(1000)
    finally:
        writing.close()
        reading.close()


if __name__ == "__main__":
    back_up(*sys.argv[1:])
