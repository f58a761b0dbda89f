"""What was said, kept by its id for a while: new clients quote by id alone."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.state import StateUpdate
from hermes_weixin.ledger import NAMESPACE

if TYPE_CHECKING:
    from hermes_hookspecs.ports.platform import StateReader
    from hermes_weixin.config import WeixinConfig

__all__ = ["QuoteStore"]

_MOST_CHARACTERS = 2000
_MOST_FRESH = 200


class QuoteStore:
    """Texts of one account by person and id. The newest are at hand before the store has them."""

    def __init__(self, account_id: str, state: StateReader, config: WeixinConfig) -> None:
        self._account = encode_text(account_id)
        self._state = state
        self._keep_ms = int(config.quote_days * 86_400_000)
        self._fresh: OrderedDict[str, str] = OrderedDict()

    def text(self, peer: str, message_id: str) -> str:
        """Return a text, ``""`` where it is not known."""
        import json

        key = self._key(peer, message_id)
        if key in self._fresh:
            return self._fresh[key]
        entry = self._state.get(key)
        found = json.loads(entry.value) if entry is not None else ""
        return found if isinstance(found, str) else ""

    def keep(self, peer: str, message_id: str, text: str, now: int) -> StateUpdate:
        """Return what is stored with the message."""
        import json

        key, text = self._key(peer, message_id), text[:_MOST_CHARACTERS]
        self._fresh[key] = text
        while len(self._fresh) > _MOST_FRESH:
            self._fresh.popitem(last=False)
        return StateUpdate(
            namespace=NAMESPACE,
            key=key,
            value=json.dumps(text, ensure_ascii=False),
            person=peer,
            expires_at=now + self._keep_ms,
        )

    def _key(self, peer: str, message_id: str) -> str:
        return f"{self._account}/quote/{encode_text(peer)}/{encode_text(message_id)}"
