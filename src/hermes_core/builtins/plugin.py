"""The built-in plugins, by name, as the loader takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.policies import KeyBuilder

__all__ = ["BUILTINS", "BUILTIN_NAMES", "OPTIONAL", "AgentsPlugin", "KeysPlugin"]


class KeysPlugin:
    """Brings the built-in key builder; asked last."""

    @hookimpl(trylast=True)
    def hermes_key_builder(self) -> KeyBuilder | None:
        from hermes_core.routing.key import LabelledKeyBuilder

        return LabelledKeyBuilder()


class AgentsPlugin:
    """Brings the agents ``echo`` and ``recall``."""

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        from hermes_core.builtins.echo import EchoAgent
        from hermes_core.builtins.recall import RecallAgent

        return (EchoAgent(), RecallAgent())


BUILTINS: tuple[tuple[str, object], ...] = (("builtin.keys", KeysPlugin), ("builtin.agents", AgentsPlugin))
"""``(name, factory)``, first called first."""
BUILTIN_NAMES = ("builtin.keys", "builtin.agents", "builtin.commands")
"""Names of everything that is built in; the commands come from their own room."""
OPTIONAL = frozenset({"builtin.agents"})
"""Built-in plugins that ``[plugins] disable`` may leave out."""
