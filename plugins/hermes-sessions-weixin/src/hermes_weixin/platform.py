"""The platform ``weixin``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.ports.platform import PlatformAbilities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.platform import AccountSetup, PlatformAdapter
    from hermes_weixin.config import WeixinConfig

__all__ = ["WeixinPlatform"]

_STORING_S = 5.0
"""Seconds for what the last poll brings, and for the messages that are typed at the moment."""


class WeixinPlatform:
    """Makes the adapters.

    :param on_owner: told alias and id of the person who logged an account in.
    """

    name = "weixin"

    def __init__(self, config: WeixinConfig, on_owner: Callable[[str, str], None]) -> None:
        self._config = config
        self._on_owner = on_owner
        self.abilities = PlatformAbilities(
            typing=True,
            idempotent_send=True,
            media=True,
            max_length=config.chunk_characters,
            max_file_bytes=config.max_file_bytes,
            leave_s=config.leave_s + _STORING_S,
            formats=("text", "file"),
        )

    def accounts(self) -> Sequence[str]:
        """Return the aliases of ``[plugins.weixin] accounts``, ``default`` first."""
        return sorted(self._config.accounts, key=lambda alias: (alias != "default", alias))

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return the adapter of one account.

        :raises ConfigError: nobody has logged it in, or the file of the login is not sound.
        """
        from hermes_weixin.adapter import WeixinAdapter
        from hermes_weixin.credentials import load

        credentials = load(setup.folder)
        if credentials is None:
            raise ConfigError(
                f"weixin account {setup.account_id!r} is not logged in; run: hermes weixin login {setup.account_id}",
                origin="[plugins.weixin] accounts",
            )
        self._on_owner(setup.account_id, credentials.user_id)
        return WeixinAdapter(setup, self._config, credentials)
