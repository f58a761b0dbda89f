"""What an account remembers: which messages came, and answers that wait to be fetched.

Both are state of the adapter: a message is noted in the transaction that stores it, and an answer appears in the one
that marks it as sent. So an answer is seen once, whenever a process dies.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.ports.platform import DeliveryPart, StateReader
    from hermes_webhook.incoming import Incoming

__all__ = ["Answer", "Book", "Noted"]


@attrs.frozen(kw_only=True)
class Noted:
    """A message that came. ``order`` grows with every message and answer of its account."""

    order: int
    user_id: str
    thread_id: str = ""
    callback_url: str = ""


@attrs.frozen(kw_only=True)
class Answer:
    """One part of an answer, as it is fetched.

    Attributes:
        order: what readers go on behind. reply_to: the message it answers, the newest of those that it does; ``""`` for
            what nobody asked for. user_id: who asked. about: order of that message, 0 where it is not known.
        file: ``name``, ``media_type``, ``size`` and ``sha256`` of the file that the part is.
    """

    order: int
    text: str
    reply_to: str = ""
    user_id: str = ""
    about: int = 0
    part: int = 1
    parts: int = 1
    file: Mapping[str, object] | None = None

    def answers(self, message: Noted) -> bool:
        """Return whether this ends an answer to a message.

        Messages that one person sends in a row are answered together, in the order in which they came: an answer to a
        later one is an answer to this one, too.
        """
        return self.part == self.parts and self.user_id == message.user_id and self.about >= message.order


class Book:
    """Reads and writes of one account. Every method blocks for a read. Thread-safe.

    :param namespace: the platform's name. keep_ms: how long something is remembered.
    """

    def __init__(self, namespace: str, account_id: str, state: StateReader, clock: Clock, *, keep_ms: int) -> None:
        self._namespace = namespace
        self._account = encode_text(account_id)
        self._state = state
        self._clock = clock
        self._keep_ms = keep_ms
        self._last: int | None = None
        self._lock = Lock()

    # --- messages

    def message(self, chat_id: str, message_id: str) -> Noted | None:
        """Return what is remembered of a message, ``None`` where it never came, or long ago."""
        entry = self._state.get(self._message_key(chat_id, message_id))
        return None if entry is None else Noted(**json.loads(entry.value))

    def note(self, incoming: Incoming) -> tuple[StateUpdate, ...]:
        """Return what has to be remembered of a message; nothing where it is known: its place stays."""
        if self.message(incoming.chat_id, incoming.id) is not None:
            return ()
        noted = Noted(
            order=self._next(),
            user_id=incoming.user_id,
            thread_id=incoming.thread_id,
            callback_url=incoming.callback_url,
        )
        return (self._update(self._message_key(incoming.chat_id, incoming.id), attrs.asdict(noted), incoming.user_id),)

    # --- answers

    def keep(self, part: DeliveryPart, sha256: str = "") -> StateUpdate:
        """Return what makes a part of an answer appear. The same part again has the place that it had.

        :param sha256: under which the bytes of its file can be fetched.
        """
        target = part.target
        chat_id, reply_to = target.chat_id or "", target.message_id or ""
        key = self._conversation(chat_id, target.thread_id or "") + encode_text(part.key)
        before = self._state.get(key)
        message = self.message(chat_id, reply_to) if reply_to else None
        answer = Answer(
            order=self._next() if before is None else int(json.loads(before.value)["order"]),
            text="" if part.media else part.text,
            reply_to=reply_to,
            user_id=target.user_id or "",
            about=0 if message is None else message.order,
            part=part.index + 1,
            parts=part.count,
            file=None if part.media is None else _told(part.media, sha256),
        )
        return self._update(key, attrs.asdict(answer), target.participant)

    def answers(self, chat_id: str, thread_id: str, *, after: int = 0) -> Sequence[Answer]:
        """Return the parts that were sent to a conversation behind ``after``, oldest first."""
        entries = self._state.list(self._conversation(chat_id, thread_id))
        found = [Answer(**json.loads(entry.value)) for entry in entries]
        return sorted((one for one in found if one.order > after), key=lambda one: one.order)

    # --- places

    def _next(self) -> int:
        """Return a number above all that were given: UTC milliseconds, unless the clock went back."""
        with self._lock:
            if self._last is None:
                prefixes = (f"answer:{self._account}:", f"message:{self._account}:")
                known = [json.loads(entry.value)["order"] for each in prefixes for entry in self._state.list(each)]
                self._last = max(known, default=0)
            self._last = max(self._last + 1, self._clock.now())
            return self._last

    def _message_key(self, chat_id: str, message_id: str) -> str:
        return f"message:{self._account}:{encode_text(chat_id)}:{encode_text(message_id)}"

    def _conversation(self, chat_id: str, thread_id: str) -> str:
        return f"answer:{self._account}:{encode_text(chat_id)}:{encode_text(thread_id)}:"

    def _update(self, key: str, value: dict[str, object], person: str | None) -> StateUpdate:
        return StateUpdate(
            namespace=self._namespace,
            key=key,
            value=json.dumps(value, ensure_ascii=False),
            person=person,
            expires_at=self._clock.now() + self._keep_ms,
        )


def _told(file: OutgoingFile, sha256: str) -> dict[str, object]:
    return {"name": file.name, "media_type": file.media_type, "size": file.size, "sha256": sha256}
