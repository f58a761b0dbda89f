"""Text from outside, made harmless."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_cli.records import json_text
from hermes_cli.safe_text import SafeStream, safe_line, safe_text

HOSTILE = "\x1b]0;owned\x07 \x9b31m \u202etxt.exe \x7f \x00 a\rb \ud800 \u2066x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x00b\x7f", "a␀b␡"),
        ("\u202eevil", "\\u202eevil"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("over\rwritten", "over␍written"),
        ("dos\r\nlines", "dos\nlines"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_what_commands_a_terminal_becomes_visible(text, shown):
    assert safe_text(text) == shown


@pytest.mark.parametrize("text", ["周报汇总 v2", "👩‍💻 x", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "na\u0308ive", "می‌خواهم", "שלום"])
def test_scripts_and_joined_emoji_stay_as_they_are(text):
    assert safe_text(text) == text


def test_a_line_has_no_line_feeds_of_any_kind():
    assert safe_line("  a\n b\u2028c\x85d\t e ") == "a b c d e"


@given(st.text(alphabet=st.characters(), max_size=60))
def test_nothing_printed_holds_a_control_character(text):
    shown = safe_text(text)

    shown.encode("utf-8")
    assert not [each for each in shown if (ord(each) < 32 and each not in "\n\t") or 0x7F <= ord(each) < 0xA0]


@given(st.text(alphabet=st.characters(), max_size=60))
def test_json_keeps_every_character_and_is_valid_utf_8(text):
    line = json_text({"content": text})

    assert json.loads(line.encode("utf-8"))["content"] == text
    assert "\x9b" not in line
    assert "\n" not in line


def test_json_of_hostile_text_commands_no_terminal_and_shows_chinese():
    line = json_text({"content": HOSTILE + "周报"})

    assert json.loads(line)["content"] == HOSTILE + "周报"
    assert not [each for each in line if ord(each) < 32 or 0x7F <= ord(each) < 0xA0 or each in "\u202e\u2066\ud800"]
    assert "周报" in line


def test_a_line_end_that_is_cut_in_two_is_still_a_line_end():
    stream = SafeStream()

    assert stream.feed("a\r") + stream.feed("\nb") + stream.end() == "a\nb"


def test_a_carriage_return_at_the_very_end_is_shown():
    stream = SafeStream()

    assert stream.feed("a\r") + stream.end() == "a␍"
    assert stream.feed("next") == "next"
