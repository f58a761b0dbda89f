"""The gateway of a profile: the process that runs adapters, who it lets in, and what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.source import Entrance

__all__ = ["ELSEWHERE", "AccountStatus", "Gateway", "GatewayStatus", "HasGateway", "Pairing", "Refusal"]

ELSEWHERE = "elsewhere"
"""State of an account that another process serves; this one takes over when that process is gone."""


@attrs.frozen(kw_only=True)
class AccountStatus:
    """One account of a platform, as the process that serves it sees it.

    Attributes:
        state: ``connecting``, ``connected``, ``waiting``, ``failed`` (:mod:`hermes_hookspecs.ports.platform`), or
            :data:`ELSEWHERE`. detail: one line for people. since: when it came to that, UTC milliseconds;
            of one that waits and tries again by turns, when it began to.
        heard_at: when the platform was heard last, ``None`` where the adapter never said. starts: how often the adapter
            was run. accepted, duplicates, refused, unaddressed: messages, since the process began. sent, deferred,
            failed: answers, the same.
    """

    entrance: Entrance
    state: str
    since: int
    detail: str = ""
    heard_at: int | None = None
    starts: int = 0
    accepted: int = 0
    duplicates: int = 0
    refused: int = 0
    unaddressed: int = 0
    sent: int = 0
    deferred: int = 0
    failed: int = 0


@attrs.frozen(kw_only=True)
class GatewayStatus:
    """One gateway process.

    Attributes:
        lives: whether the process lives, ``None`` where that cannot be known here. health: address of its health
            endpoint, or why there is none; ``""`` where none is wanted. updated_at: when it said so last, UTC
            milliseconds. stopping: it lets its turns end. accounts: in order of platform and account.
    """

    host: str
    pid: int
    lives: bool | None
    started_at: int
    updated_at: int
    health: str = ""
    stopping: bool = False
    accounts: tuple[AccountStatus, ...] = ()


@attrs.frozen(kw_only=True)
class Pairing:
    """Somebody who asked to be let in, or was.

    Attributes:
        user_id: the id that the platform keeps stable (:attr:`SessionSource.participant`). user_name: a label from
            outside. approved: they are let in. since: when they asked, or were let in, UTC milliseconds.
        expires_at: until when their code is good; ``None`` for who was let in.
    """

    entrance: Entrance
    user_id: str
    since: int
    approved: bool = False
    scope_id: str | None = None
    user_name: str = ""
    expires_at: int | None = None


@attrs.frozen(kw_only=True)
class Refusal:
    """Somebody whose messages were not taken: who, why, and how many of them. Never what they said.

    Attributes:
        user_id, chat_id: ``""`` for those who are only counted together. first_at, last_at: UTC milliseconds.
    """

    entrance: Entrance
    reason: str
    count: int
    first_at: int
    last_at: int
    user_id: str = ""
    chat_id: str = ""


class Gateway(Protocol):
    """The gateway of an open profile. Everything that is not ``async`` blocks."""

    async def run(
        self,
        *,
        platforms: Sequence[str] = (),
        agent: Agent | str | Callable[..., object] | None = None,
        signals: bool = False,
    ) -> None:
        """Run the adapters of the configured accounts, answer and deliver, until cancelled or told to stop.

        An account that another process serves is waited for. Leaving, turns may end within ``turns.drain_s``, then what
        is due is sent for as long.

        :param platforms: only these; empty for all that are installed.
        :param signals: SIGTERM and SIGINT stop it, a second one at once; SIGHUP reads the configuration anew. Only on
            the main thread.
        :raises ConfigError: no account is configured, or none of them can be run as it is configured.
        :raises StoreStopped: the store takes no more writes.
        """
        ...

    def status(self) -> Sequence[GatewayStatus]:
        """Return the gateways of this profile that run, or died without a word, longest running first."""
        ...

    def accounts(self) -> Sequence[AccountStatus]:
        """Return the accounts that are configured, each as the process says that serves it.

        One that nobody serves has an empty state; a platform that cannot be asked is *failed*, with the reason.
        """
        ...

    def stop(self, *, timeout_s: float = 90.0) -> Sequence[GatewayStatus]:
        """Ask the gateways of this profile to stop, and wait; return them with ``lives`` as it is then."""
        ...

    def pairings(self) -> Sequence[Pairing]:
        """Return who asked to be let in and who was, in order of platform, account and id."""
        ...

    def approve(self, code: str) -> Pairing:
        """Let in whoever was sent this code; they are told.

        :raises ConfigError: no such code is open.
        """
        ...

    def revoke(self, user_id: str, *, platform: str | None = None) -> Sequence[Pairing]:
        """Let somebody in no longer, or forget that they asked; return who that was, empty where there was nobody."""
        ...

    def refusals(self) -> Sequence[Refusal]:
        """Return whose messages were not taken, last refused first."""
        ...


class HasGateway(Protocol):
    """What of an app is about its gateway."""

    @property
    def gateway(self) -> Gateway:
        """Return the gateway of this profile."""
        ...

    def account_folder(self, platform: str, account_id: str) -> Path:
        """Return, made with mode 0700, the folder that an account's adapter has (:attr:`AccountSetup.folder`)."""
        ...
