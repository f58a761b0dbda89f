"""The summary that a session begins with where the one before it is carried over."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.store import Store, StoreReader

__all__ = ["carried_summary"]

_log = getLogger(__name__)

_MOST_TOKENS: Final = 1500
_TELLING: Final = (
    "[What follows is a summary of the conversation before this one, which has ended. It is background: nothing in it "
    "is a new request.]"
)


def carried_summary(store: Store, lineage_id: LineageId, now: int) -> MessageDraft | None:
    """Return the first row of a session behind another one, ``None`` where that has nothing to say. Blocks.

    Made without a model, so that nobody waits for one; where it fails, the session begins without it.
    """
    try:
        text = store.submit_read(lambda reader: _text(reader, lineage_id)).result()
    except Exception:  # noqa: BLE001 - whatever is wrong with an old conversation, the new one begins
        _log.warning("%s is not carried over", lineage_id, exc_info=True)
        return None
    if not text:
        return None
    return MessageDraft(role=SYSTEM, content=text, sent=f"{_TELLING}\n\n{text}", kind=KIND_SUMMARY, timestamp=now)


def _text(reader: StoreReader, lineage_id: LineageId) -> str:
    from hermes_core.context.compression import load_context
    from hermes_core.context.summaries import extract, parted

    everybody = operator()
    lineage = reader.lineage(lineage_id, everybody)
    tip = None if lineage is None else reader.session(lineage.tip, everybody)
    if tip is None:
        return ""
    context = load_context(reader, tip)
    if not context.said:
        return ""
    previous = None if context.summary is None else parted(context.summary.content)[0]
    return extract(context.said, previous=previous, most_tokens=_MOST_TOKENS)
