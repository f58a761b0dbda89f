"""Whole conversations: attachments in and behind their turn, pieces of providers, repairs that are told, the report."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from talking import Memory, Sight, Talk

from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_ATTACHMENTS, Attachment
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender


def test_attachments_are_inputs_of_their_own_turn_and_text_from_then_on(tmp_path):
    talk = Talk(tmp_path, "dm", ["sight:1"])

    talk.say("look", "al", [("image", "cat"), ("document", "terms of trade")])
    talk.say("and?", "al")
    talk.close()

    assert talk.live == [[1], []]
    assert talk.prompts[1][:3] == talk.prompts[0]
    assert "v1 sees 3 bytes" in talk.prompts[1][2]
    assert "terms of trade" in talk.prompts[1][2]


def test_an_agent_reads_the_bytes_of_its_window_and_of_nothing_else(app):
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    mine, strange = app.attachments.put(b"cat"), app.attachments.put(b"somebody else's")
    read = []

    def agent(turn):
        read.append([turn.files.get(one.sha256) for one in turn.attachments] + [turn.files.get(strange)])
        return "seen"

    app.ask("look", source, agent=agent, attachments=(Attachment(kind="image", sha256=mine),))
    app.ask("again", source, agent=lambda turn: read.append(turn.files.get(mine)) or "seen")

    assert read == [[b"cat", None], b"cat"]


def test_bytes_that_went_do_not_break_a_resume(app):
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    name = app.attachments.put(b"cat")
    entry = app.ask("look", source, attachments=(Attachment(kind="image", sha256=name),)).entry
    app.attachments.drop(entry.lineage_id)
    windows = []

    app.ask("again", source, agent=lambda turn: windows.append(turn.messages) or str(turn.files.get(name)))

    attached = [message for message in windows[0] if message.kind == KIND_ATTACHMENTS]
    assert [message.content for message in attached] == [f"[image, 3 bytes, sha256 {name[:16]}]"]


def test_a_deleted_conversation_takes_its_bytes_along_and_leaves_those_of_others(app):
    one, other = (SessionSource(platform="feishu", chat_id=f"oc_{n}", user_id="ou_1") for n in (1, 2))
    shared, own = app.attachments.put(b"shared"), app.attachments.put(b"own")
    picture = Attachment(kind="image", sha256=shared)
    entry = app.ask("look", one, attachments=(picture, Attachment(kind="image", sha256=own))).entry
    app.ask("look", other, attachments=(picture,))

    app.delete_session(entry.lineage_id)

    assert (app.attachments.get(shared), app.attachments.get(own)) == (b"shared", None)


def test_a_message_that_nobody_waits_for_has_its_pieces_and_texts_too(profile, tmp_path):
    app = profile(plugins=[Memory("alpha"), Sight()])
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    picture = Attachment(kind="image", sha256=app.attachments.put(b"cat"))
    event = MessageEvent(source=source, text="look", attachments=(picture,), received_at=1, identities=("feishu:1",))

    async def serve():
        await app.accept([event])
        served = ServedEntrance(entrance=Entrance("feishu"), sender=RecordingSender(tmp_path / "sent"))
        await app.work([served], agent=lambda turn: "seen", until_idle=True)

    asyncio.run(serve())

    lineage = app.get_or_create_session(source).lineage_id
    row = app.store.messages(lineage, operator())[0]
    assert row.sent == "[context: alpha]\nv1, asked 0 times, of 4 characters\n[end of context]\n\nlook"
    assert "v1 sees 3 bytes" in row.attachments[0].text


def test_a_repair_is_told_once(profile, ear):
    class Hears:
        def __init__(self):
            self.told = []

        @hookimpl
        def hermes_after_repair(self, lineage_id, session_id, kind, message_ids):
            self.told.append((kind, tuple(message_ids)))

    hears = Hears()
    app = profile(plugins=[hears])
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")

    async def silent(turn):
        yield AssistantStep(content="")

    app.ask("one", source, agent=silent)
    for text in ("two", "three"):
        app.ask(text, source)
    app.hooks.flush()

    (repair,) = hears.told
    assert repair[0] == "empty-answer"
    assert len(repair[1]) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_the_sender_stands_before_the_text_where_the_key_says_that_several_write(profile, shared):
    app = profile({"routing.thread_sessions_per_user": not shared})
    source = SessionSource(
        platform="feishu", chat_type="thread", chat_id="oc_1", thread_id="t", user_id="ou_1", user_name="Al"
    )
    windows = []

    app.ask("hi", source, agent=lambda turn: windows.append(turn.messages) or "heard")

    assert windows[0][-1].content == ("[Al] hi" if shared else "hi")
    assert app.get_or_create_session(source).shared is shared


def test_the_report_says_what_is_sent_what_is_not_and_what_was_repaired(profile):
    app = profile(plugins=[Memory("alpha"), Sight()])
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    picture = Attachment(kind="image", sha256=app.attachments.put(b"cat"))

    async def silent(turn):
        yield AssistantStep(content="")

    app.ask("look", source, attachments=(picture,))
    entry = app.ask("again", source, agent=silent).entry
    report = app.context_report(entry.session_id)

    assert [(part.name, part.messages) for part in report.parts] == [
        ("system text", 1),
        ("conversation", 3),
        ("attachments", 1),
    ]
    assert [repair.kind for repair in report.repairs] == ["empty-answer"]
    assert report.left_out == ()
    assert report.tokens == sum(part.tokens for part in report.parts) > 0
    assert attrs.asdict(report, recurse=False) == attrs.asdict(app.context_report(entry.session_id), recurse=False)
