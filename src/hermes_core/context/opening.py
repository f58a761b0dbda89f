"""What is done once for a message before its turn begins: its attachments become text, its context is gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.context.described import describe_all
from hermes_core.context.providers import Pieces, ask_providers, with_pieces
from hermes_core.context.tokens import estimate_tokens
from hermes_core.context.window import sent_text
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.metering import metered
from hermes_hookspecs.ports.services import TurnOpening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.agent import History
    from hermes_hookspecs.ports.services import AttachmentDescriber, AttachmentStore, ContextProvider
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Usage

__all__ = ["Opened", "Opener", "user_draft"]


@attrs.frozen(kw_only=True)
class Opened:
    """What is known of messages before their turn: their attachments with texts, and the pieces of all of them.

    ``usage``: of models that were asked for that, and that no turn has taken over so far.

    ``Opened()`` is of messages with nothing beside their text.
    """

    attachments: Mapping[InboxId, tuple[Attachment, ...]] = attrs.field(factory=dict)
    pieces: Pieces = attrs.field(factory=Pieces)
    usage: tuple[Usage, ...] = ()


class Opener:
    """Prepares messages. Everything that may fail or be slow in a plugin is bounded and survived.

    :param store: ``None`` where no attachment can be kept: each stands as *not available*.
    """

    def __init__(
        self,
        store: AttachmentStore | None,
        describers: Sequence[AttachmentDescriber],
        providers: Sequence[ContextProvider],
        *,
        count_tokens: Callable[[str], int] = estimate_tokens,
    ) -> None:
        self._count_tokens = count_tokens
        self._store = store
        self._describers = describers
        self._providers = providers

    async def open(
        self,
        items: Sequence[InboxItem],
        *,
        session: Session,
        principal: Principal,
        history: History,
        taken: Opened | None = None,
    ) -> Opened:
        """Return what the user rows of these messages are to hold beside their text.

        A message that a turn has begun with already has its row, and nothing is done for it.

        :param items: oldest first, of one sender. taken: of an earlier look at some of them: their texts are not made
            again.
        :raises StorageError: the lineage could not refer to the bytes: an erase would miss them.
        """
        used = [] if taken is None else list(taken.usage)
        with metered(used.append):
            opened = await self._open(items, session, principal, history, taken)
        return attrs.evolve(opened, usage=tuple(used))

    async def _open(
        self,
        items: Sequence[InboxItem],
        session: Session,
        principal: Principal,
        history: History,
        taken: Opened | None,
    ) -> Opened:
        fresh = [item for item in items if not item.attempts]
        known = {} if taken is None else taken.attachments
        attachments = await self.describe(fresh, session.lineage_id, known)
        if not fresh or not self._providers:
            return Opened(attachments=attachments)
        opening = TurnOpening(
            session=session,
            source=fresh[0].source,
            principal=principal,
            text="\n".join(item.text for item in fresh),
            attachments=tuple(one for item in fresh for one in attachments.get(item.id, ())),
            history=history,
        )
        pieces = await ask_providers(opening, self._providers, count_tokens=self._count_tokens)
        return Opened(attachments=attachments, pieces=pieces)

    async def describe(
        self, items: Sequence[InboxItem], lineage_id: LineageId, known: Mapping[InboxId, tuple[Attachment, ...]]
    ) -> dict[InboxId, tuple[Attachment, ...]]:
        """Return the attachments of messages with their texts; the lineage refers to their bytes from now on.

        :param known: what was described before.
        :raises StorageError: the lineage could not refer to the bytes.
        """
        found: dict[InboxId, tuple[Attachment, ...]] = {}
        for item in items:
            if item.attachments:
                found[item.id] = known.get(item.id) or await self._described(item, lineage_id)
        return found

    async def _described(self, item: InboxItem, lineage_id: LineageId) -> tuple[Attachment, ...]:
        from asyncio import to_thread

        hashes = [one.sha256 for one in item.attachments if one.sha256 is not None]
        if self._store is not None and hashes:
            await to_thread(self._store.keep, hashes, lineage_id)  # before they are read: no sweep is quicker
        return await describe_all(item.attachments, self._store or _Nothing(), self._describers)


class _Nothing:
    """A reader without bytes."""

    def get(self, sha256: str) -> bytes | None:
        """Return ``None``."""
        return None


def user_draft(item: InboxItem, *, shared: bool, opened: Opened | None = None, first: bool = False) -> MessageDraft:
    """Return the user row of a message, with its text as it is sent.

    :param first: the pieces of the turn go before this one.
    """
    sent = sent_text(item, shared=shared)
    attachments = item.attachments
    if opened is not None:
        attachments = opened.attachments.get(item.id, attachments)
        if first:
            sent = with_pieces(item.text, sent, opened.pieces)
    return MessageDraft(
        role=USER,
        content=item.text,
        sent=sent,
        timestamp=item.accepted_at,
        inbox_id=item.id,
        attachments=attachments,
    )
