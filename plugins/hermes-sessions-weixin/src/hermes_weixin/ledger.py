"""How much may still be said to whom: the context token of each person, the quota, the window, the pauses.

The server refuses the eleventh message after one that came, and everything once a day has passed, with the same code
that it has for going too fast. So what is left is reckoned here, kept in the store, and the code is only a surprise.

Two entries a person, each written by one side, so that neither overwrites the other: ``peer/`` by what comes, in the
transaction that accepts it, ``sent/`` by what goes, in the one that marks it as sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_hookspecs.ports.platform import StateReader
    from hermes_weixin.config import WeixinConfig

__all__ = ["NAMESPACE", "Ledger", "PeerState"]

NAMESPACE = "weixin"
_MOST_PEERS = 10_000


@attrs.define
class PeerState:
    """What is known of one person.

    Attributes:
        token: newest context token, which an answer has to carry. heard_at: UTC milliseconds of their last message;
            0 where they never wrote. sent: messages since then.
    """

    token: str = attrs.field(default="", repr=False)
    heard_at: int = 0
    sent: int = 0


class Ledger:
    """The people of one account. For one event loop; reads the store once a person."""

    def __init__(self, account_id: str, state: StateReader, config: WeixinConfig) -> None:
        self._account = encode_text(account_id)
        self._state = state
        self._config = config
        self._peers: dict[str, PeerState] = {}

    def peer(self, peer: str) -> PeerState:
        """Return what is known of a person."""
        known = self._peers.get(peer)
        if known is None:
            if len(self._peers) >= _MOST_PEERS:
                self._peers.clear()  # all of it is in the store
            known = self._peers[peer] = self._load(peer)
        return known

    def left(self, peer: str, now: int) -> int:
        """Return how many messages may still be sent to a person, 0 when the window is closed."""
        known = self.peer(peer)
        if now - known.heard_at > self._config.window_hours * 3_600_000:
            return 0
        return max(0, self._config.quota - known.sent)

    def why_not(self, peer: str, now: int) -> str:
        """Return why nothing may be sent to a person now, ``""`` when something may."""
        known = self.peer(peer)
        if not known.heard_at:
            return "they have not written to this bot yet; it goes out with their first message"
        if now - known.heard_at > self._config.window_hours * 3_600_000:
            hours = f"{self._config.window_hours:g}"
            return f"they wrote more than {hours} h ago; it goes out with their next message"
        if known.sent >= self._config.quota:
            return f"{known.sent} messages went out since their last one; it goes out with their next message"
        return ""

    def heard(self, peer: str, token: str, at: int) -> StateUpdate:
        """Note a message that came; return what is stored with it.

        :param at: when it was written. One that is no younger than the last one came again, or late: the server counts
            nothing anew for it, though its context token may be a new one.
        """
        known = self.peer(peer)
        if at >= known.heard_at:
            known.token = token or known.token
        if at > known.heard_at:
            known.heard_at, known.sent = at, 0
        value = {"token": known.token, "heard_at": known.heard_at}
        return self._update("peer", peer, value)

    def exhausted(self, peer: str) -> None:
        """Note that the server takes no more, whatever was reckoned."""
        self.peer(peer).sent = self._config.quota

    def sent(self, peer: str) -> StateUpdate:
        """Note a message that went; return what is stored with it."""
        known = self.peer(peer)
        known.sent += 1
        return self._update("sent", peer, {"heard_at": known.heard_at, "sent": known.sent})

    def _key(self, kind: str, peer: str) -> str:
        return f"{self._account}/{kind}/{encode_text(peer)}"

    def _update(self, kind: str, peer: str, value: Mapping[str, object]) -> StateUpdate:
        return StateUpdate(
            namespace=NAMESPACE, key=self._key(kind, peer), value=json.dumps(value, ensure_ascii=False), person=peer
        )

    def _load(self, peer: str) -> PeerState:
        heard, sent = self._read("peer", peer), self._read("sent", peer)
        state = PeerState(token=str(heard.get("token") or ""), heard_at=_whole(heard.get("heard_at")))
        if _whole(sent.get("heard_at")) == state.heard_at:
            state.sent = _whole(sent.get("sent"))
        return state

    def _read(self, kind: str, peer: str) -> Mapping[str, object]:
        entry = self._state.get(self._key(kind, peer))
        found = json.loads(entry.value) if entry is not None else {}
        return found if isinstance(found, dict) else {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
