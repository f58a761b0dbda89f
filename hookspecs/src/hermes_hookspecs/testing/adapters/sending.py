"""What goes out: whole, once, to where it belongs, and what became of it is said truly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.testing.adapters.rooms import AdapterRoom
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, DEFERRED, RATE_LIMITED, REJECTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.ports.platform import DeliveryPart, SendResult
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.testing.adapters.stage import AccountOnStage, Stage

__all__ = ["AbilityTests", "FailureTests", "SendingTests"]

_LETTERS = {"plain": "a", "cjk": "鱼", "emoji": "\N{FISH}"}


class SendingTests(AdapterRoom):
    """An answer arrives where its message came from."""

    def test_an_answer_arrives_where_the_message_came_from(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear(group=self.groups)
                result = await account.send(account.part(event, "an answer"))
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert isinstance(result, Sent)
                assert (seen.text, seen.chat_id, seen.account_id) == ("an answer", event.source.chat_id, "default")
                assert seen.thread_id is None or not stage.platform.abilities.threads

        stage.play(play)

    def test_the_parts_of_an_answer_arrive_in_order_and_all_in_their_thread(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                threads = stage.platform.abilities.threads
                event = await account.hear(group=self.groups, thread_id="thread-1" if threads else None)
                for index in range(3):
                    await account.send(account.part(event, f"part {index}", key=f"key-{index}", index=index, count=3))
                seen = await stage.fake.sent(3, stage.timing.patience_s)
                assert [one.text for one in seen] == ["part 0", "part 1", "part 2"]
                assert {one.chat_id for one in seen} == {event.source.chat_id}
                assert not threads or {one.thread_id for one in seen} == {event.source.thread_id}
                assert len({one.key for one in seen if one.key is not None}) in {0, 3}, "parts share a key"

        stage.play(play)

    @pytest.mark.parametrize("letter", sorted(_LETTERS))
    def test_a_part_of_the_greatest_length_arrives_whole(self, stage: Stage, letter: str) -> None:
        async def play() -> None:
            async with stage.running() as account:
                text = _LETTERS[letter] * stage.platform.abilities.max_length
                event = await account.hear()
                await account.send(account.part(event, text))
                seen = await stage.fake.sent(1, stage.timing.patience_s)
                assert [one.text for one in seen] == [text]

        stage.play(play)

    def test_a_text_that_looks_like_something_else_arrives_as_text(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                text = "1 < 2 && 'a' \"b\" \\ {x} %s 100% 鱼\nsecond line"
                event = await account.hear()
                await account.send(account.part(event, text))
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert seen.text == text

        stage.play(play)

    def test_two_answers_with_the_same_text_both_arrive(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear()
                await account.send(account.part(event, "done", key="key-1"))
                await account.send(account.part(event, "done", key="key-2"))
                assert [one.text for one in await stage.fake.sent(2, stage.timing.patience_s)] == ["done", "done"]

        stage.play(play)

    def test_an_answer_goes_out_after_a_restart(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear(group=self.groups)
                await account.restart()
                await account.send(account.part(event, "late, but here"))
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert (seen.text, seen.chat_id) == ("late, but here", event.source.chat_id)

        stage.play(play)


class FailureTests(AdapterRoom):
    """What became of a part that did not simply go out. A platform whose sends cannot fail so has sent it."""

    def test_a_rate_limit_says_how_long_to_wait(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                error = await self._answered(stage, account, RATE_LIMITED)
                if error is None:
                    return
                assert isinstance(error, RetryLater), f"a rate limit is RetryLater, not {error!r}"
                assert not error.maybe_sent, "what a rate limit refuses did not go out"
                assert error.after_s is not None
                assert 0 < error.after_s < 3600
                await self._then_arrives(stage, account)

        stage.play(play)

    def test_what_broke_can_be_sent_again(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                error = await self._answered(stage, account, BROKEN)
                if error is None:
                    return
                assert not isinstance(error, Rejected | AuthFailed), f"a fault of the platform is no verdict: {error!r}"
                await self._then_arrives(stage, account)

        stage.play(play)

    def test_what_may_have_gone_out_is_not_said_to_have_failed(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                error = await self._answered(stage, account, ARRIVED_BUT_FAILED)
                if error is None:
                    return
                assert not isinstance(error, Rejected | AuthFailed), f"nobody knows, but the adapter does: {error!r}"
                settled = isinstance(error, RetryLater) and not error.maybe_sent
                assert not settled or stage.platform.abilities.idempotent_send, "it may have gone out: maybe_sent"
                await stage.fake.sent(1, stage.timing.patience_s)
                await self._ask(stage, account)
                if stage.platform.abilities.idempotent_send:
                    await self._then_arrives(stage, account)

        stage.play(play)

    def test_what_the_platform_will_never_take_is_rejected(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                error = await self._answered(stage, account, REJECTED)
                if error is None:
                    return
                assert isinstance(error, Rejected), f"not Rejected but {error!r}"
                event = await account.hear()
                await account.send(account.part(event, "the next one", key="key-2"))
                assert [one.text for one in await stage.fake.sent(1, stage.timing.patience_s)] == ["the next one"]

        stage.play(play)

    def test_what_has_to_wait_is_put_off(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear()
                if DEFERRED in self.failures:
                    stage.fake.next_sends(DEFERRED)
                    result = await account.send(account.part(event, "an answer"))
                    assert isinstance(result, Deferred)
                    assert result.reason
                    assert result.at is None or result.at > stage.clock.now()
                result = await account.send(account.part(event, "an answer"))
                assert isinstance(result, Sent)

        stage.play(play)

    async def _answered(self, stage: Stage, account: AccountOnStage, answer: str) -> Exception | None:
        """Return what the adapter raises when the platform answers so; ``None`` where it never does."""
        event = await account.hear()
        part = account.part(event, "an answer")
        self._part = part
        if answer not in self.failures:
            assert isinstance(await account.send(part), Sent)
            return None
        stage.fake.next_sends(answer)
        try:
            result: SendResult = await account.send(part)
        except Exception as error:  # noqa: BLE001 - what is raised is what the test is about
            return error
        raise AssertionError(f"the platform answered {answer}, and the adapter returned {result!r}")

    async def _then_arrives(self, stage: Stage, account: AccountOnStage) -> None:
        """Send the part again, under the same key, and another one behind it: people see each of them once."""
        assert isinstance(await account.send(self._part), Sent)
        event = await account.hear()
        await account.send(account.part(event, "the end", key="key-2"))
        seen = await stage.fake.sent(2, stage.timing.patience_s)
        assert [one.text for one in seen] == [self._part.text, "the end"]

    async def _ask(self, stage: Stage, account: AccountOnStage) -> None:
        find: Callable[[DeliveryPart], Awaitable[Sent | None]] | None = getattr(account.adapter, "find_sent", None)
        if find is not None:
            assert isinstance(await find(self._part), Sent), "the platform has it, but it is not found"

    _part: DeliveryPart


class AbilityTests(AdapterRoom):
    """What a platform says it can do it can do."""

    def test_abilities_make_sense(self, stage: Stage) -> None:
        async def play() -> None:
            abilities = stage.platform.abilities
            async with stage.running() as account:
                assert abilities.max_length >= 100
                assert abilities.formats
                assert abilities.max_file_bytes >= 0
                assert abilities.most_edits is None or (abilities.edits and abilities.most_edits > 0)
                assert abilities.idempotent_for_s is None or (
                    abilities.idempotent_send and abilities.idempotent_for_s > 0
                )
                assert abilities.parts_per_minute is None or abilities.parts_per_minute > 0
                for ability, method in (("typing", "typing"), ("edits", "edit"), ("media", "fetch")):
                    can = getattr(abilities, ability) is True
                    has = callable(getattr(account.adapter, method, None))
                    assert has or not can, f"the platform says {ability}, but its adapter has no {method}()"

        stage.play(play)

    def test_an_edit_replaces_the_text_where_there_are_edits(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                event = await account.hear()
                result = await account.send(account.part(event, "a beginning"))
                assert isinstance(result, Sent)
                edit: Callable[[DeliveryPart, str], Awaitable[SendResult]] | None = getattr(
                    account.adapter, "edit", None
                )
                if not stage.platform.abilities.edits or edit is None:
                    assert [one.edits for one in await stage.fake.sent(1, stage.timing.patience_s)] == [0]
                    return
                assert result.platform_message_id, "what can be edited has an id"
                await edit(account.part(event, "a beginning, and an end"), result.platform_message_id)
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert (seen.text, seen.edits) == ("a beginning, and an end", 1)

        stage.play(play)

    def test_typing_ends_and_never_fails(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                source = (await account.hear()).source
                typing: Callable[..., Awaitable[None]] | None = getattr(account.adapter, "typing", None)
                if not stage.platform.abilities.typing or typing is None:
                    return
                await typing(source, on=True)
                await self._shown(stage, source, on=True)
                await typing(source, on=True)
                await typing(source, on=False)
                await self._shown(stage, source, on=False)
                await stage.fake.stop()
                await typing(source, on=True)
                await typing(source, on=False)
                await stage.fake.start()

        stage.play(play)

    async def _shown(self, stage: Stage, source: SessionSource, *, on: bool) -> None:
        """Ask the fake, where it can be asked (:class:`~hermes_hookspecs.testing.fakes.ShowsTyping`)."""
        shows: Callable[[str], bool] | None = getattr(stage.fake, "is_typing", None)
        if shows is not None:
            assert shows(source.chat_id or "") is on
