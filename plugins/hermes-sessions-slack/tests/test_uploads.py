"""Files that go out: uploaded, then shared once in the right place; nothing is seen of one that did not get so far."""

from __future__ import annotations

import attrs
import pytest

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.ports.platform import DeliveryPart, Sent
from hermes_slack.config import SlackConfig
from hermes_slack.platform import SlackPlatform

CHART = OutgoingFile(name="图 1.png", data=b"\x89PNG")


def file_part(asked, *, key="key-1", file=CHART):
    return DeliveryPart(target=asked.source, text=f"[{file.name}]", key=key, media=file)


def files_of(stage):
    return [(post.thread_ts, [(one.title, one.data) for one in post.files]) for post in stage.server.posts]


def test_a_file_is_uploaded_and_shared_in_the_thread_that_its_answer_opens(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it")
            return asked, await stage.adapter.send(file_part(asked))

    asked, result = run(main())

    ts = asked.source.message_id
    assert files_of(stage) == [(ts, [("图 1.png", b"\x89PNG")])]
    assert result == Sent(platform_message_id=None, opened_thread_id=ts, state=result.state)
    assert result.state, "the thread is ours from now on"
    assert stage.server.posts[0].text == ""
    calls = [call for call in stage.server.calls if call.startswith("files.")]
    assert calls == ["files.getUploadURLExternal", "files.completeUploadExternal"]


def test_a_file_in_a_direct_message_opens_no_thread(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it", chat="D1")
            return await stage.adapter.send(file_part(asked))

    assert run(main()).opened_thread_id is None
    assert files_of(stage) == [(None, [("图 1.png", b"\x89PNG")])]


@pytest.mark.parametrize("step", ["ticket", "bytes"])
def test_what_fails_before_it_is_shared_did_not_go_out(stage, run, step):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it")
            if step == "ticket":
                stage.server.failures["files.getUploadURLExternal"] = _queue("cut")
            else:
                stage.server.uploads.statuses = [503]
            with pytest.raises(RetryLater) as caught:
                await stage.adapter.send(file_part(asked))
            await stage.adapter.send(file_part(asked))
            return caught.value

    assert run(main()).maybe_sent is False
    assert files_of(stage) == [(stage.server.posts[0].thread_ts, [("图 1.png", b"\x89PNG")])]


@pytest.mark.parametrize("same_process", [True, False])
def test_a_file_whose_sharing_was_cut_off_is_found_and_not_shared_twice(new_stage, run, same_process):
    first = new_stage()

    async def main():
        async with first.running():
            asked = await first.heard("draw it", chat="D1")
            first.server.answers.append("cut")
            with pytest.raises(RetryLater) as caught:
                await first.adapter.send(file_part(asked))
            assert caught.value.maybe_sent
            if same_process:
                return await first.adapter.find_sent(file_part(asked))
        second = new_stage(fake=first.fake, state=first.state)
        async with second.running():
            return await second.adapter.find_sent(file_part(asked))

    assert run(main()).platform_message_id == first.server.posts[0].ts


def test_a_file_that_was_not_shared_is_not_found(new_stage, run):
    """Neither one of an earlier answer, nor one that a person shared, nor another of the same size."""
    stage = new_stage()

    async def main():
        async with stage.running():
            before = await stage.heard("draw it", chat="D1")
            await stage.adapter.send(file_part(before))
            asked = await stage.heard("and again", chat="D1")
            other = OutgoingFile(name="other.png", data=CHART.data)
            await stage.adapter.send(file_part(asked, key="key-2", file=other))
            stage.server.answers.append("dropped")
            with pytest.raises(RetryLater):
                await stage.adapter.send(file_part(asked, key="key-3"))
            stage.server.posts.append(attrs.evolve(stage.server.posts[0], ts=stage.server.ts(), user="U1", token=""))
            again = new_stage(fake=stage.fake, state=stage.state)
            again.adapter = again.made()
            try:
                return [await one.find_sent(file_part(asked, key="key-3")) for one in (stage.adapter, again.adapter)]
            finally:
                await again.adapter.aclose()

    assert run(main()) == [None, None]


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("files.getUploadURLExternal", "file_upload_size_restricted"),
        ("files.getUploadURLExternal", "missing_scope"),
        ("files.completeUploadExternal", "channel_not_found"),
    ],
)
def test_a_file_that_slack_refuses_is_rejected(stage, run, method, code):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it")
            stage.server.failures[method] = _queue(code)
            with pytest.raises(Rejected, match=code):
                await stage.adapter.send(file_part(asked))

    run(main())
    assert stage.server.posts == []


def test_an_empty_file_is_rejected_before_anything_is_seen(stage, run):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it")
            with pytest.raises(Rejected):
                await stage.adapter.send(file_part(asked, file=OutgoingFile(name="empty.txt", data=b"")))

    run(main())
    assert stage.server.posts == []


def test_bytes_go_to_slacks_own_hosts_alone(stage, run, monkeypatch):
    async def main():
        async with stage.running():
            asked = await stage.heard("draw it")
            evil = {"upload_url": "https://evil.example/upload/1", "file_id": "F1"}
            monkeypatch.setattr(stage.server.uploads, "ticket", lambda *_: evil)
            with pytest.raises(Rejected, match="media_hosts"):
                await stage.adapter.send(file_part(asked))

    run(main())


@pytest.mark.parametrize(("table", "most"), [({}, 104_857_600), ({"max_file_bytes": 0}, 0)])
def test_the_size_of_files_can_be_set(table, most):
    assert SlackPlatform(SlackConfig.of(table)).abilities.max_file_bytes == most


def _queue(*answers):
    from collections import deque

    return deque(answers)
