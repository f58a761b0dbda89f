"""Which older key a Slack message may take over.

Ids of Slack are unique inside a workspace only, so a key without the workspace may be anybody's. The rules (S1 to S7 of
the migration; the store compares and moves in one transaction):

- recorded for this workspace: it is taken over; recorded for another one: it never is (S1, S2);
- a direct message without a recorded workspace: the first workspace in which its person writes takes it over, once;
  where no person is recorded, the first workspace does (S3, S4);
- a channel or group without one: never, since it could be another tenant's transcript (S5).

The core asks nobody when a new session is forced (S6), and of two who ask at once the store lets one win (S7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.operations import Claim

if TYPE_CHECKING:
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["DIRECT", "PLATFORM", "claims_of"]

PLATFORM = "slack"
DIRECT = "dm"


def claims_of(source: SessionSource, policy: KeyPolicy, keys: KeyBuilder) -> tuple[Claim, ...]:
    """Return the claims of a message, best first; none where its key would hold no workspace."""
    if source.platform != PLATFORM or source.scope_id is None:
        return ()
    try:
        older = keys.build(attrs.evolve(source, scope_id=None), policy)
    except KeyBuildError:
        return ()
    if older == keys.build(source, policy):
        return ()
    recorded = Claim(key=older, scope_id=source.scope_id)
    if source.chat_type != DIRECT:
        return (recorded,)
    return recorded, Claim(key=older, user_id=source.user_id or "")
