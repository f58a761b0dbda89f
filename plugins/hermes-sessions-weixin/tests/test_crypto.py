"""The vectors of the facts, and the forms in which keys travel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.errors import Rejected
from hermes_weixin.crypto import cipher_size, decode_key, decrypt, encrypt, outbound_key

KEY = bytes.fromhex("00112233445566778899aabbccddeeff")


def test_the_cipher_gives_the_known_bytes():
    found = encrypt(KEY, b"hello weixin cdn")

    assert found.hex() == "3dc3362eaba939744a8d8fde0922a74300657ea140655a44782747705d422fad"


def test_a_key_travels_as_its_hexadecimal_text():
    assert outbound_key(KEY) == "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY="


@pytest.mark.parametrize(
    ("aes_key", "hex_key"),
    [
        ("ABEiM0RVZneImaq7zN3u/w==", ""),
        ("MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=", ""),
        ("never looked at", "00112233445566778899aabbccddeeff"),
    ],
)
def test_every_form_of_a_key_is_read(aes_key, hex_key):
    assert decode_key(aes_key, hex_key) == KEY


def test_what_has_no_key_is_plain():
    assert decode_key("") is None


@pytest.mark.parametrize("aes_key", ["!!", "AAAA", "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmc="])
def test_what_is_no_key_is_refused(aes_key):
    with pytest.raises(Rejected, match="key of the attachment"):
        decode_key(aes_key)


@given(st.binary(max_size=200))
def test_what_was_enciphered_is_had_again(data):
    found = encrypt(KEY, data)

    assert len(found) == cipher_size(len(data))
    assert decrypt(KEY, found) == data


@pytest.mark.parametrize("data", [b"", b"short", bytes(16)])
def test_damaged_bytes_are_refused(data):
    with pytest.raises(Rejected):
        decrypt(bytes(range(16)), data)
