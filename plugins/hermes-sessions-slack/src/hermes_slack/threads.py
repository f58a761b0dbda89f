"""Threads: which ones we write in, and what was said in them that the session has not seen.

Two entries a thread, each written by one side, so that neither overwrites the other: ``ours/`` by what goes out, in the
transaction that marks it as sent, ``seen/`` by what comes in, in the one that accepts it. Both name workspace, channel
and root: the time of a message means another one elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.errors import PlatformError
from hermes_hookspecs.state import StateUpdate
from hermes_slack.wire import mapping, mappings, text
from hermes_slack.words import raw_words, read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import StateReader
    from hermes_hookspecs.source import SessionSource
    from hermes_slack.config import SlackConfig
    from hermes_slack.people import People
    from hermes_slack.workspaces import Workspace

__all__ = ["NAMESPACE", "ThreadBook", "earlier_words", "key_parts", "order"]

NAMESPACE = "slack"
_MOST = 5000
_LONGEST = 1000
_TIMEOUT_S = 2.0
"""For all that is asked of a thread: Slack waits three seconds for its message to be acknowledged."""
_PAGES, _PAGE = 5, 200


def key_parts(source: SessionSource) -> tuple[str, str, str] | None:
    """Return workspace, channel and root of the thread in which a message stands or which it begins."""
    root = source.thread_id or source.prospective_thread_id
    if not source.scope_id or not source.chat_id or not root:
        return None
    return source.scope_id, source.chat_id, root


class ThreadBook:
    """The threads of one account. For one event loop.

    Only what cannot be taken back is kept in memory: what is not known here may be known in the store by now, because
    another process wrote it.
    """

    def __init__(self, account_id: str, state: StateReader, clock: Clock, config: SlackConfig) -> None:
        self._account = encode_text(account_id)
        self._state = state
        self._clock = clock
        self._config = config
        self._ours: set[tuple[str, str, str]] = set()
        self._seen: dict[tuple[str, str, str], str] = {}

    def is_ours(self, source: SessionSource) -> bool:
        """Return whether we write, or were just asked to, in the thread of a source."""
        thread = key_parts(source)
        if thread is None:
            return False
        if thread not in self._ours and self._state.get(self._key("ours", thread)) is not None:
            self._keep(thread)
        return thread in self._ours

    def taken(self, source: SessionSource) -> None:
        """Note that a message which was meant for us was taken: an answer in its thread is on the way."""
        thread = key_parts(source)
        if thread is not None:
            self._keep(thread)

    def wrote(self, source: SessionSource) -> tuple[StateUpdate, ...]:
        """Return what to remember when something was posted into a thread."""
        thread = key_parts(source)
        if thread is None:
            return ()
        self._keep(thread)
        return (self._update("ours", thread, {}),)

    def seen(self, source: SessionSource) -> str:
        """Return the time of the last message of a thread that its session has seen, ``""`` where it has seen none."""
        thread = key_parts(source)
        if thread is None:
            return ""
        entry = self._state.get(self._key("seen", thread))
        found = json.loads(entry.value) if entry is not None else {}
        stored = text(found, "ts") if isinstance(found, dict) else ""
        return max(stored, self._seen.get(thread, ""), key=order)

    def saw(self, source: SessionSource) -> tuple[StateUpdate, ...]:
        """Return what to remember when a message of a thread goes into its session."""
        thread = key_parts(source)
        if thread is None or not source.message_id or order(source.message_id) <= order(self.seen(source)):
            return ()
        if len(self._seen) >= _MOST:
            self._seen.clear()  # all but the batch in hand is in the store
        self._seen[thread] = source.message_id
        return (self._update("seen", thread, {"ts": source.message_id}),)

    def _keep(self, thread: tuple[str, str, str]) -> None:
        if len(self._ours) >= _MOST:
            self._ours.clear()  # what was written is in the store
        self._ours.add(thread)

    def _key(self, kind: str, thread: tuple[str, str, str]) -> str:
        return "/".join([self._account, kind, *map(encode_text, thread)])

    def _update(self, kind: str, thread: tuple[str, str, str], value: Mapping[str, object]) -> StateUpdate:
        expires_at = self._clock.now() + int(self._config.thread_days * 86_400_000)
        return StateUpdate(
            namespace=NAMESPACE, key=self._key(kind, thread), value=json.dumps(value), expires_at=expires_at
        )


async def earlier_words(source: SessionSource, workspace: Workspace, people: People, *, seen: str, most: int) -> str:
    """Return what was said in a thread before a message and is not in its session, as quoted lines.

    Of our own messages only the one that opened the thread counts: the others are the session's answers. Of a thousand
    messages at most; what stands behind them Slack tells last.

    :param seen: time of the last message that is in the session, ``""`` for none. most: messages: the one that opened
        the thread, if it is not in the session, and the newest ones.
    :raises PlatformError: Slack does not tell.
    """
    found = []
    async for message in _told(source, workspace, seen):
        ts = text(message, "ts")
        if not (order(seen) < order(ts) < order(source.message_id or "")):
            continue
        is_own = _is_own(message, workspace)
        words = " ".join(read(raw_words(message)).split())
        if words and (ts == source.thread_id or not is_own):
            found.append((message, words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"))
    opens = found[:1] if found and text(found[0][0], "ts") == source.thread_id else []
    found = found if len(found) <= most else opens + found[len(found) - most + len(opens) :]
    await people.learn(workspace, [text(message, "user") for message, _ in found if not text(message, "bot_id")])
    return "\n".join(f"> {_author(message, workspace, people)}: {words}" for message, words in found)


async def _told(source: SessionSource, workspace: Workspace, seen: str) -> AsyncIterator[Mapping[str, object]]:
    """Yield the messages of a thread, oldest first, as many as come in time."""
    loop = asyncio.get_running_loop()
    ends, cursor = loop.time() + _TIMEOUT_S, ""
    for page in range(_PAGES):
        try:
            answer = await workspace.api.read(
                "conversations.replies",
                timeout_s=max(ends - loop.time(), 0.0),
                channel=source.chat_id,
                ts=source.thread_id,
                oldest=seen or None,
                latest=source.message_id,
                limit=_PAGE,
                cursor=cursor or None,
            )
        except PlatformError:
            if not page:
                raise
            return
        for message in mappings(answer, "messages"):
            yield message
        cursor = text(mapping(answer, "response_metadata"), "next_cursor")
        if not cursor:
            return


def _is_own(message: Mapping[str, object], workspace: Workspace) -> bool:
    return text(message, "user") == workspace.user_id or text(message, "bot_id") == workspace.bot_id


def _author(message: Mapping[str, object], workspace: Workspace, people: People) -> str:
    if _is_own(message, workspace):
        return "you"
    user_id = text(message, "user")
    told = text(mapping(message, "user_profile"), "display_name") or text(message, "username")
    return people.name_of(workspace, user_id) or told or user_id or "a bot"


def order(ts: str) -> tuple[int, str]:
    """Return what the times of messages are compared by; ``""`` comes before all."""
    seconds, _, rest = ts.partition(".")
    return (int(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) < 16 else 0, rest)
