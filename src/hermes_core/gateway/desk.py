"""The gateway of a profile, for the programs that run it and for people who ask about it."""

from __future__ import annotations

import os
import signal
import time
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.gateway.journal import entries
from hermes_core.inbox import pairing
from hermes_core.inbox.refusals import refusals
from hermes_core.outbox.results import one_line
from hermes_core.processes import is_alive
from hermes_hookspecs.errors import ConfigError, HermesError
from hermes_hookspecs.operations import Deliver, PutState
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key
from hermes_hookspecs.ports.gateway import AccountStatus
from hermes_hookspecs.ports.platform import FAILED
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.gateway.journal import Entry
    from hermes_core.gateway.steering import Steering
    from hermes_core.inbox.acceptance import Acceptance
    from hermes_core.profile import Profile
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.gateway import GatewayStatus, Pairing, Refusal
    from hermes_hookspecs.ports.platform import Platform

__all__ = ["GatewayDesk"]

_log = getLogger(__name__)

_LOOK_S = 0.1
_LET_IN = "You are let in now. What you wrote before was not read: write it again."


class GatewayDesk:
    """What an app offers around its gateway (:class:`~hermes_hookspecs.ports.gateway.Gateway`).

    :param turns, acceptance: return the profile's own; opened late.
    """

    def __init__(
        self,
        app: App,
        profile: Profile,
        *,
        turns: Callable[[], TurnService],
        acceptance: Callable[[], Acceptance],
    ) -> None:
        self._app = app
        self._profile = profile
        self._turns = turns
        self._acceptance = acceptance

    # --- running

    async def run(
        self,
        *,
        platforms: Sequence[str] = (),
        agent: Agent | str | Callable[..., object] | None = None,
        signals: bool = False,
    ) -> None:
        """Run the adapters, answer and deliver; see :meth:`hermes_hookspecs.ports.gateway.Gateway.run`."""
        from hermes_core.gateway.steering import Steering

        desk = self
        with Steering(listens=signals) as steering:
            while True:
                try:
                    await desk._once(platforms, agent, steering)
                finally:
                    if desk is not self:
                        desk._profile.close()
                again = steering.taken()
                if again is None:
                    return
                self._profile.close()
                following = again.gateway
                if not isinstance(following, GatewayDesk):
                    raise TypeError("a profile that was opened anew has another kind of gateway")
                desk = following

    async def _once(
        self,
        platforms: Sequence[str],
        agent: Agent | str | Callable[..., object] | None,
        steering: Steering,
    ) -> None:
        """Run until told to stop, or to go on with another configuration."""
        from hermes_core.gateway.process import GatewayProcess

        process = GatewayProcess(
            self._app,
            self._profile,
            self._turns(),
            self._acceptance(),
            platforms=self._chosen(platforms),
            environ=self._profile.environ,
            agent=agent,
        )
        steering.steer(process.stop, self._reopened)
        await process.run()

    def _reopened(self) -> App:
        """Return the same profile, opened anew with the settings as they are now. :raises HermesError: wrong ones."""
        again = self._profile.reopen()
        again.gateway.accounts()  # loads the plugins: what is wrong with them is told while the old ones still run
        return again

    def _chosen(self, names: Sequence[str]) -> Mapping[str, Platform]:
        """Return the platforms to be run. :raises ConfigError: there is none of a name."""
        found = self._profile.hooks.platforms()
        unknown = [name for name in names if name not in found]
        if unknown:
            known = ", ".join(sorted(found)) or "none"
            raise ConfigError(f"there is no chat platform {unknown[0]!r}; installed are: {known}", section="platforms")
        return {name: platform for name, platform in found.items() if not names or name in names}

    # --- asking

    def status(self) -> Sequence[GatewayStatus]:
        """Return the gateways that run, or died without a word, longest running first."""
        return [entry.status for entry in self._entries()]

    def accounts(self) -> Sequence[AccountStatus]:
        """Return the accounts that are configured, as the process says that serves each."""
        running = [one for gateway in self.status() if gateway.lives is not False for one in gateway.accounts]
        served = {one.entrance: one for one in reversed(running)}
        for one in running:
            if one.state != "elsewhere":
                served[one.entrance] = one
        found = [self._configured(name, platform) for name, platform in sorted(self._profile.hooks.platforms().items())]
        return [served.get(one.entrance, one) for accounts in found for one in accounts]

    def _configured(self, name: str, platform: Platform) -> Sequence[AccountStatus]:
        try:
            return [AccountStatus(entrance=Entrance(name, alias), state="", since=0) for alias in platform.accounts()]
        except Exception as error:  # noqa: BLE001 - a platform's fault is its own: it is told
            return [AccountStatus(entrance=Entrance(name), state=FAILED, since=0, detail=one_line(error))]

    def stop(self, *, timeout_s: float = 90.0) -> Sequence[GatewayStatus]:
        """Ask the gateways to stop, and wait; return them with ``lives`` as it is then."""
        import attrs

        asked = [entry for entry in self._entries() if entry.status.lives]
        for entry in asked:
            try:
                os.kill(entry.process.pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
            except OSError as error:
                raise HermesError(f"process {entry.process.pid} cannot be stopped: {error.strerror}") from error
        until = time.monotonic() + timeout_s
        while any(is_alive(entry.process) for entry in asked) and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return [attrs.evolve(entry.status, lives=is_alive(entry.process)) for entry in asked]

    def _entries(self) -> Sequence[Entry]:
        return entries(self._profile.settings.folder)

    # --- who is let in

    def pairings(self) -> Sequence[Pairing]:
        """Return who asked to be let in and who was, in order of platform, account and id."""
        return [record.pairing for record in self._records()]

    def approve(self, code: str) -> Pairing:
        """Let in whoever was sent this code. :raises ConfigError: no such code is open."""
        found = pairing.find_code(self._records(), code)
        if found is None:
            raise ConfigError("no such code is open; `hermes pairing list` shows who asked, and codes expire")
        now = self._profile.clock.now()
        self._profile.store.apply(PutState(updates=pairing.approval(found, now), now=now))
        self._tell_them(found)
        return next(
            record.pairing
            for record in self._records()
            if record.pairing.approved and record.target.participant == found.target.participant
        )

    def revoke(self, user_id: str, *, platform: str | None = None) -> Sequence[Pairing]:
        """Let somebody in no longer, or forget that they asked; return who that was."""
        found = [
            record
            for record in self._records()
            if user_id in (record.target.user_id, record.target.user_id_alt)
            and platform in (None, record.pairing.entrance.platform)
        ]
        if found:
            updates = tuple(map(pairing.revocation, found))
            self._profile.store.apply(PutState(updates=updates, now=self._profile.clock.now()))
        return [record.pairing for record in found]

    def refusals(self) -> Sequence[Refusal]:
        """Return whose messages were not taken, last refused first."""
        return refusals(self._profile.store, self._profile.clock.now())

    def _records(self) -> Sequence[pairing.PairingRecord]:
        return pairing.records(self._profile.store, self._profile.clock.now())

    def _tell_them(self, record: pairing.PairingRecord) -> None:
        target, desk = self._profile.desk.at_home(record.target), self._profile.desk
        key = desk.key(target)
        draft = DeliveryDraft(
            key=delivery_key(key, f"paired:{record.entry.key}:{record.entry.updated_at}"),
            target=target,
            text=_LET_IN,
            session_key=key,
            kind=NOTICE,
        )
        self._profile.store.apply(Deliver(drafts=(draft,), now=self._profile.clock.now()))
        self._profile.wake_servers((record.pairing.entrance,))
