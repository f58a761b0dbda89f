"""Attachments as text: what a plugin or a built-in reader makes of them, and the form in which it is sent and stored.

Made once, before the turn begins, and stored with the user row: neither another plugin nor a newer program changes what
a prompt says of an old picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.context.labels import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.services import AttachmentDescriber, AttachmentReader

__all__ = ["DESCRIBING_S", "MOST_TEXT", "UNAVAILABLE", "describe_all", "fetched_anew", "text_of", "text_without"]

MOST_TEXT: Final = 20_000
"""Most characters of one attachment in a prompt; what is cut is counted."""
DESCRIBING_S: Final = 60.0
"""Seconds that one describer has for one attachment."""
UNAVAILABLE: Final = "not available"
"""Stands for an attachment whose bytes are not there."""

_END: Final = "[end of"


def text_of(attachment: Attachment) -> str:
    """Return what stands for an attachment in a prompt; the stored text wherever there is one."""
    return _form(attachment, None, there=attachment.sha256 is not None) if attachment.text is None else attachment.text


def text_without(attachment: Attachment, reason: str = UNAVAILABLE) -> str:
    """Return what stands for an attachment whose bytes will not be there."""
    return _form(attachment, None, there=False, reason=reason)


def fetched_anew(attachment: Attachment) -> Attachment:
    """Return an attachment as it came, where its bytes could not be had: whoever says it again has it fetched again."""
    failed = attachment.sha256 is None and attachment.reference and attachment.text == text_without(attachment)
    return attrs.evolve(attachment, text=None) if failed else attachment


async def describe_all(
    attachments: Sequence[Attachment],
    reader: AttachmentReader,
    describers: Sequence[AttachmentDescriber],
    *,
    limit_s: float = DESCRIBING_S,
) -> tuple[Attachment, ...]:
    """Return the attachments with their texts, in order; those that have one keep it.

    Of the describers that are for its kind, the first that answers is kept. One that fails, or takes longer than
    ``limit_s`` seconds, is passed over and logged. Bytes that are missing end in a text that says so.
    """
    from asyncio import gather

    return tuple(await gather(*(_described(one, reader, describers, limit_s) for one in attachments)))


async def _described(
    attachment: Attachment, reader: AttachmentReader, describers: Sequence[AttachmentDescriber], limit_s: float
) -> Attachment:
    if attachment.text is not None:
        return attachment
    from asyncio import to_thread

    data = None if attachment.sha256 is None else await to_thread(reader.get, attachment.sha256)
    words = None if data is None else await _words(attachment, data, describers, limit_s)
    size = attachment.size if data is None else len(data)
    text = _form(attrs.evolve(attachment, size=size), words, there=data is not None)
    return attrs.evolve(attachment, size=size, text=text)


async def _words(
    attachment: Attachment, data: bytes, describers: Sequence[AttachmentDescriber], limit_s: float
) -> str | None:
    import asyncio

    for describer in describers:
        if attachment.kind not in describer.kinds:
            continue
        try:
            async with asyncio.timeout(limit_s):
                words = await describer.describe(attachment, data)
        except Exception as error:  # noqa: BLE001 - whoever describes is a plugin: the message is answered without it
            from logging import getLogger

            from hermes_hookspecs.errors import HermesError

            reason = str(error) if isinstance(error, HermesError) else type(error).__name__
            text = "%s could not describe an attachment of kind %s: %s"
            getLogger(__name__).warning(text, describer.name, attachment.kind, reason)
            continue
        if isinstance(words, str) and words.strip():
            return words.strip()
    return None


def _form(attachment: Attachment, words: str | None, *, there: bool, reason: str = UNAVAILABLE) -> str:
    """Return the text form. The name is data from outside: one line, quoted by the brackets it cannot hold."""
    facts = [label_of(attachment.kind) or "attachment"]
    name = label_of(attachment.name)
    if name:
        facts.append(f"“{name}”")
    if attachment.media_type:
        facts.append(label_of(attachment.media_type))
    if attachment.size is not None:
        facts.append(f"{attachment.size} bytes")
    if not there:
        return f"[{', '.join(facts)}, {reason}]"
    if attachment.sha256 is not None:
        facts.append(f"sha256 {attachment.sha256[:16]}")
    head = ", ".join(facts)
    if words is None:
        return f"[{head}]"
    return f"[{head}:]\n{_cut(words).replace(_END, '(end of')}\n{_END} {facts[0]}]"


def _cut(words: str) -> str:
    if len(words) <= MOST_TEXT:
        return words
    return f"{words[:MOST_TEXT]}\n(cut: {MOST_TEXT} of {len(words)} characters)"
