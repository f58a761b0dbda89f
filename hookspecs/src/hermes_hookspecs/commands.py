"""Slash commands of every entrance, as plain descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["STEERED", "Command", "CommandCall", "CommandReply", "Saying"]

STEERED = "steer"
"""Begins the identity of a message that is to go into the turn that runs, whatever the platform's busy policy."""


@attrs.frozen(kw_only=True)
class CommandCall:
    """One slash command as somebody typed it.

    Attributes:
        arguments: what stood behind the name, trimmed. entry: the session spoken in, ``None`` before the first.
        control_id: its inbox row, where the entrance has one; settles what waited before it.
    """

    app: App
    name: str
    arguments: str
    source: SessionSource
    principal: Principal
    entry: SessionEntry | None
    control_id: InboxId | None = None


@attrs.frozen(kw_only=True)
class Saying:
    """A message that a command says in the name of whoever typed it, once its own effect is stored.

    Attributes:
        steers: it is to go into the turn that runs, where its agent lets itself be steered; else it has its own turn.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    steers: bool = False


@attrs.frozen(kw_only=True)
class CommandReply:
    """What a command answers.

    Attributes:
        entry: the session the entrance shows from now on, ``None`` where that did not change.
        released: the entrance shows no session any more; the next message makes one.
        say: what the entrance takes as its person's next message.
        leave: the entrance is asked to close. failed: the text says what was wrong; nothing was changed.
    """

    text: str
    entry: SessionEntry | None = None
    released: bool = False
    leave: bool = False
    failed: bool = False
    say: Saying | None = None


@attrs.frozen(kw_only=True)
class Command:
    """A slash command.

    Attributes:
        name: without the slash, lower case. usage: what may stand behind it, for people.
        platforms: where it exists, empty for everywhere. roles: who may use it, empty for everybody.
        bypass: runs beside a running turn; a command that does not waits for its place.
        group: heading under which ``/help`` lists it, ``""`` for the last one.
        resets: it lets go of the session; ``[session_reset] reset_triggers`` says by which names it is called.
        urgent: does not stand behind older commands that wait for their place, or that do not come to an end.
    """

    name: str
    summary: str
    run: Callable[[CommandCall], Awaitable[CommandReply]]
    usage: str = ""
    aliases: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    bypass: bool = True
    urgent: bool = False
    group: str = ""
    resets: bool = False
