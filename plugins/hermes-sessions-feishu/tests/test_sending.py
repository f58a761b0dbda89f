"""What goes out: where to, in which form, how often, and what becomes of it."""

from __future__ import annotations

import json

import attrs
import pytest

from hermes_feishu.testing import Kept
from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, OK, RATE_LIMITED

TABLE = "| a | b |\n| --- | --- |\n| 1 | 2 |"
TOPIC = {"chat_type": "group", "chat_id": "oc_g", "thread_id": "omt_1"}


def sent_by_us(stage):
    return stage.world.sent_by_apps()


@pytest.fixture
def scene(stage):
    """Return a function that plays a test with a running account and a message in a direct chat."""

    def run(test, **said):
        async def play():
            async with stage.running() as account:
                event = await account.hear("hello", **said)
                await test(account, event)
            assert stage.world.faults == []

        stage.play(play)

    return run


# --- where to


def test_an_answer_to_one_person_goes_into_their_chat(stage, scene):
    async def test(account, event):
        await account.send(account.part(event, "hello to you"))
        (sent,) = sent_by_us(stage)
        assert (sent.chat_id, sent.parent_id, sent.thread_id) == ("oc_1", "", "")

    scene(test, chat_id="oc_1")


def test_h18_every_part_of_an_answer_stays_in_its_topic_whether_or_not_a_root_was_named(stage):
    async def play():
        async with stage.running() as account:
            starting = await stage.written(account, {"text": "start"}, **TOPIC)
            reply = await stage.written(account, {"text": "go on"}, parent_id=starting.source.message_id, **TOPIC)
            for number, event in enumerate((starting, reply)):
                for index in range(3):
                    key = f"key-{number}-{index}"
                    await account.send(account.part(event, f"part {index}", key=key, index=index, count=3))
            sent = sent_by_us(stage)
            assert len(sent) == 6
            assert {one.thread_id for one in sent} == {"omt_1"}
            assert [one.parent_id for one in sent] == [starting.source.message_id] * 3 + [reply.source.message_id] * 3

    stage.play(play)


def test_h18_what_nobody_asked_for_reaches_the_topic_too_also_after_a_restart(stage):
    async def play():
        account = stage.account()
        await account.start()
        event = await stage.written(account, {"text": "start"}, **TOPIC)
        target = attrs.evolve(event.source, message_id=None)
        await account.send(attrs.evolve(account.part(event, "a job is done"), target=target, reply_to=None))
        await account.restart()
        later = attrs.evolve(account.part(event, "and another", key="key-2"), target=target, reply_to=None)
        await account.send(later)
        assert [one.thread_id for one in sent_by_us(stage)] == ["omt_1", "omt_1"]
        await account.stop()

    stage.play(play)


def test_a_topic_in_which_nothing_is_left_gets_no_answer_elsewhere(stage, scene):
    async def test(account, event):
        target = SessionSource(platform="feishu", chat_type="group", chat_id="oc_g", thread_id="omt_empty")
        with pytest.raises(Rejected, match="omt_empty has no message"):
            await account.send(attrs.evolve(account.part(event, "hello?"), target=target, reply_to=None))
        assert sent_by_us(stage) == []

    scene(test)


def test_the_first_part_of_an_answer_in_a_group_quotes_its_question(stage, scene):
    async def test(account, event):
        for index in range(2):
            await account.send(account.part(event, f"part {index}", key=f"key-{index}", index=index, count=2))
        sent = sent_by_us(stage)
        assert [one.parent_id for one in sent] == [event.source.message_id, ""]
        assert {one.thread_id for one in sent} == {""}

    scene(test, group=True, chat_id="oc_g")


def test_a_quote_can_be_left_out(stage, scene):
    stage.account_settings = {"quote": False}

    async def test(account, event):
        await account.send(account.part(event, "hello"))
        assert sent_by_us(stage)[0].parent_id == ""

    scene(test, group=True)


def test_a07_an_answer_that_opens_a_topic_says_so_and_all_its_parts_stand_in_it(stage, scene):
    stage.account_settings = {"reply_in_thread": True}

    async def test(account, event):
        results = [
            await account.send(account.part(event, f"part {index}", key=f"key-{index}", index=index, count=2))
            for index in range(2)
        ]
        threads = {one.thread_id for one in sent_by_us(stage)}
        assert threads == {one.opened_thread_id for one in results}
        assert len(threads) == 1

    scene(test, group=True, chat_id="oc_g")


def test_h22_who_has_no_chat_is_reached_by_the_id_that_this_app_knows(stage, scene):
    async def test(account, event):
        target = SessionSource(platform="feishu", user_id="ou_1", user_id_alt="on_1")
        await account.send(attrs.evolve(account.part(event, "hello"), target=target, reply_to=None))
        assert stage.world.queries[-1] == {"receive_id_type": "open_id"}
        assert sent_by_us(stage)[0].chat_id == "ou_1"

    scene(test)


# --- questions that were taken back


def test_an_answer_to_what_was_taken_back_goes_into_the_group(stage, scene):
    async def test(account, event):
        stage.world.messages[event.source.message_id].deleted = True
        await account.send(account.part(event, "still here"))
        (sent,) = sent_by_us(stage)
        assert (sent.chat_id, sent.parent_id) == ("oc_g", "")

    scene(test, group=True, chat_id="oc_g")


def test_an_answer_in_a_topic_never_leaves_it_when_its_question_is_taken_back(stage):
    async def play():
        async with stage.running() as account:
            other = await stage.written(account, {"text": "start"}, **TOPIC)
            event = await stage.written(account, {"text": "question"}, **TOPIC)
            stage.world.messages[event.source.message_id].deleted = True
            await account.send(account.part(event, "still here"))
            (sent,) = sent_by_us(stage)
            assert (sent.thread_id, sent.parent_id) == ("omt_1", other.source.message_id)

    stage.play(play)


# --- once


def test_one_part_has_one_uuid_however_often_it_is_tried(stage, scene):
    stage.world.answers.extend([ARRIVED_BUT_FAILED, BROKEN, RATE_LIMITED, OK])

    async def test(account, event):
        part = account.part(event, "once")
        for _ in range(3):
            with pytest.raises(RetryLater):
                await account.send(part)
        await account.send(part)
        await account.send(attrs.evolve(part, key="key-2"))
        assert len(sent_by_us(stage)) == 2
        first, *again, other = stage.world.uuids
        assert set(again) == {first} != {other}
        assert len(first) <= 50

    scene(test)


def test_two_apps_that_send_with_one_key_are_not_taken_for_one(both):
    async def play():
        async with both.running("default") as one, both.running("second") as other:
            for account in (one, other):
                event = await account.hear("hello", chat_id="oc_g", group=True)
                await account.send(account.part(event, "hello", key="the same"))
            assert len(set(both.world.uuids)) == 2

    both.play(play)


# --- in which form


@pytest.mark.parametrize(
    ("text", "kind", "seen"),
    [
        ("just words", "text", "just words"),
        ("**bold** words", "post", "**bold** words"),
        (TABLE, "interactive", TABLE),
        ('<at user_id="all">all</at> come', "text", '<\u200bat user_id="all">all<\u200b/at> come'),
        ("\N{FISH}" * 40_000, "text", "\N{FISH}" * 40_000),
    ],
)
def test_an_answer_has_the_simplest_form_that_shows_it(stage, scene, text, kind, seen):
    if len(text) > 8000:
        text = seen = text[:30_000]

    async def test(account, event):
        await account.send(account.part(event, text))
        (sent,) = sent_by_us(stage)
        (shown,) = await stage.fake.sent(1)
        assert (sent.type, shown.text) == (kind, seen)

    scene(test)


@pytest.mark.parametrize(
    ("refused", "kind"), [({"interactive"}, "post"), ({"interactive", "post"}, "text"), ({"post"}, "interactive")]
)
def test_a_form_that_is_refused_is_followed_by_a_simpler_one(stage, scene, refused, kind):
    stage.world.forms_refused |= refused

    async def test(account, event):
        await account.send(account.part(event, TABLE))
        assert [one.type for one in sent_by_us(stage)] == [kind]

    scene(test)


def test_a_form_that_is_tried_in_vain_does_not_use_up_the_key_of_the_next(stage, scene):
    stage.world.forms_refused.add("post")

    async def test(account, event):
        await account.send(account.part(event, "**bold**"))
        await account.send(account.part(event, "**bold**"))
        assert [one.type for one in sent_by_us(stage)] == ["text"]

    scene(test)


def test_a_card_that_has_too_many_tables_is_sent_as_a_post(stage, scene):
    async def test(account, event):
        await account.send(account.part(event, "\n\n".join([TABLE] * 4)))
        assert [one.type for one in sent_by_us(stage)] == ["post"]

    scene(test)


# --- edits


def test_an_edit_replaces_the_text_and_its_form_stays_one_that_can_be_edited(stage, scene):
    async def test(account, event):
        part = account.part(event, "so far")
        message_id = (await account.send(part)).platform_message_id
        for text, kind in (("so far, **bold**", "post"), ("plain again", "text"), (TABLE, "post")):
            await account.adapter.edit(attrs.evolve(part, text=text), message_id)
            (sent,) = sent_by_us(stage)
            assert sent.type == kind
        assert sent.edits == 3

    scene(test)


def test_a_card_is_edited_as_a_card(stage, scene):
    async def test(account, event):
        part = account.part(event, TABLE)
        message_id = (await account.send(part)).platform_message_id
        await account.adapter.edit(attrs.evolve(part, text="no table"), message_id)
        await account.restart()
        await account.adapter.edit(attrs.evolve(part, text="nor now"), message_id)
        (sent,) = sent_by_us(stage)
        assert (sent.type, sent.edits) == ("interactive", 2)

    scene(test)


def test_an_edit_too_many_is_rejected_with_the_reason(stage, scene):
    async def test(account, event):
        part = account.part(event, "0")
        message_id = (await account.send(part)).platform_message_id
        stage.world.messages[message_id].edits = 20
        with pytest.raises(Rejected, match="edited as often as a message can be"):
            await account.adapter.edit(attrs.evolve(part, text="1"), message_id)

    scene(test)


@pytest.mark.parametrize("fate", ["gone", "somebody else's", "unknown"])
def test_what_cannot_be_edited_is_rejected(stage, scene, fate):
    async def test(account, event):
        part = account.part(event, "0")
        message_id = (await account.send(part)).platform_message_id
        kept = stage.world.messages[message_id]
        if fate == "gone":
            kept.deleted = True
        elif fate == "unknown":
            message_id = "om_unknown"
        else:
            kept.app_id = "cli_another"
        with pytest.raises(Rejected):
            await account.adapter.edit(attrs.evolve(part, text="1"), message_id)

    scene(test)


# --- refusals


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        (230020, RetryLater, "rate limit"),
        (11232, RetryLater, "rate limit"),
        (99991400, RetryLater, "rate limit"),
        (1000040343, RetryLater, "1000040343"),
        (99991672, AuthFailed, "permission"),
        (99991676, AuthFailed, "permission"),
        (99991679, AuthFailed, "permission"),
        (230006, AuthFailed, "no bot ability"),
        (99991671, AuthFailed, "even a new token is refused"),
        (230002, Rejected, "the bot is not in that chat"),
        (230027, Rejected, "lacks a permission there"),
        (230028, Rejected, "data protection"),
        (230025, Rejected, "too long"),
        (230001, Rejected, "230001"),
        (777, Rejected, "777"),
    ],
)
def test_a_refusal_is_an_error_that_says_what_to_do(stage, scene, code, error, says):
    stage.world.answers.extend([code] * 3)

    async def test(account, event):
        with pytest.raises(error, match=says):
            await account.send(account.part(event, "hello"))
        assert sent_by_us(stage) == []

    scene(test)


def test_a_missing_scope_is_named(stage, scene):
    stage.world.missing_scopes["send"] = "im:message:send_as_bot"

    async def test(account, event):
        with pytest.raises(AuthFailed, match=r"im:message:send_as_bot.*publish a version"):
            await account.send(account.part(event, "hello"))

    scene(test)


def test_a_rate_limit_is_waited_for_as_long_as_the_platform_says(stage, scene):
    stage.world.answers.append(RATE_LIMITED)

    async def test(account, event):
        with pytest.raises(RetryLater) as raised:
            await account.send(account.part(event, "hello"))
        assert (raised.value.after_s, raised.value.maybe_sent) == (3.0, False)

    scene(test)


def test_a_broken_platform_leaves_open_whether_it_took_the_message(stage, scene):
    stage.world.answers.append(BROKEN)

    async def test(account, event):
        with pytest.raises(RetryLater) as raised:
            await account.send(account.part(event, "hello"))
        assert raised.value.maybe_sent

    scene(test)


# --- that somebody writes


def test_a_reaction_says_that_an_answer_is_written_and_goes_when_it_is(stage, scene):
    async def test(account, event):
        await account.adapter.typing(event.source, on=True)
        await account.adapter.typing(event.source, on=True)
        assert len(stage.world.reactions) == 1
        await account.adapter.typing(event.source, on=False)
        await account.adapter.typing(event.source, on=False)
        assert stage.world.reactions == {}

    scene(test)


def test_who_may_not_react_is_not_asked_again_for_an_hour(stage, scene):
    stage.world.missing_scopes["react"] = "im:message.reactions:write_only"

    async def test(account, event):
        for _ in range(3):
            await account.adapter.typing(event.source, on=True)
        asked = [one for one in stage.world.requests if one[1].endswith("/reactions")]
        assert len(asked) == 1

    scene(test)


def test_the_history_of_a_topic_passes_over_what_was_taken_back(stage, scene):
    async def test(account, event):
        for number, deleted in enumerate((False, True)):
            stage.world.keep(
                Kept(
                    message_id=f"om_{number}",
                    chat_id="oc_g",
                    type="text",
                    content=json.dumps({"text": "x"}),
                    thread_id="omt_9",
                    deleted=deleted,
                )
            )
        target = SessionSource(platform="feishu", chat_type="group", chat_id="oc_g", thread_id="omt_9")
        await account.send(attrs.evolve(account.part(event, "hello"), target=target, reply_to=None))
        assert sent_by_us(stage)[-1].parent_id == "om_0"

    scene(test)
