"""What people write, and what the core is told of it."""

from __future__ import annotations

import json
import logging

import attrs
import pytest

from hermes_feishu.testing import Kept
from hermes_hookspecs.errors import StoreBusy

PDF = {"file_key": "f_1", "file_name": "plan.pdf"}


# --- where it was said


def test_a_direct_message_is_its_senders_and_names_all_their_ids(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear("hello", chat_id="oc_1", user_id="ou_1")
            source = event.source
            assert (source.chat_type, source.chat_id, source.scope_id) == ("dm", "oc_1", "tk_fake")
            assert (source.user_id, source.user_id_alt) == ("ou_1", "on_ou_1")
            assert (source.thread_id, event.addressed, event.text) == (None, True, "hello")

    stage.play(play)


def test_a07_one_topic_is_one_thread_whatever_root_its_messages_name(stage):
    async def play():
        async with stage.running() as account:
            first = stage.fake.write({"text": "one"}, chat_type="group", chat_id="oc_g", thread_id="omt_1")
            for root in ("", first, "om_of_something_else"):
                event = await stage.written(
                    account, {"text": "more"}, chat_type="group", chat_id="oc_g", thread_id="omt_1", root_id=root
                )
                assert event.source.thread_id == "omt_1"
            assert not [path for _, path in stage.world.requests if "/chats/" in path]

    stage.play(play)


def test_a08_topics_are_told_apart_and_a_quote_in_an_ordinary_group_is_none(stage):
    async def play():
        async with stage.running() as account:
            group = {"chat_type": "group", "chat_id": "oc_g"}
            one = await stage.written(account, {"text": "a"}, thread_id="omt_a", **group)
            other = await stage.written(account, {"text": "b"}, thread_id="omt_b", **group)
            plain = await stage.written(account, {"text": "c"}, **group)
            quote = await stage.written(account, {"text": "d"}, parent_id=plain.source.message_id, **group)
            direct = await stage.written(account, {"text": "e"}, parent_id=plain.source.message_id)
            places = [event.source.thread_id for event in (one, other, plain, quote, direct)]
            assert places == ["omt_a", "omt_b", None, None, None]

    stage.play(play)


def test_a_root_stands_for_a_forgotten_topic_only_in_groups_made_of_topics(stage):
    stage.world.topic_chats.add("oc_t")

    async def play():
        async with stage.running() as account:
            first = stage.fake.write({"text": "one"}, chat_type="group", chat_id="oc_t", thread_id="omt_1")
            await account.stored(first)
            known = await stage.written(
                account, {"text": "two"}, chat_type="group", chat_id="oc_t", thread_id="omt_1", root_id=first,
                silent=["thread_id"],
            )  # fmt: skip
            lost = await stage.written(account, {"text": "three"}, chat_type="group", chat_id="oc_t", root_id="om_gone")
            assert [known.source.thread_id, lost.source.thread_id] == ["omt_1", "om_gone"]
            asked = [path for _, path in stage.world.requests if path.endswith("/chats/oc_t")]
            assert len(asked) == 1, "what a chat is does not change every minute"

    stage.play(play)


def test_h22_ids_may_be_missing_and_what_stays_is_the_one_of_this_app(stage):
    async def play():
        async with stage.running() as account:
            app = stage.world.app("default")
            message = {"message_id": "om_1", "chat_id": "oc_1", "chat_type": "p2p", "message_type": "text"}
            message |= {"content": '{"text": "hello"}', "create_time": "1"}
            sender = {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"}
            stage.fake.push(app, stage.fake.event(app, "im.message.receive_v1", {"sender": sender, "message": message}))
            event = await account.stored("om_1")
            assert (event.source.user_id, event.source.user_id_alt, event.source.participant) == ("ou_1", None, "ou_1")

    stage.play(play)


# --- who said it


def asked_for_names(stage):
    return [path for _, path in stage.world.requests if "/contact/" in path]


def test_people_are_called_by_their_names_which_are_asked_for_once(stage):
    stage.world.names["ou_1"] = "小明"

    async def play():
        async with stage.running() as account:
            events = [await account.hear(chat_id="oc_1", user_id="ou_1") for _ in range(3)]
            stranger = [await account.hear(chat_id="oc_2", user_id="ou_2") for _ in range(2)]
            assert [event.source.user_name for event in (*events, *stranger)] == ["小明"] * 3 + [None] * 2
            assert len(asked_for_names(stage)) == 2

    stage.play(play)


def test_an_app_that_may_know_no_names_does_not_ask_for_every_message(stage):
    stage.world.missing_scopes["contact"] = "contact:user.base:readonly"

    async def play():
        async with stage.running() as account:
            for number in range(3):
                event = await account.hear(chat_id=f"oc_{number}", user_id=f"ou_{number}")
                assert event.source.user_name is None
            assert len(asked_for_names(stage)) == 1

    stage.play(play)


def test_a_name_that_does_not_come_holds_nothing_up_for_long(stage):
    stage.world.out_of_order.add("contact")

    async def play():
        async with stage.running() as account:
            assert (await account.hear(user_id="ou_1")).source.user_name is None

    stage.play(play)


def test_nobody_asks_for_the_names_of_those_who_say_nothing_to_us(stage):
    async def play():
        async with stage.running() as account:
            await stage.written(account, {"text": "among us"}, chat_type="group", chat_id="oc_g", user_id="ou_1")
            assert asked_for_names(stage) == []

    stage.play(play)


# --- whom it is for


def test_h21_everybody_is_not_us_unless_that_is_set(stage):
    async def play():
        async with stage.running() as account:
            group = {"chat_type": "group", "chat_id": "oc_g"}
            us = stage.fake.mention("@_user_1", stage.world.app("default").bot_open_id, "Bot")
            other = stage.fake.mention("@_user_1", "ou_ann", "Ann")
            named = {
                "@_all lunch": ((), False),
                "@_all and @_user_1": ((us,), True),
                "@_user_1 help": ((us,), True),
                "@_user_1 hello": ((other,), False),
                "nobody is meant": ((), False),
                "/new": ((), True),
                "look at /root/a.txt": ((), False),
            }
            for text, (mentions, addressed) in named.items():
                event = await stage.written(account, {"text": text}, mentions=mentions, **group)
                assert event.addressed is addressed, text

    stage.play(play)


def test_everybody_is_us_where_that_is_set(stage):
    stage.account_settings = {"mention_all": True}

    async def play():
        async with stage.running() as account:
            event = await stage.written(account, {"text": "@_all lunch"}, chat_type="group", chat_id="oc_g")
            assert (event.addressed, event.text) == (True, "@all lunch")

    stage.play(play)


def test_h19_a_bare_mention_in_a_topic_is_kept_with_a_text(stage):
    async def play():
        async with stage.running() as account:
            us = stage.fake.mention("@_user_1", stage.world.app("default").bot_open_id, "Another Name")
            where = {"chat_type": "group", "chat_id": "oc_g", "thread_id": "omt_1", "mentions": (us,)}
            bare = await stage.written(account, {"text": "@_user_1"}, **where)
            spoken = await stage.written(account, {"text": "@_user_1 help"}, **where)
            assert [(one.text, one.addressed) for one in (bare, spoken)] == [("@Another Name", True), ("help", True)]

    stage.play(play)


def test_mentions_that_an_event_leaves_out_are_looked_up_once(stage):
    async def play():
        async with stage.running() as account:
            us = stage.fake.mention("@_user_1", stage.world.app("default").bot_open_id, "Bot")
            event = await stage.written(
                account,
                {"text": "@_user_1 help"},
                chat_type="group",
                chat_id="oc_g",
                mentions=(us,),
                silent=["mentions"],
            )
            assert (event.text, event.addressed) == ("help", True)
            assert len(await stage.asked_for("GET", event.source.message_id)) == 1

    stage.play(play)


def test_an_answer_to_what_we_said_is_meant_for_us(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear("hello", group=True, chat_id="oc_g")
            sent = await account.send(account.part(event, "hello to you"))
            group = {"chat_type": "group", "chat_id": "oc_g"}
            answer = await stage.written(account, {"text": "and?"}, parent_id=sent.platform_message_id, **group)
            other = await stage.written(account, {"text": "and?"}, parent_id=event.source.message_id, **group)
            assert (answer.addressed, answer.text, other.addressed) == (True, "and?", False)

    stage.play(play)


def test_h21_our_own_voice_is_passed_over_and_that_of_another_bot_is_marked(stage):
    async def play():
        async with stage.running() as account:
            group = {"chat_type": "group", "chat_id": "oc_g"}
            us = stage.world.app("default").bot_open_id
            own = stage.fake.write({"text": "me"}, user_id=us, sender_type="app", **group)
            other = await stage.written(account, {"text": "beep"}, user_id="ou_robot", sender_type="app", **group)
            await stage.fake.acknowledged(own)
            assert [event.text for event in account.inlet.events] == ["beep"]
            assert other.source.is_bot

    stage.play(play)


def test_what_groups_say_before_it_is_known_who_we_are_comes_again(webhook_stage):
    stage = webhook_stage
    stage.world.out_of_order.add("bot")

    async def play():
        account = stage.account()
        await account.start(wait=False)
        await stage.asked_for("GET", "/bot/v3/info")
        group = stage.fake.write({"text": "who?"}, chat_type="group", chat_id="oc_g")
        direct = stage.fake.write({"text": "you"})
        await account.stored(direct)
        assert not stage.fake.is_acknowledged(group)
        stage.world.out_of_order.clear()
        await account.stored(group)
        await stage.fake.acknowledged(group)

    stage.play(play)


# --- what it holds


def test_h20_forwarded_messages_are_read_in_their_order_and_depth(stage):
    async def play():
        async with stage.running() as account:
            head = stage.fake.write("Merged and Forwarded Message", message_type="merge_forward", deliver=False)
            inner = stage.world.keep(
                Kept(message_id="om_in", chat_id="x", type="merge_forward", content="", above=head)
            )
            for above, kind, content, sender in (
                (head, "text", {"text": "first"}, "ou_a"),
                (inner.message_id, "text", {"text": "deeper\nand on"}, "ou_b"),
                (head, "file", PDF, "ou_c"),
            ):
                stage.world.keep(
                    Kept(
                        message_id=stage.world.new_id("om"),
                        chat_id="x",
                        type=kind,
                        content=json.dumps(content),
                        above=above,
                        sender=sender,
                    )
                )
            await stage.fake.deliver(head)
            event = await account.stored(head)
            assert event.text.splitlines() == [
                "[forwarded messages]",
                "somebody: [forwarded messages]",
                "  ou_b: deeper",
                "    and on",
                "ou_a: first",
                "ou_c: [document plan.pdf]",
                "[end of forwarded messages]",
            ]

    stage.play(play)


def test_h20_forwarded_messages_that_cannot_be_read_are_not_lost(stage):
    stage.world.missing_scopes["read"] = "im:message:readonly"

    async def play():
        async with stage.running() as account:
            event = await stage.written(account, "Merged and Forwarded Message", message_type="merge_forward")
            assert event.text == "[forwarded messages, which could not be read]"

    stage.play(play)


def test_a_card_that_its_event_does_not_show_is_looked_up(stage):
    card = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "Build 7 failed"}]}}

    async def play():
        async with stage.running() as account:
            message_id = stage.fake.write({}, message_type="interactive", deliver=False)
            stage.world.messages[message_id].content = json.dumps(card)
            await stage.fake.deliver(message_id)
            assert (await account.stored(message_id)).text == "Build 7 failed"

    stage.play(play)


def test_a_quote_brings_what_it_quotes_where_we_are_meant(stage):
    async def play():
        async with stage.running() as account:
            report = stage.fake.write(PDF, message_type="file", user_id="ou_ann")
            long = stage.fake.write({"text": "line one\nline two"}, user_id="ou_ann")
            await account.stored(long)
            words = await stage.written(account, {"text": "what is this?"}, parent_id=long)
            file = await stage.written(account, {"text": "read it"}, parent_id=report)
            command = await stage.written(account, {"text": "/new"}, parent_id=long)
            assert words.text == "> line one\n> line two\n\nwhat is this?"
            assert [(one.kind, one.name) for one in file.attachments] == [("document", "plan.pdf")]
            assert command.text == "/new"

    stage.play(play)


def test_the_bytes_of_an_attachment_are_fetched_by_its_reference(stage):
    async def play():
        async with stage.running() as account:
            event = await stage.written(account, PDF, message_type="file")
            (found,) = event.attachments
            stage.world.resources[event.source.message_id, "f_1"] = (b"%PDF" * 50_000, "application/pdf", "plan.pdf")
            fetched = b"".join([piece async for piece in account.adapter.fetch(found, event.source)])
            assert fetched == b"%PDF" * 50_000

    stage.play(play)


def test_an_empty_message_has_a_text(stage):
    async def play():
        async with stage.running() as account:
            assert (await stage.written(account, {"text": " "})).text == "[empty message]"

    stage.play(play)


# --- recalls


def test_a_recall_names_the_message_and_speaks_for_its_sender(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear("oh no", group=True, chat_id="oc_g", user_id="ou_1")
            stage.fake.recall(event.source.message_id)
            await account.handed(2)
            recall = account.inlet.handed[-1]
            assert (recall.recalls, recall.text) == (event.identities[0], "")
            assert recall.source == attrs.evolve(event.source, message_id=None), "there is nothing left to be answered"

    stage.play(play)


def test_a_recall_of_what_nobody_remembers_names_its_chat(stage):
    async def play():
        account = stage.account()
        await account.start()
        event = await account.hear("oh no", chat_id="oc_1")
        await account.restart()
        stage.fake.recall(event.source.message_id)
        await account.inlet.until(lambda: account.inlet.handed[-1].recalls != "", "the recall is handed in")
        recall = account.inlet.handed[-1]
        assert (recall.recalls, recall.source.chat_id) == (event.identities[0], "oc_1")
        await account.stop()

    stage.play(play)


# --- odd ones


def test_an_old_message_is_taken_unless_a_limit_is_set(stage):
    async def play():
        async with stage.running() as account:
            event = await stage.written(account, {"text": "from yesterday"}, age_s=86_400)
            assert event.error == ""

    stage.play(play)


def test_h12_a_message_beyond_the_limit_of_age_is_put_aside_and_that_is_said(stage, caplog):
    caplog.set_level(logging.INFO)
    stage.account_settings = {"max_age_minutes": 30}

    async def play():
        async with stage.running() as account:
            old = await stage.written(account, {"text": "from an hour ago"}, age_s=3600)
            young = await stage.written(account, {"text": "of this minute"})
            assert old.error == "it came 60 minutes late; max_age_minutes = 30"
            assert young.error == ""

    stage.play(play)
    assert "60 minutes old and is put aside" in caplog.text


def test_an_event_of_another_app_is_none_of_ours(stage, caplog):
    async def play():
        async with stage.running() as account:
            app = stage.world.app("default")
            sender = {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"}
            message = {"message_id": "om_x", "chat_id": "oc_1", "chat_type": "p2p", "message_type": "text"}
            event = {"sender": sender, "message": message | {"content": '{"text": "hello"}'}}
            stage.fake.push(app, stage.fake.event(app, "im.message.receive_v1", event, app_id="cli_stranger"))
            await account.hear("ours")
            assert [one.text for one in account.inlet.handed] == ["ours"]

    stage.play(play)
    assert "an event of another app (cli_stranger)" in caplog.text


@pytest.mark.parametrize(
    "event", [{}, {"message": 7}, {"message": {"message_id": "om_1"}}, {"message": {"chat_id": "c"}}]
)
def test_an_event_that_names_no_message_is_put_aside_once(stage, event):
    async def play():
        async with stage.running() as account:
            app = stage.world.app("default")
            payload = stage.fake.event(app, "im.message.receive_v1", event)
            for _ in range(2):
                stage.fake.push(app, payload)
            await account.inlet.until(lambda: len(account.inlet.handed) == 2, "both are handed in")
            (found,) = account.inlet.events
            assert "without an id" in found.error

    stage.play(play)


def test_an_event_that_we_fail_at_is_put_aside_and_those_behind_it_come_in(stage, monkeypatch):
    def fail(*_):
        raise TypeError("a mistake of ours")

    async def play():
        async with stage.running() as account:
            with monkeypatch.context() as patched:
                patched.setattr("hermes_feishu.reader.received_of", fail)
                await stage.say("the first one")
                await account.handed(1)
            await account.hear("the second one")
            assert [event.error for event in account.inlet.events] == [
                "an event that cannot be read: TypeError while it was read",
                "",
            ]
            assert account.crashes == []

    stage.play(play)


def test_the_older_format_of_events_is_known(stage):
    async def play():
        async with stage.running() as account:
            app = stage.world.app("default")
            old = {"type": "event_callback", "uuid": "u", "token": app.verification_token}
            stage.fake.push(app, json.dumps(old | {"event": {"type": "message", "app_id": app.app_id}}).encode())
            await account.hear("and the new one")
            assert len(account.inlet.handed) == 1

    stage.play(play)


def test_a_batch_that_was_not_stored_is_tried_again_before_the_platform_repeats_it(stage):
    async def play():
        async with stage.running() as account:
            account.inlet.fail(StoreBusy("a moment"))
            message_id = await stage.say()
            await account.stored(message_id)
            await stage.fake.acknowledged(message_id)
            assert (len(account.inlet.begun), account.crashes) == (2, [])

    stage.play(play)
