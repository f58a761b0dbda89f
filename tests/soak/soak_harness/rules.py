"""The verdict: pure functions of what was said, what people saw and what the store holds."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["answers", "marked", "verdict"]

_ANSWER = re.compile(
    r"(?P<mark>\(may be a repeat\) )?answer (?P<number>\d+) to (?P<text>p\d+-\d+) after (?P<first>p\d+-\d+)"
)


def verdict(outcome):
    """Return what must not be, in words; empty when every promise was kept."""
    return [
        *_lost(outcome),
        *_doubled(outcome),
        *_crossed(outcome),
        *_numbers(outcome),
        *_store(outcome),
        *(f"lost: {count} {what}" for what, count in outcome.unrest.items() if count),
        *(f"odd: {fault}" for fault in outcome.faults),
    ]


def answers(outcome):
    """Return place and match of everything that people saw; ``None`` for what is no answer."""
    return [(place, _ANSWER.fullmatch(text), text) for place, text in outcome.seen]


def marked(outcome):
    """Return how many answers say that they may be a repeat."""
    return sum(found is not None and found["mark"] is not None for _, found, _ in answers(outcome))


def _lost(outcome):
    seen = {found["text"] for _, found, _ in answers(outcome) if found}
    return [f"lost: {one.text} ({one.person.platform}) has no answer" for one in outcome.said if one.text not in seen]


def _doubled(outcome):
    plain = Counter(found["text"] for _, found, _ in answers(outcome) if found and not found["mark"])
    return [f"doubled: {text} has {count} answers that do not say so" for text, count in plain.items() if count > 1]


def _crossed(outcome):
    places = {one.text: one.person.place for one in outcome.said}
    for place, found, text in answers(outcome):
        if found is None or found["text"] not in places:
            yield f"odd: {text!r} in {place} is not an answer to anything"
        elif places[found["text"]] != place:
            yield f"crossed: {text!r} stands in {place}, and was said in {places[found['text']]}"
        elif found["text"].partition("-")[0] != found["first"].partition("-")[0]:
            yield f"crossed: {text!r} was answered in a session of somebody else"


def _numbers(outcome):
    """Say where answers of a session do not count its messages one by one, or name two beginnings."""
    numbers, firsts = {}, {}
    for _, found, _ in answers(outcome):
        if found:
            name = found["text"].partition("-")[0]
            numbers.setdefault(name, {})[found["text"]] = int(found["number"])
            firsts.setdefault(name, set()).add(found["first"])
    for name, found in numbers.items():
        if sorted(found.values()) != list(range(1, len(found) + 1)):
            yield f"interleaved: the session of {name} was counted as {sorted(found.values())}"
        if len(firsts[name]) != 1:
            yield f"crossed: {name} has sessions that begin with {sorted(firsts[name])}"


def _store(outcome):
    """Say where the store is not what was said: each text once, in one session with its own answer behind it."""
    kept = Counter()
    for lineage in outcome.lineages:
        rows = [row for row in lineage["messages"] if not row["kind"]]
        names = {row["content"].partition("-")[0] for row in rows if row["role"] == "user"}
        if len(names) != 1:
            yield f"crossed: {lineage['session_id']} holds messages of {sorted(names)}"
        kept.update(row["content"] for row in rows if row["role"] == "user")
        for asked, answered in zip(rows[::2], rows[1::2], strict=False):
            if f" to {asked['content']} after " not in answered["content"]:
                yield f"interleaved: behind {asked['content']!r} stands {answered['content']!r}"
    people = {one.person for one in outcome.said}
    if len(outcome.lineages) != len(people):
        yield f"crossed: {len(people)} people have {len(outcome.lineages)} sessions"
    for one in outcome.said:
        if kept[one.text] != 1:
            yield f"{'doubled' if kept[one.text] else 'lost'}: the store has {one.text} {kept[one.text]} times"
