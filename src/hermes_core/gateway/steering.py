"""Signals to a gateway: stop, stop at once, read the configuration anew."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from hermes_hookspecs.ports.app import App

__all__ = ["Steering"]

_log = getLogger(__name__)


class Steering:
    """Listens to signals while it is entered; on the loop that runs then, on the main thread.

    :param listens: ``False`` to hear nothing.
    """

    def __init__(self, *, listens: bool) -> None:
        self._listens = listens
        self._stop: Callable[[], None] = _nothing
        self._reopen: Callable[[], App] | None = None
        self._reopened: App | None = None
        self._asked = False
        self._heard: list[int] = []

    def steer(self, stop: Callable[[], None], reopen: Callable[[], App]) -> None:
        """Steer a gateway from now on.

        :param stop: asks it to leave. reopen: opens its profile with the configuration as it is then, or raises.
        """
        self._stop, self._reopen = stop, reopen
        if self._asked:
            stop()

    def taken(self) -> App | None:
        """Return, once, the profile that is to go on when the gateway has left; ``None`` when it was to stop."""
        reopened, self._reopened = self._reopened, None
        return reopened

    def __enter__(self) -> Self:
        """Begin to listen."""
        if self._listens:
            self._listen(signal.SIGTERM, self._leave)
            self._listen(signal.SIGINT, self._leave)
            if hasattr(signal, "SIGHUP"):
                # A terminal that is closed says the same: whoever sat there has left.
                self._listen(signal.SIGHUP, self._leave if _has_terminal() else self._read_anew)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; what was opened and is not needed is closed."""
        loop = asyncio.get_running_loop()
        for number in self._heard:
            loop.remove_signal_handler(number)
        self._forget()

    def _listen(self, number: int, react: Callable[[int], None]) -> None:
        asyncio.get_running_loop().add_signal_handler(number, react, number)
        self._heard.append(number)

    def _leave(self, number: int) -> None:
        """Leave; the second time at once, as if killed: that loses nothing."""
        if self._asked:
            _log.warning("stopped at once; what was under way goes on with the next start")
            os._exit(128 + number)
        self._asked = True
        self._forget()
        _log.info("stopping: turns may end, what is due is sent; a second signal stops at once")
        self._stop()

    def _read_anew(self, _number: int) -> None:
        """Open the profile anew; where that fails, the gateway goes on as it is."""
        if self._asked or self._reopened is not None or self._reopen is None:
            return
        try:
            self._reopened = self._reopen()
        except HermesError as error:
            _log.error("the configuration was not read anew, everything goes on as it was: %s", error)
            return
        _log.info("the configuration was read anew; turns may end first")
        self._stop()

    def _forget(self) -> None:
        reopened = self.taken()
        if reopened is not None:
            reopened.close()


def _nothing() -> None:
    """Stop nothing: no gateway is steered yet."""


def _has_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        return False
