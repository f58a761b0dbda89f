"""Coming, staying and going: connections, restarts, credentials, and accounts that are never mixed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import AuthFailed, ConfigError
from hermes_hookspecs.ports.platform import CONNECTED, Sent
from hermes_hookspecs.testing.adapters.rooms import AdapterRoom

if TYPE_CHECKING:
    from hermes_hookspecs.testing.adapters.stage import AccountOnStage, Stage

__all__ = ["AccountTests", "ConnectionTests", "LeavingTests"]


class ConnectionTests(AdapterRoom):
    """A connection may break, freeze, or not come about; what matters is that it is noticed, said and mended."""

    def test_it_says_that_it_is_connected(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                await stage.fake.connected(1, stage.timing.patience_s)
                await account.hear()
                await account.inlet.until(
                    lambda: CONNECTED in [state for state, _ in account.inlet.reports] or account.inlet.beats > 0,
                    "the adapter reports `connected`, or that the platform was heard",
                )
                assert account.crashes == []

        stage.play(play)

    def test_a_lost_connection_is_made_again(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                await stage.fake.connected(1, stage.timing.patience_s)
                await account.hear()
                await stage.fake.drop()
                await stage.fake.connected(2 if self.connects else 1, stage.timing.patience_s)
                await account.hear()
                await stage.fake.drop()
                await account.hear()
                assert account.failed is None
                assert len(account.inlet.events) == 3

        stage.play(play)

    def test_a_frozen_connection_is_noticed(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                await account.hear()
                stage.fake.freeze(True)
                lost = await stage.say()
                if self.connects:
                    await self._notices(stage, account)
                stage.fake.freeze(False)
                await account.stored(lost)
                await stage.fake.acknowledged(lost, stage.timing.patience_s)
                assert account.failed is None
                assert len(account.inlet.events) == 2

        stage.play(play)

    async def _notices(self, stage: Stage, account: AccountOnStage) -> None:
        """Wait until a frozen connection was noticed: it says so, its run ends, or a watchdog can end it."""
        inlet = account.inlet
        if inlet.beats:  # it promised to be heard: the watchdog ends the run when it is not, and begins another
            beats = inlet.beats
            await asyncio.sleep(stage.timing.watchdog_s)
            noticed = not inlet.is_up or bool(account.crashes)
            assert inlet.beats <= beats + 1 or noticed, "it says that it heard the platform, which is silent"
            return
        await inlet.until(lambda: not inlet.is_up or bool(account.crashes), "a frozen connection is noticed")

    def test_a_platform_that_is_not_there_is_waited_for(self, stage: Stage) -> None:
        async def play() -> None:
            account = stage.account()
            if not self.connects:
                await account.start()
                await stage.fake.stop()
                await stage.fake.start()
                await account.hear()
                return
            await stage.fake.stop()
            await account.start(wait=False)
            await account.inlet.until(
                lambda: bool(account.crashes) or (bool(account.inlet.reports) and not account.inlet.is_up),
                "the adapter says that it is not connected",
            )
            assert account.failed is None, "nobody refused the credentials"
            await stage.fake.start()
            await account.up()
            await account.hear()

        stage.play(play)

    def test_a_platform_that_went_away_is_not_said_to_be_there(self, stage: Stage) -> None:
        if not self.connects:
            pytest.skip("who is called cannot know that nobody calls")

        async def play() -> None:
            async with stage.running() as account:
                inlet = account.inlet
                await account.hear()
                await stage.fake.stop()
                await inlet.until(lambda: not inlet.is_up or bool(account.crashes), "it is noticed")
                said = len(inlet.reports)
                await asyncio.sleep(2 * stage.timing.grace_s)
                early = [state for state, _ in inlet.reports[said:] if state == CONNECTED]
                assert not early, "it says `connected` before the platform has answered: status and log would flicker"
                await stage.fake.start()
                await account.hear()

        stage.play(play)

    def test_a_restart_loses_and_repeats_nothing(self, stage: Stage) -> None:
        async def play() -> None:
            account = stage.account()
            await account.start()
            first = [await account.hear() for _ in range(2)]
            await account.stop()
            while_away = [await stage.say() for _ in range(2)]
            await account.start()
            await stage.fake.deliver(*while_away)
            for message_id in while_away:
                await account.stored(message_id)
                await stage.fake.acknowledged(message_id, stage.timing.patience_s)
            await account.hear()
            assert len(account.inlet.events) == len(first) + len(while_away) + 1

        stage.play(play)

    def test_a_run_that_ended_can_be_followed_by_another_one(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                await account.hear()
                await account.leave()
                account.run()
                await account.up()
                event = await account.hear()
                assert isinstance(await account.send(account.part(event, "still here")), Sent)

        stage.play(play)


class LeavingTests(AdapterRoom):
    """A run that is cancelled ends soon, and not in the middle of a batch."""

    def test_a_batch_in_hand_is_stored_before_the_run_ends(self, stage: Stage) -> None:
        async def play() -> None:
            account = stage.account()
            await account.start()
            account.inlet.hold()
            message_id = await stage.say()
            await account.handed(1)
            account.cancel()
            await stage.grace()
            assert not stage.fake.is_acknowledged(message_id)
            account.inlet.release()
            await account.leave()
            assert len(account.inlet.events) == 1, "the batch in hand was dropped"
            await account.restart()
            await stage.fake.deliver(message_id)
            await stage.fake.acknowledged(message_id, stage.timing.patience_s)
            assert len(account.inlet.events) == 1

        stage.play(play)

    def test_an_idle_run_ends_at_once(self, stage: Stage) -> None:
        async def play() -> None:
            account = stage.account()
            await account.start()
            began = stage.clock.monotonic()
            await account.leave()
            assert stage.clock.monotonic() - began < stage.timing.leave_s

        stage.play(play)

    def test_a_run_that_is_cancelled_while_it_connects_ends(self, stage: Stage) -> None:
        async def play() -> None:
            stage.fake.freeze(True)
            account = stage.account()
            await account.start(wait=False)
            await stage.grace()
            await account.leave()
            stage.fake.freeze(False)

        stage.play(play)


class AccountTests(AdapterRoom):
    """Accounts are configured, made and told apart by their alias."""

    def test_accounts_are_listed_the_default_one_first(self, both: Stage) -> None:
        async def play() -> None:
            assert both.platform.name == both.fake.name
            assert list(both.platform.accounts()) == ["default", "second"]

        both.play(play)

    def test_two_accounts_are_never_mixed(self, both: Stage) -> None:
        async def play() -> None:
            async with both.running("default") as one, both.running("second") as other:
                first = await one.hear(group=self.groups)
                second = await other.hear(group=self.groups)
                assert (len(one.inlet.events), len(other.inlet.events)) == (1, 1)
                await other.send(other.part(second, "from the second", key="key-2"))
                await one.send(one.part(first, "from the first"))
                seen = {each.account_id: each.text for each in await both.fake.sent(2, both.timing.patience_s)}
                assert seen == {"default": "from the first", "second": "from the second"}

        both.play(play)

    def test_what_one_account_remembers_the_other_one_does_not(self, both: Stage) -> None:
        async def play() -> None:
            async with both.running("default") as one:
                for _ in range(3):
                    await one.hear()
                before = {entry.key: entry.value for entry in both.state.list()}
                async with both.running("second") as other:
                    await other.hear()
                    await other.restart()
                    await other.hear()
                    assert len(other.inlet.events) == 2
                after = {entry.key: entry.value for entry in both.state.list()}
                assert {key: after.get(key) for key in before} == before, "one account wrote over the other's state"
                await one.restart()
                await one.hear()
                assert len(one.inlet.events) == 4

        both.play(play)

    def test_one_account_that_stops_does_not_stop_the_other(self, both: Stage) -> None:
        async def play() -> None:
            async with both.running("second") as other:
                async with both.running("default") as one:
                    await one.hear()
                await other.hear()
                assert other.crashes == []

        both.play(play)

    def test_missing_secrets_are_named(self, stage: Stage) -> None:
        async def play() -> None:
            if not self.needs_secrets:
                assert not stage.secrets(), "the fake has secrets: say needs_secrets"
                return
            with pytest.raises(ConfigError) as raised:
                stage.platform.adapter(stage.setup("default", environ={}))
            assert any(name in str(raised.value) for name in stage.environ), f"which variable? {raised.value}"

        stage.play(play)

    def test_wrong_secrets_let_nothing_in_and_are_said(self, stage: Stage) -> None:
        async def play() -> None:
            if not self.needs_secrets:
                return
            stage.environ = {name: "X" * len(value) for name, value in stage.environ.items()}
            account = stage.account()
            try:
                await account.start(wait=False)
            except ConfigError:
                return  # it sees at once that these are none
            if self.connects:
                await account.inlet.until(lambda: account.failed is not None, "wrong credentials end the run")
                assert isinstance(account.failed, AuthFailed | ConfigError)
                return
            await account.up()
            await stage.say()
            await stage.grace()
            assert account.inlet.begun == [], "a message with a wrong signature was taken"

        stage.play(play)
