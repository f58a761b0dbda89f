"""Who may call the webhook: vectors, and whoever tries without the keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_feishu.credentials import Credentials
from hermes_feishu.crypto import decrypt, encrypt, sign
from hermes_feishu.verification import Opened, Refusal, Verifier

KEY = "fake-encrypt-key-0001"
PLAIN = b'{"schema":"2.0","header":{"event_id":"ev_fake_0001"}}'
CIPHER = "AAECAwQFBgcICQoLDA0ODyO/xE0ZO33286DvxfDwz0Z/lqDKkGZ9IzzMXeGMZroEWTeJiOTsq6ngcQHYv5w7C+1dq/0dP+T3Uwl2o+n4Vb4="
SIGNATURE = "cad3df57a4eaa082119be4da5a8911f692264dee6465c55efd9c4e3f02f11a11"
BODY = f'{{"encrypt":"{CIPHER}"}}'.encode()
NOW_S = 1_700_000_000
HEADERS = {
    "X-Lark-Signature": SIGNATURE,
    "X-Lark-Request-Timestamp": str(NOW_S),
    "X-Lark-Request-Nonce": "fake-nonce-1",
}


class Clock:
    def __init__(self, ahead_s=0):
        self.ahead_s = ahead_s

    def now(self):
        return (NOW_S + self.ahead_s) * 1000

    def monotonic(self):
        return 0.0


def opened(body=BODY, headers=None, *, key=KEY, token="", ahead_s=0):
    credentials = Credentials(app_secret="s", encrypt_key=key, verification_token=token)
    return Verifier(credentials, Clock(ahead_s)).open(HEADERS if headers is None else headers, body)


def sealed(value):
    body = json.dumps({"encrypt": encrypt(json.dumps(value).encode(), KEY, bytes(16))}).encode()
    return body, HEADERS | {"X-Lark-Signature": sign(str(NOW_S), "fake-nonce-1", KEY, body)}


def test_encryption_and_signature_are_those_of_the_vectors():
    assert encrypt(PLAIN, KEY, bytes(range(16))) == CIPHER
    assert decrypt(CIPHER, KEY) == PLAIN
    assert sign(str(NOW_S), "fake-nonce-1", KEY, BODY) == SIGNATURE


def test_a_signed_call_is_opened_whatever_case_its_headers_have():
    assert opened() == Opened(payload=PLAIN)
    assert opened(headers={name.lower(): value for name, value in HEADERS.items()}) == Opened(payload=PLAIN)


@pytest.mark.parametrize("ahead_s", [-301, 301, 86_400])
def test_a_call_that_was_recorded_cannot_be_repeated_later(ahead_s):
    assert opened(ahead_s=ahead_s).status == 401


@pytest.mark.parametrize("ahead_s", [-299, 299])
def test_clocks_may_differ_by_five_minutes(ahead_s):
    assert isinstance(opened(ahead_s=ahead_s), Opened)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        HEADERS | {"X-Lark-Signature": SIGNATURE[:-1] + "0"},
        HEADERS | {"X-Lark-Signature": "é"},
        HEADERS | {"X-Lark-Request-Nonce": "another"},
        HEADERS | {"X-Lark-Request-Timestamp": str(NOW_S + 1)},
        {name: value for name, value in HEADERS.items() if name != "X-Lark-Request-Timestamp"},
    ],
)
def test_a_call_without_a_good_signature_is_refused(headers):
    assert opened(headers=headers).status == 401


def test_one_changed_byte_of_the_body_is_noticed():
    assert opened(BODY.replace(b"{", b"{ ", 1)).status == 401


def test_what_is_not_encrypted_is_refused_where_there_is_a_key():
    assert opened(PLAIN).reason == "the body is not encrypted"


def test_what_is_encrypted_cannot_be_read_without_the_key():
    refusal = opened(key="", token="t")

    assert (refusal.status, "encrypt key" in refusal.reason) == (401, True)


def test_the_challenge_may_come_unsigned_and_is_answered():
    body, _ = sealed({"type": "url_verification", "challenge": "chal_fake", "token": "vt"})

    assert opened(body, {}, token="vt").challenge == "chal_fake"
    assert opened(body, {}, token="another").status == 401


def test_without_an_encrypt_key_the_token_decides():
    event = json.dumps({"header": {"token": "vt", "event_type": "x"}}).encode()

    assert opened(event, {}, key="", token="vt") == Opened(payload=event)
    assert opened(event, {}, key="", token="other").status == 401
    assert opened(b'{"header":{}}', {}, key="", token="vt").status == 401


def test_with_both_keys_both_are_looked_at():
    body, headers = sealed({"header": {"token": "other"}})

    assert opened(body, headers, token="vt").status == 401
    assert isinstance(opened(body, headers, token="other"), Opened)


@given(st.binary(max_size=100) | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_anything_else_is_refused_and_never_raises(body):
    assert isinstance(opened(body), Refusal)
    assert isinstance(opened(body, key="", token="t"), Refusal)


@given(st.text(alphabet="ABCD+/=", max_size=80))
def test_what_no_key_encrypted_is_a_value_error(text):
    try:
        decrypt(text, KEY)
    except ValueError:
        return
