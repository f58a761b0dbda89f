"""What people do with a conversation beside speaking in it: take back, say again, branch off, look back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_hookspecs.ids import InboxId, LineageId, SessionId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["Conversations", "Fullness", "HasConversations", "Recap", "TakenBack", "recap_text"]

_MOST_LINES = 6
_LONGEST = 160


@attrs.frozen(kw_only=True)
class TakenBack:
    """What an undo, a redo or a retry came to.

    Attributes:
        turns: how many were taken back or brought back; 0 where nothing was changed. refusal: why, as a sentence.
        text: beginning of the first message that it was about, on one line.
        again, attachments: of a retry: the message that is to be said again.
    """

    turns: int
    refusal: str = ""
    text: str = ""
    again: str = ""
    attachments: tuple[Attachment, ...] = ()


@attrs.frozen(kw_only=True)
class Recap:
    """What restores the scene of a conversation, taken over from what was said; no model has part in it.

    All in order, the oldest first, each line once.

    Attributes:
        goals: what was asked for. decisions: what was settled. commands, files: what tools were given, and what was
            named. done: what was reported as done. failures: calls whose result says that they failed, or that were
            not answered. open: what was put off or asked and not answered.
        last_asked, last_answered: beginning of the last message and of the last answer, ``""`` for none.
        messages, turns: counts. last_activity: UTC milliseconds.
    """

    session_id: SessionId
    title: str | None
    messages: int
    turns: int
    last_activity: int
    goals: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    last_asked: str = ""
    last_answered: str = ""


@attrs.frozen(kw_only=True)
class Fullness:
    """How full the context of a session is, and when it is compressed by itself.

    Attributes:
        rows: that a model is sent. tokens: of the next prompt, before its new message. measured: an endpoint counted
            most of them; else they are estimated. window_tokens: what the model can read, ``None`` where nobody knows.
        at_tokens: from how many on it is compressed, ``None`` for never. at_rows: the same in rows.
        enabled: compression by itself is on.
    """

    rows: int
    tokens: int
    measured: bool
    window_tokens: int | None
    at_tokens: int | None
    at_rows: int
    enabled: bool


class Conversations(Protocol):
    """Conversations of an open profile. Everything blocks.

    With a ``control_id``, the inbox row of a command, an effect happens once: a repetition answers what the first did.
    """

    def undo(
        self, lineage_id: LineageId, source: SessionSource, *, turns: int = 1, control_id: InboxId | None = None
    ) -> TakenBack:
        """Hide the last turns of a conversation: they are kept, and not read, counted or found meanwhile.

        What a retry has replaced comes back in its place. What a compression has put into a summary is not reached.

        :param turns: at least 1; where there are fewer, all of them.
        :raises LeaseBusy: a turn runs; nothing was changed. :raises SessionNotFound: no such lineage.
        """
        ...

    def redo(self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None) -> TakenBack:
        """Bring back what the last undo took, as long as nothing new was said. Errors as in :meth:`undo`."""
        ...

    def retry(self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None) -> TakenBack:
        """Hide the last turn, so that its message (``again``) can be said again by the caller. An undo brings it back.

        Errors as in :meth:`undo`.
        """
        ...

    def branch(
        self, source: SessionSource, lineage_id: LineageId, *, title: str = "", control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a new lineage that begins with the context of another one.

        :param title: ``""`` for the other one's title, with a number behind it.
        :raises LeaseBusy: a turn runs there. :raises TitleError: too long, or taken.
        :raises SessionNotFound: no such lineage, or not the principal's.
        """
        ...

    def recap(self, lineage_id: LineageId, principal: Principal) -> Recap:
        """Return what restores the scene. :raises SessionNotFound: no such lineage, or not the principal's."""
        ...

    def fullness(self, session_id: SessionId) -> Fullness:
        """Return how full a session's context is. :raises SessionNotFound: no such session."""
        ...

    def waiting(self, source: SessionSource) -> Sequence[InboxItem]:
        """Return the messages that wait under the key of ``source``, oldest first."""
        ...

    def drop_waiting(self, source: SessionSource, *, control_id: InboxId | None = None) -> int:
        """Take back the messages that wait under the key of ``source``; return how many.

        :param control_id: only those that are older than this row. What somebody waits for in a call is left alone.
        """
        ...

    def settings_of(self, lineage_id: LineageId) -> Mapping[str, str]:
        """Return what holds for one conversation alone, by name: another model, say. It goes with its reset."""
        ...

    def set_for(self, lineage_id: LineageId, name: str, value: str | None) -> None:
        """Let something hold for one conversation alone, until its reset; ``None`` takes it away."""
        ...


class HasConversations(Protocol):
    """The part of an :class:`~hermes_hookspecs.ports.app.App` that is about conversations."""

    @property
    def conversations(self) -> Conversations:
        """Return what can be done with conversations."""
        ...


def recap_text(recap: Recap) -> str:
    """Return a recap as a person reads it: a heading and its newest lines for each part that says something."""
    parts = (
        ("Goal", recap.goals),
        ("Done", recap.done),
        ("Commands", recap.commands),
        ("Files", recap.files),
        ("Failures", recap.failures),
        ("Decisions", recap.decisions),
        ("Open", recap.open),
    )
    lines = [line for name, said in parts if said for line in (f"{name}:", *_newest(said))]
    for name, text in (("You asked last", recap.last_asked), ("The last answer", recap.last_answered)):
        if text:
            lines.append(f"{name}: {text}")
    return "\n".join(lines) or "Nothing was said here yet."


def _newest(said: Sequence[str]) -> Iterator[str]:
    """Yield the first line, how many are left out, and the newest ones: what it began with is what it is about."""
    left_out = len(said) - _MOST_LINES
    shown = said if left_out <= 0 else (said[0], f"… {left_out} more", *said[left_out + 1 :])
    for text in shown:
        line = " ".join(text[: 4 * _LONGEST].split())
        yield f"- {line if len(line) <= _LONGEST else f'{line[: _LONGEST - 1]}…'}"
