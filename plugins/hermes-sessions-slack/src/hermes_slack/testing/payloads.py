"""Events as they travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_slack.testing.state import App, Installation

__all__ = ["callback", "command", "mention_twin", "message"]


def message(
    channel: str,
    user: str,
    text: str,
    ts: str,
    /,
    *,
    channel_type: str = "im",
    thread_ts: str | None = None,
    **more: object,
) -> dict[str, object]:
    """Return the inner event of a message; ``more`` replaces its fields."""
    found: dict[str, object] = {
        "type": "message",
        "channel_type": channel_type,
        "channel": channel,
        "user": user,
        "text": text,
        "ts": ts,
        "event_ts": ts,
        "blocks": [],
    }
    if thread_ts is not None:
        found["thread_ts"] = thread_ts
    return found | more


def mention_twin(inner: Mapping[str, object]) -> dict[str, object]:
    """Return the mention that is told beside a message: the same one, without the type of its channel."""
    return {key: value for key, value in inner.items() if key != "channel_type"} | {"type": "app_mention"}


def callback(
    app: App, installation: Installation, inner: object, event_id: str, *, outer_team: str | None = None
) -> dict[str, object]:
    """Return an event with all around it. :param outer_team: another one than ours, as with Slack Connect."""
    return {
        "token": "deprecated",
        "team_id": outer_team or installation.team_id,
        "enterprise_id": installation.enterprise_id,
        "context_team_id": outer_team or installation.team_id,
        "api_app_id": app.app_id,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": 1790000000,
        "is_ext_shared_channel": outer_team is not None,
        "authorizations": [
            {
                "enterprise_id": installation.enterprise_id,
                "team_id": None if installation.org_wide else installation.team_id,
                "user_id": installation.user_id,
                "is_bot": True,
                "is_enterprise_install": installation.org_wide,
            }
        ],
        "event": inner,
    }


def command(
    app: App,
    installation: Installation,
    channel: str,
    user: str,
    *,
    name: str,
    text: str,
    trigger_id: str,
    response_url: str = "https://hooks.slack.invalid/commands/1",
) -> dict[str, object]:
    """Return a slash command as Socket Mode and, as a form, HTTP bring it."""
    return {
        "token": "deprecated",
        "team_id": installation.team_id,
        "enterprise_id": installation.enterprise_id or "",
        "channel_id": channel,
        "channel_name": "directmessage" if channel.startswith("D") else "general",
        "user_id": user,
        "user_name": user.lower(),
        "command": name,
        "text": text,
        "api_app_id": app.app_id,
        "is_enterprise_install": "true" if installation.org_wide else "false",
        "response_url": response_url,
        "trigger_id": trigger_id,
    }
