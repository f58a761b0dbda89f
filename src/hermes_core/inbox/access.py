"""The built-in rule of access: default deny, by the lists of the configuration and by who was paired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_hookspecs.principal import ADMIN
from hermes_hookspecs.specs.decisions import Allow, Ignore

if TYPE_CHECKING:
    from hermes_core.config.access import AccessSettings
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.specs.decisions import AccessDecision

__all__ = ["UNADDRESSED", "decide", "is_direct", "needs_standing"]

UNADDRESSED: Final = "not addressed to us"
"""Reason of what members of a group say to each other; counted apart from refusals."""

_STRANGER = "not on the allow list"


def is_direct(source: SessionSource) -> bool:
    """Return whether only the sender hears the answer."""
    return source.chat_type == "dm"


def needs_standing(event: MessageEvent, access: AccessSettings) -> bool:
    """Return whether the rule has to know whether the sender was paired."""
    if _names(event.source) & (access.deny_users | access.allow_users | access.admins):
        return False
    return access.dm_policy != "off" if is_direct(event.source) else access.group_policy in ("allowlist", "known")


def decide(event: MessageEvent, access: AccessSettings, *, paired: bool) -> AccessDecision | None:
    """Return the decision, ``None`` for a stranger who may ask to be paired. Pure.

    :param paired: an operator let the sender in.
    """
    source = event.source
    names = _names(source)
    if not is_direct(source) and access.require_mention and not event.addressed and not event.recalls:
        return Ignore(reason=UNADDRESSED)
    if names & access.deny_users:
        return Ignore(reason="on the deny list")
    if source.is_bot and (access.bots == "off" or (access.bots == "mentions" and not event.addressed)):
        return Ignore(reason="a bot")
    is_known = paired or bool(names & (access.allow_users | access.admins))
    let_in = Allow(roles=frozenset({ADMIN}) if names & access.admins else frozenset())
    if is_direct(source):
        return _direct(access.dm_policy, let_in, is_known=is_known, is_named=bool(names), is_bot=source.is_bot)
    return _in_a_group(access, let_in, is_known=is_known)


def _direct(
    policy: str, let_in: AccessDecision, *, is_known: bool, is_named: bool, is_bot: bool
) -> AccessDecision | None:
    if policy == "off":
        return Ignore(reason="direct messages are off")
    if policy == "open" or is_known:
        return let_in
    if policy == "pairing" and is_named and not is_bot:
        return None
    return Ignore(reason=_STRANGER)


def _in_a_group(access: AccessSettings, let_in: AccessDecision, *, is_known: bool) -> AccessDecision:
    policy = access.group_policy
    if policy == "off":
        return Ignore(reason="groups are off")
    if policy == "open" or is_known or (policy == "allowlist" and access.is_listed):
        return let_in
    return Ignore(reason="an unknown member of a group" if policy == "known" or access.is_listed else _UNLISTED)


_UNLISTED = "neither this group nor its sender is on the allow list"


def _names(source: SessionSource) -> frozenset[str]:
    """Return every id of a sender; each of them may stand in a list."""
    return frozenset(name for name in (source.user_id, source.user_id_alt) if name)
