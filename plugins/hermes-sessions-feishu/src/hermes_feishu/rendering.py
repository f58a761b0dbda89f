"""An answer, which is Markdown, in the forms that the platform has: text, post, card.

Short plain text goes as text. Markdown goes as a post, one row to a paragraph, code blocks and tables in rows of their
own. Tables show as tables only in a card. Where a form is refused, the next simpler one is tried.
"""

from __future__ import annotations

import json
import re

import attrs

__all__ = ["CARD", "POST", "TEXT", "Form", "card_of", "escaped", "forms_of", "has_table"]

TEXT, POST, CARD = "text", "post", "interactive"

_MOST_BYTES = {TEXT: 150_000, POST: 30_000, CARD: 30_000}
_MOST_TABLES = 3
_AT = re.compile(r"<(?=\s*/?\s*(?:at|person)\b)", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_TABLE_ROW = re.compile(r"^ {0,3}\|.*\|\s*$")
_TABLE_RULE = re.compile(r"^ {0,3}\|(?:\s*:?-+:?\s*\|)+\s*$")
_MARKDOWN = re.compile(
    r"""
    ^\ {0,3}(?:`{3,}|~{3,}|\#{1,6}\s|>\s?\S|(?:[-*_]\s*){3,}$)  # fence, heading, quote, rule
    | ^\s*(?:[-*+]|\d{1,3}[.)])\s+\S                           # list
    | \*\*[^\s*][^*\n]*\*\* | __[^\s_][^_\n]*__ | ~~[^~\n]+~~   # bold, struck
    | (?<![\w*])\*[^\s*][^*\n]*\*(?![\w*])                     # italic
    | `[^`\n]+`                                                # code
    | \[[^\]\n]+\]\([^)\s]+\)                                  # link
    """,
    re.MULTILINE | re.VERBOSE,
)


@attrs.frozen(kw_only=True)
class Form:
    """One form of an answer. ``content``: JSON, as the platform takes it."""

    type: str
    content: str = attrs.field(repr=False)

    @property
    def is_too_long(self) -> bool:
        """Whether the platform would refuse it for its length."""
        return len(self.content.encode("utf-8", "replace")) > _MOST_BYTES[self.type]


def forms_of(text: str, *, is_one_of_many: bool = False, cards: bool = False) -> tuple[Form, ...]:
    """Return the forms of a part of an answer, the best one first; the last one is text.

    :param is_one_of_many: it is a part of a longer answer, whose parts all look alike.
    :param cards: tables may go as a card.
    """
    safe = escaped(text)
    forms = []
    if cards and 0 < _count_tables(safe) <= _MOST_TABLES:
        forms.append(_card(safe))
    if is_one_of_many or _MARKDOWN.search(safe) or has_table(safe):
        forms.append(_post(safe))
    return (*(form for form in forms if not form.is_too_long), _form(TEXT, {"text": safe}))


def escaped(text: str) -> str:
    """Return a text in which nothing names anybody: what an agent writes must not ring a whole company."""
    return _AT.sub("<\N{ZERO WIDTH SPACE}", text)


def has_table(text: str) -> bool:
    """Return whether a text holds a table of Markdown, outside of code blocks."""
    return _count_tables(text) > 0


def card_of(text: str) -> Form:
    """Return a text as a card, escaped."""
    return _card(escaped(text))


def _count_tables(text: str) -> int:
    return sum(is_table for is_table, _ in _blocks(text))


def _post(text: str) -> Form:
    rows = [[{"tag": "md", "text": f"```\n{block}\n```" if is_table else block}] for is_table, block in _blocks(text)]
    return _form(POST, {"zh_cn": {"title": "", "content": rows or [[{"tag": "md", "text": text}]]}})


def _card(text: str) -> Form:
    element = {"tag": "markdown", "content": text}
    return _form(CARD, {"schema": "2.0", "config": {"update_multi": True}, "body": {"elements": [element]}})


def _form(kind: str, content: object) -> Form:
    return Form(type=kind, content=json.dumps(content, ensure_ascii=False))


def _blocks(text: str) -> list[tuple[bool, str]]:
    """Return the paragraphs of a text, each with whether it is a table; a code block is one, whatever is in it."""
    blocks: list[tuple[bool, str]] = []
    lines: list[str] = []
    fence = ""

    def close() -> None:
        block = "\n".join(lines)
        if block.strip():
            blocks.append((not fence and _is_table(lines), block))
        lines.clear()

    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            lines.append(line)
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                close()
                fence = ""
        elif found:
            close()
            fence = found[1]
            lines.append(line)
        elif not line.strip():
            close()
        else:
            if lines and bool(_TABLE_ROW.match(line)) != bool(_TABLE_ROW.match(lines[-1])):
                close()
            lines.append(line)
    close()
    return blocks


def _is_table(lines: list[str]) -> bool:
    return len(lines) >= 2 and bool(_TABLE_ROW.match(lines[0])) and bool(_TABLE_RULE.match(lines[1]))
