"""How tasks end: a transaction under way is waited for, a cancelled task too, and one that swallows that is left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["abandon", "ended", "settled"]

T = TypeVar("T")


async def settled(work: Awaitable[T]) -> T:
    """Return what ``work`` gives; a cancellation that comes meanwhile is felt at the caller's next wait.

    What was handed to the store may be committed whatever becomes of the task that asked for it. Whoever was
    cancelled then must know how it ended: a message that was accepted is taken back, a turn that began is closed. The
    store answers within its busy timeout, also where somebody holds its lock for ever, and so does this.

    :raises asyncio.CancelledError: cancelled meanwhile, and the work failed.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    me = asyncio.current_task()
    if cancelled and not task.cancelled() and task.exception() is not None:
        # Nothing came of it, so there is nothing to tell but that the caller was cancelled.
        raise asyncio.CancelledError from task.exception()
    if cancelled and me is not None:
        me.uncancel()  # the same cancellation, later: whoever counts them counts one
        me.cancel()
    return task.result()


async def ended(task: asyncio.Task[T]) -> None:
    """Cancel a task and wait for its end; how it ended is told elsewhere."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def abandon(task: asyncio.Task[T]) -> None:
    """Leave a task that swallows its cancellation: ``asyncio.run`` waits for every task that it knows."""
    asyncio._unregister_task(task)  # noqa: SLF001 - documented, for whoever takes a task out of the loop's books
