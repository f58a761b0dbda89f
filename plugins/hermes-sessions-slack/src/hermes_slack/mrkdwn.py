"""From Markdown to Slack's own notation.

Everything is escaped first; what is made into notation afterwards was written by nobody but us. So no answer of a model
can name a person, a channel or everybody: ``<!channel>`` arrives as the eleven characters that it is.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

__all__ = ["escaped", "mrkdwn"]

# what stands between two marks has a greatest length, or a line of nothing but marks would cost its square
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?=\S)")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(\s*((?:https?://|mailto:)[^\s()<>|]+(?:\([^\s()<>|]*\)[^\s()<>|]*)*)\s*\)")
_BOLD = re.compile(
    r"(?<![\\*\w])(\*\*)(?=\S)(.{1,300}?)(?<=\S)\*\*(?!\*)|(?<![\\_\w])(__)(?=\S)(.{1,300}?)(?<=\S)__(?![_\w])"
)
_BOLD_CJK = re.compile(r"\*\*(?=\S)([^*\n]{1,300}?)(?<=\S)\*\*")
_SLANTED = re.compile(r"(?<![\\*\w])\*(?![\s*])([^*\n]+?)(?<![\s*])\*(?![*\w])")
_STRUCK = re.compile(r"(?<![\\~])~~(?=\S)(.{1,300}?)(?<=\S)~~(?!~)")
_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_BEGIN, _END = "\ue000", "\ue001"
"""Of what must not be touched any more; characters of nobody's, removed from what comes."""
_STRONG = "\ue002"
_GAP = "\u200b"
"""Stands where a mark touches a wide letter on its outer side: Slack would show the mark, and there is no blank."""


def escaped(text: str) -> str:
    """Return a text with the three characters escaped that mean something in Slack's notation."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(text: str) -> str:
    """Return a text as it is posted. A text without any Markdown is only escaped."""
    text = re.sub(f"[{_BEGIN}{_END}{_STRONG}]", "", text)
    lines: list[str] = []
    for kind, group in groupby(_marked(text.split("\n")), key=lambda each: each[0]):
        block = [line for _, line in group]
        lines += _table(block) if kind == "table" else [_SHOWN[kind](line) for line in block]
    return "\n".join(lines)


def _marked(lines: list[str]) -> list[tuple[str, str]]:
    """Return each line with what it is: ``fence``, ``code``, ``table`` or ``words``."""
    found: list[tuple[str, str]] = []
    fence = ""
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            ends = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            found.append(("fence" if ends else "code", line))
            fence = "" if ends else fence
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            found.append(("fence", line))
        else:
            follows = (
                index + 1 < len(lines) and "|" in line and "|" in lines[index + 1] and _RULE.match(lines[index + 1])
            )
            goes_on = bool(found) and found[-1][0] == "table" and "|" in line
            found.append(("table" if follows or goes_on else "words", line))
    return found


def _fence(_line: str) -> str:
    return "```"  # the name of a language would be shown as the first line


def _words(line: str) -> str:
    kept: list[str] = []

    def keep(words: str) -> str:
        kept.append(words)
        return f"{_BEGIN}{len(kept) - 1}{_END}"

    words = _CODE.sub(lambda found: keep(f"`{escaped(found[2])}`"), line)
    words = escaped(words)
    words = _LINK.sub(lambda found: keep(_link(found[1], found[2])), words)
    heading = _HEADING.match(words)
    if heading:
        inner = _styled(heading[1]).replace(_STRONG, "")
        words = f"{_STRONG}{inner}{_STRONG}" if inner else ""
    else:
        words = _styled(_BULLET.sub("\\1\u2022 ", words))
    words = re.sub(f"{_BEGIN}(\\d+){_END}", lambda found: kept[int(found[1])], words)
    return words.replace(_STRONG, "*")


_SHOWN = {"fence": _fence, "code": escaped, "words": _words}


def _link(label: str, url: str) -> str:
    label = label.replace("|", "\u00a6").strip()
    return f"<{url}|{label}>" if label and label != url else f"<{url}>"


def _styled(words: str) -> str:
    words = _BOLD.sub(lambda found: _around(found, _STRONG, found[2] or found[4]), words)
    words = _BOLD_CJK.sub(lambda found: _around(found, _STRONG, found[1]), words)
    words = _SLANTED.sub(lambda found: _around(found, "_", found[1]), words)
    return _STRUCK.sub(lambda found: _around(found, "~", found[1]), words)


def _around(found: re.Match[str], mark: str, inner: str) -> str:
    """Return words between marks, with a gap where a wide letter touches one."""
    text = found.string
    before = text[found.start() - 1 : found.start()] if found.start() else ""
    after = text[found.end() : found.end() + 1]
    return f"{_GAP if _touches(before) else ''}{mark}{inner}{mark}{_GAP if _touches(after) else ''}"


def _touches(letter: str) -> bool:
    return bool(letter) and not letter.isspace() and unicodedata.east_asian_width(letter) in "WF"


# --- tables


def _table(rows: list[str]) -> list[str]:
    cells = [_cells(row) for row in rows if not _RULE.match(row)]
    count = max(map(len, cells))
    cells = [[*row, *[""] * (count - len(row))] for row in cells]
    widths = [max(_width(row[column]) for row in cells) for column in range(count)]
    shown = [
        "  ".join(cell + " " * (widths[at] - _width(cell)) for at, cell in enumerate(row)).rstrip() for row in cells
    ]
    return ["```", *map(escaped, [shown[0], "  ".join("-" * width for width in widths), *shown[1:]]), "```"]


def _cells(row: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", row.strip().strip("|"))
    return [re.sub(r"\*\*|`", "", part).replace("\\|", "|").strip() for part in parts]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
