"""Whether a request is Slack's: its signature, over the bytes as they came, and its age."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WINDOW_S", "is_signed", "signature_of"]

WINDOW_S = 300
"""How old, or how far ahead, a request may be; an older one may be somebody's copy."""


def signature_of(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a body (``v0=…``). :param timestamp: UTC seconds, as the header says them."""
    base = b"v0:" + timestamp.encode("utf-8", "replace") + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


def is_signed(headers: Mapping[str, str], body: bytes, *, secret: str, now: int) -> bool:
    """Return whether a request is signed with our secret, and is of now (UTC milliseconds)."""
    timestamp, given = headers.get("X-Slack-Request-Timestamp", ""), headers.get("X-Slack-Signature", "")
    if not secret or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 12):
        return False
    if abs(now // 1000 - int(timestamp)) > WINDOW_S:
        return False
    return hmac.compare_digest(signature_of(secret, timestamp, body).encode(), given.encode("utf-8", "replace"))
