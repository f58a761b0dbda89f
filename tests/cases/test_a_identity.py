"""Case A13: two turns at once, each of which sees only its own sender, from its first instruction to its last."""

from __future__ import annotations

import asyncio
import contextvars
from threading import Barrier

from hermes_hookspecs.principal import owner_of

PATIENCE_S = 60
CURRENT = contextvars.ContextVar("current chat", default="nobody's")


def test_a13_each_turn_sees_its_own_sender_also_behind_awaits_and_in_threads(open_quick, chats, alice, bob):
    app = open_quick()
    both = Barrier(2, timeout=PATIENCE_S)
    seen = {}

    async def agent(turn):
        views = seen.setdefault(turn.text, [CURRENT.get()])
        CURRENT.set(turn.source.chat_id)
        await asyncio.to_thread(both.wait)  # both turns run
        views.append(
            (CURRENT.get(), turn.source.chat_id, turn.source.user_id, turn.principal == app.principal(turn.source))
        )
        views.append(await asyncio.to_thread(lambda: (CURRENT.get(), turn.source.chat_id)))
        await asyncio.to_thread(both.wait)
        views.append((CURRENT.get(), turn.session.lineage_id))
        return turn.source.chat_id

    async def scene():
        events = [chats.event(app, "from Alice", "1", alice), chats.event(app, "from Bob", "2", bob)]
        await app.accept(events)
        await app.work(chats.served(), agent=agent, until_idle=True)

    asyncio.run(scene())

    for text, source in (("from Alice", alice), ("from Bob", bob)):
        chat, lineage_id = source.chat_id, app.get_or_create_session(source).lineage_id
        assert seen[text] == ["nobody's", (chat, chat, source.user_id, True), (chat, chat), (chat, lineage_id)]
        owner = app.store.lineage(lineage_id, app.principal(source)).owner
        assert owner == owner_of(source, shared=False)
    answers = {part.text: part.address.split(":")[3] for part in chats.sender.received()}
    assert answers == {"oc_1": "oc_1", "oc_2": "oc_2"}


def test_a13_what_one_turn_sets_is_gone_in_the_next_one(open_quick, chats):
    app = open_quick()
    seen = []

    async def agent(turn):
        seen.append(CURRENT.get())
        CURRENT.set(turn.text)
        return "noted"

    chats.accept(app, "one", "two")
    chats.work(app, agent)

    assert seen == ["nobody's", "nobody's"]
