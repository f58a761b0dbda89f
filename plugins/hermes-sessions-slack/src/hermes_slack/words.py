"""The words of a message as people read them: references named, escapes undone, our own mention in front left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_slack.wire import flag, mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["is_mentioned", "raw_words", "read", "shared_words", "without_mention"]

_REFERENCE = re.compile(r"<([^<>\n]+)>")
_DEPTH = 12


def raw_words(message: Mapping[str, object]) -> str:
    """Return the text of a message in Slack's own notation; of one that has none, what its blocks say."""
    found = text(message, "text")
    if found:
        return found
    blocks = (_block(block, _DEPTH) for block in mappings(message, "blocks"))
    return "\n".join(words for words in blocks if words)


def is_mentioned(raw: str, user_id: str) -> bool:
    """Return whether a text in Slack's notation names a user."""
    return f"<@{user_id}>" in raw or f"<@{user_id}|" in raw


def without_mention(raw: str, user_id: str) -> str:
    """Return a text without the mentions of a user that it begins with, so that a command behind them is one."""
    pattern = re.compile(rf"\s*(?:<@{re.escape(user_id)}(?:\|[^<>\n]*)?>[ \t]?)+[ \t]*[,:]?[ \t]?")
    found = pattern.match(raw)
    return raw[found.end() :] if found else raw


def read(raw: str) -> str:
    """Return a text in Slack's notation as people see it. Escapes are undone behind the references, never before."""
    pieces, at = [], 0
    for found in _REFERENCE.finditer(raw):
        pieces += [_unescaped(raw[at : found.start()]), _named(found[1])]
        at = found.end()
    return "".join([*pieces, _unescaped(raw[at:])])


def shared_words(message: Mapping[str, object]) -> list[str]:
    """Return the texts of the messages that were shared into a message. Previews of links are left out."""
    found = []
    for each in mappings(message, "attachments"):
        if not (flag(each, "is_share") or flag(each, "is_msg_unfurl")):
            continue
        words = read(text(each, "text") or text(each, "fallback")).strip()
        if words:
            author = text(each, "author_name") or text(each, "author_id")
            found.append(f"{author}: {words}" if author else words)
    return found


def _unescaped(words: str) -> str:
    return words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _named(reference: str) -> str:
    target, _, label = reference.partition("|")
    label = _unescaped(label)
    mark, name = target[:1], target[1:]
    if mark == "@":
        return f"@{label.removeprefix('@') or name}"
    if mark == "#":
        return f"#{label.removeprefix('#') or name}"
    if mark == "!":
        if label:
            return label if label.startswith("@") or name.startswith("date") else f"@{label}"
        return f"@{name.partition('^')[0]}"
    address = _unescaped(target)
    if not label or label == address or address.partition(":")[2].lstrip("/") == label:
        return label or address
    return f"{label} ({address})"


# --- blocks


def _block(block: Mapping[str, object], depth: int) -> str:
    kind = text(block, "type")
    if kind == "rich_text":
        return "\n".join(_rich(each, depth - 1) for each in mappings(block, "elements"))
    if kind in ("section", "header"):
        inner = mapping(block, "text")
        fields = [text(each, "text") for each in mappings(block, "fields")]
        return "\n".join(filter(None, [text(inner, "text"), *fields]))
    if kind == "context":
        return " ".join(filter(None, (text(each, "text") for each in mappings(block, "elements"))))
    return text(block, "text") if kind == "markdown" else ""


def _rich(element: Mapping[str, object], depth: int) -> str:
    if depth <= 0:
        return ""
    kind = text(element, "type")
    inner = mappings(element, "elements")
    if kind == "rich_text_list":
        return "\n".join(f"- {_rich(each, depth - 1)}" for each in inner)
    words = _leaves(inner)
    if kind == "rich_text_quote":
        return "\n".join(f"&gt; {line}" for line in words.split("\n"))
    return f"```\n{words}\n```" if kind == "rich_text_preformatted" else words


def _leaves(elements: Iterable[Mapping[str, object]]) -> str:
    return "".join(map(_leaf, elements))


def _leaf(element: Mapping[str, object]) -> str:
    kind = text(element, "type")
    escaped = _escaped(text(element, "text"))
    if kind == "link":
        url = _escaped(text(element, "url"))
        return f"<{url}|{escaped}>" if escaped else f"<{url}>"
    named = {
        "user": f"<@{text(element, 'user_id')}>",
        "channel": f"<#{text(element, 'channel_id')}>",
        "usergroup": f"<!subteam^{text(element, 'usergroup_id')}>",
        "broadcast": f"<!{text(element, 'range')}>",
        "emoji": f":{text(element, 'name')}:",
    }
    return named.get(kind, escaped)


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
