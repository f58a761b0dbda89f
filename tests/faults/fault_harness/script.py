"""What people say and what the agent does about it: a pure function of a seed, so that a run can be looked at again."""

from __future__ import annotations

from random import Random

import attrs

from hermes_hookspecs.source import SessionSource

__all__ = ["ENTRANCES", "SHARED_CHATS", "SLOTS", "Said", "Step", "entrance_of_slot", "said", "steps_of", "terminal"]

ENTRANCES = ("chatA", "chatB")
SLOTS = 4
"""Feeders, each with chats of its own; one process at a time has a slot."""

_CHATS = {0: ("a1", "a2"), 1: ("a3", "a4"), 2: ("b1", "b2"), 3: ("b3", "b4")}
_GROUPS = frozenset({"a3", "b3"})
SHARED_CHATS = ("a4", "b4")
"""Chats of different entrances that lead to one lineage, as does every terminal; nobody leaves or stops it."""

_EFFECTS = ("read", "read", "read", "idempotent", "idempotent", "write")


@attrs.frozen(kw_only=True)
class Said:
    """One message of a platform. ``name`` is the identity by which a redelivery is known."""

    name: str
    text: str
    source: SessionSource


@attrs.frozen(kw_only=True)
class Step:
    """What the agent does before its answer: the effects of the tools that it calls at a time."""

    effects: tuple[str, ...]
    pause_s: float


def entrance_of_slot(slot):
    """Return the platform whose messages a slot feeds and whose entrance it serves."""
    return ENTRANCES[slot * len(ENTRANCES) // SLOTS]


def said(seed, slot, number):
    """Return the message with this number of one feeder, the first one has 1."""
    dice = Random(f"{seed}:{slot}:{number}")
    chat = dice.choice(_CHATS[slot])
    person = dice.choice(("ming", "hua")) if chat in _GROUPS else "ming"
    chance = dice.random()
    text = f"#{slot}.{number} {'word ' * dice.randrange(8)}".strip()
    if chat not in SHARED_CHATS and chance < 0.03:
        text = "/new"
    elif chat not in SHARED_CHATS and chance < 0.06:
        text = "/stop"
    elif chance < 0.08:
        text = "/compress"
    elif chance < 0.09:
        text = "/uncompress"
    return Said(name=f"{chat}/{slot}.{number}", text=text, source=source_of(chat, person))


def source_of(chat, person="ming"):
    """Return where a message of a chat comes from."""
    platform = ENTRANCES[0] if chat.startswith("a") else ENTRANCES[1]
    return SessionSource(
        platform=platform,
        chat_type="group" if chat in _GROUPS else "dm",
        chat_id=chat,
        user_id=person,
        user_name=person,
    )


def terminal(slot):
    """Return the terminal of a slot: its sender waits in the process that answers."""
    return SessionSource(platform="cli", chat_type="dm", chat_id=f"tty{slot}", user_id="local")


def steps_of(text):
    """Return what the agent does about a text; the same for the same text, so that a retry does the same."""
    dice = Random(text)
    return tuple(
        Step(
            effects=tuple(dice.choice(_EFFECTS) for _ in range(dice.choice((1, 1, 2)))),
            pause_s=dice.choice((0.0, 0.001, 0.004)),
        )
        for _ in range(dice.choice((0, 0, 1, 1, 2, 3)))
    )
