"""The plugin: a platform, its commands, and that whoever logged an account in may talk to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import Platform
    from hermes_hookspecs.specs.decisions import AccessDecision

__all__ = ["WeixinPlugin"]


class WeixinPlugin:
    """Entry point ``weixin`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.weixin]``, see :class:`~hermes_weixin.config.WeixinConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_weixin.config import WeixinConfig

        self._config = WeixinConfig.of(config)
        self._owners: dict[str, str] = {}

    @hookimpl
    def hermes_platforms(self) -> Sequence[Platform] | None:
        from hermes_weixin.platform import WeixinPlatform

        return (WeixinPlatform(self._config, self._owners.__setitem__),)

    @hookimpl
    def hermes_decide_access(self, event: MessageEvent) -> AccessDecision | None:
        from hermes_hookspecs.specs.decisions import Allow

        source = event.source
        owner = self._owners.get(source.account_id) if source.platform == "weixin" else None
        return Allow() if owner and source.user_id == owner and source.chat_type == "dm" else None

    @hookimpl
    def hermes_cli_commands(self) -> Sequence[CliCommand] | None:
        from hermes_weixin.table import commands

        return commands(self._config)
