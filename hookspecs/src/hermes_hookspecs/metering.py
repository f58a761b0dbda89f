"""What is used by models on behalf of a conversation, beside what its agent reports.

Whoever asks a plugin for a description, a summary, a title or a tool's work counts what is reported meanwhile; the
plugin needs to know neither the conversation nor who asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_hookspecs.turns import Usage

__all__ = ["metered", "report_usage"]

_METER: ContextVar[Callable[[Usage], None] | None] = ContextVar("hermes_meter", default=None)
"""Who counts in this task or thread, and in those that it begins."""


def report_usage(usage: Usage) -> None:
    """Say what one call of a model took: a describer's, a summariser's, a titler's, a tool's.

    It counts to the session that the work is done for, once per call of this function. An agent yields a
    :class:`~hermes_hookspecs.ports.agent.UsageReport` for its own calls instead. May be called on any thread that
    belongs to the work; where nobody counts, nothing happens.
    """
    take = _METER.get()
    if take is not None:
        take(usage)


@contextmanager
def metered(take: Callable[[Usage], None]) -> Iterator[None]:
    """Let ``take`` have what is reported inside the block, and in tasks and threads that begin there.

    The innermost meter alone is told. ``take`` is called on the thread that reports.
    """
    token = _METER.set(take)
    try:
        yield
    finally:
        _METER.reset(token)
