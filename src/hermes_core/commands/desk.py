"""Finding and running slash commands: which there are on a platform, under which names, and who may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.commands.parse import bare, parse_command, without_mentions
from hermes_hookspecs.commands import CommandCall, CommandReply
from hermes_hookspecs.principal import ADMIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.commands import Command
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["CommandBook"]


class CommandBook:
    """The commands of one profile. Thread-safe.

    :param settings: name reset triggers, and who may use what.
    """

    def __init__(self, hooks: Hooks, settings: Settings) -> None:
        self._hooks = hooks
        self._settings = settings

    def of(self, platform: str) -> Sequence[Command]:
        """Return the commands of a platform, sorted by name."""
        return [one for one in self._all(platform) if not one.resets or self._slashed]

    def _all(self, platform: str) -> Sequence[Command]:
        """Return the commands of a platform under their names, with one that only a word without slash calls."""
        there = (one for one in self._hooks.commands().values() if not one.platforms or platform in one.platforms)
        return sorted(map(self._named, there), key=lambda one: one.name)

    def _named(self, command: Command) -> Command:
        """Return a command under the names that the settings give it."""
        if not command.resets or not self._slashed:
            return command
        names = self._slashed
        name = command.name if command.name in names else names[0]
        return attrs.evolve(command, name=name, aliases=tuple(one for one in names if one != name))

    @property
    def _triggers(self) -> Sequence[str]:
        return self._settings.session_reset.reset_triggers

    @property
    def _slashed(self) -> Sequence[str]:
        """Return the names of reset triggers that begin with a slash."""
        return [one.removeprefix("/").lower() for one in self._triggers if one.startswith("/")]

    def _is_word(self, text: str) -> bool:
        """Return whether a message is nothing but a reset trigger without a slash."""
        word = " ".join(without_mentions(text).split()).casefold()
        return any(word == " ".join(one.split()).casefold() for one in self._triggers if not one.startswith("/"))

    def find(self, text: str, platform: str) -> tuple[Command | None, str]:
        """Return the command that a message stands for on a platform, and its arguments.

        :returns: ``None`` for what is no command, or none that is there.
        """
        if self._is_word(text):
            return next((one for one in self._all(platform) if one.resets), None), ""
        parsed = parse_command(text)
        if parsed is None:
            return None, ""
        name, arguments = parsed
        commands = self.of(platform)
        named = next((one for one in commands if one.name == name), None)
        return named or next((one for one in commands if name in one.aliases), None), arguments

    def is_command(self, text: str, *, addressed: bool = True) -> bool:
        """Return whether a message is a command. Mentions in front count only where it is meant for us."""
        if not addressed and without_mentions(text) != bare(text):
            return False
        return self._is_word(text) or parse_command(text) is not None

    async def run(
        self,
        app: App,
        text: str,
        source: SessionSource,
        entry: SessionEntry | None,
        *,
        control_id: InboxId | None = None,
    ) -> CommandReply | None:
        """Run ``text`` as a command; ``None`` when it is none. An unknown name is answered with what there is.

        :param control_id: its inbox row, where the entrance has one.
        """
        if not self.is_command(text):
            return None
        command, arguments = self.find(text, source.platform)
        if command is None:
            return _unknown(text, self.of(source.platform))
        principal = app.principal(source)
        refusal = self._refusal(command, principal, source.platform)
        if refusal:
            return CommandReply(text=refusal, failed=True)
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

    # --- who may use what

    def _names_of(self, command: Command) -> set[str]:
        """Return all names of a command: what resets is meant by those it has by itself, too, whatever it is called."""
        names = {command.name, *command.aliases}
        if command.resets:
            own = (one for one in self._hooks.commands().values() if one.resets)
            names.update(name for one in own for name in (one.name, *one.aliases))
        return names

    def names(self, platform: str = "") -> frozenset[str]:
        """Return all names by which ``admin_only`` can mean a command, of one platform or, for ``""``, of any."""
        commands = self._all(platform) if platform else map(self._named, self._hooks.commands().values())
        return frozenset(name for one in commands for name in self._names_of(one))

    def _refusal(self, command: Command, principal: Principal, platform: str) -> str:
        """Return why somebody may not use a command, ``""`` where they may."""
        if principal.sees_all:
            return ""
        own = self._settings.platforms.get(platform)
        listed = None if own is None else own.admin_only
        admin_only = self._settings.commands.admin_only if listed is None else listed
        names = {one.removeprefix("/").lower() for one in admin_only}
        if not names.isdisjoint(self._names_of(command)) and ADMIN not in principal.roles:
            return f"/{command.name} is for admins here."
        if command.roles and not principal.roles & set(command.roles):
            return f"/{command.name} is not for you."
        return ""


def _unknown(text: str, commands: Sequence[Command]) -> CommandReply:
    from difflib import get_close_matches

    name = (parse_command(text) or (text, ""))[0]
    names = [one.name for one in commands] + [alias for one in commands for alias in one.aliases]
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean /{near[0]}?" if near else ""
    there = " ".join(f"/{one.name}" for one in commands)
    answer = f"There is no command /{name}.{hint} /help lists what there is.\n{there}"
    return CommandReply(text=answer, failed=True)
