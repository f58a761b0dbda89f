"""Signatures: HMAC-SHA256 over a timestamp and the raw bytes, compared in constant time.

``X-Hermes-Timestamp`` is UTC seconds, ``X-Hermes-Signature`` is ``sha256=`` and the hexadecimal HMAC of the timestamp,
a full stop and the payload. The payload of a POST is its body, that of a GET is its path behind the account's, with the
query, exactly as it was sent.
"""

from __future__ import annotations

import hmac
from typing import Final

__all__ = ["SIGNATURE", "TIMESTAMP", "fault_of", "headers_of", "signature_of"]

TIMESTAMP: Final = "X-Hermes-Timestamp"
SIGNATURE: Final = "X-Hermes-Signature"

_LONGEST_TIMESTAMP = 12


def signature_of(secret: str, timestamp: str, payload: bytes) -> str:
    """Return what the header of the signature holds."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + payload, "sha256").hexdigest()


def headers_of(secret: str, payload: bytes, now_ms: int) -> dict[str, str]:
    """Return both headers of a request that is made now."""
    timestamp = str(now_ms // 1000)
    return {TIMESTAMP: timestamp, SIGNATURE: signature_of(secret, timestamp, payload)}


def fault_of(secret: str, timestamp: str, signature: str, payload: bytes, *, now_ms: int, window_s: int) -> str:
    """Return what is wrong with a signature, ``""`` for a good one.

    How far the clocks are apart is told only to those who know the secret.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _LONGEST_TIMESTAMP):
        return f"{TIMESTAMP} is missing, or no time in UTC seconds"
    wanted = signature_of(secret, timestamp, payload).encode()
    if not hmac.compare_digest(wanted, signature.encode("utf-8", "replace")):
        return f"{SIGNATURE} is missing or wrong"
    apart_s = now_ms // 1000 - int(timestamp)
    if abs(apart_s) > window_s:
        return f"{TIMESTAMP} is {apart_s} s away from our clock; {window_s} s are allowed"
    return ""
