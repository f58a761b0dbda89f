"""Files of answers that wait to be fetched: by their hash, in a folder of the account, as long as answers can be."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_hookspecs.clock import Clock

__all__ = ["Shelf"]

_HASH_LENGTH = 64
_HEX = frozenset("0123456789abcdef")


class Shelf:
    """Keeps bytes. Every method blocks. A name in the folder is a hash, never anything from outside.

    :param folder: made when the first file is put. keep_ms: how long one stays since it was put last.
    """

    def __init__(self, folder: Path, clock: Clock, *, keep_ms: int) -> None:
        self._folder = folder
        self._clock = clock
        self._keep_ms = keep_ms

    def put(self, data: bytes) -> str:
        """Keep bytes and return their hash once they are durable; what has been here too long goes."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sweep()
        name = sha256(data).hexdigest()
        path = self._folder / name
        if self.get(name) is None:
            half = self._folder / f"{name}.{os.getpid()}.half"
            with os.fdopen(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            half.replace(path)
        now_s = self._clock.now() / 1000
        os.utime(path, (now_s, now_s))
        return name

    def get(self, name: str) -> bytes | None:
        """Return the bytes with a hash, ``None`` when they are not here, or not whole."""
        if len(name) != _HASH_LENGTH or not _HEX.issuperset(name):
            return None
        try:
            data = (self._folder / name).read_bytes()
        except OSError:
            return None
        return data if sha256(data).hexdigest() == name else None

    def sweep(self) -> int:
        """Remove what was put too long ago; return how many went."""
        gone = 0
        oldest_s = (self._clock.now() - self._keep_ms) / 1000
        with suppress(OSError):
            for path in list(self._folder.iterdir()):
                if path.stat().st_mtime < oldest_s:
                    path.unlink(missing_ok=True)
                    gone += 1
        return gone
