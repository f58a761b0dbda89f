"""Who we are in each workspace, asked before anything else: what is ours, and whose events we serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import AuthFailed
from hermes_slack.api import SlackApi
from hermes_slack.wire import flag, mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import aiohttp

__all__ = ["Workspace", "introduce", "scope_of"]


@attrs.frozen(kw_only=True)
class Workspace:
    """One installation of our app.

    Attributes:
        scope_id: the workspace (``T…``), or the organisation (``E…``) where the app is installed in all of it.
        team_id: the workspace, ``""`` where an organisation's app is in many. user_id, bot_id: ours there.
    """

    scope_id: str
    team_id: str
    user_id: str
    bot_id: str
    api: SlackApi = attrs.field(repr=False)
    token: str = attrs.field(repr=False)


async def introduce(session: aiohttp.ClientSession, base_url: str, tokens: Sequence[str]) -> Mapping[str, Workspace]:
    """Ask who we are with each token; return the workspaces by their scope.

    :raises AuthFailed: a token is refused, is nobody's, or two are of one workspace. :raises RetryLater: not now.
    """
    found: dict[str, Workspace] = {}
    for token in tokens:
        api = SlackApi(session, base_url, token)
        answer = await api.read("auth.test")
        org_wide = flag(answer, "is_enterprise_install")
        scope_id = text(answer, "enterprise_id" if org_wide else "team_id")
        user_id, bot_id = text(answer, "user_id"), text(answer, "bot_id")
        if not scope_id or not user_id or not bot_id:
            raise AuthFailed("auth.test does not say who we are: a bot token (xoxb-) of an installed app is needed")
        if scope_id in found:
            raise AuthFailed(f"two bot tokens are of the workspace {scope_id}: leave one of them out")
        found[scope_id] = Workspace(
            scope_id=scope_id,
            team_id="" if org_wide else scope_id,
            user_id=user_id,
            bot_id=bot_id,
            api=api,
            token=token,
        )
    return found


def scope_of(payload: Mapping[str, object]) -> str:
    """Return whose installation an event is for, ``""`` where it is not said.

    With Slack Connect the outer ids may be those of the channel's owner, and the inner ones of the author; the
    installation alone says which of our workspaces sees the event (slackapi/bolt-js#687, java-slack-sdk#629).
    """
    for each in mappings(payload, "authorizations")[:1]:
        org_wide = flag(each, "is_enterprise_install")
        found = text(each, "enterprise_id" if org_wide else "team_id")
        if found:
            return found
    if flag(payload, "is_enterprise_install"):
        return text(payload, "enterprise_id") or text(mapping(payload, "enterprise"), "id")
    return text(payload, "team_id") or text(mapping(payload, "team"), "id")
