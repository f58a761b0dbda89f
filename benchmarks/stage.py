"""Our store in a temporary folder, with sessions whose lease is held; texts are the same in every run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ids import LineageId, SessionId, SessionKey, TurnId
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.messages import ASSISTANT, USER, MessageDraft
from hermes_hookspecs.operations import Accept, Append, Begin, Begun, Finish, GetOrCreate
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.principal import operator, owner_of
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.turns import DONE, Fence, LeaseHolder

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.store import SqliteStore

__all__ = [
    "ALL",
    "DOOR",
    "HOLDER",
    "NOW",
    "answer",
    "append",
    "begin_turn",
    "enter",
    "fill",
    "finish",
    "open_store",
    "question",
    "text",
    "wanted",
]

NOW = 1_780_000_000_000
ALL = operator()
DOOR = Entrance("feishu")
HOLDER = LeaseHolder(host="here", boot_id="boot", pid_namespace="1", pid=1, started="1", entrance=DOOR)

_VOCABULARY = (
    "the of session and store to a lease turn is in that message it for key was on be with as writer have not"
    " history are but by this they from which one you there her all tool were an token when more said about"
    " reset queue disk agent model prompt inbox answer window search context platform entrance recovery fence"
)
_WORDS = _VOCABULARY.split()
_POOL = 512


def _texts(size: int) -> list[str]:
    random_words = random.Random(size)  # noqa: S311 - the same texts in every run
    texts = []
    for _ in range(_POOL):
        words = ""
        while len(words) < size:
            words += random_words.choice(_WORDS) + " "
        texts.append(words[:size])
    return texts


_TEXTS = {size: _texts(size) for size in (200, 218)}


def text(number: int, size: int = 200) -> str:
    """An English text of exactly ``size`` bytes, one of 512."""
    return _TEXTS[size][number % _POOL]


def open_store(folder: str | Path, durability: str = "full") -> SqliteStore:
    """Our store in ``folder``, made if need be."""
    return SqliteBackend().open(StoreOptions(path=Path(folder) / "state.db", durability=durability))


def _source(name: str) -> SessionSource:
    return SessionSource(platform="feishu", chat_id=f"oc_{name}", user_id=f"ou_{name}", user_name="Somebody")


def wanted(name: str, *, now: int = NOW) -> GetOrCreate:
    """What finds or makes the session of the chat ``name``; the ids are fresh once a chat."""
    source = _source(name)
    return GetOrCreate(
        key=SessionKey(f"agent:main:feishu:dm:chat=oc_{name}"),
        key_version=1,
        source=source,
        owner=owner_of(source, shared=False),
        policy=KeyPolicy(),
        shared=False,
        now=now,
        session_id=SessionId(f"S{name}"),
        lineage_id=LineageId(f"L{name}"),
    )


def enter(store: SqliteStore, name: str, *, now: int = NOW) -> LineageId:
    """Make the session of a chat."""
    return store.apply(wanted(name, now=now)).lineage_id


def question(name: str, words: str) -> Accept:
    """What accepts a message of a chat that has its session already."""
    operation = wanted(name)
    draft = InboxDraft(
        session_key=operation.key,
        source=operation.source,
        entrance=DOOR,
        text=words,
        accepted_at=NOW,
        lineage_id=operation.lineage_id,
    )
    return Accept(drafts=(draft,), now=NOW)


def begin_turn(store: SqliteStore, name: str, turn: int = 0, words: str = "") -> Fence:
    """Accept a message of a chat and begin the turn that answers it; the lease is held from now on."""
    (accepted,) = store.apply(question(name, words or text(turn)))
    draft = MessageDraft(role=USER, content=words or text(turn), timestamp=NOW, inbox_id=accepted.id)
    operation = Begin(
        lineage_id=LineageId(f"L{name}"),
        turn_id=TurnId(f"T{name}_{turn}"),
        holder=HOLDER,
        now=NOW,
        ttl_ms=30_000,
        drafts=(draft,),
    )
    begun = store.apply(operation)
    if not isinstance(begun, Begun):
        raise TypeError(f"the turn did not begin: {begun!r}")
    return Fence(begun.turn.lineage_id, begun.turn.id, begun.turn.token)


def answer(words: str) -> MessageDraft:
    """A plain row of the assistant."""
    return MessageDraft(role=ASSISTANT, content=words, timestamp=NOW)


def append(fence: Fence, number: int) -> Append:
    """What stores one row of 200 bytes."""
    return Append(fence=fence, drafts=(answer(text(number)),), now=NOW)


def finish(store: SqliteStore, fence: Fence) -> None:
    """End a turn without a further row."""
    store.apply(Finish(fence=fence, outcome=DONE, now=NOW))


def fill(store: SqliteStore, name: str, messages: int, *, size: int = 200) -> LineageId:
    """Make a session with so many rows, in turns of at most 100 rows."""
    lineage_id = enter(store, name)
    turn = 0
    while messages > 0:
        count = min(100, messages)
        fence = begin_turn(store, name, turn, text(turn, size))
        rows = tuple(answer(text(turn + number, size)) for number in range(1, count))
        if rows:
            store.apply(Append(fence=fence, drafts=rows, now=NOW))
        finish(store, fence)
        messages -= count
        turn += 1
    return lineage_id
