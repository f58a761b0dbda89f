"""The plugin: it brings two platforms, which may share a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import Platform

__all__ = ["WebhookPlugin"]


class WebhookPlugin:
    """Entry point ``webhook`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.webhook]``, see :class:`~hermes_webhook.config.WebhookConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_webhook.config import WebhookConfig

        self._config = WebhookConfig.of(config)

    @hookimpl
    def hermes_platforms(self) -> Sequence[Platform] | None:
        from hermes_webhook.platform import platforms

        return platforms(self._config)
