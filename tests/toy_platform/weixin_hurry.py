"""A plugin that puts the WeChat plugin in a hurry, and makes it forget a rule when ``WEIXIN_MUTANT`` names one."""

from __future__ import annotations

import os
import secrets

import attrs

from hermes_weixin import adapter, client, events, ledger, receiving

__all__ = ["MUTANTS", "HurryPlugin"]


class HurryPlugin:
    """Entry point: it has no hooks."""

    def __init__(self, _config):
        receiving._SHORT_S, receiving._LONG_S, receiving._STALE_S = 0.05, 0.2, 0.1
        adapter._AGAIN_S = (0.1, 0.2, 0.4)
        adapter._DOUBTED = attrs.evolve(adapter._DOUBTED, after_s=0.2)
        MUTANTS[os.environ.get("WEIXIN_MUTANT", "")]()


def _ids_alone():
    """A message is known by its ids alone, so that one with new ids is another one."""
    found = events.identities_of
    events.identities_of = lambda message: tuple(each for each in found(message) if not each.startswith("content:"))


def _new_id_each_try():
    """A message that is tried again is another one for the server."""
    sent = client.ILinkClient.send

    async def send(self, peer, item, *, client_id, **more):
        return await sent(self, peer, item, client_id=f"{client_id}:{secrets.token_hex(4)}", **more)

    client.ILinkClient.send = send


def _one_ledger():
    """The accounts share what they know of a person."""
    made, shared = ledger.Ledger.__init__, {}

    def share(self, *setup):
        made(self, *setup)
        self._peers = shared

    ledger.Ledger.__init__ = share


def _cursor_first():
    """The cursor is stored at once, what came with it behind the next poll."""
    take = receiving.Receiver._take

    async def late(self, inlet, updates):
        waiting, self._waiting = getattr(self, "_waiting", None), updates
        await inlet.accept([], state=[self._cursor_update(updates.cursor)])
        if waiting is not None:
            await take(self, inlet, attrs.evolve(waiting, cursor=updates.cursor))
        self._cursor = updates.cursor

    receiving.Receiver._take = late


MUTANTS = {
    "": lambda: None,
    "ids-alone": _ids_alone,
    "new-id-each-try": _new_id_each_try,
    "one-ledger": _one_ledger,
    "cursor-first": _cursor_first,
}
"""Rules that can be forgotten."""
