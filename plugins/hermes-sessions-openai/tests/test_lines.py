"""The lines of a body, however its bytes come."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_openai.lines import TooLong, lines_of


async def chunks_of(chunks):
    for chunk in chunks:
        yield chunk


def lines(*chunks, most_bytes=10_000):
    async def collect():
        return [line async for line in lines_of(chunks_of(chunks), most_bytes=most_bytes)]

    return asyncio.run(collect())


@given(
    st.lists(st.text(alphabet="ab\u2028\x85\x0c\u5b57\U0001f600", max_size=5)),
    st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1),
    st.lists(st.integers(1, 4)),
)
def test_lines_are_those_of_the_text_wherever_its_bytes_are_parted(texts, ends, sizes):
    ended = [text + ends[place % len(ends)] for place, text in enumerate(texts)]
    rest, chunks = "".join(ended).encode(), []
    # an empty line behind a lone carriage return, ended by a line feed, is one end in the text
    wanted = "".join(ended).replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]

    assert lines(*chunks, rest) == wanted


def test_a_last_line_without_an_end_is_one():
    assert lines(b"a\nb") == ["a", "b"]
    assert lines(b"a\n") == ["a"]
    assert lines() == []


def test_what_is_no_utf8_is_replaced():
    assert lines(b"a\xff\n", b"\xe5\xad") == ["a\ufffd", "\ufffd"]


def test_no_more_bytes_are_taken_than_are_wanted():
    assert lines(b"12345", b"67890", most_bytes=10) == ["1234567890"]
    with pytest.raises(TooLong):
        lines(b"12345", b"678901", most_bytes=10)
