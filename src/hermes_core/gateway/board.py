"""What a gateway knows of itself: the state of each account, and counts of what came and went."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.ports.gateway import AccountStatus
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.source import Entrance

__all__ = ["TRIED_AGAIN", "AccountBoard", "Board"]

_COUNTED = ("accepted", "duplicates", "refused", "unaddressed", "sent", "deferred", "failed")
_LONGEST_DETAIL = 300
_AWAY = (CONNECTING, WAITING)
_MOST_REASONS = 20
TRIED_AGAIN: Final = "; tried again in "
"""What stands between the reason of an account that waits, and for how long it does."""


class AccountBoard:
    """One account. Thread-safe.

    :param changed: told when its state or its detail changes.

    Attributes:
        is_news: the last change is worth a line in a log: an account that is away has one for each reason, however
            often it is tried again, and one that is there has none for what strangers do to it.
    """

    def __init__(self, entrance: Entrance, clock: Clock, changed: Callable[[AccountBoard], None]) -> None:
        self.entrance = entrance
        self.state = CONNECTING
        self.detail = ""
        self.heard_at: int | None = None
        self.starts = 0
        self.is_news = True
        self._reasons: set[str] = set()
        self._clock = clock
        self._changed = changed
        self._since = clock.now()
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    @property
    def is_connected(self) -> bool:
        """Return whether the platform is there."""
        return self.state == CONNECTED

    def set(self, state: str, detail: str = "") -> None:
        """Say how the account is; the same again changes nothing."""
        detail = " ".join(detail.split())[:_LONGEST_DETAIL]
        if state == CONNECTING and not detail and self._reasons:
            detail = self.detail.partition(TRIED_AGAIN)[0]  # until it is there, people want to know why it was not
        if (state, detail) == (self.state, self.detail):
            return
        if state != self.state and not (self._reasons and state in _AWAY):
            self._since = self._clock.now()
        self.is_news = self._tells(state, detail)
        self.state, self.detail = state, detail
        self._changed(self)

    def _tells(self, state: str, detail: str) -> bool:
        """Return whether a change tells something, and remember why it is away."""
        if state == WAITING:
            reason = detail.partition(TRIED_AGAIN)[0]
            is_new = reason not in self._reasons
            if len(self._reasons) >= _MOST_REASONS:
                self._reasons.clear()
            self._reasons.add(reason)
            return is_new
        if state == CONNECTING:
            return not self._reasons
        self._reasons.clear()
        return state != CONNECTED or state != self.state

    def count(self, what: str, number: int = 1) -> None:
        """Count something that happened to messages or answers; one of the counts of :class:`AccountStatus`."""
        with self._lock:
            self._counts[what] += number

    def status(self) -> AccountStatus:
        """Return all of it as a value."""
        with self._lock:
            counts = {name: self._counts[name] for name in _COUNTED}
        return AccountStatus(
            entrance=self.entrance,
            state=self.state,
            detail=self.detail,
            since=self._since,
            heard_at=self.heard_at,
            starts=self.starts,
            **counts,
        )


class Board:
    """All accounts of one gateway process, and how its turns ended. Thread-safe.

    :param changed: told each change of an account's state.
    """

    def __init__(self, clock: Clock, changed: Callable[[AccountBoard], None]) -> None:
        self.started_at = clock.now()
        self.health = ""
        self.stopping = False
        self.turns: Counter[str] = Counter()
        self._clock = clock
        self._changed = changed
        self._accounts: dict[Entrance, AccountBoard] = {}

    def account(self, entrance: Entrance) -> AccountBoard:
        """Return the board of an account, made if need be."""
        found = self._accounts.get(entrance)
        if found is None:
            found = self._accounts[entrance] = AccountBoard(entrance, self._clock, self._changed)
        return found

    def known(self, entrance: Entrance) -> AccountBoard | None:
        """Return the board of an account that this process runs, ``None`` for another."""
        return self._accounts.get(entrance)

    def accounts(self) -> tuple[AccountStatus, ...]:
        """Return the accounts in order of platform and alias."""
        boards = sorted(self._accounts.values(), key=lambda one: (one.entrance.platform, one.entrance.account_id))
        return tuple(board.status() for board in boards)
