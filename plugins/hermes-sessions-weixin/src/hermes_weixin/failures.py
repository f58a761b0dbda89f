"""What the server refuses, in the errors of the contract."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_hookspecs.errors import AuthFailed, RetryLater

__all__ = ["STALE", "THROTTLED", "Refused", "StaleToken", "check"]

THROTTLED = -2
"""Quota, closed window or burst throttle: the server does not tell which (``-2`` came with four different texts)."""
STALE = -14
"""The token is not this account's any more: it was bound elsewhere, or it is too old."""


class Refused(RetryLater):
    """An answer with a code. ``code`` is ``ret`` or ``errcode``, whichever is not zero."""

    def __init__(self, what: str, code: int, message: str) -> None:
        super().__init__(f"{what} was refused with {code}{f': {message}' if message else ''}")
        self.code = code


class StaleToken(AuthFailed):
    """Code -14."""


def check(what: str, body: Mapping[str, object]) -> Mapping[str, object]:
    """Return the answer to a request where it is a success; ``ret`` may be missing.

    :raises StaleToken: code -14. :raises Refused: any other code.
    """
    for name in ("ret", "errcode"):
        code = body.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            said = body.get("errmsg")
            message = " ".join(said.split())[:200] if isinstance(said, str) else ""
            if code == STALE:
                raise StaleToken(f"{what} was refused: the login is not valid any more; run: hermes weixin login")
            raise Refused(what, code, message)
    return body
