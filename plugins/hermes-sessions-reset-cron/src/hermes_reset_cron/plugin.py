"""The plugin: it brings the reset policy ``reset-cron``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.policies import ResetPolicy

__all__ = ["ResetCronPlugin"]


class ResetCronPlugin:
    """Entry point ``reset-cron`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.reset-cron]``, see :class:`~hermes_reset_cron.config.ResetCronConfig`.
    :raises ConfigError: an unknown key, or a rule that cannot be read.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_reset_cron.config import ResetCronConfig

        self._config = ResetCronConfig.of(config)

    @hookimpl
    def hermes_reset_policies(self) -> Sequence[ResetPolicy] | None:
        from hermes_reset_cron.policy import CalendarPolicy

        return (CalendarPolicy(self._config),)
