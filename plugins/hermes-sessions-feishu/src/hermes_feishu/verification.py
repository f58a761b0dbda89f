"""Whether a call of the webhook comes from the platform, and what it says.

With an encrypt key each body is encrypted and signed over its raw bytes; without one the verification token in the body
is all there is. Only the challenge, with which the platform tries an address out, may come unsigned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.crypto import decrypt, is_same, sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_feishu.credentials import Credentials
    from hermes_hookspecs.clock import Clock

__all__ = ["Opened", "Refusal", "Verifier"]

_WINDOW_MS = 300_000
"""How far a signed time may be from ours, either way: who recorded a call cannot repeat it later."""


@attrs.frozen(kw_only=True)
class Opened:
    """A call of the platform's. ``challenge``: what it wants to be told, ``None`` for an event."""

    payload: bytes = attrs.field(repr=False)
    challenge: str | None = None


@attrs.frozen(kw_only=True)
class Refusal:
    """A call that is not answered. ``status``: of HTTP. ``reason``: one line."""

    status: int
    reason: str


class Verifier:
    """Opens the calls of one account."""

    def __init__(self, credentials: Credentials, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock

    def open(self, headers: Mapping[str, str], body: bytes) -> Opened | Refusal:
        """Return what a call says, or why it is refused.

        :param headers: their names in any case. body: as it was received.
        """
        outer = _object(body)
        if outer is None:
            return Refusal(status=400, reason="the body is no JSON")
        payload, key = body, self._credentials.encrypt_key
        if key:
            encrypted = text_of(outer.get("encrypt"))
            if not encrypted:
                return Refusal(status=401, reason="the body is not encrypted")
            try:
                payload = decrypt(encrypted, key)
            except ValueError:
                return Refusal(status=401, reason="the body is encrypted with another key")
        elif "encrypt" in outer:
            return Refusal(status=401, reason="the body is encrypted, and the app's encrypt key is not known here")
        inner = _object(payload)
        if inner is None:
            return Refusal(status=400, reason="what was encrypted is no JSON")
        is_challenge = inner.get("type") == "url_verification"
        refusal = self._unsigned(headers, body, may_be=is_challenge) if key else None
        if refusal is None and not self._has_token(inner):
            refusal = Refusal(status=401, reason="the verification token is another one")
        if refusal is not None:
            return refusal
        return Opened(payload=payload, challenge=text_of(inner.get("challenge")) if is_challenge else None)

    def _unsigned(self, headers: Mapping[str, str], body: bytes, *, may_be: bool) -> Refusal | None:
        """Return why the signature does not hold, ``None`` where it does. ``may_be``: a call may have none."""
        found = {name.lower(): value for name, value in headers.items()}
        signature = found.get("x-lark-signature", "")
        timestamp, nonce = found.get("x-lark-request-timestamp", ""), found.get("x-lark-request-nonce", "")
        if not signature:
            return None if may_be else Refusal(status=401, reason="the signature is missing")
        if not is_same(signature, sign(timestamp, nonce, self._credentials.encrypt_key, body)):
            return Refusal(status=401, reason="the signature does not hold")
        if not timestamp.isdecimal() or abs(self._clock.now() - int(timestamp) * 1000) > _WINDOW_MS:
            return Refusal(status=401, reason="the signature is of another time: is the clock of this host right?")
        return None

    def _has_token(self, inner: Mapping[str, object]) -> bool:
        wanted = self._credentials.verification_token
        if not wanted:
            return True
        token = text_of(mapping_of(inner.get("header")).get("token")) or text_of(inner.get("token"))
        return is_same(token, wanted)


def _object(data: bytes) -> Mapping[str, object] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
