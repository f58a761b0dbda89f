"""What comes, as the core takes it: whose it is, where, whether it is meant for us, and by what it is known again.

A message is known by workspace, channel and time. The time alone means other messages in other channels, and the id of
an event differs between a message and the mention that is told beside it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Protocol

import attrs

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.source import SessionSource
from hermes_slack.config import THREAD
from hermes_slack.files import attachments_of
from hermes_slack.wire import flag, mapping, milliseconds, text
from hermes_slack.words import is_mentioned, raw_words, read, shared_words, without_mention

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_slack.config import SlackConfig
    from hermes_slack.workspaces import Workspace

__all__ = ["Reader", "Threads"]

_SUBTYPES = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})


class Threads(Protocol):
    """Knows in which threads we write."""

    def is_ours(self, source: SessionSource) -> bool:
        """Return whether the thread of a source is one of them."""
        ...


_SLACKBOT = "USLACKBOT"


@attrs.frozen(kw_only=True)
class Reader:
    """Reads the events of one account."""

    account_id: str
    config: SlackConfig
    threads: Threads

    def event(self, payload: Mapping[str, object], workspace: Workspace, now: int) -> MessageEvent | None:
        """Return a message, one that was taken back, or one with an ``error``; ``None`` for all that is none of these.

        :param payload: of an ``event_callback``. now: UTC milliseconds.
        """
        inner = mapping(payload, "event")
        if not inner:
            return self._unreadable(payload, workspace, now, "an event without content")
        kind, subtype = text(inner, "type"), text(inner, "subtype")
        if kind not in ("message", "app_mention"):
            return None
        if subtype == "message_deleted":
            return self._recall(inner, workspace, now)
        if subtype not in _SUBTYPES or flag(inner, "hidden"):
            return None
        if not text(inner, "channel") or not text(inner, "ts"):
            return self._unreadable(payload, workspace, now, "a message without channel or time")
        if self._is_own(inner, workspace, text(payload, "api_app_id")):
            return None
        return self._message(inner, workspace, now)

    def is_mention(self, payload: Mapping[str, object], workspace: Workspace) -> bool:
        """Return whether a message names us."""
        inner = mapping(payload, "event")
        return text(inner, "type") == "app_mention" or is_mentioned(raw_words(inner), workspace.user_id)

    def command(
        self, payload: Mapping[str, object], workspace: Workspace, now: int, *, is_direct: bool
    ) -> MessageEvent | None:
        """Return a slash command as the message that says it: from the same person, in the same place.

        :param is_direct: it was given in a direct chat with us.
        """
        channel, user = text(payload, "channel_id"), text(payload, "user_id")
        name, words = text(payload, "command").removeprefix("/").lower(), text(payload, "text")
        known = text(payload, "trigger_id") or _hash(payload)
        if not channel or not user or not name:
            return self._unreadable(payload, workspace, now, "a command without place, person or name")
        is_plain = name in self.config.slash_commands
        source = self._source(workspace, channel, is_direct, user_id=user, user_name=text(payload, "user_name"))
        identity = _identity(workspace.scope_id, channel, "command", known)
        return MessageEvent(
            # a command is no message of Slack's: what is said here tells its answer from others, and begins no thread
            source=attrs.evolve(source, message_id=f"command-{_digest(identity)[:24]}"),
            text=words if is_plain else f"/{name} {words}".rstrip(),
            identities=(identity,),
            received_at=now,
            error="" if words.strip() or not is_plain else "a command without words",
        )

    # --- messages

    def _message(self, inner: Mapping[str, object], workspace: Workspace, now: int) -> MessageEvent:
        channel, ts = text(inner, "channel"), text(inner, "ts")
        raw = raw_words(inner)
        source = self._source_of(inner, workspace, channel, ts)
        words = read(without_mention(raw, workspace.user_id))
        if self.config.bang_commands and words[:1] == "!" and words[1:2].isalpha():
            words = f"/{words[1:]}"
        shared = shared_words(inner)
        if shared:
            quoted = "\n".join(f"> {line}" for each in shared for line in each.splitlines())
            words = f"{quoted}\n\n{words}" if words else quoted
        attachments = attachments_of(inner)
        meant = (
            source.chat_type == "dm"
            or self.is_mention({"event": inner}, workspace)
            or channel in self.config.free_channels
            or self._continues(inner, source, workspace)
        )
        return MessageEvent(
            source=source,
            text=words,
            identities=(_identity(workspace.scope_id, channel, ts),),
            attachments=attachments,
            received_at=milliseconds(ts, now),
            error="" if words or attachments or meant else "a message without content",
            addressed=meant,
        )

    def _continues(self, inner: Mapping[str, object], source: SessionSource, workspace: Workspace) -> bool:
        """Return whether a message in a thread goes on with what we write there."""
        if source.thread_id is None or not self.config.thread_replies:
            return False
        return text(inner, "parent_user_id") == workspace.user_id or self.threads.is_ours(source)

    def _recall(self, inner: Mapping[str, object], workspace: Workspace, now: int) -> MessageEvent | None:
        before, channel = mapping(inner, "previous_message"), text(inner, "channel")
        ts = text(inner, "deleted_ts") or text(before, "ts")
        if not channel or not ts or not text(before, "user") or self._is_own(before, workspace, ""):
            return None
        return MessageEvent(
            source=self._source_of({**before, "channel_type": text(inner, "channel_type")}, workspace, channel, ts),
            text="",
            identities=(_identity(workspace.scope_id, channel, ts, "deleted"),),
            received_at=now,
            recalls=_identity(workspace.scope_id, channel, ts),
        )

    def _unreadable(self, payload: Mapping[str, object], workspace: Workspace, now: int, error: str) -> MessageEvent:
        inner = mapping(payload, "event")
        return MessageEvent(
            source=SessionSource(
                platform="slack",
                account_id=self.account_id,
                scope_id=workspace.scope_id,
                chat_type="group",
                chat_id=text(inner, "channel") or text(payload, "channel_id"),
                user_id=text(inner, "user") or text(payload, "user_id"),
            ),
            text="",
            identities=(_identity(workspace.scope_id, "event", text(payload, "event_id") or _hash(payload)),),
            received_at=now,
            error=error,
            addressed=False,
        )

    # --- who and where

    def _is_own(self, message: Mapping[str, object], workspace: Workspace, app_id: str) -> bool:
        return (
            text(message, "user") == workspace.user_id
            or text(message, "bot_id") == workspace.bot_id
            or (bool(app_id) and text(message, "app_id") == app_id)
        )

    def _source_of(self, message: Mapping[str, object], workspace: Workspace, channel: str, ts: str) -> SessionSource:
        thread = text(message, "thread_ts")
        is_nameless = text(message, "subtype") == "bot_message" or text(message, "user") == _SLACKBOT
        bot = text(message, "bot_id") or ("bot" if is_nameless else "")
        # a mention does not say what kind of channel it is in: only what both twins tell may decide
        is_direct = text(message, "channel_type") == "im" or channel.startswith("D")
        return self._source(
            workspace,
            channel,
            is_direct,
            user_id=text(message, "user") or bot,
            thread_id=thread if thread != ts else "",
            message_id=ts,
            is_bot=bool(bot),
            user_name=text(message, "username"),
        )

    def _source(
        self,
        workspace: Workspace,
        channel: str,
        is_direct: bool,
        *,
        user_id: str,
        thread_id: str = "",
        message_id: str = "",
        is_bot: bool = False,
        user_name: str = "",
    ) -> SessionSource:
        begins = self.config.replies == THREAD and not is_direct and not thread_id
        return SessionSource(
            platform="slack",
            account_id=self.account_id,
            scope_id=workspace.scope_id,
            chat_type="dm" if is_direct else "group",
            chat_id=channel,
            thread_id=thread_id,
            prospective_thread_id=message_id if begins else None,
            user_id=user_id,
            user_name=user_name,
            message_id=message_id,
            is_bot=is_bot,
        )


def _identity(*parts: str) -> str:
    return ":".join(encode_text(part) for part in parts)


def _hash(payload: Mapping[str, object]) -> str:
    try:
        content = json.dumps(payload, sort_keys=True)
    except RecursionError:  # nested as deep as could just be read
        content = json.dumps(sorted(payload))
    return _digest(content)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
