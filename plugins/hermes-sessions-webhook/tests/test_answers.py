"""Answers that wait: fetched of a message, of a conversation, or as they come; each is seen once."""

from __future__ import annotations

import asyncio
import json

import attrs
import pytest

from hermes_hookspecs.ports.platform import DeliveryPart
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.adapters import MemoryState
from hermes_hookspecs.testing.clock import FakeClock
from hermes_webhook.book import Book
from hermes_webhook.incoming import Incoming
from hermes_webhook.testing import FakeWebhook

PATIENCE_S = 20


def source(**fields):
    return SessionSource(**({"platform": "api_server", "chat_id": "c1", "user_id": "ming"} | fields))


async def somebody_waits(account):
    async with asyncio.timeout(PATIENCE_S):
        while not account.adapter._waiting.count:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


# --- one message


def test_who_waits_for_an_answer_gets_it_when_it_is_stored(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            path = f"/chats/chat-1/messages/{event.source.message_id}"
            assert await api.get(path) == (
                200, {"id": event.source.message_id, "chat_id": "chat-1", "status": "waiting", "answers": []},
            )  # fmt: skip
            waiting = asyncio.create_task(api.get(path, wait="60"))
            result = await account.adapter.send(account.part(event, "here it is"))
            done, _ = await asyncio.wait({waiting}, timeout=stage.timing.grace_s)
            assert not done, "it was seen before it was marked as sent"
            stage.state.take(result.state)
            async with asyncio.timeout(PATIENCE_S):
                status, said = await waiting
            assert (status, said["status"]) == (200, "answered")
            (answer,) = said["answers"]
            shown = {key: answer[key] for key in ("text", "chat_id", "thread_id", "reply_to", "part", "parts")}
            assert shown == {
                "text": "here it is", "chat_id": "chat-1", "thread_id": None, "reply_to": event.source.message_id,
                "part": 1, "parts": 1,
            }  # fmt: skip

    stage.play(play)


def test_an_answer_is_there_once_all_its_parts_are(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            path = f"/chats/chat-1/messages/{event.source.message_id}"
            await account.send(account.part(event, "one", key="k-0", index=0, count=2))
            _, half = await api.get(path)
            await account.send(account.part(event, "two", key="k-1", index=1, count=2))
            _, whole = await api.get(path)
            assert (half["status"], whole["status"]) == ("waiting", "answered")
            assert [answer["text"] for answer in whole["answers"]] == ["one", "two"]

    stage.play(play)


def test_messages_that_are_answered_together_are_all_answered(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            first = await account.hear()
            other = await account.hear(user_id="somebody-else")
            second = await account.hear()
            later = await account.hear()
            await account.send(account.part(second, "to both"))
            statuses = [
                (await api.get(f"/chats/chat-1/messages/{event.source.message_id}"))[1]["status"]
                for event in (first, second, other, later)
            ]
            assert statuses == ["answered", "answered", "waiting", "waiting"]

    stage.play(play)


def test_a_message_that_never_came_is_not_found(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            for path in (
                "/chats/chat-1/messages/m9",
                f"/chats/chat-2/messages/{event.source.message_id}",
                "/chats/chat-1",
            ):
                assert (await api.get(path))[0] == 404

    stage.play(play)


@pytest.mark.parametrize("query", [{"wait": "soon"}, {"wait": "-1"}, {"after": "1e3"}, {"threat": "t"}])
def test_a_query_that_is_not_as_documented_is_refused(stage_of, api, query):
    stage = stage_of(api)

    async def play():
        async with stage.running():
            assert (await api.get("/chats/chat-1/answers", **query))[0] == 400

    stage.play(play)


# --- conversations


def test_a_conversation_is_read_on_from_where_one_was(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "one", key="k1"))
            _, first = await api.get("/chats/chat-1/answers")
            _, nothing = await api.get("/chats/chat-1/answers", after=first["next"])
            await account.send(account.part(event, "two", key="k2"))
            _, second = await api.get("/chats/chat-1/answers", after=nothing["next"])
            assert [[one["text"] for one in each["answers"]] for each in (first, nothing, second)] == [
                ["one"],
                [],
                ["two"],
            ]

    stage.play(play)


def test_threads_and_chats_with_strange_names_are_kept_apart(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            for number, (chat, thread) in enumerate([("a/b ?#%鱼", None), ("a/b ?#%鱼", "t:1"), ("a/b ?#%鱼:t", "1")]):
                event = await account.hear(chat_id=chat, thread_id=thread)
                await account.send(account.part(event, f"to {chat} {thread}", key=f"k{number}"))
            seen = await api.sent(3)
            assert {(one.chat_id, one.thread_id, one.text) for one in seen} == {
                (event.source.chat_id, event.source.thread_id, f"to {event.source.chat_id} {event.source.thread_id}")
                for event in account.inlet.events
            }

    stage.play(play)


def test_what_nobody_asked_for_is_there_too(stage_of, api):
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            part = DeliveryPart(target=source(chat_id="chat-1", user_id=None), text="by the way", key="k")
            await account.send(part)
            _, said = await api.get("/chats/chat-1/answers")
            assert [(one["text"], one["reply_to"]) for one in said["answers"]] == [("by the way", None)]

    stage.play(play)


def test_too_many_who_wait_are_told_to_come_again(stage_of, api):
    api.settings["max_waiting"] = 1
    stage = stage_of(api)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            one = asyncio.create_task(api.get("/chats/chat-1/answers", wait="60"))
            await somebody_waits(account)
            assert (await api.get("/chats/chat-1/answers", wait="1"))[0] == 429
            assert (await api.get("/chats/chat-1/answers"))[0] == 200
            await account.send(account.part(event, "there"))
            assert (await one)[0] == 200

    stage.play(play)


def test_who_waits_is_let_go_when_the_account_is_left(stage_of, api):
    stage = stage_of(api)

    async def play():
        account = stage.account()
        await account.start()
        await account.hear()
        waiting = asyncio.create_task(api.get("/chats/chat-1/answers", wait="60"))
        await somebody_waits(account)
        await account.leave()
        async with asyncio.timeout(PATIENCE_S):
            assert await waiting == (200, {"answers": [], "next": "0"})

    stage.play(play)


# --- as they come


def test_a_stream_shows_what_is_kept_and_what_comes_and_goes_on_where_it_broke_off(stage_of):
    fake = FakeWebhook(answers_by_callback=False)
    stage = stage_of(fake)

    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "one\nline", key="k1"))
            async with _stream(fake) as response:
                assert response.content_type == "text/event-stream"
                first = await _next_event(response)
                await account.send(account.part(event, "two", key="k2"))
                second = await _next_event(response)
            await account.send(account.part(event, "three", key="k3"))
            async with _stream(fake, first["id"]) as response:
                again = [await _next_event(response) for _ in range(2)]
            assert [one["text"] for one in (first, second, *again)] == ["one\nline", "two", "two", "three"]

    stage.play(play)


def test_a_stream_ends_when_the_account_is_left(stage_of):
    fake = FakeWebhook(answers_by_callback=False)
    stage = stage_of(fake)

    async def play():
        account = stage.account()
        await account.start()
        async with _stream(fake) as response:
            await response.content.readline()
            await account.leave()
            async with asyncio.timeout(PATIENCE_S):
                assert b"data" not in await response.content.read()

    stage.play(play)


def _stream(fake, last_id=None):
    target = "/chats/chat-1/events"
    headers = dict(fake.headers("default", target.encode())) | ({"Last-Event-ID": last_id} if last_id else {})
    return fake.caller.client.get(fake.url().removesuffix("/messages") + target, headers=headers)


async def _next_event(response):
    async with asyncio.timeout(PATIENCE_S):
        event = {}
        while True:
            line = (await response.content.readline()).decode()
            assert line, "the stream ended"
            line = line.rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "id":
                event["stream_id"] = value
            elif field == "data":
                found = json.loads(value)
                assert found["id"] == event["stream_id"]
                return found


# --- the book


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def book(clock):
    return new_book(MemoryState("api_server", clock), clock)


def new_book(state, clock):
    found = Book("api_server", "default", state, clock, keep_ms=3_600_000)
    found.state = state
    return found


def keep(book, text, key, **fields):
    part = DeliveryPart(target=source(**fields), text=text, key=key)
    book.state.take([book.keep(part)])


def note(book, name, **fields):
    book.state.take(
        book.note(Incoming(**({"kind": "message", "id": name, "chat_id": "c1", "user_id": "ming"} | fields)))
    )


def test_a_part_that_is_sent_twice_is_there_once_and_in_its_place(book):
    keep(book, "one", "k1")
    keep(book, "two", "k2")
    before = book.answers("c1", "")

    keep(book, "one", "k1")

    assert book.answers("c1", "") == before
    assert [answer.text for answer in before] == ["one", "two"]


def test_order_grows_though_the_clock_goes_back_and_processes_change(book, clock):
    keep(book, "one", "k1")
    clock.set_now(clock.now() - 60_000)
    keep(book, "two", "k2")
    after = new_book(book.state, clock)
    keep(after, "three", "k3")

    assert [answer.text for answer in after.answers("c1", "")] == ["one", "two", "three"]


def test_what_is_kept_goes_after_a_while(book, clock):
    note(book, "m1")
    keep(book, "one", "k1")
    clock.advance(3_600)

    assert book.answers("c1", "") == []
    assert book.message("c1", "m1") is None


def test_a_message_that_comes_again_keeps_its_place(book):
    note(book, "m1", callback_url="https://example.org/")
    first = book.message("c1", "m1")
    note(book, "m1")

    assert book.message("c1", "m1") == first


def test_what_is_kept_says_whose_it_is(book):
    note(book, "m1")
    keep(book, "one", "k1")

    assert {entry.person for entry in book.state.list()} == {"ming"}
    assert all(entry.expires_at is not None for entry in book.state.list())


def test_a_book_reads_only_its_own_account(clock):
    state = MemoryState("api_server", clock)
    one, other = new_book(state, clock), new_book(state, clock)
    other._account = "second"
    keep(one, "one", "k1")

    assert other.answers("c1", "") == []
    assert attrs.asdict(one.answers("c1", "")[0])["text"] == "one"
