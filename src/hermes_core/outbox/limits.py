"""When something may be sent next: limits of platforms, pauses of accounts, and the back-off after failures."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock

__all__ = ["AccountPace", "retry_delay_s", "sound_hint_s"]

_MINUTE_S = 60.0
_LONGEST_HINT_S = 86400.0
_REMEMBERED = 1000
"""Addresses beyond which those that have been quiet for a minute are forgotten."""


class AccountPace:
    """How fast parts of one account go out. Nothing here sleeps: it says how long to wait. For one event loop.

    The limit counts what this process sent; a second process that serves the same account has a count of its own.

    :param per_minute: most parts to one address in any minute, ``None`` for as many as there are.
    """

    def __init__(self, clock: Clock, per_minute: int | None) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._sent: dict[str, deque[float]] = {}
        self._paused_until = 0.0
        self._reason = ""
        self._hint: tuple[str, float, float] | None = None

    def wait_s(self, address: str) -> float:
        """Return the seconds until the next part may go to ``address``, ``0.0`` for now."""
        now = self._clock.monotonic()
        pause = max(0.0, self._paused_until - now)
        sent = self._sent.get(address)
        if self._per_minute is None or sent is None or len(sent) < self._per_minute:
            return pause
        return max(pause, sent[-self._per_minute] + _MINUTE_S - now, 0.0)

    def note(self, address: str) -> None:
        """Count one part that goes out now, whatever becomes of it."""
        if self._per_minute is None:
            return
        now = self._clock.monotonic()
        sent = self._sent.setdefault(address, deque())
        sent.append(now)
        while len(sent) > self._per_minute:
            sent.popleft()
        if len(self._sent) > _REMEMBERED:
            self._sent = {each: times for each, times in self._sent.items() if times[-1] + _MINUTE_S > now}

    def pause(self, seconds: float, reason: str = "") -> None:
        """Let nothing of the account go out for ``seconds``; a longer pause stays, with its reason.

        :param reason: one line for people.
        """
        until = self._clock.monotonic() + seconds
        if until > self._paused_until:
            self._paused_until, self._reason = until, reason

    def hint(self, address: str, seconds: float, reason: str) -> bool:
        """Take in that the platform asks to wait with ``address``; return whether the account pauses for it.

        A hint is of its address, whose own row waits, and others go on. When two addresses got one within a minute and
        both hold, it is of the account, which pauses for the shorter of them.
        """
        now = self._clock.monotonic()
        last, self._hint = self._hint, (address, now, now + seconds)
        if last is None or last[0] == address or now - last[1] > _MINUTE_S or last[2] <= now:
            return False
        self.pause(min(seconds, last[2] - now), reason)
        return True

    @property
    def reason(self) -> str:
        """Return why the account paused last, ``""`` where nobody said."""
        return self._reason

    @property
    def paused_s(self) -> float:
        """Return the seconds that the account pauses still."""
        return max(0.0, self._paused_until - self._clock.monotonic())


def sound_hint_s(after_s: float | None) -> float | None:
    """Return what a platform asked to wait, at most a day; ``None`` where it said nothing of use, such as zero."""
    return min(after_s, _LONGEST_HINT_S) if after_s is not None and after_s > 0 else None


def retry_delay_s(key: str, failures: int, *, first_s: float, most_s: float, hint_s: float | None = None) -> float:
    """Return the seconds until a delivery is tried again; the same whoever computes it.

    It doubles with every failure, from ``first_s`` to ``most_s``, and is up to a quarter shorter or longer by the
    delivery, so that what failed together does not come back together.

    :param failures: how often it failed, the last time included; at least 1.
    :param hint_s: what the platform asked for (:func:`sound_hint_s`), which wins.
    """
    if hint_s is not None:
        return hint_s
    from hashlib import sha256

    doubled = most_s if failures > 64 else first_s * 2.0 ** (failures - 1)
    share = sha256(f"{key}:{failures}".encode("utf-8", "surrogatepass")).digest()[0] / 255
    return min(most_s, min(most_s, doubled) * (0.75 + share / 2))
