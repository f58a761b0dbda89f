"""Receiving: one message is one, whatever Slack tells of it and however often; the rest is passed over, and told so."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from hermes_hookspecs.errors import AuthFailed, StoreBusy
from hermes_hookspecs.ports.platform import FAILED, WAITING
from hermes_slack.testing.payloads import callback, command, mention_twin, message


def test_a_mention_and_its_message_are_one(stage, run):
    async def main():
        async with stage.running():
            event = await stage.heard("deploy?")
            await stage.inlet.until(lambda: stage.inlet.duplicates == 1)
            return event

    event = run(main())

    assert stage.inlet.texts == ["deploy?"]
    assert event.identities == (f"T0FAKEAAA:C1:{event.source.message_id}",)


def test_the_same_time_in_another_channel_is_another_message(stage, run):
    async def main():
        async with stage.running():
            for channel in ("D1", "D2"):
                inner = message(channel, "U1", "hello", "1790000000.000100")
                stage.server.deliver(stage.app, callback(stage.app, stage.here, inner, stage.server.number("Ev")))
            await stage.inlet.until(lambda: len(stage.inlet.events) == 2)

    run(main())


def test_h16_retries_and_redeliveries_with_other_envelopes_are_one_turn_across_a_restart(new_stage, run):
    first = new_stage()
    inner = message("D1", "U1", "slow", "1790000000.000100")

    async def main():
        async with first.running():
            payload = callback(first.app, first.here, inner, "Ev1")
            envelopes = [first.server.deliver(first.app, payload) for _ in range(3)]
            await first.acknowledged(*envelopes)
        second = new_stage(fake=first.fake, state=first.state)
        second.inlet.known = first.inlet.known
        async with second.running():
            await second.acknowledged(second.server.deliver(second.app, payload))
        return second

    second = run(main())

    assert (first.inlet.texts, first.inlet.duplicates) == (["slow"], 2)
    assert (second.inlet.texts, second.inlet.duplicates) == ([], 1)


def test_what_was_not_acknowledged_comes_again_after_a_reconnect_and_is_one_message(stage, run):
    async def main():
        async with stage.running():
            stage.inlet.failures = [StoreBusy("locked")]
            ts = await stage.fake.say("hello", chat_id="D1")
            await stage.fake.drop()
            await stage.stored(ts)
            await stage.fake.acknowledged(ts)

    run(main())

    assert stage.inlet.texts == ["hello"]


def test_what_does_not_fit_into_memory_is_left_to_slack_which_brings_it_again(new_stage, run):
    stage = new_stage(most_waiting=1)
    texts = [f"m{number}" for number in range(6)]

    async def main():
        async with stage.running():
            stage.inlet.hold = asyncio.Event()
            said = [await stage.fake.say(text, chat_id="D1") for text in texts]
            await stage.server.until(lambda: all(one.sent for one in stage.app.envelopes.values()))
            stage.inlet.hold.set()
            while not all(map(stage.fake.is_acknowledged, said)):
                await stage.fake.deliver(*(ts for ts in said if not stage.fake.is_acknowledged(ts)))
                stage.server.note()
                await asyncio.sleep(0.01)

    run(main())

    assert sorted(stage.inlet.texts) == texts


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "too_many_websockets"])
def test_a_connection_that_is_to_end_is_replaced_without_a_loss(stage, reason, run):
    async def main():
        async with stage.running():
            await stage.server.disconnect(stage.app, reason)
            on_the_old = await stage.fake.say("on whichever", chat_id="D1")
            await stage.server.until(lambda: stage.app.opened >= 2)
            await stage.stored(on_the_old)
            await stage.heard("on the new one", chat="D1")

    run(main())

    assert stage.inlet.texts == ["on whichever", "on the new one"]
    assert WAITING not in [state for state, _ in stage.inlet.reports]


def test_socket_mode_that_is_turned_off_waits_for_a_person(stage, run):
    async def main():
        async with stage.running() as task:
            await stage.server.disconnect(stage.app, "link_disabled")
            await asyncio.wait({task})
            return task.exception()

    assert isinstance(run(main()), AuthFailed)
    assert stage.inlet.reports[-1][0] == FAILED


def test_a_socket_that_is_silent_is_given_up_by_a_deadline(stage, run):
    async def main():
        async with stage.running():
            stage.fake.freeze(True)
            await stage.inlet.until(lambda: stage.inlet.reports[-1][0] == WAITING)
            stage.fake.freeze(False)
            await stage.heard("after")

    run(main())

    assert any("nothing was heard" in detail for _, detail in stage.inlet.reports)


@pytest.mark.parametrize("which", ["bot", "app"])
def test_a_refused_token_ends_the_run_before_anything_is_connected(stage, which, run):
    async def main():
        if which == "bot":
            stage.here.revoked = True
        else:
            stage.server.failures["apps.connections.open"] = deque(["invalid_auth"])
        async with stage.running(up=False) as task:
            await asyncio.wait({task})
            return task.exception()

    assert isinstance(run(main()), AuthFailed)
    assert stage.app.opened == 0
    assert stage.inlet.reports[-1][0] == FAILED


def test_edits_unfurls_joins_and_our_own_posts_are_acknowledged_and_no_messages(stage, run):
    here = stage.here
    inners = [
        {"subtype": "message_changed", "hidden": True, "message": {"user": "U1", "text": "edited", "ts": "1.1"}},
        {"subtype": "channel_join"},
        {"subtype": "channel_topic"},
        {"user": here.user_id},
        {"bot_id": here.bot_id, "user": "U0OTHER"},
        {"bot_id": "B0OTHER", "app_id": stage.app.app_id},
    ]

    async def main():
        async with stage.running():
            envelopes = []
            for more in inners:
                inner = message("D1", "U1", "no message", stage.server.ts()) | more
                payload = callback(stage.app, here, inner, stage.server.number("Ev"))
                envelopes.append(stage.server.deliver(stage.app, payload))
            envelopes += [
                stage.server.deliver(
                    stage.app, {"type": "block_actions", "team": {"id": here.team_id}}, kind="interactive"
                ),
            ]
            await stage.acknowledged(*envelopes)

    run(main())

    assert stage.inlet.events == []


def test_a_message_that_is_taken_back_recalls_the_one_that_came(stage, run):
    async def main():
        async with stage.running():
            event = await stage.heard("oops", chat="D1")
            ts = event.source.message_id
            deleted = {
                "type": "message", "subtype": "message_deleted", "hidden": True, "channel": "D1", "channel_type": "im",
                "deleted_ts": ts, "ts": stage.server.ts(), "previous_message": {"user": "U1", "text": "oops", "ts": ts},
            }  # fmt: skip
            stage.server.deliver(stage.app, callback(stage.app, stage.here, deleted, "Ev9"))
            await stage.inlet.until(lambda: len(stage.inlet.events) == 2)
            return event

    event = run(main())

    recall = stage.inlet.events[1]
    assert (recall.recalls,) == event.identities
    assert (recall.source.chat_id, recall.source.user_id, recall.text) == ("D1", "U1", "")


def test_a01_two_workspaces_of_one_app_with_the_same_ids_are_two_scopes_and_each_is_answered_by_its_own_bot(stage, run):
    stage.server.install(stage.app.app_id, team_id="T2")
    one, other = stage.app.installations

    async def main():
        async with stage.running():
            for here, words in ((one, "alpha"), (other, "what did I say?")):
                inner = message("D9", "U5", words, "1790000000.000100")
                stage.server.deliver(stage.app, callback(stage.app, here, inner, stage.server.number("Ev")))
            await stage.inlet.until(lambda: len(stage.inlet.events) == 2)
            for event in stage.inlet.events:
                await stage.send(f"to {event.source.scope_id}", event)

    run(main())

    assert [event.source.scope_id for event in stage.inlet.events] == [one.team_id, "T2"]
    assert len({identity for event in stage.inlet.events for identity in event.identities}) == 2
    assert [(post.token, post.text) for post in stage.server.posts] == [
        (one.token, f"to {one.team_id}"),
        (other.token, "to T2"),
    ]


def test_slack_connect_ids_of_others_change_nothing_and_events_of_strangers_are_passed_over(stage, run):
    async def main():
        async with stage.running():
            inner = message("C1", "U9", "<@U9> hello", "1790000000.000100", channel_type="channel", team="T0THEIRS")
            ours = callback(stage.app, stage.here, inner, "Ev1", outer_team="T0OWNER")
            theirs = ours | {"authorizations": [{"team_id": "T0OWNER", "is_enterprise_install": False}]}
            await stage.acknowledged(*(stage.server.deliver(stage.app, payload) for payload in (theirs, ours)))

    run(main())

    assert [event.source.scope_id for event in stage.inlet.events] == ["T0FAKEAAA"]


def test_an_app_of_a_whole_organisation_has_the_organisation_as_its_scope(stage, run):
    stage.here.enterprise_id, stage.here.org_wide = "E1", True

    async def main():
        async with stage.running():
            event = await stage.heard("hello", chat="D1")
            await stage.send("hi", event)
            return event

    assert run(main()).source.scope_id == "E1"


@pytest.mark.parametrize("chat", ["C1", "D1"])
def test_a05_a_slash_command_has_the_source_of_a_message_in_that_place(new_stage, chat, run):
    stage = new_stage(replies="channel")

    async def main():
        async with stage.running():
            said = await stage.heard("hello", chat=chat)
            for user in ("U1", "U2"):
                payload = command(
                    stage.app, stage.here, chat, user, name="/new", text="plan", trigger_id=f"trigger-{user}"
                )
                envelopes = [stage.server.deliver(stage.app, payload, kind="slash_commands") for _ in range(2)]
                await stage.acknowledged(*envelopes)
            return said

    said = run(main())

    first, second = stage.inlet.events[1:]
    keys = [(each.source.scope_id, each.source.chat_type, each.source.chat_id, each.source.thread_id) for each in
            (said, first, second)]  # fmt: skip
    assert len(set(keys)) == 1
    assert (first.source.user_id, second.source.user_id) == ("U1", "U2")
    assert (first.text, first.addressed) == ("/new plan", True)


def test_a05_commands_in_a_direct_chat_of_two_other_people_are_each_ones_own(stage, run):
    """Their payload is that of a direct chat with us, and one session for both would show each the other's."""
    stage.server.outside.add("D8")

    async def main():
        async with stage.running():
            for chat, user in (("D8", "U1"), ("D8", "U2"), ("D1", "U1")):
                payload = command(
                    stage.app, stage.here, chat, user, name="/hermes", text="what is new?", trigger_id=f"{chat}{user}"
                )
                await stage.acknowledged(stage.server.deliver(stage.app, payload, kind="slash_commands"))

    run(main())

    places = [(each.source.chat_type, each.source.chat_id, each.source.user_id) for each in stage.inlet.events]
    assert places == [("group", "D8", "U1"), ("group", "D8", "U2"), ("dm", "D1", "U1")]
    assert stage.server.calls.count("conversations.history") == 2, "each chat is asked about once"


def test_where_slack_does_not_say_whose_a_direct_chat_is_it_is_not_taken_for_ours(stage, run):
    stage.server.failures["conversations.history"] = deque(["ratelimited"])

    async def main():
        async with stage.running():
            for number in range(2):
                payload = command(
                    stage.app, stage.here, "D1", "U1", name="/hermes", text="hello", trigger_id=f"t{number}"
                )
                await stage.acknowledged(stage.server.deliver(stage.app, payload, kind="slash_commands"))

    run(main())

    assert [each.source.chat_type for each in stage.inlet.events] == ["group", "dm"]


def test_the_text_of_a_general_command_is_the_message(stage, run):
    async def main():
        async with stage.running():
            for text in ("what is new?", "/status"):
                payload = command(stage.app, stage.here, "D1", "U1", name="/hermes", text=text, trigger_id=f"t-{text}")
                await stage.acknowledged(stage.server.deliver(stage.app, payload, kind="slash_commands"))

    run(main())

    assert stage.inlet.texts == ["what is new?", "/status"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<@BOT> /new", "/new"),
        ("<@BOT>: /new plan", "/new plan"),
        ("<@BOT|hermes> /NEW ", "/NEW "),
        ("<@BOT> !new", "/new"),
        ("!new", "/new"),
        ("! new", "! new"),
        ("<@BOT> `/root/a.txt` 在哪", "`/root/a.txt` 在哪"),
        ("<@BOT> ask <@U7> to run /new", "ask @U7 to run /new"),
        ("<@BOT> <@BOT> twice", "twice"),
    ],
)
def test_h17_a_mention_in_front_hides_no_command_and_other_mentions_stay(stage, text, read, run):
    raw = text.replace("BOT", stage.here.user_id)

    async def main():
        async with stage.running():
            inner = message("C1", "U1", raw, stage.server.ts(), channel_type="channel")
            stage.server.deliver(stage.app, callback(stage.app, stage.here, inner, "Ev1"))
            await stage.inlet.until(lambda: stage.inlet.events)

    run(main())

    assert stage.inlet.texts == [read]


def test_files_come_as_attachments_and_their_bytes_with_our_token(stage, run):
    async def fetched(event, number):
        pieces = [piece async for piece in stage.adapter.fetch(event.attachments[number], event.source)]
        return b"".join(pieces)

    async def main():
        async with stage.running():
            stage.server.files["F1"] = stage.server.files["F2"] = b"picture"
            files = [
                {"id": "F1", "name": "a.png", "mimetype": "image/png", "size": 7,
                 "url_private_download": f"{stage.server.url}/files/F1"},
                {"id": "F2", "file_access": "check_file_info"},
                {"id": "F3", "mode": "tombstone"},
            ]  # fmt: skip
            event = await stage.heard("", chat="D1", subtype="file_share", files=files)
            return event, [await fetched(event, number) for number in range(2)]

    event, found = run(main())

    assert [(each.kind, each.name, each.size) for each in event.attachments] == [
        ("image", "a.png", 7),
        ("document", "", None),
    ]
    assert found == [b"picture", b"picture"]


def test_a_twin_of_a_mention_alone_is_a_message_too(stage, run):
    async def main():
        async with stage.running():
            inner = mention_twin(message("C1", "U1", f"<@{stage.here.user_id}> hi", "1790000000.000100"))
            stage.server.deliver(stage.app, callback(stage.app, stage.here, inner, "Ev1"))
            await stage.inlet.until(lambda: stage.inlet.events)

    run(main())

    (event,) = stage.inlet.events
    assert (event.source.chat_type, event.addressed, event.text) == ("group", True, "hi")


def test_a_proxy_is_used_for_what_it_is_meant_for_alone(stage, run, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

    async def main():
        async with stage.running():
            await stage.send("answer", await stage.heard("hello", chat="D1"))

    run(main())

    assert [post.text for post in stage.server.posts] == ["answer"]
