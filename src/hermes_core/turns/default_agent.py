"""Who answers where nobody chose: the first agent that says it is ready, else the built-in one."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.plugins.stages import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_hookspecs.ports.agent import Agent

__all__ = ["DEFAULT_AGENT", "default_agent", "setup_line"]

_log = getLogger(__name__)

DEFAULT_AGENT = "recall"
"""Who answers where none is ready."""


def default_agent(agents: Mapping[str, Agent]) -> str:
    """Return the name of the first agent that is ready, in order of names; :data:`DEFAULT_AGENT` where none is.

    One that cannot say whether it is ready is not.
    """
    return next((name for name in sorted(agents) if _asked(agents[name], "ready") is True), DEFAULT_AGENT)


def setup_line(agents: Mapping[str, Agent]) -> str:
    """Return what the first agent that is not ready says it lacks, on one line; ``""`` where one is ready."""
    if default_agent(agents) != DEFAULT_AGENT:
        return ""
    lines = (_asked(agents[name], "setup") for name in sorted(agents))
    return next((" ".join(line.split()) for line in lines if isinstance(line, str) and line.strip()), "")


def _asked(agent: Agent, name: str) -> object:
    try:
        return getattr(agent, name, None)
    except Exception as error:  # noqa: BLE001 - an agent is a plugin's code; what it fails with is told, not raised
        _log.warning("agent %s cannot say whether it is configured: %s", agent.name, one_line(error))
        return None
