"""The built-in plugins, by name, as the loader takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.policies import KeyBuilder, ResetPolicy

__all__ = ["BUILTINS", "BUILTIN_NAMES", "OPTIONAL", "AgentsPlugin", "KeysPlugin", "ResetsPlugin"]


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


class ResetsPlugin:
    """Brings the reset policies ``none``, ``idle``, ``daily`` and ``both``."""

    @hookimpl
    def hermes_reset_policies(self) -> Sequence[ResetPolicy] | None:
        from hermes_core.builtins.resets import BUILTIN_POLICIES

        return BUILTIN_POLICIES


BUILTINS: tuple[tuple[str, object], ...] = (
    ("builtin.keys", KeysPlugin),
    ("builtin.agents", AgentsPlugin),
    ("builtin.resets", ResetsPlugin),
)
"""``(name, factory)``, first called first."""
BUILTIN_NAMES = ("builtin.keys", "builtin.agents", "builtin.resets", "builtin.commands", "builtin.approvals")
"""Names of everything that is built in; the commands come from their own room."""
OPTIONAL = frozenset({"builtin.agents"})
"""Built-in plugins that ``[plugins] disable`` may leave out."""
