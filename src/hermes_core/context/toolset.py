"""The tool list of a session: what its first turn offered is what every later turn offers, byte for byte.

A plugin that was upgraded, is gone, or is asked in another order changes nothing of what stands in the prompt. Calls go
to the tool of that name as it is now; where there is none any more, the model is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_hookspecs.files import FileResult
    from hermes_hookspecs.ports.agent import Agent, Tool, TurnContext

__all__ = ["freeze_tools", "offered_by", "tools_of"]

_TOOLS = "tools"
"""Their place in a session's ``model_config``."""


def offered_by(agent: Agent, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Return the tools of a profile and those that an agent brings along (``own_tools``); of one name the profile's."""
    own: Iterable[Tool] = getattr(agent, "own_tools", ())
    return {one.name: one for one in own} | dict(tools)


def freeze_tools(tools: Mapping[str, Tool]) -> str | None:
    """Return the ``model_config`` that a session's first turn with a model stores. Pure.

    :returns: ``None`` where a tool cannot be written down.
    """
    import json

    listed = [_declared(name, tools[name]) for name in sorted(tools)]
    try:
        return json.dumps({_TOOLS: listed}, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return None  # a schema that is no JSON: its agent says so when it sends it


def tools_of(model_config: str | None, live: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Return the tools of a turn by name, in the order of the prompt.

    :param model_config: of the session; where it lists no tools, they are what they are now. live: tools of this
        process.
    """
    listed = _listed(model_config)
    if listed is None:
        return live
    found: dict[str, Tool] = {}
    for name, declared in listed.items():
        tool = live.get(name)
        if tool is None:
            found[name] = _Gone(declared)
        else:
            found[name] = tool if _is_as_declared(name, tool, declared) else _AsDeclared(declared, tool)
    return found


def _listed(model_config: str | None) -> dict[str, dict[str, object]] | None:
    if not model_config:
        return None
    import json

    try:
        tools = json.loads(model_config)[_TOOLS]
        return {str(one["name"]): one for one in tools if isinstance(one["parameters"], dict)}
    except (ValueError, TypeError, KeyError):
        return None


def _declared(name: str, tool: Tool) -> dict[str, object]:
    return {"name": name, "description": tool.description, "parameters": dict(tool.parameters)}


def _is_as_declared(name: str, tool: Tool, declared: Mapping[str, object]) -> bool:
    """Return whether a tool would be sent as it was; the order of its schema's keys is part of that."""
    import json

    try:
        return tool.name == name and json.dumps(_declared(name, tool)) == json.dumps(declared)
    except (TypeError, ValueError):
        return False


class _Declared:
    """What the prompt says of a tool."""

    effect = "read"

    def __init__(self, declared: Mapping[str, object]) -> None:
        self.name = str(declared["name"])
        self.description = str(declared["description"])
        parameters = declared["parameters"]
        self.parameters: Mapping[str, object] = parameters if isinstance(parameters, dict) else {}


class _AsDeclared(_Declared):
    """A tool as it was declared when the session began; whatever else it has, and does, is that of today."""

    def __init__(self, declared: Mapping[str, object], tool: Tool) -> None:
        super().__init__(declared)
        self.effect = tool.effect
        self._tool = tool

    def __getattr__(self, name: str) -> object:
        return getattr(self._tool, name)

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str | FileResult:
        """Call the tool of today."""
        return await self._tool.call(arguments, turn)


class _Gone(_Declared):
    """A tool that the session began with and that this process does not have."""

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str:
        """Say so; a repetition does no harm."""
        return f"error: the tool {self.name} is not available here any more"
