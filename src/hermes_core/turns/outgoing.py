"""Files that the answer of a turn brings along: kept first, named by a row then, sent with the end of the turn."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import AttachmentRefused
from hermes_hookspecs.files import size_text
from hermes_hookspecs.messages import USER, Attachment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.turns import Turn

__all__ = ["OutgoingLimits", "TurnOutgoing"]


@attrs.frozen(kw_only=True)
class OutgoingLimits:
    """Of one answer: most files, and most bytes of each. None can be sent where either is 0."""

    files: int = 10
    file_bytes: int = 32 * 1024 * 1024


class TurnOutgoing:
    """What the answer of one turn brings along (:class:`~hermes_hookspecs.ports.agent.Outgoing`). For one event loop.

    :param store: returns where bytes are kept.
    """

    def __init__(self, turn: Turn, store: Callable[[], AttachmentStore | None], limits: OutgoingLimits) -> None:
        self._turn = turn
        self._store = store
        self._limits = limits
        self._added: dict[tuple[str | None, str], Attachment] = {}
        self._recalled: tuple[Attachment, ...] = ()
        self._brought: list[Attachment] = []
        self._adding: list[tuple[str | None, str]] = []

    @property
    def offered(self) -> TurnOutgoing | None:
        """Return this, ``None`` where an answer can bring nothing."""
        return self if self._limits.files and self._limits.file_bytes and self._store() is not None else None

    @property
    def files(self) -> tuple[Attachment, ...]:
        """Return what the answer brings, each once, in order: of tries before this one, and of this one."""
        return tuple({_name(one): one for one in (*self._recalled, *self._brought)}.values())

    async def add(self, file: OutgoingFile) -> Attachment:
        """Keep a file for the lineage of the turn."""
        limits = self._limits
        if file.size > limits.file_bytes:
            raise AttachmentRefused(
                f"{file.name} was not taken: it has {size_text(file.size)}, the most is {size_text(limits.file_bytes)} "
                "([outbox] max_file_bytes)"
            )
        number = await asyncio.to_thread(_number, file.data)
        added = Attachment(kind=file.kind, name=file.name, media_type=file.media_type, size=file.size, sha256=number)
        there = {*map(_name, self._recalled), *self._added, *self._adding}
        if len(there) >= limits.files and _name(added) not in there:
            raise AttachmentRefused(
                f"{file.name} was not taken: an answer brings at most {limits.files} files ([outbox] max_files)"
            )
        self._adding.append(_name(added))
        try:
            await asyncio.to_thread(self._keep, file.data)
        finally:
            self._adding.remove(_name(added))
        return self._added.setdefault(_name(added), added)

    def bring(self, files: Iterable[Attachment]) -> None:
        """Note what an event names.

        :raises ValueError: something that was not added in this turn.
        """
        for file in files:
            if _name(file) not in self._added:
                raise ValueError(f"an event names the file {file.name!r}, which was not added in this turn")
            self._brought.append(self._added[_name(file)])

    def recall(self, rows: Sequence[Message]) -> None:
        """Take what tries before this one had brought when they were interrupted: it stands behind the same message."""
        if self._turn.attempt == 1:
            return
        asked = (place for place, row in enumerate(rows) if row.role == USER and row.inbox_id in self._turn.inbox_ids)
        first = next(asked, len(rows))
        behind = (row for row in rows[first:] if row.role != USER and row.turn_id != self._turn.id)
        self._recalled = tuple(one for row in behind for one in row.attachments)

    def _keep(self, data: bytes) -> None:
        store = self._store()
        if store is None:
            raise AttachmentRefused("no files can be kept here")
        store.put(data, lineage_id=self._turn.lineage_id)


def _number(data: bytes) -> str:
    return sha256(data).hexdigest()


def _name(file: Attachment) -> tuple[str | None, str]:
    return file.sha256, file.name
