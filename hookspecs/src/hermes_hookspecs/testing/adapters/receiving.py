"""What comes in: stored before it is acknowledged, once, whole, and from whom it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.errors import StoreBusy, StoreFull, StoreOutcomeUnknown
from hermes_hookspecs.testing.adapters.rooms import AdapterRoom

if TYPE_CHECKING:
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.testing.adapters.stage import Stage

__all__ = ["AcknowledgementTests", "IdentityTests", "SourceTests"]

_AWKWARD = "鱼\N{FISH} «e\u0301» \\n %s {0} <b>&amp; `x` [y](z)"


class AcknowledgementTests(AdapterRoom):
    """The platform is told behind the commit, never before it; and in the end it is told."""

    def test_nothing_is_acknowledged_before_it_is_stored(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                account.inlet.hold()
                message_id = await stage.say()
                await account.handed(1)
                await stage.grace()
                assert not stage.fake.is_acknowledged(message_id)
                account.inlet.release()
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
            assert len(account.inlet.events) == 1

        stage.play(play)

    @pytest.mark.parametrize(
        "error", [StoreBusy("locked"), StoreFull("no space")], ids=lambda error: type(error).__name__
    )
    def test_a_batch_that_was_not_stored_is_not_acknowledged_and_comes_again(
        self, stage: Stage, error: StoreBusy | StoreFull
    ) -> None:
        async def play() -> None:
            async with stage.running() as account:
                account.inlet.fail(error, error)
                message_id = await stage.say()
                await account.handed(2)
                await stage.fake.deliver(message_id)
                event = await account.stored(message_id)
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                first, *_ = account.inlet.begun
                assert event.identities in [one.identities for one in first], "tried again under another identity"
                await account.hear()
                assert len(account.inlet.events) == 2

        stage.play(play)

    def test_a_batch_whose_commit_is_in_doubt_is_acknowledged_in_the_end(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                account.inlet.fail(StoreOutcomeUnknown("the sync failed"), stored=True)
                message_id = await stage.say()
                await account.stored(message_id)
                await stage.fake.deliver(message_id)
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                assert len(account.inlet.events) == 1

        stage.play(play)

    def test_what_is_refused_is_acknowledged_and_holds_nobody_up(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                account.inlet.refuse("not on the list")
                refused = await stage.say()
                await stage.fake.acknowledged(refused, stage.timing.patience_s)
                after = await account.hear()
                assert account.inlet.events == [after]

        stage.play(play)

    def test_a_known_message_is_acknowledged_again(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear()
                message_id = event.source.message_id or ""
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                await stage.fake.deliver(message_id, message_id)
                await account.hear()
                assert len(account.inlet.events) == 2

        stage.play(play)

    def test_what_others_say_while_one_waits_is_not_lost(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                account.inlet.hold()
                said = [await stage.say(user_id=f"user-{number}", chat_id=f"chat-{number}") for number in range(1, 6)]
                await account.handed(1)
                account.inlet.release()
                for message_id in said:
                    await account.stored(message_id)
                    await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                assert len(account.inlet.events) == len(said)

        stage.play(play)


class IdentityTests(AdapterRoom):
    """A message is the same whenever it comes, and no other one is."""

    def test_a_redelivered_message_has_the_identities_that_it_had(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                await account.hear()
                event = await account.hear()
                await account.restart()
                await stage.fake.deliver(event.source.message_id or "")
                await account.hear()
                assert len(account.inlet.events) == 3
                again = [one for one in account.inlet.handed if one.text == event.text]
                assert {one.identities for one in again} == {event.identities}

        stage.play(play)

    def test_two_deliveries_at_once_are_one_message(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                message_id = await stage.say(deliver=False)
                await asyncio.gather(stage.fake.deliver(message_id), stage.fake.deliver(message_id))
                await account.stored(message_id)
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                await account.hear()
                assert len(account.inlet.events) == 2

        stage.play(play)

    def test_twins_are_two_messages(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                said = [await stage.say("yes") for _ in range(3)]
                for message_id in said:
                    await account.stored(message_id)
                assert account.inlet.texts == ["yes"] * 3
                assert _share_nothing(account.inlet.events)

        stage.play(play)

    def test_messages_of_several_people_and_chats_share_no_identity(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                for chat in ("chat-1", "chat-2"):
                    for user in ("user-1", "user-2"):
                        await account.hear("hello", chat_id=chat, user_id=user, group=self.groups)
                assert len(account.inlet.events) == 4
                assert _share_nothing(account.inlet.events)

        stage.play(play)

    def test_an_identity_names_its_chat_where_an_id_alone_does_not_do(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear()
                chat, message_id = event.source.chat_id or "", event.source.message_id or ""
                wanted = [chat, encode_text(chat)] if self.identities_name_the_chat else [message_id]
                shown = [one for one in event.identities if any(each and each in one for each in wanted)]
                assert shown, (
                    f"{event.identities} do not hold {wanted[0]!r}; where an id is unique on the whole platform the "
                    "suite says identities_name_the_chat = False"
                )

        stage.play(play)

    def test_messages_that_come_in_another_order_are_all_taken(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                said = [await stage.say(deliver=False) for _ in range(4)]
                await stage.fake.deliver(*reversed(said))
                for message_id in said:
                    await account.stored(message_id)
                    await stage.fake.acknowledged(message_id, stage.timing.patience_s)
                assert len(account.inlet.events) == len(said)

        stage.play(play)


class SourceTests(AdapterRoom):
    """Who said it, where, and whether to us."""

    def test_a_direct_message_says_where_it_came_from(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear("good morning, machine", user_id="user-7", chat_id="chat-7")
                source = event.source
                assert (event.text, event.error, event.kind, event.addressed) == (
                    "good morning, machine",
                    "",
                    "message",
                    True,
                )
                assert (source.chat_type, source.is_bot, source.thread_id) == ("dm", False, None)
                assert source.chat_id == ("chat-7" if not self.chat_is_person else source.chat_id)
                assert source.chat_id is not None
                assert source.participant is not None
                assert source.message_id is not None

        stage.play(play)

    def test_a_place_and_a_person_keep_their_ids(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                first = (await account.hear(group=self.groups)).source
                other = (await account.hear(group=self.groups, user_id="user-2")).source
                await account.restart()
                again = (await account.hear(group=self.groups)).source
                assert (first.chat_id, first.participant, first.scope_id, first.chat_type) == (
                    again.chat_id, again.participant, again.scope_id, again.chat_type,
                )  # fmt: skip
                assert other.participant != first.participant
                assert self.chat_is_person or other.chat_id == first.chat_id

        stage.play(play)

    def test_a_group_is_told_from_a_direct_chat_and_its_members_apart(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                if not self.groups:
                    assert (await account.hear()).source.chat_type == "dm"
                    return
                one = await account.hear(group=True, chat_id="room", user_id="user-1")
                other = await account.hear(group=True, chat_id="room", user_id="user-2")
                direct = await account.hear(chat_id="chat-1", user_id="user-1")
                assert one.source.chat_type == other.source.chat_type != direct.source.chat_type == "dm"
                assert one.source.chat_id == other.source.chat_id == "room"
                assert one.source.participant == direct.source.participant != other.source.participant

        stage.play(play)

    def test_in_a_group_it_says_whether_we_were_meant(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                if not self.groups:
                    assert (await account.hear(mention=False)).addressed, "a direct chat is always meant for us"
                    return
                meant = await account.hear("are you there, machine", group=True, mention=True)
                other = await account.hear("is anybody there at all", group=True, mention=False)
                assert (meant.addressed, other.addressed) == (True, False)
                assert (meant.text, other.text) == ("are you there, machine", "is anybody there at all")

        stage.play(play)

    def test_a_thread_is_kept_apart_where_there_are_threads(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                if not stage.platform.abilities.threads:
                    assert (await account.hear()).source.thread_id is None
                    return
                plain = await account.hear(group=self.groups, chat_id="room")
                inside = await account.hear(group=self.groups, chat_id="room", thread_id="thread-1")
                beside = await account.hear(group=self.groups, chat_id="room", thread_id="thread-2")
                threads = [event.source.thread_id for event in (plain, inside, beside)]
                assert threads[0] is None
                assert len(set(threads)) == 3
                assert {event.source.chat_id for event in (plain, inside, beside)} == {"room"}

        stage.play(play)

    def test_other_bots_are_known_as_bots(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                bot = await stage.say(from_bot=True, user_id="bot-1", group=self.groups)
                person = await account.hear(group=self.groups)
                if self.sees_bots:
                    assert (await account.stored(bot)).source.is_bot
                await stage.fake.acknowledged(bot, stage.timing.patience_s)
                assert not person.source.is_bot
                assert len(account.inlet.events) == 1 + self.sees_bots

        stage.play(play)

    def test_our_own_messages_are_not_taken_for_somebody_elses(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                if self.echoes:
                    echo = await stage.say(own=True, group=self.groups)
                    await stage.fake.acknowledged(echo, stage.timing.patience_s)
                    await stage.fake.deliver(echo)
                event = await account.hear(group=self.groups)
                await account.send(account.part(event, "an answer that must not come back"))
                await account.hear(group=self.groups)
                assert len(account.inlet.events) == 2

        stage.play(play)

    @pytest.mark.parametrize(
        "text", [_AWKWARD, "first line\n\n  third line", "x" * 20_000], ids=["awkward", "lines", "long"]
    )
    def test_a_text_comes_whole(self, stage: Stage, text: str) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear(text)
                assert event.text == text

        stage.play(play)

    @pytest.mark.parametrize("kind", ["unknown-event", "malformed", "oversize"])
    def test_what_is_strange_does_no_harm(self, stage: Stage, kind: str) -> None:
        async def play() -> None:
            async with stage.running() as account:
                before = await account.hear()
                await stage.fake.odd(kind)
                after = await account.hear()
                read = [event for event in account.inlet.events if not event.error]
                assert read[0] == before
                assert read[-1] == after
                assert len(read) <= 3, "one strange thing became several messages"
                assert kind != "malformed" or len(read) == 2, "what cannot be read came as a message"

        stage.play(play)


def _share_nothing(events: list[MessageEvent]) -> bool:
    identities = [identity for event in events for identity in set(event.identities)]
    return len(identities) == len(set(identities))
