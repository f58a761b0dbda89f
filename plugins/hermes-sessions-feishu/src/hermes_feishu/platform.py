"""The platform ``feishu``: Feishu in China, Lark elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.ports.platform import PlatformAbilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_feishu.config import FeishuConfig
    from hermes_feishu.listening import Listeners
    from hermes_hookspecs.ports.platform import AccountSetup, PlatformAdapter

__all__ = ["FeishuPlatform"]

_MOST_FILE_BYTES = 30_000_000
_PARTS_PER_MINUTE = 240
"""The platform allows five a second to one chat, which all bots of the chat share; this leaves some of them."""
_MOST_EDITS = 20
_KNOWN_S = 3300.0
"""The platform knows a ``uuid`` for an hour; what is under way when that ends needs some of it."""


class FeishuPlatform:
    """Makes the adapters."""

    name = "feishu"

    def __init__(self, config: FeishuConfig) -> None:
        self._config = config
        self._listeners: Listeners | None = None
        self.abilities = PlatformAbilities(
            threads=True,
            edits=True,
            typing=config.typing,
            idempotent_send=True,
            idempotent_for_s=_KNOWN_S,
            media=True,
            max_file_bytes=_MOST_FILE_BYTES,
            max_length=config.max_characters,
            parts_per_minute=_PARTS_PER_MINUTE,
            most_edits=_MOST_EDITS,
        )

    def accounts(self) -> Sequence[str]:
        """Return the aliases of ``[plugins.feishu.accounts]``, ``default`` first."""
        return sorted(self._config.accounts, key=lambda alias: (alias != "default", alias))

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return the adapter of one account; connects to nothing yet.

        :raises ConfigError: settings or secrets are missing: the error names section and key.
        """
        from hermes_feishu.adapter import FeishuAdapter
        from hermes_feishu.credentials import credentials_of

        account = self._config.accounts.get(setup.account_id)
        if account is None:
            section = f"plugins.feishu.accounts.{setup.account_id}"
            raise ConfigError(f"[{section}] is not there; write app_id below it", section=section, key="app_id")
        credentials = credentials_of(setup.account_id, account, environ=setup.environ, folder=setup.folder)
        return FeishuAdapter(setup, self._config, account, credentials, listeners=self._shared)

    def _shared(self) -> Listeners:
        """Return the sockets of all webhooks."""
        from hermes_feishu.config import WEBHOOK
        from hermes_feishu.listening import Listeners

        if self._listeners is None:
            called = (account for account in self._config.accounts.values() if account.mode == WEBHOOK)
            self._listeners = Listeners((account.listen, account.path) for account in called)
        return self._listeners
