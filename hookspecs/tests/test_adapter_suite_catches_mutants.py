"""The suite of adapters is worth something: each planted fault is caught by the test that is about it."""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import attrs
import pytest

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater, StorageError
from hermes_hookspecs.ports.platform import CONNECTED, PlatformAbilities, Sent
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.adapters import PlatformAdapterSuite
from hermes_hookspecs.testing.adapters.stage import Timing

sys.path.insert(0, str(Path(__file__).parent / "line_chat"))

from line_chat import NAME, FakeLine, LineAdapter

SUITE = """
import pytest
import planted

class TestMutant(planted.suite):
    timing = planted.timing

    @pytest.fixture
    def fake(self):
        return planted.fake(planted.mutant)

    @pytest.fixture
    def tmp_path(self):
        return planted.folder
"""

_log = logging.getLogger("planted")


# --- receiving


class AcksFirst(LineAdapter):
    """Tells the platform before anything is stored."""

    async def _take(self, said, inlet):
        self._say(ack=said["id"])
        await self._accept([self._event(said)], said, inlet)


class DropsWhatWasNotStored(LineAdapter):
    """Takes a failed store for a stored batch."""

    async def _accept(self, events, said, inlet):
        with suppress(StorageError):
            await inlet.accept(events)


class NewIdentityPerTry(LineAdapter):
    def _identities(self, said):
        return (f"{said['chat']}/{uuid.uuid4()}",)


class NewIdentityPerRun(LineAdapter):
    """Numbers what comes, from 1 in every process."""

    _seen = ()

    def _identities(self, said):
        if said["id"] not in self._seen:
            self._seen = (*self._seen, said["id"])
        return (f"{said['chat']}/{self._seen.index(said['id'])}",)


class KnowsByText(LineAdapter):
    def _identities(self, said):
        return (f"{said['chat']}/{said['text']}",)


class KnowsByUser(LineAdapter):
    def _identities(self, said):
        return (f"{said['id']}/{said['chat']}", said["user"])


class ForgetsTheChat(LineAdapter):
    def _identities(self, said):
        return (said["id"],)


class HasNoIdentity(LineAdapter):
    def _identities(self, said):
        return ()


class NeverAcksRefused(LineAdapter):
    async def _take(self, said, inlet):
        if not self._is_own(said):
            (result,) = await self._accept([self._event(said)], said, inlet)
            if result.refused:
                return
        self._say(ack=said["id"])


class NeverAcksDuplicates(LineAdapter):
    async def _take(self, said, inlet):
        if not self._is_own(said):
            (result,) = await self._accept([self._event(said)], said, inlet)
            if result.duplicate:
                return
        self._say(ack=said["id"])


class TakesOnlyNewer(LineAdapter):
    """Has a highest id, and takes what is below it for known."""

    _highest = 0

    async def _take(self, said, inlet):
        number = int(said["id"][1:])
        if number > self._highest:
            self._highest = number
            await super()._take(said, inlet)


class NeverAcksItsOwn(LineAdapter):
    async def _take(self, said, inlet):
        if not self._is_own(said):
            await super()._take(said, inlet)


class HearsItself(LineAdapter):
    def _is_own(self, said):
        return False


class TakesBotsForPeople(LineAdapter):
    def _source(self, said):
        return attrs.evolve(super()._source(said), is_bot=False)


class AllAreDirect(LineAdapter):
    def _source(self, said):
        return attrs.evolve(super()._source(said), chat_type="dm")


class AlwaysAddressed(LineAdapter):
    def _is_addressed(self, said):
        return True


class NoThreads(LineAdapter):
    def _source(self, said):
        return attrs.evolve(super()._source(said), thread_id=None)


class ChatOfTheDay(LineAdapter):
    """Names a chat by something that lasts as long as the process."""

    def _source(self, said):
        return attrs.evolve(super()._source(said), chat_id=f"{said['chat']}@{id(self)}")


class CutsTexts(LineAdapter):
    def _event(self, said):
        return super()._event(said | {"text": said["text"][:4000]})


class StripsTexts(LineAdapter):
    def _event(self, said):
        return super()._event(said | {"text": " ".join(said["text"].split())})


class DiesOfMalformed(LineAdapter):
    """Lets one bad line end everything for good."""

    async def _take_line(self, line, inlet):
        if b'"id": \n' in line:
            raise AuthFailed("what was that?")
        await super()._take_line(line, inlet)


class TakesUnknownForMessages(LineAdapter):
    async def _take_line(self, line, inlet):
        if b'"id": \n' in line:
            said = {"id": "", "chat": "?", "user": "?", "text": "", "group": False, "thread": None, "mention": True}
            await inlet.accept([self._event(said | {"bot": False})])
        await super()._take_line(line, inlet)


# --- sending


class AlwaysTheFirstChat(LineAdapter):
    _chat = None

    async def send(self, part):
        self._chat = self._chat or "chat-1"
        target = attrs.evolve(part.target, chat_id=self._chat if part.target.chat_type == "dm" else "lobby")
        return await super().send(attrs.evolve(part, target=target))


class FirstPartInThreadOnly(LineAdapter):
    async def send(self, part):
        target = part.target if part.index == 0 else attrs.evolve(part.target, thread_id=None)
        return await super().send(attrs.evolve(part, target=target))


class NewKeyPerTry(LineAdapter):
    def _key(self, part):
        return str(uuid.uuid4())


class KeyOfTheText(LineAdapter):
    def _key(self, part):
        return part.text


class CountsBytes(LineAdapter):
    """Says characters, means bytes."""

    async def send(self, part):
        text = part.text.encode()[: self.abilities.max_length].decode(errors="ignore")
        return await super().send(attrs.evolve(part, text=text))


class EscapesTwice(LineAdapter):
    async def send(self, part):
        return await super().send(attrs.evolve(part, text=part.text.replace("<", "&lt;")))


class ForgetsHowLong(LineAdapter):
    def _error(self, said):
        error = super()._error(said)
        return RetryLater("slow down") if said["error"] == "slow down" else error


class RejectsEverything(LineAdapter):
    def _error(self, said):
        return Rejected(said["error"])


class NothingIsFinal(LineAdapter):
    def _error(self, said):
        error = super()._error(said)
        return RetryLater("later, perhaps") if isinstance(error, Rejected) else error


class SwallowsFailures(LineAdapter):
    async def send(self, part):
        try:
            return await super().send(part)
        except RetryLater:
            return Sent()


class SureItFailed(LineAdapter):
    """Without idempotent sending, it says of an ambiguous send that nothing went out."""

    abilities = attrs.evolve(LineAdapter.abilities, idempotent_send=False)

    def _error(self, said):
        error = super()._error(said)
        return RetryLater(str(error), after_s=error.after_s) if isinstance(error, RetryLater) else error


class SendsTheLine(LineAdapter):
    """Says that it sends files, and sends what stands for them."""

    def _file(self, part):
        return None


class CutsFiles(LineAdapter):
    def _file(self, part):
        file = super()._file(part)
        return file and [file[0], file[1][: len(file[1]) // 8 * 4]]


class ForgetsTheSuffix(LineAdapter):
    def _file(self, part):
        file = super()._file(part)
        return file and ["file" if part.media.kind != "image" else file[0], file[1]]


class FilesToTheChat(LineAdapter):
    """Sends files, unlike texts, to the chat of their thread."""

    async def send(self, part):
        if part.media is not None:
            part = attrs.evolve(part, target=attrs.evolve(part.target, thread_id=None))
        return await super().send(part)


class FilesWithoutKey(LineAdapter):
    def _key(self, part):
        return part.key if part.media is None else str(uuid.uuid4())


class RejectsOnceForAll(LineAdapter):
    """Takes nothing more for a key that was refused."""

    _refused = ()

    async def send(self, part):
        if part.key in self._refused:
            raise Rejected("refused before")
        try:
            return await super().send(part)
        except Rejected:
            self._refused = (*self._refused, part.key)
            raise


class EditsNothing(LineAdapter):
    async def edit(self, part, platform_message_id):
        return Sent(platform_message_id=platform_message_id)


class HasNoEdit(LineAdapter):
    edit = None


class TypesForEver(LineAdapter):
    async def typing(self, target, *, on):
        await super().typing(target, on=True)


class TypingFails(LineAdapter):
    async def typing(self, target, *, on):
        await self._ask(typing=on, chat=target.chat_id)


class SmallAbilities(LineAdapter):
    abilities = PlatformAbilities(max_length=0, typing=True, edits=True)


# --- connecting


class SaysNothing(LineAdapter):
    async def run(self, inlet):
        class Mute:
            accept = inlet.accept

            def alive(self):
                return None

            def report(self, state, detail=""):
                return None

        await super().run(Mute())


class NeverComesBack(LineAdapter):
    """Never promises to be heard, so that no watchdog ends it, and stays where it is once the connection is gone."""

    async def run(self, inlet):
        inlet.alive = lambda: None
        with suppress(OSError):
            await self._connected(inlet)
        await asyncio.Event().wait()

    async def _line(self, reader):
        line = await reader.readline()
        if not line:
            raise ConnectionResetError("the server hung up")
        return line


class GivesUp(LineAdapter):
    async def run(self, inlet):
        try:
            await self._connected(inlet)
        except OSError as error:
            raise AuthFailed("the server is not there") from error


class SaysItTooEarly(LineAdapter):
    """Takes its own wish for the platform's answer."""

    async def _connected(self, inlet):
        inlet.report(CONNECTED)
        await super()._connected(inlet)


class TrustsTheSocket(LineAdapter):
    """Waits for ever on an open connection, and says that all is well."""

    async def _line(self, reader):
        line = await reader.readline()
        if not line:
            raise ConnectionResetError("the server hung up")
        return line

    async def run(self, inlet):
        beating = asyncio.create_task(self._beat(inlet))
        try:
            await super().run(inlet)
        finally:
            beating.cancel()
            await asyncio.wait({beating})

    async def _beat(self, inlet):
        while True:
            inlet.alive()
            await asyncio.sleep(0.05)


class DropsTheBatchInHand(LineAdapter):
    async def _take(self, said, inlet):
        await self._accept([self._event(said)], said, inlet)
        self._say(ack=said["id"])


class RunsOnce(LineAdapter):
    _ran = False

    async def run(self, inlet):
        if self._ran:
            raise RuntimeError("an adapter runs once")
        self._ran = True
        await super().run(inlet)


class DoesNotEnd(LineAdapter):
    async def run(self, inlet):
        try:
            await super().run(inlet)
        except asyncio.CancelledError:
            await asyncio.sleep(3)
            raise


class LeavesATask(LineAdapter):
    async def run(self, inlet):
        self._left = asyncio.create_task(asyncio.sleep(30))
        await super().run(inlet)


class NeedsALoop(LineAdapter):
    def __init__(self, port, setup):
        self._answer = asyncio.get_running_loop().create_future()
        super().__init__(port, setup)


# --- accounts and secrets


class OneAccount(LineAdapter):
    """Hands everything in as the default account's."""

    def _source(self, said):
        return attrs.evolve(super()._source(said), account_id="default")


class OneCursor(LineAdapter):
    def _remembered(self, said):
        return [StateUpdate(namespace=NAME, key="last", value=f'"{said["id"]}"')]


class OneDoor(LineAdapter):
    """Sends all answers through the connection of the account that was made first."""

    _made: ClassVar[list] = []

    def __init__(self, port, setup):
        super().__init__(port, setup)
        if setup.account_id == "default":
            self._made.clear()
        self._made.append(self)

    async def send(self, part):
        return await LineAdapter.send(self._made[0], part)


class TakesTheCode(LineAdapter):
    """Does without its secret."""

    def _secret_of(self, setup):
        return setup.environ.get(f"LINE_SECRET_{setup.account_id.upper()}", "")


class IgnoresRefusal(LineAdapter):
    async def _connected(self, inlet):
        try:
            await super()._connected(inlet)
        except AuthFailed as error:
            raise ConnectionResetError("hm") from error


class ShowsItsSecret(LineAdapter):
    def __repr__(self):
        return f"LineAdapter({self._secret})"


class LogsItsSecret(LineAdapter):
    async def run(self, inlet):
        _log.debug("hello with %s", self._secret)
        await super().run(inlet)


class ReportsItsSecret(LineAdapter):
    async def run(self, inlet):
        inlet.report(CONNECTED, f"with {self._secret}")
        await super().run(inlet)


class KeepsItsSecret(LineAdapter):
    def _remembered(self, said):
        return [StateUpdate(namespace=NAME, key=f"last:{self._setup.account_id}", value=f'"{self._secret}"')]


class LogsTexts(LineAdapter):
    async def _take(self, said, inlet):
        _log.info("got %s", said["text"])
        await super()._take(said, inlet)


class WritesElsewhere(LineAdapter):
    def _remembered(self, said):
        return [StateUpdate(namespace="other", key="last", value="1")]


CAUGHT = [
    (AcksFirst, "test_nothing_is_acknowledged_before_it_is_stored"),
    (DropsWhatWasNotStored, "test_a_batch_that_was_not_stored_is_not_acknowledged_and_comes_again"),
    (NewIdentityPerTry, "test_a_batch_that_was_not_stored_is_not_acknowledged_and_comes_again"),
    (NewIdentityPerTry, "test_two_deliveries_at_once_are_one_message"),
    (NewIdentityPerRun, "test_a_redelivered_message_has_the_identities_that_it_had"),
    (KnowsByText, "test_twins_are_two_messages"),
    (KnowsByUser, "test_messages_of_several_people_and_chats_share_no_identity"),
    (ForgetsTheChat, "test_an_identity_names_its_chat_where_an_id_alone_does_not_do"),
    (HasNoIdentity, "test_nothing_is_acknowledged_before_it_is_stored"),
    (NeverAcksRefused, "test_what_is_refused_is_acknowledged_and_holds_nobody_up"),
    (NeverAcksDuplicates, "test_a_batch_whose_commit_is_in_doubt_is_acknowledged_in_the_end"),
    (TakesOnlyNewer, "test_messages_that_come_in_another_order_are_all_taken"),
    (NeverAcksItsOwn, "test_our_own_messages_are_not_taken_for_somebody_elses"),
    (HearsItself, "test_our_own_messages_are_not_taken_for_somebody_elses"),
    (TakesBotsForPeople, "test_other_bots_are_known_as_bots"),
    (AllAreDirect, "test_a_group_is_told_from_a_direct_chat_and_its_members_apart"),
    (AlwaysAddressed, "test_in_a_group_it_says_whether_we_were_meant"),
    (NoThreads, "test_a_thread_is_kept_apart_where_there_are_threads"),
    (ChatOfTheDay, "test_a_place_and_a_person_keep_their_ids"),
    (ChatOfTheDay, "test_a_direct_message_says_where_it_came_from"),
    (CutsTexts, "test_a_text_comes_whole"),
    (StripsTexts, "test_a_text_comes_whole"),
    (DiesOfMalformed, "test_what_is_strange_does_no_harm"),
    (TakesUnknownForMessages, "test_what_is_strange_does_no_harm"),
    (AlwaysTheFirstChat, "test_an_answer_arrives_where_the_message_came_from"),
    (FirstPartInThreadOnly, "test_the_parts_of_an_answer_arrive_in_order_and_all_in_their_thread"),
    (NewKeyPerTry, "test_what_may_have_gone_out_is_not_said_to_have_failed"),
    (KeyOfTheText, "test_two_answers_with_the_same_text_both_arrive"),
    (CountsBytes, "test_a_part_of_the_greatest_length_arrives_whole"),
    (EscapesTwice, "test_a_text_that_looks_like_something_else_arrives_as_text"),
    (ForgetsHowLong, "test_a_rate_limit_says_how_long_to_wait"),
    (RejectsEverything, "test_what_broke_can_be_sent_again"),
    (RejectsEverything, "test_what_may_have_gone_out_is_not_said_to_have_failed"),
    (NothingIsFinal, "test_what_the_platform_will_never_take_is_rejected"),
    (SwallowsFailures, "test_what_broke_can_be_sent_again"),
    (SureItFailed, "test_what_may_have_gone_out_is_not_said_to_have_failed"),
    (SendsTheLine, "test_a_file_arrives_with_its_bytes_and_its_name"),
    (CutsFiles, "test_a_file_arrives_with_its_bytes_and_its_name"),
    (ForgetsTheSuffix, "test_a_file_arrives_with_its_bytes_and_its_name"),
    (FilesToTheChat, "test_a_file_arrives_where_the_message_came_from_in_its_place"),
    (FilesWithoutKey, "test_a_file_that_may_have_gone_out_arrives_once"),
    (SureItFailed, "test_a_file_that_may_have_gone_out_arrives_once"),
    (RejectsOnceForAll, "test_a_line_takes_the_place_of_a_file_that_is_not_taken"),
    (NothingIsFinal, "test_a_line_takes_the_place_of_a_file_that_is_not_taken"),
    (EditsNothing, "test_an_edit_replaces_the_text_where_there_are_edits"),
    (HasNoEdit, "test_abilities_make_sense"),
    (TypesForEver, "test_typing_ends_and_never_fails"),
    (TypingFails, "test_typing_ends_and_never_fails"),
    (SmallAbilities, "test_abilities_make_sense"),
    (SaysNothing, "test_it_says_that_it_is_connected"),
    (NeverComesBack, "test_a_lost_connection_is_made_again"),
    (NeverComesBack, "test_a_frozen_connection_is_noticed"),
    (GivesUp, "test_a_platform_that_is_not_there_is_waited_for"),
    (SaysItTooEarly, "test_a_platform_that_went_away_is_not_said_to_be_there"),
    (TrustsTheSocket, "test_a_frozen_connection_is_noticed"),
    (DropsTheBatchInHand, "test_a_batch_in_hand_is_stored_before_the_run_ends"),
    (RunsOnce, "test_a_run_that_ended_can_be_followed_by_another_one"),
    (DoesNotEnd, "test_an_idle_run_ends_at_once"),
    (LeavesATask, "test_it_says_that_it_is_connected"),
    (NeedsALoop, "test_it_says_that_it_is_connected"),
    (OneAccount, "test_two_accounts_are_never_mixed"),
    (OneCursor, "test_what_one_account_remembers_the_other_one_does_not"),
    (OneDoor, "test_two_accounts_are_never_mixed"),
    (TakesTheCode, "test_missing_secrets_are_named"),
    (IgnoresRefusal, "test_wrong_secrets_let_nothing_in_and_are_said"),
    (ShowsItsSecret, "test_it_says_that_it_is_connected"),
    (LogsItsSecret, "test_it_says_that_it_is_connected"),
    (ReportsItsSecret, "test_it_says_that_it_is_connected"),
    (KeepsItsSecret, "test_it_says_that_it_is_connected"),
    (LogsTexts, "test_it_says_that_it_is_connected"),
    (WritesElsewhere, "test_it_says_that_it_is_connected"),
]


@pytest.mark.parametrize(
    ("mutant", "test"), CAUGHT, ids=[f"{mutant.__name__}-{test.removeprefix('test_')}" for mutant, test in CAUGHT]
)
def test_a_planted_fault_is_caught(run_suite, tmp_path, mutant, test):
    timing = Timing(patience_s=0.7, watchdog_s=0.4, grace_s=0.05, leave_s=0.5)
    things = {"suite": PlatformAdapterSuite, "mutant": mutant, "fake": FakeLine, "timing": timing, "folder": tmp_path}

    fates = run_suite(SUITE, only=test, **things)

    assert {name.partition("[")[0] for name in fates.failed} == {test}


def test_the_sound_adapter_is_not_caught(run_suite, tmp_path):
    things = {"suite": PlatformAdapterSuite, "mutant": LineAdapter, "fake": FakeLine, "folder": tmp_path}

    assert run_suite(SUITE, only="connect", timing=Timing(watchdog_s=0.4), **things).failed == []
