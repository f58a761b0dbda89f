"""The platforms ``webhook`` and ``api_server``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.ports.platform import PlatformAbilities
from hermes_webhook.config import API_SERVER, WEBHOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.platform import AccountSetup, Platform, PlatformAdapter
    from hermes_webhook.config import AccountConfig, WebhookConfig
    from hermes_webhook.listeners import Listeners

__all__ = ["WebhookPlatform", "platforms"]


class WebhookPlatform:
    """Makes the adapters of one of the two platforms.

    :param listeners: of both platforms, asked for when the first adapter is made.
    """

    def __init__(
        self,
        name: str,
        accounts: Sequence[AccountConfig],
        *,
        config: WebhookConfig,
        listeners: Callable[[], Listeners],
    ) -> None:
        self.name = name
        self.abilities = PlatformAbilities(
            threads=True,
            idempotent_send=True,
            admits=True,
            max_length=config.max_length,
            max_file_bytes=config.max_file_kib * 1024,
            formats=("text",),
        )
        self._accounts = {account.alias: account for account in accounts}
        self._config = config
        self._listeners = listeners

    def accounts(self) -> Sequence[str]:
        """Return the aliases of the configured accounts, ``default`` first."""
        return tuple(self._accounts)

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return the adapter of one account.

        :raises ConfigError: it is not configured, or its secret is missing, too short, or readable by others.
        """
        from hermes_webhook.adapter import WebhookAdapter
        from hermes_webhook.secret import secret_of

        account = self._accounts.get(setup.account_id)
        if account is None:
            raise ConfigError(f"{self.name} has no account {setup.account_id!r}", section="plugins.webhook")
        return WebhookAdapter(
            self.name,
            account,
            config=self._config,
            secret=secret_of(account, setup.environ),
            setup=setup,
            listeners=self._listeners(),
        )


def platforms(config: WebhookConfig) -> tuple[Platform, ...]:
    """Return both platforms; their accounts share sockets where they name one address."""
    found: list[Listeners] = []

    def listeners() -> Listeners:
        from hermes_webhook.listeners import Listeners

        if not found:
            places: dict[str, list[str]] = {}
            for account in (*config.webhook, *config.api_server):
                places.setdefault(account.listen, []).append(account.path)
            found.append(Listeners(places))
        return found[0]

    return (
        WebhookPlatform(WEBHOOK, config.webhook, config=config, listeners=listeners),
        WebhookPlatform(API_SERVER, config.api_server, config=config, listeners=listeners),
    )
