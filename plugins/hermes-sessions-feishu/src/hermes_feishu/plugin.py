"""The plugin: it brings one platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import Platform

__all__ = ["FeishuPlugin"]


class FeishuPlugin:
    """Entry point ``feishu`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.feishu]``, see :class:`~hermes_feishu.config.FeishuConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_feishu.config import FeishuConfig

        self._config = FeishuConfig.of(config)

    @hookimpl
    def hermes_platforms(self) -> Sequence[Platform] | None:
        from hermes_feishu.platform import FeishuPlatform

        return (FeishuPlatform(self._config),)
