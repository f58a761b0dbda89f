"""Files that go out: on the network first, then one message each, within the quota."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_weixin.config import WeixinConfig
from hermes_weixin.platform import WeixinPlatform

CHART = OutgoingFile(name="图.png", data=b"\x89PNG and more")
REPORT = OutgoingFile(name="报告.pdf", data=b"%PDF")


def kinds(server):
    return [place["media_type"] for place in server.cdn.announced.values()]


@pytest.mark.parametrize(
    ("name", "kind", "item"),
    [
        ("chart.png", 1, "image_item"),
        ("photo.JPG", 1, "image_item"),
        ("drawing.svg", 3, "file_item"),
        ("report.pdf", 3, "file_item"),
        ("memo.mp3", 3, "file_item"),
        ("film.mp4", 3, "file_item"),
    ],
)
def test_pictures_go_as_pictures_and_everything_else_as_documents(stage, run, name, kind, item):
    async def main():
        async with stage.running():
            await stage.heard("draw it")
            return await stage.send("[file]", media=OutgoingFile(name=name, data=b"bytes"))

    assert isinstance(run(main()), Sent)
    (sent,) = stage.server.sent
    assert (kinds(stage.server), list(sent.item)[1]) == ([kind], item)
    assert stage.server.cdn.plain_of(sent.item) == b"bytes"
    assert sent.file_name == ("" if kind == 1 else name)


def test_a_file_whose_answer_was_lost_arrives_once(stage, run):
    async def main():
        async with stage.running():
            await stage.heard("draw it")
            stage.server.answers.append("arrived")
            with pytest.raises(RetryLater):
                await stage.send("[file]", media=REPORT)
            return await stage.send("[file]", media=REPORT)

    assert isinstance(run(main()), Sent)
    assert [(one.file_name, stage.server.cdn.plain_of(one.item)) for one in stage.server.sent] == [
        ("报告.pdf", b"%PDF")
    ]


def test_an_upload_that_fails_is_tried_again_and_given_up_where_the_network_says_no(stage, run):
    async def main():
        async with stage.running():
            await stage.heard("draw it")
            stage.server.cdn.failures.extend([500, 502])
            assert isinstance(await stage.send("[file]", media=CHART), Sent)
            stage.server.cdn.failures.append(413)
            with pytest.raises(Rejected):
                await stage.send("[file]", media=REPORT, key="key-2")
            return await stage.send("[报告.pdf, 4 bytes]", key="key-2")

    assert isinstance(run(main()), Sent)
    assert [stage.server.cdn.plain_of(one.item) or one.text for one in stage.server.sent] == [
        CHART.data,
        "[报告.pdf, 4 bytes]",
    ]


def test_a_file_waits_for_the_next_message_where_the_quota_is_used_up(new_stage, tmp_path, run):
    stage = new_stage(tmp_path, quota=1)

    async def main():
        async with stage.running():
            await stage.heard("draw it")
            first = await stage.send("there it is")
            second = await stage.send("[file]", media=CHART, key="key-2")
            await stage.heard("thanks")
            return first, second, await stage.send("[file]", media=CHART, key="key-2")

    first, second, third = run(main())

    assert [type(one) for one in (first, second, third)] == [Sent, Deferred, Sent]
    assert len(stage.server.cdn.announced) == 1, "what has to wait is not uploaded"


@pytest.mark.parametrize(("table", "most"), [({}, 30_000_000), ({"max_file_bytes": 0}, 0)])
def test_the_size_of_files_can_be_set(table, most):
    assert WeixinPlatform(WeixinConfig.of(table), lambda *_: None).abilities.max_file_bytes == most
