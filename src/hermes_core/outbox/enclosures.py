"""The files of a delivery: which of them are parts, which are told of in a line, and their bytes when they are sent.

What becomes of a file is decided once, when the delivery is split, by what the platform says it takes. A file whose
bytes are gone by the time it is sent, and one that the platform does not take after all, is a line of text in its
place: a file never holds up what stands behind it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import attrs

from hermes_hookspecs.files import OutgoingFile, file_line, media_type_of, size_text
from hermes_hookspecs.outbox import PartDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.platform import DeliveryPart, PlatformAbilities
    from hermes_hookspecs.ports.services import AttachmentReader

__all__ = ["NOT_TAKEN", "Enclosures", "drafts_of", "in_place_of", "text_of"]

NOT_TAKEN: Final = "the platform did not take it"
_READ_S: Final = 10.0
_GONE: Final = "it is not kept any more"


def text_of(delivery: Delivery, abilities: PlatformAbilities) -> str:
    """Return the text of a delivery, with a line for each file that does not go out behind it."""
    lines = [file_line(file, why) for file in delivery.files if (why := _why_not(file, abilities))]
    return "\n\n".join(filter(None, (delivery.text, "\n".join(lines))))


def drafts_of(delivery: Delivery, abilities: PlatformAbilities) -> tuple[PartDraft, ...]:
    """Return a part for each file that the platform takes, in order."""
    return tuple(PartDraft(text=file_line(file), file=file) for file in delivery.files if not _why_not(file, abilities))


def in_place_of(part: DeliveryPart, file: Attachment, why: str) -> DeliveryPart:
    """Return the line that is sent in place of a file, under its key."""
    return attrs.evolve(part, media=None, text=file_line(file, why))


class Enclosures:
    """Puts the bytes of files into the parts that they are. For one event loop.

    :param files: returns where the bytes are; called when the first one is sent.
    """

    def __init__(self, files: Callable[[], AttachmentReader | None]) -> None:
        self._files = files

    async def enclose(self, part: DeliveryPart, file: Attachment) -> DeliveryPart:
        """Return a part with its file, or with a line in its place where the bytes are gone.

        :raises Exception: they could not be read now.
        """
        data = await asyncio.wait_for(asyncio.to_thread(self._read, file), _READ_S)
        if data is None:
            return in_place_of(part, file, _GONE)
        media = OutgoingFile(name=file.name, data=data, media_type=file.media_type or media_type_of(file.name))
        return attrs.evolve(part, media=media)

    def _read(self, file: Attachment) -> bytes | None:
        store = self._files()
        return None if store is None or file.sha256 is None else store.get(file.sha256)


def _why_not(file: Attachment, abilities: PlatformAbilities) -> str:
    """Return why a file is not sent to a platform, ``""`` where it is."""
    most = abilities.max_file_bytes
    if most <= 0:
        return "files cannot be sent here"
    if file.sha256 is None or file.size is None:
        return _GONE
    return f"it is too large, the most here is {size_text(most)}" if file.size > most else ""
