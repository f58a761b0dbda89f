"""What comes in, and what does not: every request is answered, and nothing half right becomes a message."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.errors import StoreBusy, StoreStopped
from hermes_hookspecs.ports.platform import CONNECTED
from hermes_webhook.signing import SIGNATURE, TIMESTAMP, headers_of, signature_of

GOOD = {"id": "m1", "user_id": "ming", "text": "hello"}


def posted(stage_of, fake, *requests):
    """Post bodies, with headers where there are some; return statuses and what was stored."""
    stage = stage_of(fake)
    answers = []

    async def play():
        async with stage.running() as account:
            for body, headers in requests:
                async with fake.caller.client.post(
                    fake.url(), data=body, headers=fake.headers("default", body) if headers is None else headers
                ) as response:
                    answers.append((response.status, json.loads(await response.read())))
            stage.events = list(account.inlet.events)
            stage.begun = account.inlet.begun

    stage.play(play)
    return answers, stage


# --- bodies


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b"[" * 100_000, "no JSON|nested"),
        (b'{"id": NaN}', "NaN"),
        (b'{"id": "a", "id": "b", "user_id": "u", "text": "t"}', "twice"),
        ({**GOOD, "thred_id": "t"}, "thred_id"),
        ({**GOOD, "id": ""}, "id is missing"),
        ({**GOOD, "id": 7}, "id is no text"),
        ({**GOOD, "id": "x" * 201}, "longer than 200"),
        ({**GOOD, "user_id": "a\x00b"}, "control"),
        ({**GOOD, "text": "  \n"}, "text is missing"),
        ({**GOOD, "text": "\ud800"}, "half a character"),
        ({**GOOD, "is_bot": "yes"}, "neither true nor false"),
        ({**GOOD, "chat_type": "party"}, "chat_type"),
        ({**GOOD, "chat_type": "group"}, "chat_id is missing"),
        ({**GOOD, "recalls": "m0"}, "recalls"),
        ({"id": "m1", "text": "hello"}, "user_id is missing"),
        ({**GOOD, "type": "recall"}, "recalls is missing"),
        ({**GOOD, "type": "recall", "recalls": "m0"}, "no text"),
        ({**GOOD, "callback_url": "http://127.0.0.1:1/other"}, "callback_allow"),
    ],
)
def test_a_body_that_is_not_as_documented_is_refused_and_says_why(stage_of, webhook, body, named):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    ((status, said),), stage = posted(stage_of, webhook, (raw, None))

    assert status == 400
    assert any(each in said["error"] for each in named.split("|")), said
    assert stage.begun == []


def test_the_api_takes_no_callback_address(stage_of, api):
    body = json.dumps({**GOOD, "callback_url": "https://example.org/"}).encode()

    ((status, said),), stage = posted(stage_of, api, (body, None))

    assert (status, stage.begun) == (400, [])
    assert "callback_url" in said["error"]


def test_a_direct_message_needs_three_fields(stage_of, webhook):
    ((status, said),), stage = posted(stage_of, webhook, (json.dumps(GOOD).encode(), None))

    (event,) = stage.events
    assert (status, said) == (202, {"status": "accepted", "id": "m1", "chat_id": "ming"})
    assert (event.source.chat_id, event.source.chat_type, event.text) == ("ming", "dm", "hello")


def test_the_header_stands_for_the_id_and_may_not_differ_from_it(stage_of, api):
    body = json.dumps({"user_id": "ming", "text": "hello"}).encode()
    headers = api.headers("default", body) | {"Idempotency-Key": "k1"}

    answers, stage = posted(
        stage_of, api, (body, headers), (body, headers), (json.dumps(GOOD).encode(), headers), (body, None)
    )

    assert [(status, said.get("status")) for status, said in answers[:2]] == [(202, "accepted"), (200, "duplicate")]
    assert [status for status, _ in answers[2:]] == [400, 400]
    assert [event.source.message_id for event in stage.events] == ["k1"]


def test_ids_are_opaque_and_never_run_together(stage_of, api):
    pairs = [("a/b", "c"), ("a", "b/c"), ("a:b", "c"), ("a", "b:c"), ("A", "b:c"), ("a%3Ab", "c")]
    bodies = [json.dumps({**GOOD, "chat_id": chat, "id": name}).encode() for chat, name in pairs]

    answers, stage = posted(stage_of, api, *[(body, None) for body in bodies])

    assert [status for status, _ in answers] == [202] * len(pairs)
    assert len({event.identities for event in stage.events}) == len(pairs)


def test_a_recall_names_what_its_sender_took_back(stage_of, webhook):
    bodies = [GOOD, {"type": "recall", "id": "r1", "user_id": "ming", "recalls": "m1"}]

    answers, stage = posted(stage_of, webhook, *[(json.dumps(body).encode(), None) for body in bodies])

    message, recall = stage.events
    assert [status for status, _ in answers] == [202, 202]
    assert (recall.recalls, recall.text) == (message.identities[0], "")


@pytest.mark.parametrize("kind", ["unknown", "own"])
def test_what_is_not_for_us_is_acknowledged_and_passed_over(stage_of, webhook, kind):
    body = {"type": "reaction", **GOOD} if kind == "unknown" else {**GOOD, "user_id": "hermes"}

    ((status, said),), stage = posted(stage_of, webhook, (json.dumps(body).encode(), None))

    assert (status, said["status"], stage.begun) == (200, "ignored", [])


# --- signatures and tokens


def _signed(body, *, ago_s=0, secret="a-secret-of-webhook-default"):
    import time

    return headers_of(secret, body, int((time.time() - ago_s) * 1000))


BODY = json.dumps(GOOD).encode()


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({}, TIMESTAMP),
        ({TIMESTAMP: "soon", SIGNATURE: "sha256=00"}, TIMESTAMP),
        ({TIMESTAMP: "9" * 30, SIGNATURE: "sha256=00"}, TIMESTAMP),
        ({TIMESTAMP: "1700000000"}, SIGNATURE),
        (_signed(b"another body"), SIGNATURE),
        (_signed(BODY, secret="some other secret"), SIGNATURE),
        ({**_signed(BODY), TIMESTAMP: "1700000000"}, SIGNATURE),
        ({**_signed(BODY), SIGNATURE: "sha256=é"}, SIGNATURE),
    ],
)
def test_a_signature_that_is_wrong_or_old_lets_nobody_in(stage_of, webhook, headers, named):
    ((status, said),), stage = posted(stage_of, webhook, (BODY, headers))

    assert (status, stage.begun) == (401, [])
    assert any(each in said["error"] for each in named.split("|")), said


@pytest.mark.parametrize("ago_s", [330, -330])
def test_a_clock_that_is_off_is_told_to_those_who_know_the_secret(stage_of, webhook, ago_s):
    ((status, said),), stage = posted(stage_of, webhook, (BODY, _signed(BODY, ago_s=ago_s)))

    assert (status, stage.begun) == (401, [])
    assert "s away from our clock; 300 s are allowed" in said["error"]


def test_a_replay_within_the_window_is_a_duplicate(stage_of, webhook):
    headers = _signed(BODY, ago_s=60)

    answers, stage = posted(stage_of, webhook, (BODY, headers), (BODY, headers))

    assert [(status, said["status"]) for status, said in answers] == [(202, "accepted"), (200, "duplicate")]
    assert len(stage.events) == 1


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer wrong-token-wrong-token", "Basic a-secret-of-api_server-default"]
)
def test_a_token_that_is_wrong_lets_nobody_in(stage_of, api, given):
    headers = {} if given is None else {"Authorization": given}

    ((status, _),), stage = posted(stage_of, api, (BODY, headers))

    assert (status, stage.begun) == (401, [])


def test_a_signature_is_the_documented_one():
    # printf '1700000000.{"text":"鱼"}' | openssl dgst -sha256 -hmac abcdefghijklmnop
    assert signature_of("abcdefghijklmnop", "1700000000", '{"text":"鱼"}'.encode()) == (
        "sha256=a5b163a67548dcc4375c62bdd2b63f72c20537f9d6321cfa6f97caf70946b3d9"
    )


def test_reading_is_signed_over_what_is_asked_for(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running():
            good = webhook.headers("default", b"/chats/ming/answers")
            base = webhook.url().removesuffix("/messages")
            async with webhook.caller.client.get(f"{base}/chats/ming/answers", headers=good) as response:
                assert response.status == 200
            async with webhook.caller.client.get(f"{base}/chats/lihua/answers", headers=good) as response:
                assert response.status == 401

    stage.play(play)


def test_refused_requests_are_counted_and_said(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            for _ in range(3):
                assert await webhook.caller.raw("default", BODY, {}) == 401
            assert await webhook.caller.raw("default", b"{") == 400
            await account.inlet.until(lambda: "refused" in account.inlet.reports[-1][1], "the counts are reported")
            state, detail = account.inlet.reports[-1]
            assert state == CONNECTED
            assert "1 malformed, 3 not signed as they should be" in detail

    stage.play(play)


# --- bodies that are too much


def test_a_body_that_is_too_large_is_not_read(stage_of, webhook):
    webhook.settings["max_body_kib"] = 2
    body = json.dumps({**GOOD, "text": "x" * 3000}).encode()
    stage = stage_of(webhook)

    async def in_pieces():
        for start in range(0, len(body), 500):
            yield body[start : start + 500]

    async def play():
        async with stage.running() as account:
            assert await webhook.caller.raw("default", body) == 413
            async with webhook.caller.client.post(
                webhook.url(), data=in_pieces(), headers=webhook.headers("default", body)
            ) as response:
                assert response.status == 413
            await account.hear()
            assert len(account.inlet.events) == 1

    stage.play(play)


def test_a_body_that_does_not_come_is_given_up(stage_of, webhook):
    webhook.settings["body_timeout_s"] = 0.1
    stage = stage_of(webhook)

    async def play():
        import asyncio

        async with stage.running():
            host, port = webhook.listen.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /webhook/default HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhalf")
            async with asyncio.timeout(10):
                assert b"408" in await reader.readline()
            writer.close()

    stage.play(play)


def test_a_compressed_body_is_refused(stage_of, webhook):
    ((status, _),), stage = posted(stage_of, webhook, (BODY, _signed(BODY) | {"Content-Encoding": "br"}))

    assert (status, stage.begun) == (415, [])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/webhook/default", 405),
        ("POST", "/webhook/default/else", 404),
        ("POST", "/webhook/default2", 404),
        ("POST", "/webhook", 404),
        ("GET", "/", 404),
        ("POST", "/webhook/default/", 202),
        ("POST", "/webhook/default", 202),
    ],
)
def test_other_methods_and_places_are_told_apart(stage_of, webhook, method, path, status):
    stage = stage_of(webhook)

    async def play():
        async with stage.running():
            url = f"http://{webhook.listen}{path}"
            async with webhook.caller.client.request(method, url, data=BODY, headers=_signed(BODY)) as response:
                assert response.status == status

    stage.play(play)


# --- a store that does not take it


def test_what_was_not_stored_is_to_be_sent_again(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            account.inlet.fail(StoreBusy("locked"))
            async with webhook.caller.client.post(webhook.url(), data=BODY, headers=_signed(BODY)) as response:
                assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert await webhook.caller.raw("default", BODY) == 202

    stage.play(play)


def test_a_store_that_stopped_ends_the_run(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            account.inlet.fail(StoreStopped("the file was replaced"))
            assert await webhook.caller.raw("default", BODY) == 503
            await webhook.connected()
            while not account.crashes:
                await webhook.caller.raw("default", b"", {})
            assert isinstance(account.crashes[0], StoreStopped)

    stage.play(play)


def test_who_is_refused_is_told(stage_of, webhook):
    stage = stage_of(webhook)

    async def play():
        async with stage.running() as account:
            account.inlet.refuse("on the deny list")
            async with webhook.caller.client.post(webhook.url(), data=BODY, headers=_signed(BODY)) as response:
                said = await response.json()
            assert (response.status, said["status"], said["reason"]) == (403, "refused", "on the deny list")

    stage.play(play)
