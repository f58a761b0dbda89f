"""What a fake Feishu knows: its apps, chats and messages, and how it is to behave."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FakeApp", "FakeUpload", "Kept", "World", "shown"]


@attrs.define(kw_only=True)
class FakeApp:
    """One app. ``tokens``: by token, when it ends on the monotonic clock. ``webhook``: where it is called, if it is."""

    alias: str
    app_id: str
    secret: str
    bot_open_id: str
    encrypt_key: str
    verification_token: str
    is_bot: bool = True
    webhook: str = ""
    tokens: dict[str, float] = attrs.field(factory=dict)


@attrs.define(kw_only=True)
class Kept:
    """One message. ``app_id``: of the app that sent it, ``""`` for a person's."""

    message_id: str
    chat_id: str
    type: str
    content: str
    app_id: str = ""
    sender: str = ""
    thread_id: str = ""
    parent_id: str = ""
    root_id: str = ""
    uuid: str = ""
    above: str = ""
    mentions: list[dict[str, object]] = attrs.field(factory=list)
    edits: int = 0
    deleted: bool = False
    created_ms: int = 0

    def item(self) -> dict[str, object]:
        """Return it as the API shows it."""
        return {
            "message_id": self.message_id,
            "root_id": self.root_id,
            "parent_id": self.parent_id,
            "thread_id": self.thread_id,
            "upper_message_id": self.above,
            "msg_type": self.type,
            "create_time": str(self.created_ms),
            "chat_id": self.chat_id,
            "deleted": self.deleted,
            "sender": {"id": self.sender, "id_type": "app_id" if self.app_id else "open_id"},
            "body": {"content": "This message was recalled" if self.deleted else self.content},
            "mentions": self.mentions,
        }


@attrs.frozen(kw_only=True)
class FakeUpload:
    """A file that an app brought. ``name``: ``""`` for a picture."""

    app_id: str
    kind: str
    data: bytes
    name: str = ""
    file_type: str = ""


@attrs.define
class World:
    """Everything, and the knobs.

    Attributes:
        uploads: files that apps brought, by key. upload_codes: with which the next uploads are refused.
        answers: to the next sends: names of :mod:`hermes_hookspecs.testing.fakes`, or codes of the platform.
        endpoint_codes: answers to the next questions for the long connection. forms_refused: message types that are
            answered with 230001. topic_chats: groups in which each message stands in a topic.
        chats_left: where our bots are not members. missing_scopes: by kind of request (``bot``, ``send``, ``edit``,
            ``read``, ``chat``, ``contact``, ``react``). out_of_order: kinds of request that are answered with 502.
            names: of people, by ``open_id``.
        ping_s, nonce_s: what clients are told. token_s: life of a token. fragment_bytes: events longer than that come
            in pieces. ack_s: how long an acknowledgement may take. ladder: seconds before each redelivery; the last
            one is used again and again. most_connections: of one app. tokens_issued: counted.
        requests: method and path. hosts: that were asked by name. queries, uuids: of each send, in order.
        faults: what a client did that no client should do.
    """

    apps: dict[str, FakeApp] = attrs.field(factory=dict)
    messages: dict[str, Kept] = attrs.field(factory=dict)
    uploads: dict[str, FakeUpload] = attrs.field(factory=dict)
    resources: dict[tuple[str, str], tuple[bytes, str, str]] = attrs.field(factory=dict)
    reactions: dict[str, tuple[str, str, str]] = attrs.field(factory=dict)
    answers: deque[str | int] = attrs.field(factory=deque)
    endpoint_codes: deque[int] = attrs.field(factory=deque)
    upload_codes: deque[int] = attrs.field(factory=deque)
    handshake_codes: deque[int] = attrs.field(factory=deque)
    names: dict[str, str] = attrs.field(factory=dict)
    forms_refused: set[str] = attrs.field(factory=set)
    topic_chats: set[str] = attrs.field(factory=set)
    chats_left: set[str] = attrs.field(factory=set)
    missing_scopes: dict[str, str] = attrs.field(factory=dict)
    out_of_order: set[str] = attrs.field(factory=set)
    ping_s: float = 0.3
    nonce_s: float = 0.0
    token_s: float = 7200.0
    fragment_bytes: int = 0
    ack_s: float = 3.0
    ladder: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0)
    most_connections: int = 50
    tokens_issued: int = 0
    connections_made: int = 0
    requests: list[tuple[str, str]] = attrs.field(factory=list)
    hosts: set[str] = attrs.field(factory=set)
    queries: list[dict[str, str]] = attrs.field(factory=list)
    uuids: list[str] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)
    acknowledged: set[str] = attrs.field(factory=set)
    thawed: asyncio.Event = attrs.field(factory=asyncio.Event)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event)
    _numbers: itertools.count[int] = attrs.field(factory=lambda: itertools.count(1))

    def __attrs_post_init__(self) -> None:
        self.thawed.set()

    def app(self, alias: str) -> FakeApp:
        """Return an app, made if need be."""
        if alias not in self.apps:
            self.apps[alias] = FakeApp(
                alias=alias,
                app_id=f"cli_{alias}",
                secret=f"fake-secret-of-{alias}",
                bot_open_id=f"ou_bot_{alias}",
                encrypt_key=f"fake-encrypt-key-of-{alias}",
                verification_token=f"fake-token-of-{alias}",
            )
        return self.apps[alias]

    def new_id(self, kind: str) -> str:
        """Return an id that nothing else has."""
        return f"{kind}_fake{next(self._numbers):06d}"

    def keep(self, message: Kept) -> Kept:
        """Keep a message."""
        message.created_ms = message.created_ms or int(time.time() * 1000)
        self.messages[message.message_id] = message
        self.changed()
        return message

    def sent_by_apps(self) -> list[Kept]:
        """Return what apps sent and was not taken back, oldest first."""
        return [one for one in self.messages.values() if one.app_id and not one.deleted]

    # --- waiting

    def changed(self) -> None:
        """Let those look again who wait for something."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait until something holds. :raises TimeoutError: it did not in time."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                await self._changed.wait()


def shown(kind: str, content: str) -> str:
    """Return what people see of a message that an app sent.

    :raises ValueError: the platform would not take it.
    """
    body = mapping_of(json.loads(content))
    if kind in ("image", "file"):
        return ""
    if kind == "text":
        if not isinstance(body.get("text"), str):
            raise ValueError("a text without text")
        return text_of(body["text"])
    if kind == "post":
        post = mapping_of(body.get("zh_cn")) or mapping_of(body.get("en_us"))
        rows = post.get("content")
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and row for row in rows):
            raise ValueError("a post without rows")
        return "\n\n".join("".join(text_of(mapping_of(one).get("text")) for one in row) for row in rows)
    elements = mapping_of(body.get("body")).get("elements")
    if body.get("schema") != "2.0" or not isinstance(elements, list):
        raise ValueError("a card of another version")
    return "\n\n".join(text_of(mapping_of(one).get("content")) for one in elements)
