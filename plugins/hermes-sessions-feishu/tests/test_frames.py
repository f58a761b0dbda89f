"""Frames against the vectors of the platform's own client, and against anything that may come."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_feishu.fragments import Fragments
from hermes_feishu.frames import CONTROL, DATA, Frame, decode, encode

PING = "08001000180720002a0c0a0474797065120470696e67"
EVENT = (
    "08011063180720012a0d0a047479706512056576656e742a140a0a6d6573736167655f696412066d5f66616b652a080a0373756d1201312a"
    "080a037365711201302a120a0874726163655f69641206745f66616b6542027b7d"
)
TEXTS = st.text(max_size=30).filter(lambda text: text.isprintable())
NUMBERS = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame,
    service=st.integers(-(2**31), 2**31 - 1),
    method=st.integers(0, 2**31 - 1),
    headers=st.lists(st.tuples(TEXTS, TEXTS), max_size=5).map(tuple),
    payload=st.binary(max_size=200),
    seq_id=NUMBERS,
    log_id=NUMBERS,
    payload_encoding=TEXTS,
    payload_type=TEXTS,
    log_id_new=TEXTS,
)


def test_a_ping_has_the_bytes_of_the_vector():
    ping = Frame(service=7, method=CONTROL, headers=(("type", "ping"),))

    assert encode(ping).hex() == PING
    assert decode(bytes.fromhex(PING)) == ping


def test_an_event_has_the_bytes_of_the_vector():
    headers = (("type", "event"), ("message_id", "m_fake"), ("sum", "1"), ("seq", "0"), ("trace_id", "t_fake"))
    event = Frame(service=7, method=DATA, headers=headers, payload=b"{}", seq_id=1, log_id=99)

    assert encode(event).hex() == EVENT
    assert decode(bytes.fromhex(EVENT)) == event


@given(FRAMES)
def test_what_is_encoded_can_be_decoded(frame):
    assert decode(encode(frame)) == frame


@given(st.binary(max_size=300))
@example(b"\x08" + b"\xff" * 11)
@example(b"\x2a\xff\xff\xff\xff\x0f")
@example(bytes.fromhex(EVENT)[:-3])
def test_any_bytes_are_a_frame_or_a_value_error(data):
    try:
        decode(data)
    except ValueError:
        return


def test_fields_that_nobody_knows_are_passed_over():
    more = bytes.fromhex("52026869") + bytes.fromhex("610102030405060708") + bytes.fromhex("6d01020304")

    assert decode(bytes.fromhex(PING) + more) == decode(bytes.fromhex(PING))


def test_a_frame_without_service_or_method_is_none():
    with pytest.raises(ValueError, match="service"):
        decode(bytes.fromhex("08001000"))


def test_pieces_are_put_together_whatever_their_order():
    fragments = Fragments()

    assert fragments.add("m", 3, 2, b"c", 0.0) is None
    assert fragments.add("n", 2, 0, b"x", 0.0) is None
    assert fragments.add("m", 3, 0, b"a", 1.0) is None
    assert fragments.add("m", 3, 0, b"a", 1.0) is None
    assert fragments.add("m", 3, 1, b"b", 2.0) == b"abc"
    assert fragments.add("n", 2, 1, b"y", 2.0) == b"xy"


def test_what_is_not_whole_in_five_seconds_is_dropped():
    fragments = Fragments()
    fragments.add("m", 2, 0, b"a", 0.0)

    assert fragments.add("m", 2, 1, b"b", 5.0) is None
    assert fragments.add("m", 2, 0, b"a", 5.1) == b"ab"


@pytest.mark.parametrize(("count", "number"), [(0, 0), (2, 2), (2, -1), (10_000, 0)])
def test_a_piece_that_cannot_be_is_refused(count, number):
    with pytest.raises(ValueError, match="piece"):
        Fragments().add("m", count, number, b"", 0.0)


def test_pieces_do_not_fill_the_memory():
    fragments = Fragments()
    for number in range(1000):
        fragments.add(f"m{number}", 2, 0, b"x", 0.0)
    for number in range(32):
        fragments.add("big", 100, number, bytes(1 << 20), 0.0)
    with pytest.raises(ValueError, match="too long"):
        fragments.add("big", 100, 32, bytes(1 << 20), 0.0)

    assert len(fragments._heaps) <= 64
