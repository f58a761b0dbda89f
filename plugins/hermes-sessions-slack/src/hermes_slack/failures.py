"""What Slack refuses, in the errors of the contract. A refusal stands in ``error`` of an answer with HTTP 200."""

from __future__ import annotations

from hermes_hookspecs.errors import AuthFailed, PlatformError, Rejected, RetryLater

__all__ = ["Refused", "refusal"]

_CREDENTIALS = frozenset(
    {
        "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
        "not_allowed_token_type", "no_permission",
        "org_login_required", "access_denied", "two_factor_setup_required",
        "ekm_access_denied", "app_missing_action_url", "invalid_app_id",
    }
)  # fmt: skip
_LATER = frozenset(
    {"ratelimited", "rate_limited", "message_limit_exceeded", "service_unavailable", "team_added_to_org"}
)
_UNKNOWN = frozenset({"internal_error", "fatal_error", "request_timeout", "accesslimited"})
"""Answers that do not say whether the request was carried out."""
_LIMIT_S = 30.0


class Refused(Rejected):
    """Slack says no, and means it. ``code`` is its word for it."""

    def __init__(self, method: str, code: str, needed: str = "") -> None:
        super().__init__(f"{method} was refused: {code}{needed}")
        self.code = code


def refusal(method: str, status: int, code: str, *, after_s: float | None = None, needed: str = "") -> PlatformError:
    """Return the error that an answer means.

    :param status: of HTTP. code: ``error`` of the answer, ``""`` where it has none.
    :param after_s: seconds of ``Retry-After``. needed: the scope that is missing, ``""`` where none is named.
    """
    if status == 429 or code in _LATER:
        return RetryLater(f"{method}: {code or 'ratelimited'}", after_s=after_s or _LIMIT_S)
    if status >= 500 or code in _UNKNOWN or not code:
        return RetryLater(f"{method} failed: {code or f'HTTP {status}'}", after_s=after_s, maybe_sent=True)
    if code == "missing_scope" and needed:
        return Refused(method, code, f", it needs {needed}: add that scope to the app, and install it again")
    if code in _CREDENTIALS:
        names = "SLACK_APP_TOKEN" if method == "apps.connections.open" else "SLACK_BOT_TOKEN"
        return AuthFailed(f"{method} was refused: {code}; set {names} anew, then let the gateway read it (kill -HUP)")
    return Refused(method, code)
