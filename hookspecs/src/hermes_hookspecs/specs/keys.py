"""Routing: keys, legacy routes, access, and what comes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.operations import Claim
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.source import KeyPolicy, SessionSource
    from hermes_hookspecs.specs.decisions import AccessDecision


@hookspec(kind="provider", on_error="raise", firstresult=True)
def hermes_key_builder() -> KeyBuilder | None:
    """Return the builder of routing keys, or ``None`` to leave it to the next plugin.

    Called once when the profile opens, before the store is touched. Stops at the first result; the built-in builder
    is last. Fails closed: without a key nobody is let in.

    :returns: an object that passes ``KeyBuilderSuite``.

    .. versionadded:: 0.1
    """


@hookspec(kind="decision", on_error="raise")
def hermes_legacy_claims(source: SessionSource, policy: KeyPolicy, keys: KeyBuilder) -> Sequence[Claim] | None:
    """Return older keys whose route a message from ``source`` may take over, best first.

    Called for a message or a command whose own key has no route yet; never when a new session is forced, nor where the
    key was let go, since that conversation was to end. All results are joined in order. Claims are data: the store
    compares the recorded scope and person and moves the route in one transaction, so of two callers one wins. Fails
    closed: an exception refuses the message, since a wrong claim joins two tenants.

    :param source: where the message came from.
    :param policy: effective for its platform.
    :param keys: the builder in force: builds the key of a source as it used to be, and takes keys apart.

    .. versionadded:: 0.1
    """


@hookspec(kind="decision", on_error="raise", firstresult=True)
def hermes_decide_access(event: MessageEvent) -> AccessDecision | None:
    """Say whether a sender may talk to us, or ``None`` to leave it to the next plugin.

    Called by the gateway for each message before anything of it is stored. Stops at the first result; the built-in rule
    (``[platforms.<name>]``: allow lists, pairing, mentions) is last. Fails closed: an exception refuses the message. An
    embedder's own ``accept`` does not ask: it has let its senders in.

    .. versionadded:: 0.1
    """


@hookspec(kind="decision", on_error="raise")
def hermes_redact_inbound(text: str, source: SessionSource) -> str | None:
    """Return ``text`` without what must not be stored, or ``None`` to leave it.

    Called once for each message, at the door; everything behind it, the model too, sees the result. Each plugin gets
    the result of the one before it. Fails closed: after an exception the message is refused to a sender who waits, and
    put aside without its content otherwise.

    .. versionadded:: 0.1
    """
