"""Files that go out: uploaded, then shown once in their topic; a line takes the place of one that is not taken."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN

PNG = OutgoingFile(name="chart.png", data=b"\x89PNG")
PDF = OutgoingFile(name="报告 1.pdf", data=b"%PDF")


def shown(world):
    return [(one.type, world.uploads[next(key for key in world.uploads if key in one.content)]) for one in sent(world)]


def sent(world):
    return [one for one in world.sent_by_apps() if one.type in ("image", "file")]


def uploads(world):
    return [path.rpartition("/")[2] for method, path in world.requests if path.endswith(("/images", "/files"))]


@pytest.mark.parametrize(
    ("name", "kind", "file_type"),
    [
        ("chart.png", "image", ""),
        ("photo.JPG", "image", ""),
        ("drawing.svg", "file", "stream"),
        ("report.pdf", "file", "pdf"),
        ("table.xlsx", "file", "xls"),
        ("memo.opus", "file", "stream"),
        ("film.mp4", "file", "stream"),
        ("LICENSE", "file", "stream"),
    ],
)
def test_each_kind_of_file_is_shown_as_what_the_platform_takes(stage, name, kind, file_type):
    file = OutgoingFile(name=name, data=b"bytes")

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, f"[{name}]", media=file))
            ((form, upload),) = shown(stage.world)
            assert (form, upload.data, upload.file_type) == (kind, b"bytes", file_type)
            assert upload.name == ("" if kind == "image" else name)
            assert stage.world.faults == []

    stage.play(play)


def test_a_large_picture_is_a_file(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            large = OutgoingFile(name="poster.png", data=bytes(10_000_001))
            await account.send(account.part(event, "[poster.png]", media=large))
            assert (uploads(stage.world), sent(stage.world)[0].type) == (["files"], "file")

    stage.play(play)


def test_a_picture_that_the_platform_cannot_read_is_a_file(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            stage.world.upload_codes.append(234011)
            await account.send(account.part(event, "[chart.png]", media=PNG))
            assert uploads(stage.world) == ["images", "files"]
            ((form, upload),) = shown(stage.world)
            assert (form, upload.name, upload.data) == ("file", "chart.png", PNG.data)

    stage.play(play)


def test_a_file_stays_in_its_topic(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear(group=True, thread_id="omt_1")
            await account.send(account.part(event, "there", count=2))
            await account.send(account.part(event, "[file]", key="key-2", index=1, count=2, media=PDF))
            assert {one.thread_id for one in stage.world.sent_by_apps()} == {"omt_1"}

    stage.play(play)


def test_a_file_whose_answer_was_lost_is_shown_once(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            part = account.part(event, "[file]", media=PDF)
            stage.fake.next_sends(ARRIVED_BUT_FAILED)
            with pytest.raises(RetryLater):
                await account.send(part)
            assert isinstance(await account.send(part), Sent)
            assert [form for form, _ in shown(stage.world)] == ["file"]

    stage.play(play)


def test_an_upload_that_fails_showed_nothing_and_is_tried_again(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            part = account.part(event, "[file]", media=PDF)
            stage.world.out_of_order.add("upload")
            with pytest.raises(RetryLater) as caught:
                await account.send(part)
            assert not caught.value.maybe_sent
            stage.world.out_of_order.clear()
            await account.send(part)
            assert len(sent(stage.world)) == 1

    stage.play(play)


def test_a_message_that_fails_behind_its_upload_is_tried_again(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            part = account.part(event, "[file]", media=PDF)
            stage.fake.next_sends(BROKEN)
            with pytest.raises(RetryLater):
                await account.send(part)
            await account.send(part)
            assert len(sent(stage.world)) == 1

    stage.play(play)


@pytest.mark.parametrize("data", [b"", b"x"])
def test_a_file_that_is_not_taken_is_rejected_and_its_line_goes(stage, data):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            if data:
                stage.world.upload_codes.append(234007)
            with pytest.raises(Rejected):
                await account.send(account.part(event, "[a.txt]", media=OutgoingFile(name="a.txt", data=data)))
            assert isinstance(await account.send(account.part(event, "[a.txt]")), Sent)
            assert [one.type for one in stage.world.sent_by_apps()] == ["text"]

    stage.play(play)


def test_without_the_permission_to_upload_texts_go_on(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            stage.world.missing_scopes["upload"] = "im:resource"
            with pytest.raises(Rejected, match="im:resource"):
                await account.send(account.part(event, "[file]", media=PDF))
            assert isinstance(await account.send(account.part(event, "[file]")), Sent)

    stage.play(play)


def test_credentials_that_are_refused_stay_a_matter_for_a_person(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            stage.world.upload_codes.append(10014)
            with pytest.raises(AuthFailed):
                await account.send(account.part(event, "[file]", media=PDF))

    stage.play(play)


def test_a_token_that_ended_is_fetched_anew_for_an_upload(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            for app in stage.world.apps.values():
                app.tokens.clear()
            await account.send(account.part(event, "[file]", media=PDF))
            assert [upload.data for _, upload in shown(stage.world)] == [PDF.data]

    stage.play(play)
