"""The plugin: it brings one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.agent import Agent

__all__ = ["OpenAIPlugin"]


class OpenAIPlugin:
    """Entry point ``openai`` of the group ``hermes.plugins.v1``.

    :param config: the table ``[plugins.openai]``, see :class:`~hermes_openai.config.OpenAIConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_openai.config import OpenAIConfig

        self._config = OpenAIConfig.of(config)

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        from hermes_openai.agent import OpenAIAgent

        return (OpenAIAgent(self._config),)
