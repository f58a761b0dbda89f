"""The platform ``slack``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ports.platform import PlatformAbilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.platform import AccountSetup, PlatformAdapter
    from hermes_slack.config import SlackConfig

__all__ = ["SlackPlatform"]


class SlackPlatform:
    """Makes the adapters."""

    name = "slack"

    def __init__(self, config: SlackConfig) -> None:
        from hermes_slack.listener import Listener

        self._config = config
        self._listener = Listener(config.listen)
        self.abilities = PlatformAbilities(
            scoped=True,
            threads=True,
            edits=True,
            typing=config.assistant_status or config.assistant_streams,
            media=True,
            max_file_bytes=config.max_file_bytes,
            max_length=config.chunk_characters,
            parts_per_minute=config.posts_per_minute,
        )

    def accounts(self) -> Sequence[str]:
        """Return the aliases of ``[plugins.slack] accounts``, ``default`` first."""
        return sorted(self._config.accounts, key=lambda alias: (alias != "default", alias))

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return the adapter of one account. :raises ConfigError: a token is missing, or no token."""
        from hermes_slack.adapter import SlackAdapter
        from hermes_slack.credentials import credentials_of

        credentials = credentials_of(setup.account_id, self._config.mode, setup.environ)
        return SlackAdapter(setup, self._config, credentials, listener=self._listener)
