"""What the WeChat client makes of Markdown, and what it does not.

It shows code, tables, rules, bold, headings of four levels, lists, quotes, links and strike-through. Pictures go
entirely, headings of the fifth and sixth level lose their marks, and so does slanted text with CJK in it, where the
marks would be shown. Code is never touched.
"""

from __future__ import annotations

import re

__all__ = ["filtered"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PICTURE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_DEEP_HEADING = re.compile(r"^ {0,3}#{5,6}\s+(.*?)\s*#*\s*$")
# CJK has no spaces between words, so its letters end no slant; ASCII ones do for _, which stands inside of names
_SLANTED = re.compile(
    r"(?<![*\\])(\*{3}|\*)(?![\s*])([^\n*]+?)(?<!\s)\1(?!\*)"
    r"|(?<![A-Za-z0-9_\\])(_{3}|_)(?![\s_])([^\n_]+?)(?<!\s)\3(?![A-Za-z0-9_])"
)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def filtered(text: str) -> str:
    """Return ``text`` as it is sent; a text of nothing but pictures becomes their descriptions."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
            lines.append(line)
        else:
            lines.append(_line(line))
    found = "\n".join(lines)
    if found.strip():
        return found
    return re.sub(r"!\[([^\]\n]*)\]\([^)\n]*\)", r"\1", text).strip() or text


def _line(line: str) -> str:
    heading = _DEEP_HEADING.match(line)
    if heading:
        line = heading[1]
    pieces, at = [], 0
    for code in _CODE.finditer(line):
        pieces += [_words(line[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*pieces, _words(line[at:])])


def _words(text: str) -> str:
    return _SLANTED.sub(_upright, _PICTURE.sub("", text))


def _upright(found: re.Match[str]) -> str:
    words: str = found[2] or found[4]
    return words if _CJK.search(words) else found[0]
