"""Files that many processes write at a time: one JSON line, one O_APPEND write.

A kill in the middle of a write may leave a piece of a line: it was not written, and stays apart from the next one.
"""

from __future__ import annotations

import json
import os
from functools import cached_property

__all__ = ["LEDGERS", "Ledger", "Ledgers"]

LEDGERS = ("acks", "asks", "deaths", "effects", "events", "sends", "windows")
"""What is written down: acknowledgements, answered askers, kills, tool effects, events, sent parts, prompts."""


class Ledger:
    """One file of JSON objects, in order of writing.

    :param path: made with the first line.
    """

    def __init__(self, path):
        self.path = path

    @cached_property
    def _descriptor(self):
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **values):
        """Append one line; it is there as a whole once this returns."""
        os.write(
            self._descriptor, b"\n" + json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        )

    def rows(self):
        """Return every line, oldest first."""
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                return [json.loads(line) for line in file if line.endswith("}\n")]
        except FileNotFoundError:
            return []

    def last(self):
        """Return the last line without reading the others, ``None`` where there is none."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
                lines = file.read().splitlines()
        except FileNotFoundError:
            return None
        whole = [line for line in lines if line.endswith(b"}")]
        return json.loads(whole[-1]) if whole else None


class Ledgers:
    """The files of one run, each by its name in :data:`LEDGERS`, in one folder."""

    def __init__(self, folder):
        for name in LEDGERS:
            setattr(self, name, Ledger(os.path.join(folder, f"{name}.jsonl")))
        self._folder = folder

    def acks_of(self, slot):
        """Return the acknowledgements of one feeder, apart from the others so that its last one is found quickly."""
        return Ledger(os.path.join(self._folder, f"acks-{slot}.jsonl"))
