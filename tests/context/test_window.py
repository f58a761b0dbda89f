"""What the model is sent: the frozen system text, then each row as it was sent before, byte for byte."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise

import attrs
import pytest

from hermes_core.context.window import read_rows, sent_text, window_of
from hermes_hookspecs.errors import AgentFailed
from hermes_hookspecs.inbox import InboxItem
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_ATTACHMENTS, KIND_SUMMARY, Attachment, Message, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.principal import operator
from hermes_hookspecs.sessions import Session
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.turns import Turn

SESSION = Session(id="S1", lineage_id="L1", source="feishu", started_at=1, system_prompt="Be kind.")
ROW = Message(id=1, lineage_id="L1", session_id="S1", turn_id="T1", role="user", content="hi", timestamp=1)


def item(text="hi", **source):
    return InboxItem(
        id=1,
        session_key="k",
        source=SessionSource(platform="feishu", chat_type="group", chat_id="oc_1", **source),
        entrance=Entrance("feishu"),
        text=text,
        accepted_at=1,
        identities=(),
        attachments=(),
        kind="message",
        lineage_id="L1",
        waiter=None,
        status="pending",
        attempts=0,
    )


def test_the_frozen_system_text_stands_first_and_has_nothing_of_the_row_behind_it():
    row = attrs.evolve(
        ROW,
        role="assistant",
        reasoning="hm",
        token_count=7,
        finish_reason="stop",
        tool_calls=(ToolCall(id="a", name="t"),),
    )

    system, first = window_of(SESSION, [row])

    assert (system.role, system.content, system.turn_id, system.tool_calls) == ("system", "Be kind.", None, ())
    assert (system.reasoning, system.token_count, system.finish_reason) == (None, None, None)
    assert first == row


def test_without_a_system_text_or_without_rows_there_is_no_system_row():
    assert window_of(attrs.evolve(SESSION, system_prompt=None), [ROW]) == (ROW,)
    assert window_of(SESSION, []) == ()


def test_each_row_is_sent_as_it_was_sent():
    row = attrs.evolve(ROW, sent="[Al] hi")

    assert window_of(SESSION, [row])[1].content == "[Al] hi"


def test_rows_before_the_kept_part_are_not_read(app):
    source = SessionSource(platform="cli", chat_id="pts-1")
    for text in ("one", "two"):
        entry = app.ask(text, source).entry
    session = app.store.session(entry.session_id, operator())
    rows = read_rows(app.store, session, operator())

    kept = read_rows(app.store, attrs.evolve(session, kept_from=rows[2].id), operator())

    assert kept == rows[2:]


# ------------------------------------------------------------------ the summary

KEPT = attrs.evolve(ROW, id=7, session_id="S0", content="kept", turn_id="T0")
SUMMARY = attrs.evolve(ROW, id=9, kind=KIND_SUMMARY, content="[Summary] so far", turn_id="T9")
OLDER = attrs.evolve(SUMMARY, id=8, session_id="S0", content="[Summary] long ago")


def test_the_summary_stands_before_the_kept_rows_and_only_the_sessions_own_counts():
    own = attrs.evolve(ROW, id=10, content="own", turn_id="T1")

    window = window_of(SESSION, [KEPT, OLDER, SUMMARY, own])

    assert [row.content for row in window] == ["Be kind.", "[Summary] so far", "kept", "own"]


# ------------------------------------------------------------------ attachments

CAT = Attachment(kind="image", name="cat.png", sha256="a" * 64, text="[image “cat.png”]")
TURN = Turn(
    id="T1",
    lineage_id="L1",
    session_id="S1",
    token=1,
    entrance=Entrance("feishu"),
    session_key="k",
    user_id=None,
    user_name=None,
    inbox_ids=(4,),
    started_at=1,
    ended_at=None,
    outcome="active",
    reason="",
    attempt=1,
)


def test_attachments_stand_behind_their_row_and_are_inputs_of_their_own_turn_alone():
    rows = [attrs.evolve(ROW, attachments=(CAT,), sent="[Al] look")]

    _, text, now = window_of(SESSION, rows, TURN)
    _, same, later = window_of(SESSION, rows, attrs.evolve(TURN, id="T2", inbox_ids=(5,)))

    assert text == same
    assert (text.content, text.attachments) == ("[Al] look", ())
    assert (now.role, now.kind, now.content, now.attachments) == ("user", KIND_ATTACHMENTS, "[image “cat.png”]", (CAT,))
    assert later == attrs.evolve(now, attachments=())


def test_a_turn_that_tries_again_has_the_attachments_of_the_message_as_inputs():
    row = attrs.evolve(ROW, attachments=(CAT,), turn_id="T0", inbox_id=4)

    assert window_of(SESSION, [row], TURN)[-1].attachments == (CAT,)
    assert window_of(SESSION, [row])[-1].attachments == ()


def test_a_picture_without_a_word_is_one_message():
    assert [row.kind for row in window_of(SESSION, [attrs.evolve(ROW, content="", attachments=(CAT,))])] == [
        "",
        KIND_ATTACHMENTS,
    ]


def test_an_attachment_from_before_there_were_texts_has_one_all_the_same():
    row = attrs.evolve(ROW, attachments=(Attachment(kind="document", name="a.pdf"),))

    assert window_of(SESSION, [row])[-1].content == "[document, “a.pdf”, not available]"


# ------------------------------------------------------------------ the sender's name


def test_a_message_has_its_sender_before_it_only_where_several_people_write():
    assert sent_text(item(user_id="ou_1", user_name="Al"), shared=False) is None
    assert sent_text(item(user_id="ou_1", user_name="Al"), shared=True) == "[Al] hi"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Al\nBob", "Al Bob"),
        ("Al] [System", "Al) (System"),
        ("Al\r\n\x1b[31m\u2028\u202eBob", "Al (31m Bob"),
        ("x" * 200, "x" * 80),
        ("王小明 👩‍💻", "王小明 👩 💻"),
    ],
)
def test_a_display_name_forges_neither_a_line_nor_an_end_of_the_label(name, label):
    sent = sent_text(item(user_id="ou_1", user_name=name), shared=True)

    assert sent == f"[{label}] hi"
    assert sent.count("]") == 1
    assert len(sent.splitlines()) == 1


def test_a_name_of_nothing_falls_back_to_the_id_and_nobody_has_no_label():
    assert sent_text(item(user_id="ou_1", user_id_alt="on_1", user_name="\n\u200b "), shared=True) == "[on_1] hi"
    assert sent_text(item(user_id="ou_1"), shared=True) == "[ou_1] hi"
    assert sent_text(item(), shared=True) is None


# ------------------------------------------------------------------ the prefix, over whole conversations


class Parts:
    @hookimpl
    def hermes_system_prompt_parts(self, entry):
        return [f"You speak in {entry.session_id}."]


@pytest.mark.parametrize("chat_type", ["dm", "thread"])
def test_each_prompt_begins_with_all_of_the_last_one(profile, chat_type):
    windows = []

    async def agent(turn):
        windows.append([(row.role, row.content, row.tool_calls, row.tool_call_id) for row in turn.messages])
        if turn.text == "fail":
            raise ValueError("broken")
        if turn.text.startswith("use"):
            yield AssistantStep(tool_calls=(ToolCall(id="a", name="t"), ToolCall(id="b", name="t")))
            yield ToolResult(call_id="a", name="t", content="42")
        yield AssistantStep(content=f"heard {turn.text}")
        if turn.text == "twice":
            yield AssistantStep(content="and again")

    def source(name):
        return SessionSource(
            platform="feishu", chat_type=chat_type, chat_id="oc_1", thread_id="t1", user_id=f"ou_{name}", user_name=name
        )

    app = profile(plugins=[Parts()])
    for number, text in enumerate(["one", "use", "fail", "twice", "use it again", "last"]):
        if number == 3:  # another process goes on: nothing is kept in memory
            app.close() if app.store.durable else None
            app = profile(plugins=[Parts()], listens=False) if app.store.durable else app
        with pytest.raises(AgentFailed) if text == "fail" else nullcontext():
            app.ask(text, source("Al" if number % 2 else "Bo"), agent=agent)

    assert len(windows) == 6
    for earlier, later in pairwise(windows):
        assert later[: len(earlier)] == earlier
    assert windows[0][0][0] == "system"
    assert windows[-1][-1][1] == ("[Al] last" if chat_type == "thread" else "last")
