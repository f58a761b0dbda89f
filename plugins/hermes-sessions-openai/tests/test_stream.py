"""The pieces of an answer, read line by line."""

from __future__ import annotations

import json

import pytest

from hermes_openai import stream
from hermes_openai.stream import PieceReader


def read(lines):
    reader = PieceReader()
    pieces = [piece for line in lines for piece in reader.take(line)]
    return [*pieces, *reader.end()], reader


@pytest.fixture
def looked(monkeypatch):
    """Lengths of the texts in which a piece was looked for."""
    lengths = []

    class Decoder(json.JSONDecoder):
        def raw_decode(self, text, idx=0):
            lengths.append(len(text))
            return super().raw_decode(text, idx)

    monkeypatch.setattr(stream, "_DECODER", Decoder())
    return lengths


DOCUMENT = {"choices": [{"message": {"content": str(number)}} for number in range(3000)]}
LINES = json.dumps(DOCUMENT, indent=1).split("\n")


@pytest.mark.parametrize(
    ("lines", "pieces"),
    [(LINES, [DOCUMENT]), ([f"data: {line}" for line in LINES], [DOCUMENT]), ([*LINES[:-1], "]}"], [])],
)
def test_a_large_piece_over_many_lines_is_read_a_few_times(looked, lines, pieces):
    found, reader = read([*lines, ""])

    assert (found, reader.is_broken) == (pieces, not pieces)
    assert sum(looked) < 12 * sum(map(len, lines)) + 2000 * 4096


@pytest.mark.parametrize("indent", [None, 1])
def test_documents_behind_one_another_are_pieces_each(indent):
    documents = [{"n": 1}, {"choices": [{"delta": {"content": "x" * 5000}}]}, {"n": 2}]
    lines = "\n".join(json.dumps(one, indent=indent) for one in documents).split("\n")

    found, reader = read(lines)

    assert (found, reader.is_document, reader.is_broken) == (documents, True, False)


def test_what_no_piece_is_is_kept_up_to_a_limit():
    _, reader = read(["<html>"] * 1000)

    assert reader.other.count("<html>") == 200
