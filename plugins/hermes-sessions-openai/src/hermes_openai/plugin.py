"""The plugin: it brings one agent, and what the same endpoint can do beside."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.policies import Summariser
    from hermes_hookspecs.ports.services import AttachmentDescriber, Titler
    from hermes_openai.agent import OpenAIAgent
    from hermes_openai.endpoint import Endpoint

__all__ = ["OpenAIPlugin"]


class OpenAIPlugin:
    """Entry point ``openai`` of the group ``hermes.plugins.v1``.

    Describers, summariser and titler are there only where the endpoint is configured, so that nobody waits for them in
    vain.

    :param config: the table ``[plugins.openai]``, see :class:`~hermes_openai.config.OpenAIConfig`.
    :raises ConfigError: an unknown key, or a value out of range.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        from hermes_openai.config import OpenAIConfig

        self._config = OpenAIConfig.of(config)

    @cached_property
    def _agent(self) -> OpenAIAgent:
        from hermes_openai.agent import OpenAIAgent

        return OpenAIAgent(self._config)

    def _endpoint(self) -> Endpoint:
        return self._agent.endpoint

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        return (self._agent,)

    @hookimpl
    def hermes_attachment_describers(self) -> Sequence[AttachmentDescriber] | None:
        config = self._config
        if not (config.image_model or config.transcription_model) or not self._agent.ready:
            return None
        from hermes_openai.describers import ImageWords, SpeechWords

        found: list[AttachmentDescriber] = []
        if config.image_model:
            found.append(ImageWords(config, self._endpoint))
        if config.transcription_model:
            found.append(SpeechWords(config, self._endpoint))
        return found

    @hookimpl
    def hermes_summarisers(self) -> Sequence[Summariser] | None:
        if not self._config.summaries or not self._agent.ready:
            return None
        from hermes_openai.summaries import ModelSummariser

        # another model's window is not known here: then it is taken for a small one
        same = self._config.summary_model in ("", self._config.model)
        window = (lambda: self._agent.context_tokens) if same else (lambda: None)
        return (ModelSummariser(self._config, self._endpoint, window=window),)

    @hookimpl
    def hermes_titlers(self) -> Sequence[Titler] | None:
        if not self._config.titles or not self._agent.ready:
            return None
        from hermes_openai.titles import ModelTitler

        return (ModelTitler(self._config, self._endpoint),)
