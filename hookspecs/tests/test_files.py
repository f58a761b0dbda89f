"""Files on their way out: names that are safe anywhere, media types, and the line that stands for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.files import LONGEST_NAME, OutgoingFile, file_line, file_name, kind_of, media_type_of, size_text
from hermes_hookspecs.messages import Attachment


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("报告 1.pdf", "报告 1.pdf"),
        ("/etc/passwd", "passwd"),
        ("../../.ssh/id_rsa", "id_rsa"),
        ("C:\\Users\\me\\plan.txt", "plan.txt"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("\u202egpj.exe", "_gpj.exe"),
        ("a\x00b\x1b[31m.txt", "a_b_[31m.txt"),
        ('a"b<c>.txt', "a_b_c_.txt"),
        ("half \ud800.txt", "half _.txt"),
        ("x" * 200 + ".pdf", "x" * (LONGEST_NAME - 4) + ".pdf"),
        ("x" * 200, "x" * LONGEST_NAME),
        ("x" * 99 + " y", "x" * 99),
        ("\N{CJK UNIFIED IDEOGRAPH-6F22}" * 90 + ".pdf", "\N{CJK UNIFIED IDEOGRAPH-6F22}" * 78 + ".pdf"),
    ],
)
def test_a_name_is_safe_anywhere(said, name):
    assert OutgoingFile(name=said, data=b"").name == file_name(said) == name


@given(st.text(max_size=300))
def test_no_name_leads_elsewhere_or_is_hidden(said):
    name = file_name(said)

    assert 0 < len(name) <= LONGEST_NAME
    assert len(name.encode()) <= 240
    assert not set(name) & set('/\\:*?"<>|\x00\n\r\x1b\u202e')
    assert not name.startswith(".")
    assert file_name(name) == name
    assert name.encode()


@pytest.mark.parametrize(
    ("name", "media_type", "kind"),
    [
        ("a.png", "image/png", "image"),
        ("a.MP3", "audio/mpeg", "audio"),
        ("a.mp4", "video/mp4", "video"),
        ("a.pdf", "application/pdf", "document"),
        ("a", "application/octet-stream", "document"),
    ],
)
def test_a_suffix_says_what_a_file_is(name, media_type, kind):
    file = OutgoingFile(name=name, data=b"12")

    assert (file.media_type, file.kind, file.size) == (media_type, kind, 2)
    assert (media_type_of(name), kind_of(media_type)) == (media_type, kind)


def test_a_given_media_type_counts():
    assert OutgoingFile(name="a.bin", data=b"", media_type="image/webp").kind == "image"


def test_bytes_never_reach_a_log():
    assert "secret" not in repr(OutgoingFile(name="a", data=b"secret"))


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (12_345, "12 kB"), (1_250_000, "1.2 MB")]
)
def test_a_size_is_told_in_few_words(size, text):
    assert size_text(size) == text


def test_a_line_stands_for_a_file():
    file = Attachment(kind="document", name="report.pdf", size=12_345)

    assert file_line(file) == "[report.pdf, 12 kB]"
    assert file_line(file, "it is gone") == "[report.pdf, 12 kB: it is gone]"
    assert file_line(Attachment(kind="image")) == "[image]"
    assert len(file_line(Attachment(kind="image", name="x" * 100, size=1), "it is not kept any more")) < 100
