"""The Events API: only what Slack signed now, answered when it is stored."""

from __future__ import annotations

import time

import pytest
from slack_sdk.signature import SignatureVerifier

from hermes_hookspecs.errors import StoreFull
from hermes_slack.signing import is_signed, signature_of
from hermes_slack.testing.payloads import callback, command, message

SECRET, AT, BODY = (
    "fake_signing_secret_0123456789abcdef",
    "1700000000",
    b'{"type":"url_verification","challenge":"chal_fake"}',
)
SIGNATURE = "v0=1942bd0d7ec582ffc75b7f6e6243f9f310de0687641eb3444e82acaedd787e05"


def _headers(at=AT, signature=SIGNATURE):
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature}


def test_a_signature_is_that_of_slack():
    assert signature_of(SECRET, AT, BODY) == SIGNATURE
    assert SignatureVerifier(SECRET).generate_signature(timestamp=AT, body=BODY) == SIGNATURE
    assert is_signed(_headers(), BODY, secret=SECRET, now=int(AT) * 1000)


@pytest.mark.parametrize(
    ("headers", "body", "ahead_s"),
    [
        (_headers(), BODY + b" ", 0),
        (_headers(), BODY, 301),
        (_headers(), BODY, -301),
        (_headers(signature=SIGNATURE[:-1] + "0"), BODY, 0),
        (_headers(signature=""), BODY, 0),
        (_headers(signature="v0=ü"), BODY, 0),
        (_headers(at="soon"), BODY, 0),
        (_headers(at="-1"), BODY, 0),
        (_headers(at="9" * 400), BODY, 0),
        ({}, BODY, 0),
    ],
)
def test_what_is_not_signed_or_not_of_now_is_not_slacks(headers, body, ahead_s):
    assert not is_signed(headers, body, secret=SECRET, now=(int(AT) + ahead_s) * 1000)
    assert not is_signed(headers, body, secret="", now=int(AT) * 1000)


def test_requests_are_answered_by_what_became_of_them(new_stage, run):
    stage = new_stage(mode="http")

    async def push(payload, **more):
        return await stage.server.push(stage.app, more.pop("url", stage.fake.address()), payload, **more)

    async def main():
        async with stage.running():
            hello = callback(stage.app, stage.here, message("D1", "U1", "hello", "1790000000.000100"), "Ev1")
            assert await push({"type": "url_verification", "challenge": "c1"}) == (200, "c1")
            assert await push(hello, signature="v0=" + "0" * 64) == (401, "")
            assert await push(hello, timestamp=str(int(time.time()) - 301)) == (401, "")
            assert await push(hello) == (200, "")
            assert await push(hello, retry=1) == (200, ""), "a retry is known, and not dropped unseen"
            assert await push({"type": "a_type_of_tomorrow"}) == (200, "")
            assert await push(hello, url=stage.fake.address("nobody")) == (404, "")
            slash = command(stage.app, stage.here, "D1", "U1", name="/new", text="", trigger_id="t1")
            assert await push(slash, form=True) == (200, "")
            assert (await push({"type": "app_rate_limited", "team_id": "T0FAKEAAA"}))[0] == 200

    run(main())

    assert (stage.inlet.texts, stage.inlet.duplicates) == (["hello", "/new"], 1)


def test_what_cannot_be_stored_in_time_is_left_to_a_retry_and_is_one_message(new_stage, run):
    stage = new_stage(mode="http")

    async def main():
        async with stage.running():
            stage.inlet.failures = [StoreFull("no space")] * 100_000
            hello = callback(stage.app, stage.here, message("D1", "U1", "hello", "1790000000.000100"), "Ev1")
            status, _ = await stage.server.push(stage.app, stage.fake.address(), hello)
            stage.inlet.failures.clear()
            again, _ = await stage.server.push(stage.app, stage.fake.address(), hello, retry=1)
            return status, again

    assert run(main()) == (503, 200)
    assert (stage.inlet.texts, stage.inlet.duplicates) == (["hello"], 1)
