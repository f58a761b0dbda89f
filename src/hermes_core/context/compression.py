"""Compression: the head of a context becomes a summary in a child session (``design.md`` section 8).

Policies say when and where to cut, this room makes the cut legal, has the summary written, and lets the store do the
rest in one transaction. Nothing is removed: what was said stays where it is and is found, shown, exported and counted.
Whoever fails here leaves everything as it was.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.context.cuts import legal_cut
from hermes_core.context.hygiene import LEAST_ROWS, Hygiene
from hermes_core.context.rest import Rest, note_rest, read_rest
from hermes_core.context.tokens import estimate_tokens, measurement_of, prompt_tokens, row_tokens, shortened
from hermes_core.context.window import read_rows
from hermes_core.faultpoints import reach
from hermes_core.settling import settled
from hermes_hookspecs.errors import Conflict, IllegalMessage, LeaseLost
from hermes_hookspecs.ids import new_session_id
from hermes_hookspecs.messages import KIND_NOTE, KIND_SUMMARY, SYSTEM, USER, MessageDraft
from hermes_hookspecs.operations import Compress
from hermes_hookspecs.ports.policies import CompressionView
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.config.sections import CompressionSettings
    from hermes_core.context.tokens import Measurement
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.policies import CompressionPolicy
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Fence

__all__ = ["Compressor", "Context", "Cut", "load_context"]

_log = getLogger(__name__)

_EFFECTIVE = 0.9
"""A compression that leaves more than this share of the tokens is none."""
_TELLING = (
    "[What follows is a summary of the earlier part of this conversation, made to save room. It is background: "
    "nothing in it is a new request. The latest messages stand behind it as they were said.]"
)
_TELLING_OF_REQUEST = (
    "[What follows is a summary of this conversation so far, made since it was too long to be sent. It is background, "
    "but for the last request: that stands at its end and is the one to go on with.]"
)
_MOST_REQUEST = 2000
"""Tokens of a request that is handed on in a summary."""
_WELL_WITHIN = 0.8
"""Share of the model's window that a context may have after it was refused: the answer needs room, too."""
_LEAST_SHORT = 160
"""Tokens below which nothing useful can be said in short."""
_MOST_UNKNOWN = 4000
"""Tokens of a context that is nothing but its summary, where nobody knows how much the model can read."""


@attrs.frozen(kw_only=True)
class Context:
    """What the next prompt of a session is made of.

    Attributes:
        rows: of the lineage as they are read, oldest first. measured: what the endpoint said of an earlier prompt.
    """

    session: Session
    rows: tuple[Message, ...]
    measured: Measurement | None = None

    @property
    def summary(self) -> Message | None:
        """Return the session's own summary."""
        own = (row for row in self.rows if row.kind == KIND_SUMMARY and row.session_id == self.session.id)
        return next(own, None)

    @property
    def said(self) -> tuple[Message, ...]:
        """Return the rows that are sent, without summaries."""
        return tuple([row for row in self.rows if row.kind not in {KIND_SUMMARY, KIND_NOTE}])

    @property
    def size(self) -> tuple[int, int]:
        """Return how many rows are sent, and their tokens as estimated."""
        summary, said = self.summary, self.said
        sent = said if summary is None else (summary, *said)
        return len(sent), sum(map(row_tokens, sent))


@attrs.frozen(kw_only=True)
class Cut:
    """A legal cut, and the summary of what stands before it.

    Attributes:
        kept_from: the first row that stays, ``None`` where even the last ones are too long for the model.
        before, after: tokens of the context as estimated, without and with the cut.
    """

    kept_from: Message | None
    summary: MessageDraft
    before: int
    after: int

    @property
    def is_effective(self) -> bool:
        """Return whether it makes the context noticeably smaller."""
        return self.after <= _EFFECTIVE * self.before


def load_context(reader: StoreReader, session: Session) -> Context:
    """Return the context of a session as it is now."""
    rows = tuple(read_rows(reader, session, operator()))
    return Context(session=session, rows=rows, measured=measurement_of(reader, rows))


class Compressor:
    """Compresses contexts of one store. One per profile; bound to no loop."""

    def __init__(self, *, store: Store, clock: Clock, hooks: Hooks, settings: CompressionSettings) -> None:
        self.store = store
        self.clock = clock
        self._hooks = hooks
        self._settings = settings
        self._hygiene = Hygiene(
            threshold=settings.threshold, most_rows=settings.hygiene_hard_message_limit, keep=settings.keep
        )

    async def before_load(self, fence: Fence, context: Context, agent: Agent) -> Context:
        """Return the context with which a running turn goes on: compressed, where a policy wants it and it helps.

        :raises LeaseLost: the turn was stopped, or taken over, meanwhile.
        """
        if not self._settings.enabled or len(context.rows) < LEAST_ROWS:
            return context
        policies, window = self._hooks.compression_policies(), self._window_of(agent)
        if not policies and window is None and not self._hygiene.is_due(len(context.rows), 0, None):
            return context  # nobody could want it: no need to count tokens
        view = view_of(context, window)
        place = self._place(view, (*policies, self._hygiene))
        if place is None or await self._rests(view):
            return context
        cut = await self.cut_at(context, place)
        if not cut.is_effective:
            await note_rest(self.store, view, self.clock.now(), "a summary would have saved nothing")
            return context
        return await self._commit(fence, context, cut)

    async def after_overflow(
        self, fence: Fence, session: Session, agent: Agent, limit_tokens: int | None
    ) -> Context | None:
        """Return a context that is smaller than the one that an endpoint refused, ``None`` where nothing can go.

        Neither threshold nor rest is asked. Where the last request itself is in the way, because all that is too long
        came behind it, it is handed on in the summary. Where one row alone is too long, nothing stays but a summary
        with the beginnings and ends of the last rows; that needs no model.

        :raises LeaseLost: the turn was stopped, or taken over, meanwhile.
        """
        if not self._settings.enabled:
            return None
        context = await asyncio.wrap_future(self.store.submit_read(lambda reader: load_context(reader, session)))
        cut = await self._to_be_sent(context, limit_tokens or self._window_of(agent))
        return None if cut is None else await self._commit(fence, context, cut)

    async def by_hand(self, context: Context, focus: str) -> Cut | None:
        """Return the cut that a person gets who asks for one, ``None`` where none is legal or of any use."""
        window = self._settings.context_tokens or None
        view = view_of(context, window, forced=True)
        if window is not None and view.tokens > window:
            return await self._to_be_sent(context, window, focus)
        place = self._place(view, (*self._hooks.compression_policies(), self._hygiene))
        cut = None if place is None else await self.cut_at(context, place, focus)
        return cut if cut is not None and cut.after < cut.before else None

    async def cut_at(self, context: Context, place: int, focus: str = "") -> Cut:
        """Return a cut with its summary; nothing is stored."""
        from hermes_core.context.summaries import parted, with_request

        said, summary = context.said, context.summary
        head, tail = said[:place], said[place:]
        previous, request = (None, None) if summary is None else parted(summary.content)
        asked = next((row for row in reversed(said) if row.role == USER and not row.kind), None)
        if asked is not None:
            request = asked.content if asked.id < tail[0].id else None
        request = None if request is None else shortened(request, _MOST_REQUEST)
        return self._cut(context, tail, with_request(await self._summary(head, previous, focus), request), request)

    def _cut(self, context: Context, tail: Sequence[Message], text: str, request: str | None) -> Cut:
        sent = f"{_TELLING if request is None else _TELLING_OF_REQUEST}\n\n{text}"
        draft = MessageDraft(role=SYSTEM, content=text, sent=sent, kind=KIND_SUMMARY, timestamp=self.clock.now())
        after = sum(map(row_tokens, tail)) + estimate_tokens(sent)
        kept_from = tail[0] if tail else None
        return Cut(kept_from=kept_from, summary=draft, before=context.size[1], after=after)

    async def _to_be_sent(self, context: Context, window: int | None, focus: str = "") -> Cut | None:
        """Return the first cut that leaves what the model can read, else the smallest; ``None`` where nothing can go.

        :param window: tokens that the model can read; where that is unknown, half of what was refused is hoped for.
        """
        view = view_of(context, window, forced=True)
        most, before = _most_tokens(context, view), context.size[1]
        smallest: Cut | None = None
        for place in (
            self._place(view, (*self._hooks.compression_policies(), self._hygiene)),
            legal_cut(view.rows, len(view.rows) - 1, last_resort=True),
        ):
            if place is None or (smallest is not None and smallest.kept_from is view.rows[place]):
                continue
            if sum(map(row_tokens, view.rows[place:])) > most > _LEAST_SHORT:
                continue  # whatever the summary, what stays alone is too long
            cut = await self.cut_at(context, place, focus)
            if cut.after <= most and cut.is_effective:
                return cut
            smallest = cut if smallest is None or cut.after < smallest.after else smallest
        whole = await self._in_short(context, most if window is not None else min(most, _MOST_UNKNOWN))
        if whole is not None and (smallest is None or whole.after < smallest.after):
            smallest = whole
        return smallest if smallest is not None and smallest.after < before else None

    async def _in_short(self, context: Context, most: int) -> Cut | None:
        """Return the cut behind which nothing stays but a summary of ``most`` tokens; ``None``: too few."""
        from hermes_core.context.excerpts import in_short, last_request
        from hermes_core.context.summaries import parted

        room = most - estimate_tokens(_TELLING_OF_REQUEST) - 1
        said, summary = context.said, context.summary
        if room < _LEAST_SHORT or not said:
            return None
        previous, request = (None, None) if summary is None else parted(summary.content)
        text = await asyncio.to_thread(in_short, said, previous=previous, request=request, most_tokens=room)
        asked = request is not None or last_request(said) is not None
        return self._cut(context, (), text, "" if asked else None)

    def compressing(self, fence: Fence, context: Context, cut: Cut) -> Compress:
        """Return the operation that makes a cut."""
        now = self.clock.now()
        return Compress(
            fence=fence,
            expected=context.session.id,
            session_id=new_session_id(now),
            kept_from=None if cut.kept_from is None else cut.kept_from.id,
            now=now,
            summary=cut.summary,
        )

    def tell(self, parent: Session, child: Session) -> None:
        """Tell the plugins that a session goes on in its child."""
        self._hooks.fire(
            "hermes_after_compression", lineage_id=parent.lineage_id, parent_id=parent.id, child_id=child.id
        )

    # --- when and where

    def _window_of(self, agent: Agent) -> int | None:
        """Return what the model can read: by the settings, else as the agent says it (``context_tokens``)."""
        told: object = getattr(agent, "context_tokens", None)
        known = told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None
        return self._settings.context_tokens or known

    def _place(self, view: CompressionView, policies: Sequence[CompressionPolicy]) -> int | None:
        """Return the first legal cut that a policy wants; one that fails is passed over."""
        if len(view.rows) < LEAST_ROWS:
            return None
        places = {row.id: place for place, row in enumerate(view.rows)}
        for policy in policies:
            try:
                wanted = policy.cut(view)
            except Exception:  # noqa: BLE001 - a plugin's fault must not end the turn
                _log.warning("compression policy %s failed and is passed over", policy.name, exc_info=True)
                continue
            if wanted is None:
                continue
            if wanted not in places:
                _log.warning("compression policy %s cuts at row %s, which is not there", policy.name, wanted)
                continue
            place = legal_cut(view.rows, places[wanted])
            if place is not None:
                return place
        return None

    async def _rests(self, view: CompressionView) -> bool:
        """Return whether compressing was of no use lately and the context has not grown much since."""
        now = self.clock.now()
        rest: Rest | None = await asyncio.wrap_future(
            self.store.submit_read(lambda reader: read_rest(reader, view.session.lineage_id, now))
        )
        return rest is not None and rest.holds(view.tokens, now)

    # --- the summary

    async def _summary(self, head: Sequence[Message], previous: str | None, focus: str) -> str:
        """Return the text of the first summariser that gives one; the built-in one always does."""
        from hermes_core.context.summaries import ExtractiveSummariser

        for summariser in self._hooks.summarisers():
            try:
                async with asyncio.timeout(self._settings.summary_timeout_s):
                    text: object = await summariser.summarise(head, previous=previous, focus=focus or None)
            except Exception:  # noqa: BLE001 - a plugin's fault must not end the turn
                _log.warning("summariser %s failed; the next one is asked", summariser.name, exc_info=True)
                continue
            if isinstance(text, str) and text.strip():
                return text.strip()
            _log.warning("summariser %s returned no text; the next one is asked", summariser.name)
        return await ExtractiveSummariser().summarise(head, previous=previous, focus=focus or None)

    # --- the commit

    async def _commit(self, fence: Fence, context: Context, cut: Cut) -> Context:
        """Make a cut in a running turn; return the context of the child, or the old one where that was not possible."""
        try:
            reach("compress.before")
            made = await settled(self.store.perform(self.compressing(fence, context, cut)))
            reach("compress.stored")
        except LeaseLost:
            raise
        except (Conflict, IllegalMessage) as error:
            _log.warning("%s was not compressed: %s", fence.lineage_id, error)
            return context
        self.tell(context.session, made.session)
        _log.info("%s goes on in %s, %d tokens instead of %d", fence.lineage_id, made.session.id, cut.after, cut.before)
        child = made.session
        return await asyncio.wrap_future(self.store.submit_read(lambda reader: load_context(reader, child)))


def _most_tokens(context: Context, view: CompressionView) -> int:
    """Return how many tokens, as estimated, a context that was refused may have, the system text not counted."""
    estimated, head = context.size[1], estimate_tokens(context.session.system_prompt or "")
    if view.window_tokens is None:
        return estimated // 2
    # What was refused has more than the window, whatever the estimate says; what was measured has what it has.
    real = max(view.tokens if view.measured else 0, view.window_tokens, head + estimated)
    return int(_WELL_WITHIN * view.window_tokens * (head + estimated) / max(real, 1)) - head


def view_of(context: Context, window_tokens: int | None, *, forced: bool = False) -> CompressionView:
    """Return what policies see of a context."""
    session, summary, said = context.session, context.summary, context.said
    tokens, measured = prompt_tokens(
        said if summary is None else (summary, *said),
        system=session.system_prompt,
        session_id=session.id,
        measured=context.measured,
    )
    return CompressionView(
        session=session, rows=said, tokens=tokens, measured=measured, window_tokens=window_tokens, forced=forced
    )
