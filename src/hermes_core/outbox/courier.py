"""One delivery on its way: claimed, split once, sent part by part, each marked before the next one goes.

A process may end between any two of these steps. What was claimed is found again by its owner; a part whose outcome
nobody knows is asked for where the platform can tell, and is sent with a visible mark where it cannot.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from math import ceil
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.leases import holder_here
from hermes_core.outbox.calls import call_in_time
from hermes_core.outbox.enclosures import NOT_TAKEN, drafts_of, in_place_of, text_of
from hermes_core.outbox.hand import Hand
from hermes_core.outbox.joining import join_waiting
from hermes_core.outbox.limits import retry_delay_s, sound_hint_s
from hermes_core.outbox.parts import is_taken_once, mark_repeat, parts_of
from hermes_core.outbox.results import hint_of, one_line, sound_result
from hermes_core.outbox.streams import Trace
from hermes_core.settling import settled
from hermes_hookspecs.errors import AuthFailed, Conflict, HermesError, Rejected, RetryLater, StoreStopped
from hermes_hookspecs.operations import ClaimDelivery
from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.ports.platform import Deferred, DeliveryPart, Sent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hermes_core.config.sections import OutboxSettings
    from hermes_core.hooks import Hooks
    from hermes_core.outbox.enclosures import Enclosures
    from hermes_core.outbox.limits import AccountPace
    from hermes_core.outbox.owners import OwnerWatch
    from hermes_core.outbox.streams import Streams
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.outbox import Delivery, OpenedThread, PartDraft, StoredPart
    from hermes_hookspecs.ports.platform import SendResult, ServedEntrance
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource

__all__ = ["Courier"]

_log = getLogger(__name__)

_LOOK_UPS = 3
"""Failures after which a platform that does not say whether a part went out is not asked again."""
_PATIENCE_MS = 24 * 3600 * 1000
"""Age until which nothing is given up because its whole account is out of reach."""
_LONG = 20_000
"""Characters from which on a text is split off the loop."""


class Courier:
    """Sends deliveries of one served entrance, one at a time per call. For one event loop.

    :param thread_route: returns the route of a thread that an answer opened, by the thread's source.
    """

    def __init__(
        self,
        served: ServedEntrance,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        settings: OutboxSettings,
        pace: AccountPace,
        owners: OwnerWatch,
        thread_route: Callable[[SessionSource], OpenedThread | None],
        enclosures: Enclosures,
        streams: Streams | None = None,
    ) -> None:
        self._streams = streams
        self._enclosures = enclosures
        self._served = served
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._settings = settings
        self._limit_s = settings.send_timeout_s
        self._pace = pace
        self._owners = owners
        self._thread_route = thread_route
        self._in_trouble = False
        self._through_at: float | None = None

    async def deliver(self, head: Delivery, *, presumed_dead: bool) -> None:
        """Claim a delivery and send what is unsent of it; ends when it is sent, put back or given up.

        Cancelled, it puts the delivery back first, due now; a part that was under way becomes uncertain.

        :param presumed_dead: it is being sent by somebody who is gone.
        :raises StorageError: the store takes nothing; the delivery stays as it is and is found again.
        """
        claim = ClaimDelivery(
            delivery_id=head.id,
            owner=holder_here(self._served.entrance, head.session_key),
            expected_attempt=head.attempt,
            now=self._clock.now(),
            presumed_dead=presumed_dead,
        )
        claimed = await settled(self._store.perform(claim))
        if claimed is None:
            return
        reach("deliver.claimed")
        self._owners.claimed(claimed)
        hand = Hand(claimed, store=self._store, clock=self._clock, hooks=self._hooks)
        try:
            await self._attempt(hand)
        except asyncio.CancelledError:
            await hand.put_back()
            raise
        except Conflict as error:
            _log.warning("delivery %d went to another sender meanwhile: %s", claimed.id, error)
        self._owners.let_go(claimed.id)

    async def postpone(self, head: Delivery) -> None:
        """Write into a delivery that waits that its account pauses, why, and until when: a pause is no secret.

        :raises StorageError: the store takes nothing; the delivery stays as it is.
        """
        claim = ClaimDelivery(
            delivery_id=head.id,
            owner=holder_here(self._served.entrance, head.session_key),
            expected_attempt=head.attempt,
            now=self._clock.now(),
        )
        claimed = await settled(self._store.perform(claim))
        if claimed is None:
            return
        self._owners.claimed(claimed)
        hand = Hand(claimed, store=self._store, clock=self._clock, hooks=self._hooks)
        reason = f"{self._served.entrance} pauses: {self._pace.reason}".removesuffix(": ")
        try:
            await hand.defer(reason, after_s=self._pace.paused_s, quiet=True)
        except asyncio.CancelledError:
            await hand.put_back()
            raise
        except Conflict as error:
            _log.warning("delivery %d went to another sender meanwhile: %s", claimed.id, error)
        self._owners.let_go(claimed.id)

    # --- parts

    async def _attempt(self, hand: Hand) -> None:
        """Send what is unsent; whatever fails is a failure of the delivery, so that it backs off and has an end."""
        try:
            await self._send_parts(hand)
        except (Conflict, StoreStopped):
            raise
        except Exception as error:  # noqa: BLE001 - uncounted it would be sent again and again, without an end
            _log.exception("delivery %d failed", hand.delivery.id)
            await self._retry(hand, error)

    async def _send_parts(self, hand: Hand) -> None:
        await join_waiting(hand, self._served.sender, self._store)
        if not hand.delivery.parts:
            drafts = await self._parts(hand.delivery)
            if not drafts:
                await hand.give_up("there is nothing to send")
                return
            await hand.split(drafts)
            reach("deliver.split")
        address = address_of(hand.delivery.target)
        for part in hand.delivery.parts:
            if part.sent_at is not None:
                continue
            await asyncio.sleep(0)  # here a cancellation is felt, whatever the sender does
            wait_s = self._pace.wait_s(address)
            if wait_s > 0:
                await hand.defer(hand.delivery.error, after_s=wait_s, quiet=True)
                return
            if not await self._send(hand, part, address):
                return

    async def _parts(self, delivery: Delivery) -> tuple[PartDraft, ...]:
        """Return the parts: the text as its sender cuts it, else by the length that the platform takes, then files."""
        abilities = self._served.abilities
        return (*await self._texts(text_of(delivery, abilities), delivery.target), *drafts_of(delivery, abilities))

    async def _texts(self, text: str, target: SessionSource) -> tuple[PartDraft, ...]:
        abilities = self._served.abilities
        if not text.strip():
            return ()
        own: Callable[[str, SessionSource], Sequence[PartDraft]] | None
        own = getattr(self._served.sender, "split", None)
        if own is not None:
            return tuple(own(text, target))
        if len(text) < _LONG:
            return parts_of(text, abilities)
        return await asyncio.to_thread(parts_of, text, abilities)

    async def _send(self, hand: Hand, part: StoredPart, address: str) -> bool:
        """Send one part and write down what became of it; return whether the next one may go."""
        try:
            result = await self._result(hand, part, address)
        except RetryLater as error:
            hand.under_way = hand.under_way and getattr(error, "maybe_sent", True) is not False
            hint_s = sound_hint_s(hint_of(error))
            if hint_s is not None and self._pace.hint(address, hint_s, one_line(error)):
                self._note_trouble(f"pauses for {ceil(self._pace.paused_s)} s", error)
            await self._retry(hand, error, hint_s=hint_s)
        except AuthFailed as error:
            hand.under_way = False
            self._note_trouble(f"refuses the credentials, is asked again in {self._settings.retry_most_s:g} s", error)
            self._pace.pause(self._settings.retry_most_s, one_line(error))
            await hand.defer(one_line(error), after_s=self._settings.retry_most_s)
        except Rejected as error:
            hand.under_way = False
            await hand.give_up(one_line(error))
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything: whether it went out is unknown
            self._note_trouble("did not take a delivery, which is tried again", error)
            await self._retry(hand, error)
        else:
            self._note_success()
            return await self._take(hand, part, result)
        return False

    async def _result(self, hand: Hand, part: StoredPart, address: str) -> SendResult:
        """Return how the part went out: as its draft, in an attempt before this one, or now."""
        outgoing, trace = _outgoing(hand.delivery, part), Trace()
        if part.index == 0 and self._streams is not None:
            trace = await self._streams.replace(hand.delivery, outgoing)
            if trace.result is not None and (part.file is None or isinstance(trace.result, Deferred)):
                return trace.result
        if part.file is not None:
            # what was shown had no words of the answer: it ends as the line of the file, which is sent below it
            outgoing = await self._enclosures.enclose(outgoing, part.file)
        else:
            outgoing = attrs.evolve(outgoing, possible_repeat=outgoing.possible_repeat or trace.maybe_shown)
        result = await self._sent_now(hand, part, outgoing, address)
        if isinstance(result, Sent) and isinstance(trace.result, Sent):
            return attrs.evolve(result, state=(*trace.result.state, *result.state))
        return result

    async def _sent_now(self, hand: Hand, part: StoredPart, outgoing: DeliveryPart, address: str) -> SendResult:
        """Return how the part went out: found where it had gone out before, or sent."""
        abilities = self._served.abilities
        if outgoing.possible_repeat:
            found, may_repeat = await self._look_up(hand.delivery, outgoing)
            if found is not None:
                return found
            outgoing = attrs.evolve(outgoing, possible_repeat=may_repeat)
        repeats = outgoing.possible_repeat and not is_taken_once(hand.delivery, abilities, self._clock.now())
        hand.under_way = True
        self._pace.note(address)
        since = asyncio.get_running_loop().time()
        try:
            result = await self._sent(outgoing, self._limit_s, repeats=repeats)
        except Rejected as error:
            if outgoing.media is None or part.file is None:
                raise
            _log.info("a file of delivery %d is replaced by a line: %s", hand.delivery.id, one_line(error))
            left_s = round(since + self._limit_s - asyncio.get_running_loop().time(), 3)
            result = await self._sent(in_place_of(outgoing, part.file, NOT_TAKEN), left_s, repeats=repeats)
        if repeats and isinstance(result, Sent):
            return attrs.evolve(result, possible_repeat=True)
        return result

    async def _sent(self, part: DeliveryPart, limit_s: float, *, repeats: bool) -> SendResult:
        if repeats and part.media is None:
            part = attrs.evolve(part, text=mark_repeat(part.text, self._served.abilities.max_length))
        return sound_result(await call_in_time(lambda: self._served.sender.send(part), limit_s))

    async def _look_up(self, delivery: Delivery, part: DeliveryPart) -> tuple[Sent | None, bool]:
        """Return how an uncertain part went out before, and, where it is not found, whether it may have all the same.

        :raises RetryLater: the platform does not say, and is asked again.
        """
        find: Callable[[DeliveryPart], Awaitable[Sent | None]] | None
        find = getattr(self._served.sender, "find_sent", None)
        if find is None or is_taken_once(delivery, self._served.abilities, self._clock.now()):
            return None, True
        try:
            result = await call_in_time(lambda: find(part), self._limit_s)
            found = None if result is None else sound_result(result)
            if isinstance(found, Deferred):
                raise TypeError("asked whether a part went out, the sender put it off")
            return found, False
        except AuthFailed:
            raise
        except Rejected:
            return None, True
        except Exception as error:
            if delivery.failures >= _LOOK_UPS:
                return None, True
            hint_s = hint_of(error) if isinstance(error, RetryLater) else None
            raise RetryLater(f"nobody says whether it went out: {one_line(error)}", after_s=hint_s) from error

    # --- what became of it

    async def _take(self, hand: Hand, part: StoredPart, result: SendResult) -> bool:
        if isinstance(result, Sent):
            reach("deliver.sent")
            if not await hand.mark(part.index, result, self._opened(hand.delivery, result)):
                return False
            reach("deliver.marked")
            return True
        hand.under_way = False
        if result.at is None:
            await hand.defer(result.reason, after_s=0.0, awaits_inbound=True)
        else:
            # a time that is over by now must not make a loop
            after_s = max((result.at - self._clock.now()) / 1000, self._settings.retry_first_s)
            await hand.defer(result.reason, after_s=after_s)
        return False

    def _opened(self, delivery: Delivery, sent: Sent) -> OpenedThread | None:
        if sent.opened_thread_id is None or delivery.lineage_id is None:
            return None
        try:
            return self._thread_route(attrs.evolve(delivery.target, thread_id=sent.opened_thread_id))
        except HermesError as error:
            _log.warning("the thread that delivery %d opened has no route: %s", delivery.id, error)
            return None

    async def _retry(self, hand: Hand, error: BaseException, *, hint_s: float | None = None) -> None:
        """Put a delivery back after a failure, or give it up when there were enough of them."""
        failures = hand.delivery.failures + 1
        if failures >= self._settings.attempts and not self._is_out_of_reach(hand):
            await hand.give_up(one_line(error))
            return
        after_s = retry_delay_s(
            hand.delivery.key,
            failures,
            first_s=self._settings.retry_first_s,
            most_s=self._settings.retry_most_s,
            hint_s=hint_s,
        )
        await hand.defer(one_line(error), after_s=after_s, failed=True)

    def _is_out_of_reach(self, hand: Hand) -> bool:
        """Return whether the account is what fails, and not this delivery, so that waiting longer makes sense.

        Nothing of the account went out for as long as a delivery waits at most between two attempts, and the part in
        hand surely reached nobody: its reader gets no copies from waiting. That holds for a day of a delivery's life.
        """
        if hand.under_way or self._clock.now() - hand.delivery.created_at >= _PATIENCE_MS:
            return False
        return self._through_at is None or self._clock.monotonic() - self._through_at > self._settings.retry_most_s

    def _note_trouble(self, what: str, error: BaseException) -> None:
        """Say once, until something goes out again, that the platform pauses, fails or refuses us."""
        if not self._in_trouble:
            self._in_trouble = True
            _log.warning("%s %s: %s", self._served.entrance, what, one_line(error))

    def _note_success(self) -> None:
        """Note that something went out, and say once that the platform is back."""
        self._through_at = self._clock.monotonic()
        if self._in_trouble:
            self._in_trouble = False
            _log.info("%s takes deliveries again", self._served.entrance)


def _outgoing(delivery: Delivery, part: StoredPart) -> DeliveryPart:
    first_unsent = next(each.index for each in delivery.parts if each.sent_at is None)
    return DeliveryPart(
        target=delivery.target,
        text=part.text,
        key=part.key,
        index=part.index,
        count=len(delivery.parts),
        format=part.format,
        reply_to=delivery.target.message_id if part.index == 0 else None,
        possible_repeat=delivery.uncertain and part.index == first_unsent,
    )
