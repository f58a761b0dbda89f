"""The janitor: of all processes that have a store open, the one that indexes what the others store.

Elected by a flock that is held as long as the process does the work; when it ends, however it ends, the kernel lets go
and another one is elected at its next try. Whoever is not elected does nothing. It is about work, not about safety:
two janitors would cost time, never rows.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hermes_core.storage.sqlite import forks
from hermes_core.storage.sqlite.gate import SideFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Chore = Callable[[float], int]

__all__ = ["Janitor", "janitor_file"]

LOOK_EVERY_S = 0.1
"""How often the thread looks whether anybody has committed."""
STEP_S = 0.05
"""How long one chore works before the next one has its turn."""
RETRY_S = 5.0
"""How long a chore that failed rests, and how often those that were not elected try again."""


def janitor_file(path: str) -> str:
    """Side file of a database on which the janitor is elected; never deleted."""
    return f"{path}-janitor"


class Janitor:
    """Does the chores of one store in a thread of its own, while it is the elected one. For programs that stay.

    :param path: the database file.
    :param change_mark: a number that differs when anybody has committed.
    :param chores: each works for about so many seconds and returns how much is left; errors let it rest.
    """

    def __init__(self, path: str, change_mark: Callable[[], int], chores: Sequence[Chore]) -> None:
        self._path = path
        self._change_mark = change_mark
        self._chores = chores
        self._resting: dict[Chore, float] = {}
        self._file: SideFile | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_elected = False
        forks.watch(self)

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hermes-janitor", daemon=True)
            self._thread.start()

    def elect(self) -> bool:
        """Try to be the janitor; never blocks.

        :raises OSError: the side file cannot be opened.
        """
        if not self.is_elected:
            if self._file is None:
                self._file = SideFile(janitor_file(self._path))
            self.is_elected = self._file.lock(wait=False)
        return self.is_elected

    def work_once(self) -> int:
        """Let every chore have its turn and return how much is left in all; for the elected one."""
        left = 0
        for chore in self._chores:
            if time.monotonic() < self._resting.get(chore, 0.0):
                continue
            try:
                left += chore(STEP_S)
            except Exception:
                from logging import getLogger

                getLogger(__name__).warning("a chore on %s failed and rests", self._path, exc_info=True)
                self._resting[chore] = time.monotonic() + RETRY_S
        return left

    def _work(self) -> None:
        seen = -1
        while not self._ending.is_set():
            try:
                elected = self.elect()
                mark = self._change_mark() if elected else seen
            except Exception:  # noqa: BLE001 - the store is closing, or its folder is gone: the next look tells
                self._ending.wait(RETRY_S)
                continue
            if not elected:
                self._ending.wait(RETRY_S)
            elif mark == seen or not self.work_once():
                seen = mark
                self._ending.wait(LOOK_EVERY_S)

    def close(self, timeout_s: float = 5.0) -> None:
        """End the thread and let somebody else be elected; before the store is closed. Idempotent."""
        self._ending.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        self.leave_in_child()

    def leave_in_child(self) -> None:
        """In a forked child, which is not the janitor: close the descriptor, which the parent keeps locked."""
        file, self._file = self._file, None
        self.is_elected = False
        if file is not None:
            file.close()
