"""Finding and running slash commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.parse import parse_command
from hermes_hookspecs.commands import CommandCall, CommandReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.hooks import Hooks
    from hermes_hookspecs.commands import Command
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["commands_of", "find_command", "run_command"]


def commands_of(hooks: Hooks, platform: str) -> Sequence[Command]:
    """Return the commands of a platform, sorted by name."""
    found = [one for one in hooks.commands().values() if not one.platforms or platform in one.platforms]
    return sorted(found, key=lambda one: one.name)


def find_command(hooks: Hooks, name: str, platform: str) -> Command | None:
    """Return the command that a name or an alias stands for on a platform, ``None`` when there is none."""
    return _named(name, commands_of(hooks, platform))


async def run_command(
    app: App,
    hooks: Hooks,
    text: str,
    source: SessionSource,
    entry: SessionEntry | None,
    *,
    control_id: InboxId | None = None,
) -> CommandReply | None:
    """Run ``text`` as a command; ``None`` when it is none. An unknown name is answered with the nearest one.

    :param control_id: its inbox row, where the entrance has one.
    """
    parsed = parse_command(text)
    if parsed is None:
        return None
    name, arguments = parsed
    commands = commands_of(hooks, source.platform)
    command = _named(name, commands)
    if command is None:
        return _unknown(name, commands)
    principal = app.principal(source)
    if command.roles and not principal.sees_all and not principal.roles & set(command.roles):
        return CommandReply(text=f"/{command.name} is not for you.", failed=True)
    call = CommandCall(
        app=app,
        name=command.name,
        arguments=arguments,
        source=source,
        principal=principal,
        entry=entry,
        control_id=control_id,
    )
    return await command.run(call)


def _named(name: str, commands: Sequence[Command]) -> Command | None:
    """Return the command of that name, else the one with that alias."""
    return next(
        (one for one in commands if one.name == name), next((one for one in commands if name in one.aliases), None)
    )


def _unknown(name: str, commands: Sequence[Command]) -> CommandReply:
    from difflib import get_close_matches

    names = [one.name for one in commands] + [alias for one in commands for alias in one.aliases]
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean /{near[0]}?" if near else ""
    return CommandReply(text=f"There is no command /{name}.{hint} /help lists what there is.", failed=True)
