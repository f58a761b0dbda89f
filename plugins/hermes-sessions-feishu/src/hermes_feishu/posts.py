"""Rich text as it comes: posts, which are rows of elements, and cards, which are trees of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.mentions import EVERYBODY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["card_text", "post_media", "post_text"]

_DEEPEST = 24
_INSIDE = ("header", "title", "text", "fields", "elements", "columns", "actions", "extra", "content", "body", "i18n")
_BESIDE = frozenset({"text", "a", "at", "emotion", "img"})
_WORDS = frozenset({"text", "plain_text", "lark_md", "markdown", "md", "standard_icon"})


def post_text(content: Mapping[str, object]) -> str:
    """Return the text of a post: title and rows, each on its line."""
    post = _unwrapped(content)
    title = text_of(post.get("title"))
    rows = post.get("content")
    lines = [
        "".join(_inline(mapping_of(one)) for one in row) if isinstance(row, list) else ""
        for row in (rows if isinstance(rows, list) else ())
    ]
    return "\n".join([title, *lines] if title else lines)


def post_media(content: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield kind (``image``, ``video``) and key of what is shown in a post, in order."""
    rows = _unwrapped(content).get("content")
    for row in rows if isinstance(rows, list) else ():
        for one in row if isinstance(row, list) else ():
            element = mapping_of(one)
            tag = element.get("tag")
            key = text_of(element.get("image_key" if tag == "img" else "file_key"))
            if tag in ("img", "media") and key:
                yield ("image" if tag == "img" else "video"), key


def card_text(content: Mapping[str, object]) -> str:
    """Return what can be read of a card; ``""`` where that is nothing, as of a stub."""
    inner = text_of(content.get("json_card"))
    if inner:
        try:
            content = mapping_of(json.loads(inner))
        except (ValueError, RecursionError):
            return ""
    return "\n".join(line for line in _lines(content, 0) if line.strip())


def _unwrapped(content: Mapping[str, object]) -> Mapping[str, object]:
    """Return a post without the language around it, which some have."""
    if "content" in content:
        return content
    inner = mapping_of(content.get("post")) or content
    return next((one for one in map(mapping_of, inner.values()) if "content" in one), content)


def _inline(element: Mapping[str, object]) -> str:
    tag = text_of(element.get("tag"))
    words = text_of(element.get("text")) or text_of(element.get("content"))
    if tag == "a":
        href = text_of(element.get("href"))
        return f"[{words}]({href})" if words and href and words != href else href or words
    if tag == "at":
        return _named(element)
    if tag == "code_block":
        return f"```{text_of(element.get('language')).lower()}\n{words.rstrip()}\n```"
    if tag == "img":
        return "[image]"
    if tag == "media":
        return "[video]"
    if tag == "emotion":
        return f"[{text_of(element.get('emoji_type')) or 'emoji'}]"
    return "---" if tag == "hr" else words


def _named(element: Mapping[str, object]) -> str:
    """Return the placeholder of somebody who is named, or the name where there is none."""
    key = text_of(element.get("user_id"))
    if key in ("all", EVERYBODY):
        return EVERYBODY
    name = text_of(element.get("user_name"))
    return key if key.startswith("@_user_") else f"@{name or key}"


def _lines(value: object, depth: int) -> Iterator[str]:
    """Yield the lines of a part of a card, whatever version it is of."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        yield from _row(value, depth)
        return
    element = mapping_of(value)
    tag = text_of(element.get("tag"))
    if tag == "button":
        yield f"[{' '.join(_lines(element.get('text'), depth + 1)) or 'button'}]"
    elif tag in ("a", "at", "img", "hr", "emotion"):
        yield _inline(element)
    elif tag == "table":
        yield from _table(element)
    elif tag in _WORDS:
        yield text_of(element.get("content")) or text_of(element.get("text"))
    else:
        for inner in (element.get(key) for key in _INSIDE):
            if isinstance(inner, str):
                yield inner
            elif isinstance(inner, dict | list):
                yield from _lines(inner, depth + 1)


def _row(value: list[object], depth: int) -> Iterator[str]:
    """Yield the lines of several elements; those that stand beside each other are one line."""
    row = [mapping_of(one) for one in value]
    if row and all(text_of(one.get("tag")) in _BESIDE for one in row):
        yield "".join(map(_inline, row))
        return
    for one in value:
        yield from _lines(one, depth + 1)


def _table(element: Mapping[str, object]) -> Iterator[str]:
    raw = element.get("columns")
    columns = [mapping_of(one) for one in raw] if isinstance(raw, list) else []
    yield " | ".join(text_of(one.get("display_name")) or text_of(one.get("name")) for one in columns)
    rows = element.get("rows")
    for row in rows if isinstance(rows, list) else ():
        yield " | ".join(str(mapping_of(row).get(text_of(one.get("name")), "")) for one in columns)
