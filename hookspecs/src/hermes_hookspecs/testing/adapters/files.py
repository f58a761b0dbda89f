"""Files that go out: whole, once, in their place; a line of text where one is not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.testing.adapters.rooms import AdapterRoom
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, REJECTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import DeliveryPart
    from hermes_hookspecs.testing.adapters.stage import AccountOnStage, Stage

__all__ = ["FileTests"]

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
FILES = {
    "image": OutgoingFile(name="chart.png", data=PICTURE),
    "document": OutgoingFile(name="report.pdf", data=b"%PDF-1.4\n" + bytes(range(256)) * 4),
    "sound": OutgoingFile(name="memo.mp3", data=b"ID3\x03" + bytes(500)),
    "text": OutgoingFile(name="notes.txt", data="第一行\r\nsecond line\n".encode()),
    "odd-name": OutgoingFile(name='报告 (1) & "final" #2.csv', data=b"a,b\r\n1,2\r\n"),
    "no-suffix": OutgoingFile(name="LICENSE", data=b"as it is"),
}


class FileTests(AdapterRoom):
    """Of adapters whose abilities name ``max_file_bytes``; for others the core sends lines of text."""

    @pytest.mark.parametrize("kind", sorted(FILES))
    def test_a_file_arrives_with_its_bytes_and_its_name(self, stage: Stage, kind: str) -> None:
        async def play() -> None:
            async with stage.running() as account:
                file = FILES[kind]
                if not _is_sent(stage, file):
                    return
                event = await account.hear()
                assert isinstance(await account.send(_part(account, event, file)), Sent)
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert seen.file == file.data
                assert seen.file_name == file.name or (file.kind == "image" and not seen.file_name)
                assert seen.text == "", "the line stands for a file that is not sent"

        stage.play(play)

    def test_a_file_arrives_where_the_message_came_from_in_its_place(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                first, last = FILES["image"], FILES["document"]
                if not (_is_sent(stage, first) and _is_sent(stage, last)):
                    return
                threads = stage.platform.abilities.threads
                event = await account.hear(group=self.groups, thread_id="thread-1" if threads else None)
                await account.send(account.part(event, "there they are", key="key-0", count=3))
                await account.send(_part(account, event, first, key="key-1", index=1, count=3))
                await account.send(_part(account, event, last, key="key-2", index=2, count=3))
                seen = await stage.fake.sent(3, stage.timing.patience_s)
                assert [(one.text, one.file) for one in seen] == [
                    ("there they are", None),
                    ("", first.data),
                    ("", last.data),
                ]
                assert {one.chat_id for one in seen} == {event.source.chat_id}
                assert not threads or {one.thread_id for one in seen} == {event.source.thread_id}

        stage.play(play)

    def test_a_file_of_the_greatest_size_arrives_whole(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                data = b"0123456789abcdef" * (min(stage.platform.abilities.max_file_bytes, 2_000_000) // 16)
                file = OutgoingFile(name="large.bin", data=data)
                if not data or not _is_sent(stage, file):
                    return
                event = await account.hear()
                await account.send(_part(account, event, file))
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert seen.file == data

        stage.play(play)

    def test_an_empty_file_arrives_or_is_rejected(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                file = OutgoingFile(name="empty.txt", data=b"")
                if not _is_sent(stage, file):
                    return
                event = await account.hear()
                try:
                    await account.send(_part(account, event, file))
                except Rejected:
                    await account.send(account.part(event, "[empty.txt, 0 bytes]"))
                    (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                    assert (seen.text, seen.file) == ("[empty.txt, 0 bytes]", None)
                else:
                    (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                    assert seen.file == b""

        stage.play(play)

    def test_a_file_that_broke_off_can_be_sent_again(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                file = FILES["document"]
                if not _is_sent(stage, file) or BROKEN not in self.failures:
                    return
                part = _part(account, await account.hear(), file)
                stage.fake.next_sends(BROKEN)
                with pytest.raises(Exception) as caught:
                    await account.send(part)
                assert not isinstance(caught.value, Rejected | AuthFailed), "a fault of the platform is no verdict"
                await account.send(part)
                assert [one.file for one in await stage.fake.sent(1, stage.timing.patience_s)] == [file.data]

        stage.play(play)

    def test_a_file_that_may_have_gone_out_arrives_once(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                file = FILES["document"]
                if not _is_sent(stage, file) or ARRIVED_BUT_FAILED not in self.failures:
                    return
                part = _part(account, await account.hear(), file)
                stage.fake.next_sends(ARRIVED_BUT_FAILED)
                with pytest.raises(Exception) as caught:
                    await account.send(part)
                assert not isinstance(caught.value, Rejected | AuthFailed), "nobody knows, but the adapter does"
                idempotent = stage.platform.abilities.idempotent_send
                settled = isinstance(caught.value, RetryLater) and not caught.value.maybe_sent
                assert not settled or idempotent, "it may have gone out: maybe_sent"
                await stage.fake.sent(1, stage.timing.patience_s)
                find: Callable[[DeliveryPart], Awaitable[Sent | None]] | None
                find = getattr(account.adapter, "find_sent", None)
                if find is not None:
                    assert isinstance(await find(part), Sent), "the platform has it, but it is not found"
                if idempotent:
                    assert isinstance(await account.send(part), Sent)
                await account.send(account.part(await account.hear(), "the end", key="key-2"))
                seen = await stage.fake.sent(2, stage.timing.patience_s)
                assert [(one.text, one.file) for one in seen] == [("", file.data), ("the end", None)]

        stage.play(play)

    def test_a_line_takes_the_place_of_a_file_that_is_not_taken(self, stage: Stage) -> None:
        async def play() -> None:
            async with stage.running() as account:
                file = FILES["document"]
                if not _is_sent(stage, file) or REJECTED not in self.failures:
                    return
                event = await account.hear()
                stage.fake.next_sends(REJECTED)
                with pytest.raises(Rejected):
                    await account.send(_part(account, event, file))
                assert isinstance(await account.send(account.part(event, "[report.pdf]")), Sent), "under its key"
                (seen,) = await stage.fake.sent(1, stage.timing.patience_s)
                assert (seen.text, seen.file) == ("[report.pdf]", None)

        stage.play(play)


def _is_sent(stage: Stage, file: OutgoingFile) -> bool:
    """Return whether a file is given to this platform's adapters at all."""
    return file.size <= stage.platform.abilities.max_file_bytes > 0


def _part(
    account: AccountOnStage,
    event: MessageEvent,
    file: OutgoingFile,
    *,
    key: str = "key-1",
    index: int = 0,
    count: int = 1,
) -> DeliveryPart:
    return account.part(event, f"[{file.name}]", key=key, index=index, count=count, media=file)
