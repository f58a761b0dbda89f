"""Who is named in a message: placeholders in its text, and a list of who they are.

Who is meant is decided by ids, never by a name: anybody can be called like the bot.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EVERYBODY", "Mention", "has_placeholder", "mentions_of", "names_everybody", "with_names"]

EVERYBODY = "@_all"
_PLACEHOLDER = re.compile(r"@_user_\d+")
_EVERYBODY = re.compile(r"@_all(?![A-Za-z0-9_])")


@attrs.frozen(kw_only=True)
class Mention:
    """One name in a message. ``key`` is its placeholder; ids are ``""`` where the platform leaves them out."""

    key: str
    name: str = ""
    open_id: str = ""
    union_id: str = ""


def mentions_of(value: object) -> tuple[Mention, ...]:
    """Return the mentions of a message: as events write them (ids in an object), or as the API does (one id)."""
    found = []
    for raw in value if isinstance(value, list) else ():
        one = mapping_of(raw)
        key, ids = text_of(one.get("key")), mapping_of(one.get("id"))
        if not key:
            continue
        open_id, union_id = text_of(ids.get("open_id")), text_of(ids.get("union_id"))
        single, kind = text_of(one.get("id")), text_of(one.get("id_type"))
        if single:
            open_id, union_id = (single, union_id) if kind in ("", "open_id") else (open_id, single)
        found.append(Mention(key=key, name=text_of(one.get("name")), open_id=open_id, union_id=union_id))
    return tuple(found)


def has_placeholder(text: str) -> bool:
    """Return whether a text names somebody."""
    return _PLACEHOLDER.search(text) is not None


def names_everybody(text: str) -> bool:
    """Return whether a text is for all people of a group."""
    return _EVERYBODY.search(text) is not None


def with_names(text: str, mentions: Sequence[Mention], our_id: str) -> str:
    """Return a text with names in the place of placeholders, ours left out.

    Of a message that is nothing but our name, the name stays.
    """
    names = {mention.key: mention for mention in mentions}
    ours = [mention for mention in mentions if our_id and mention.open_id == our_id]
    spoken = text
    for mention in ours:
        spoken = _without(spoken, mention.key)

    def name(found: re.Match[str]) -> str:
        mention = names.get(found[0])
        return f"@{mention.name}" if mention is not None and mention.name else found[0]

    spoken = _EVERYBODY.sub("@all", _PLACEHOLDER.sub(name, spoken))
    return spoken if spoken.strip() or not ours else f"@{ours[0].name}"


def _without(text: str, key: str) -> str:
    """Return a text without a placeholder; of the blanks around it, one stays between words."""

    def gap(found: re.Match[str]) -> str:
        before, after = found[1], found[2]
        is_edge = found.start() == 0 or found.end() == len(text)
        return "" if is_edge or not (before and after) else before

    return re.sub(rf"([ \t\xa0]?){re.escape(key)}(?!\d)([ \t\xa0]*)", gap, text)
