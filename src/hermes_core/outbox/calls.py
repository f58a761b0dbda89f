"""One call of a sender: in a task of its own, within a time, and given up where it does not end.

Whatever a sender does, the delivery goes on: it may raise anything, fall silent, or swallow its cancellation. A call
that is given up holds nothing; whether its part goes out after all, nobody knows.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from hermes_core.outbox.results import one_line
from hermes_core.settling import abandon, settled
from hermes_hookspecs.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["call_in_time"]

T = TypeVar("T")

_log = getLogger(__name__)

_CLEANUP_S = 2.0
"""Seconds in which a cancelled call may end."""


@attrs.frozen
class _Outcome(Generic[T]):
    """What a call gave, or what it raised."""

    value: T | None
    error: BaseException | None


async def call_in_time(call: Callable[[], Awaitable[T]], limit_s: float) -> T:
    """Return what ``call`` gives within ``limit_s`` seconds.

    What it gives in spite of a cancellation counts: the cancellation of the caller is then felt at its next wait.

    :raises TimeoutError: there was no answer in time.
    :raises PlatformError: it raised what is no ``Exception``: it left the program, or cancelled itself.
    :raises Exception: what it raised.
    :raises asyncio.CancelledError: the caller was cancelled.
    """
    task = asyncio.create_task(_outcome(call))
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        await _ended(task)
        outcome = _told(task)
        if outcome is None or outcome.error is not None:
            raise
        me = asyncio.current_task()
        if me is not None:
            me.uncancel()  # the same cancellation, later: whoever counts them counts one
            me.cancel()
        return _value(outcome)
    if task.done():
        return _value(task.result())
    await _ended(task)
    outcome = _told(task)
    if outcome is None or isinstance(outcome.error, asyncio.CancelledError):
        raise TimeoutError(f"no answer within {limit_s:g} s")
    return _value(outcome)


async def _outcome(call: Callable[[], Awaitable[T]]) -> _Outcome[T]:
    try:
        return _Outcome(await call(), None)
    except KeyboardInterrupt as error:
        if current_thread() is main_thread():
            raise  # a person's
        return _Outcome(None, error)
    except BaseException as error:  # noqa: BLE001 - some of these would end the event loop, and every other delivery
        return _Outcome(None, error)


async def _ended(task: asyncio.Task[_Outcome[T]]) -> None:
    """Cancel a call and wait for its end; give it up where it does not end in time."""
    task.cancel()
    if not task.done():
        await settled(asyncio.wait({task}, timeout=_CLEANUP_S))
    if not task.done():
        _log.warning("a sender does not end; its delivery goes on without it")
        abandon(task)


def _told(task: asyncio.Task[_Outcome[T]]) -> _Outcome[T] | None:
    """Return how a call ended, ``None`` where it did not, or never began."""
    return task.result() if task.done() and not task.cancelled() else None


def _value(outcome: _Outcome[T]) -> T:
    error = outcome.error
    if isinstance(error, Exception):
        raise error
    if error is not None:
        raise PlatformError(f"the sender ended with {type(error).__name__}: {one_line(error)}") from error
    return outcome.value  # type: ignore[return-value] # without an error there is a value, which may be None
