"""What the story has to show in the end, counted from what people saw and from what the store holds.

Pure functions: what was said and seen goes in, checks come out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

from hermes_demo.people import REPEAT_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_demo.people import Line

__all__ = ["Check", "Kept", "verdict"]

_USER: Final = "user"


@attrs.frozen(kw_only=True)
class Check:
    """One thing that must hold. ``complaints``: what does not, one line each; empty where it holds."""

    name: str
    found: str
    complaints: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether it holds."""
        return not self.complaints


@attrs.frozen(kw_only=True)
class Kept:
    """What the store says: exported lineages, and how much is not at rest, by what it is."""

    lineages: Sequence[Mapping[str, object]]
    unrest: Mapping[str, int]


def verdict(
    lines: Sequence[Line],
    *,
    acknowledged: Sequence[Line],
    seen: Mapping[tuple[str, str], Sequence[str]],
    kept: Kept,
) -> tuple[Check, ...]:
    """Return all checks, in the order in which they are shown.

    :param acknowledged: lines whose platform was told that they arrived. seen: what bots said, by platform and chat.
    """
    plain, marked, strange = _answers(lines, seen)
    lost = [line for line in lines if not plain[line] + marked[line]]
    doubled = [line for line in lines if plain[line] > 1]
    return (
        Check(
            name="accepted",
            found=f"{len(acknowledged)} of {len(lines)} messages",
            complaints=tuple(f"not accepted: {_shown(line)}" for line in lines if line not in acknowledged),
        ),
        Check(
            name="answered, nothing lost",
            found=f"{len(lines) - len(lost)} of {len(lines)} messages, {len(lost)} lost",
            complaints=tuple(f"lost: {_shown(line)}" for line in lost),
        ),
        Check(
            name="nothing doubled",
            found=f"{len(doubled)} doubled, {sum(marked.values())} marked as a possible repeat",
            complaints=tuple(f"doubled: {_shown(line)} has {plain[line]} answers" for line in doubled),
        ),
        Check(name="nothing crossed", found=f"{len(strange)} crossed", complaints=tuple(strange)),
        _sessions(lines, kept.lineages),
        Check(
            name="all at rest",
            found=", ".join(f"{count} {what}" for what, count in kept.unrest.items()),
            complaints=tuple(f"not at rest: {count} {what}" for what, count in kept.unrest.items() if count),
        ),
    )


def _answers(
    lines: Sequence[Line], seen: Mapping[tuple[str, str], Sequence[str]]
) -> tuple[Counter[Line], Counter[Line], list[str]]:
    """Return answers by line, those that say that they may repeat one, and what answers nothing where it stands."""
    plain: Counter[Line] = Counter()
    marked: Counter[Line] = Counter()
    strange: list[str] = []
    for place, texts in seen.items():
        for text in texts:
            words = text.removeprefix(REPEAT_MARK)
            line = next((one for one in lines if one.person.place == place and one.is_answered_by(words)), None)
            if line is not None:
                (plain if words == text else marked)[line] += 1
                continue
            owner = next((one for one in lines if not one.is_command and one.is_answered_by(words)), None)
            whose = f"the answer to {owner.person.name}" if owner else "an answer to nobody"
            strange.append(f"crossed: {whose} stands in {':'.join(place)}: “{words}”")
    return plain, marked, strange


def _sessions(lines: Sequence[Line], lineages: Sequence[Mapping[str, object]]) -> Check:
    """Say whether each conversation is one session, whole, in order, and without a word of another one."""
    said: dict[str, list[str]] = {}
    for line in lines:
        if not line.is_command:
            said.setdefault(line.conversation, []).append(line.text)
    kept = [_said_in(lineage) for lineage in lineages]
    complaints = [f"none holds just what was said in {name}" for name, texts in said.items() if kept.count(texts) != 1]
    complaints += [
        f"a session holds what nobody said in a row: {texts}" for texts in kept if texts not in said.values()
    ]
    words = sum(len(texts) for texts in kept)
    return Check(
        name="each in its own session",
        found=f"{len(kept)} sessions for {len(said)} conversations, {words} messages",
        complaints=tuple(complaints),
    )


def _said_in(lineage: Mapping[str, object]) -> list[str]:
    rows = lineage.get("messages")
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [str(row.get("content")) for row in found if row.get("role") == _USER and not row.get("kind")]


def _shown(line: Line) -> str:
    return f"{line.person.name} ({line.person.platform}): “{line.text}”"
