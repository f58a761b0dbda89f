"""What a person is told who has not named a model yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from hermes_openai.config import OpenAIConfig

__all__ = ["HOW_TO_CONFIGURE", "what_is_missing"]

HOW_TO_CONFIGURE = "for answers by a model, set [plugins.openai] model in config.toml, and OPENAI_API_KEY"
"""One line: how the plugin becomes the agent."""


def what_is_missing(config: OpenAIConfig, key: str | ConfigError) -> str:
    """Return one line that says what keeps the agent from answering, ``""`` where nothing does.

    :param key: the key, or why there is none.
    """
    if not config.model:
        return HOW_TO_CONFIGURE
    if isinstance(key, ConfigError):
        return f"[plugins.openai] {key}"
    if not key and config.asks_openai:
        return f"there is no key for {config.base_url}: {config.place_of_key}"
    return ""
