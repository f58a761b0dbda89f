"""Text that commands terminals, breaks encodings or is too long: kept as it is, shown harmless, exported as UTF-8."""

from __future__ import annotations

import json
import re

import pytest

TEXTS = {
    "clear screen": "before \x1b[2J\x1b[H after",
    "title bar": "\x1b]0;owned\x07 text",
    "clipboard": "\x1b]52;c;ZXZpbA==\x1b\\ text",
    "eight bit": "c1 \x9b2J and \x9d0;x\x9c text",
    "bidi": "user\u202egnp.exe \u2066x\u2069 \u200fend",
    "carriage return": "visible\rhidden",
    "backspaces": "rm -rf\x08\x08\x08\x08\x08\x08ls",
    "separators": "a\u2028b\u2029c\u0085d",
    "family": "👩‍👩‍👧‍👦 and 👍🏽 and 🇩🇪",
    "zalgo": "Z" + "\u0301\u0327\u0489" * 30,
    "cjk": "查看日志，全角　空格",
    "noncharacters": "\ufffe \uffff \U0010ffff \ue000",
    "markup": "[red]not red[/red] {x} %s \\n <b>",
    "json": '"}], "x": [{"',
    "commandlike": "not /new at the beginning",
}
NASTY = ("clear screen", "eight bit", "bidi", "separators")
BYTES = {
    "half a sequence": (b"hell\xc3", "hell\ufffd"),
    "latin": (b"caf\xe9 noir", "caf\ufffd noir"),
    "surrogate": (b"x \xed\xa0\xbd y", None),
    "overlong": (b"x \xc0\xaf y", None),
}
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(*runs):
    """Check that nothing that was printed commands a terminal."""
    for ran in runs:
        assert ran.status == 0, ran.err
        for text in (ran.out, ran.err):
            assert not RAW.search(text), ascii(RAW.search(text))


def user_rows(hermes):
    return [row["content"] for one in hermes.exported() for row in one["messages"] if row["role"] == "user"]


def test_hostile_text_is_kept_whole_and_shown_harmless(hermes):
    texts = list(TEXTS.values())

    asked = hermes("--agent", "echo", stdin="".join(f"{text}\n" for text in texts))
    session = hermes.json("sessions", "list")[0]["session_id"]

    harmless(asked, hermes("sessions", "list"), hermes("sessions", "show", session), hermes("-c", "-q", "more"))
    assert user_rows(hermes)[:-1] == texts
    export = hermes("sessions", "export", "-").out
    assert not RAW.search(export)
    assert len(export.splitlines()) == 1


def test_hostile_text_as_an_argument_heads_a_list_harmlessly(hermes):
    texts = [TEXTS[name] for name in NASTY]

    for text in texts:
        harmless(hermes("-q", text, "--agent", "echo"))

    harmless(hermes("sessions", "list"))
    assert user_rows(hermes) == texts


def test_a_hostile_title_is_cleaned_and_a_hostile_name_is_shown_harmless(hermes):
    session = hermes.json("-q", "hello", "--agent", "echo")["session_id"]
    for text in [TEXTS[name] for name in (*NASTY, "noncharacters")]:
        renamed = hermes("sessions", "rename", session, text)
        if renamed.status == 0:
            harmless(renamed, hermes("sessions", "list"))
            assert not RAW.search(hermes.json("sessions", "list")[0]["title"] or "")
        else:
            assert renamed.err.count("\n") == 1
            assert not RAW.search(renamed.err)


@pytest.mark.parametrize("name", NASTY)
def test_hostile_references_are_refused_harmlessly(hermes, name):
    ran = hermes("sessions", "show", TEXTS[name])

    assert ran.status == 1
    assert not RAW.search(ran.err)
    assert ran.err.count("\n") == 1


def ask_with(hermes, way, raw):
    if way == "argument":
        return hermes("-q", raw, "--agent", "echo")
    if way == "line":
        return hermes("--agent", "echo", stdin=raw + b"\n")
    return hermes("-q", "-", "--agent", "echo", stdin=raw)


@pytest.mark.parametrize("way", ["argument", "line", "all of stdin"])
def test_bytes_that_are_no_utf8_become_a_mark(hermes, way):
    for raw, _ in BYTES.values():
        harmless(ask_with(hermes, way, raw))

    for kept, (_, expected) in zip(user_rows(hermes), BYTES.values(), strict=True):
        assert "\ufffd" in kept
        assert kept.isprintable()
        assert expected is None or kept == expected
    json.dumps(hermes.exported(), ensure_ascii=False).encode("utf-8")
    harmless(hermes("sessions", "list"), hermes("sessions", "show", hermes.exported()[-1]["session_id"]))


def test_bytes_that_are_no_utf8_in_titles_and_references(hermes):
    session = hermes.json("-q", "hello", "--agent", "echo")["session_id"]

    renamed = hermes("sessions", "rename", session, b"caf\xe9")
    listed = hermes("sessions", "list")
    shown = hermes("sessions", "show", b"caf\xe9 nowhere")

    harmless(listed)
    assert renamed.status in (0, 2)
    assert shown.status == 1
    hermes.json("sessions", "list")[0]["title"].encode("utf-8")


def test_nul_characters_are_kept_and_shown_harmless(hermes):
    text = "a\x00b\x00"

    asked = hermes("-q", "-", "--agent", "echo", stdin=text)

    harmless(asked, hermes("sessions", "list"))
    assert user_rows(hermes) == [text]
    exported = hermes.exported()[0]
    assert exported["messages"][1]["content"] == f"echo 1: {text}"


def test_what_a_name_from_outside_holds_is_harmless_too(hermes, home):
    from hermes_core import SessionSource, open_app

    source = SessionSource(
        platform="feishu",
        chat_type="group",
        chat_id="oc_\x1b[2J",
        user_id="ou_\u202e",
        user_name="Eve\x1b]0;x\x07\u202e",
        chat_name="\x9b2J",
        thread_id="t\r1",
    )
    with open_app(home, plugins=False) as app:
        entry = app.ask("hello", source, agent="echo").entry

    harmless(
        hermes("sessions", "list"),
        hermes("sessions", "show", entry.session_id),
        hermes("routes", "list"),
        hermes("routes", "explain", entry.session_key),
        hermes("sessions", "stats"),
        hermes("-r", entry.session_id, "-q", "go on", "--agent", "echo"),
    )
    for command in (("sessions", "list"), ("routes", "list"), ("sessions", "show", entry.session_id)):
        json.dumps(hermes.json(*command), ensure_ascii=False).encode("utf-8")


@pytest.mark.slow
def test_ten_megabytes_through_a_pipe_come_back_whole(hermes):
    text = "".join(f"{number} 长 👩‍💻 \n" for number in range(400_000))[:10_000_000].rstrip()
    assert len(text.encode()) > 7_000_000

    asked = hermes("-q", "-", "--agent", "echo", stdin=text)

    assert asked.status == 0, asked.err
    assert asked.out == f"echo 1: {text}\n"
    (exported,) = hermes.exported()
    assert [row["content"] for row in exported["messages"]] == [text, f"echo 1: {text}"]
    listed = hermes("sessions", "list")
    assert len(listed.out) < 1000
    assert hermes.json("-c", "-q", "and?", "--agent", "echo")["text"] == "echo 2: and?"


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1"])
def test_a_locale_without_utf8_breaks_nothing(hermes, locale):
    env = {"LC_ALL": locale, "PYTHONIOENCODING": "ascii"} if locale == "C" else {"LC_ALL": locale}

    asked = hermes("-q", "查看 👩‍💻".encode(), "--agent", "echo", env=env)
    exported = hermes("sessions", "export", "-", env=env)

    assert (asked.status, exported.status) == (0, 0)
    assert json.loads(exported.out)["messages"][0]["content"] == "查看 👩‍💻"
