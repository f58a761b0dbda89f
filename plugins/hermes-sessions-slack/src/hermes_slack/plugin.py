"""The plugin: a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import Platform

__all__ = ["SlackPlugin"]


class SlackPlugin:
    """Entry point ``slack`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.slack]``, see :class:`~hermes_slack.config.SlackConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_slack.config import SlackConfig

        self._config = SlackConfig.of(config)

    @hookimpl
    def hermes_platforms(self) -> Sequence[Platform] | None:
        from hermes_slack.platform import SlackPlatform

        return (SlackPlatform(self._config),)
