"""What gateway processes write about themselves, so that others can ask: one small file each, replaced as a whole.

A file whose process is dead says that a gateway died without a word; the next one removes it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.gateway.ownership import GATEWAY_FOLDER
from hermes_core.processes import ProcessIdentity, current_process, is_alive
from hermes_hookspecs.ports.gateway import AccountStatus, GatewayStatus
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hermes_core.gateway.board import Board

__all__ = ["Entry", "Journal", "entries", "forget_the_dead"]

_PREFIX: Final = "process-"
_MOST_BYTES = 1_000_000


@attrs.frozen(kw_only=True)
class Entry:
    """One file, read."""

    path: Path
    process: ProcessIdentity
    status: GatewayStatus


class Journal:
    """The file of this process. Blocks for one small write.

    :param folder: of the profile.
    """

    def __init__(self, folder: Path, board: Board) -> None:
        self._process = current_process()
        self._board = board
        self._path = folder / GATEWAY_FOLDER / f"{_PREFIX}{self._process.pid}"

    def write(self, now: int) -> None:
        """Replace the file. :raises OSError: it cannot be written."""
        held = {
            "process": attrs.asdict(self._process),
            "started_at": self._board.started_at,
            "updated_at": now,
            "health": self._board.health,
            "stopping": self._board.stopping,
            "accounts": [_plain(one) for one in self._board.accounts()],
        }
        half = self._path.with_name(f".{self._path.name}")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(held, file)
        half.replace(self._path)

    def remove(self) -> None:
        """Take the file away: this gateway has left with a word."""
        self._path.unlink(missing_ok=True)


def entries(folder: Path) -> Sequence[Entry]:
    """Return the gateways of a profile that run, or died without a word, longest running first."""
    found = [entry for path in _files(folder) if (entry := _read(path)) is not None]
    return sorted(found, key=lambda one: (one.status.started_at, one.status.pid))


def forget_the_dead(folder: Path) -> None:
    """Remove the files of processes that are known to be gone."""
    for entry in entries(folder):
        if entry.status.lives is False:
            with suppress(OSError):
                entry.path.unlink()


def _files(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from sorted((folder / GATEWAY_FOLDER).glob(f"{_PREFIX}*"))


def _read(path: Path) -> Entry | None:
    """Return what a file says, ``None`` for one that is gone by now, or that nobody here wrote."""
    try:
        with path.open("rb") as file:
            held = json.loads(file.read(_MOST_BYTES))
        process = ProcessIdentity(**held["process"])
        status = GatewayStatus(
            host=process.host,
            pid=process.pid,
            lives=is_alive(process),
            started_at=int(held["started_at"]),
            updated_at=int(held["updated_at"]),
            health=str(held["health"]),
            stopping=bool(held["stopping"]),
            accounts=tuple(map(_account, held["accounts"])),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Entry(path=path, process=process, status=status)


def _plain(one: AccountStatus) -> dict[str, object]:
    fields = attrs.asdict(one, recurse=False)
    return fields | {"entrance": [one.entrance.platform, one.entrance.account_id]}


def _account(held: dict[str, str | int | list[str] | None]) -> AccountStatus:
    names = held["entrance"]
    if not isinstance(names, list):
        raise TypeError("an entrance is a platform and an account")
    return AccountStatus(**(held | {"entrance": Entrance(*names)}))  # type: ignore[arg-type]  # as it was written
