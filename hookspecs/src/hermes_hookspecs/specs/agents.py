"""Agents, tools, and what is done around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.agent import Agent, Tool
    from hermes_hookspecs.ports.policies import Summariser
    from hermes_hookspecs.ports.services import AttachmentDescriber, Titler
    from hermes_hookspecs.turns import Turn


@hookspec(kind="provider", on_error="skip")
def hermes_agents() -> Sequence[Agent] | None:
    """Return agents; ``[agent] runner`` or ``--agent`` picks one by name.

    Called once, before the first turn. All results are joined; of two with one name the plugin asked first wins. A
    failure is logged and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_tools() -> Sequence[Tool] | None:
    """Return tools, each with its ``effect``: what a repetition after a crash would do.

    A name is 1 to 64 ASCII letters, digits, ``_`` and ``-``, since endpoints refuse every request with another.

    Called once, before the first turn. All results are joined; of two with one name the plugin asked first wins. A
    failure is logged and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_summarisers() -> Sequence[Summariser] | None:
    """Return what makes summaries, best first; the built-in extractive one is last.

    Called once, before the first compression. All results are joined. One that fails, takes too long or returns a
    blank text is logged, and the next one is asked.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_titlers() -> Sequence[Titler] | None:
    """Return what finds titles, best first. A title that a person gave is never replaced.

    Called once, before the first turn. All results are joined. They are asked behind a turn of a conversation that
    has no title, beside whatever else happens: the first title is taken, and that conversation is not asked about
    again. One that fails or takes too long is logged, and the next one is asked.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_attachment_describers() -> Sequence[AttachmentDescriber] | None:
    """Return what turns attachments into text, best first; the first answer is kept and stored.

    Called once, before the first turn. All results are joined; the built-in reader of documents is asked last. A
    failure is logged and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_tool_call(turn: Turn, call: Message, result: Message) -> None:
    """Tell that a tool answered; both rows are stored.

    Runs after commit, at most once. All are called. ``call`` is the assistant row that holds the call.

    .. versionadded:: 0.1
    """
