"""The HTTP API of the fake: what it takes and what it refuses, in the platform's codes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import attrs
from aiohttp import web

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.testing.files import FileRoutes, refused_key
from hermes_feishu.testing.world import FakeApp, Kept, shown
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, DEFERRED, OK, RATE_LIMITED, REJECTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hermes_feishu.testing.world import World

__all__ = ["Api"]

_MESSAGES: Final = "/open-apis/im/v1/messages"
_MOST_BYTES: Final = {"text": 150_000, "post": 30_000, "interactive": 30_000, "image": 30_000, "file": 30_000}
_TABLE: Final = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$", re.MULTILINE)
_MOST_EDITS: Final = 20
_UUID_S: Final = 3600.0


class Api:
    """Handlers of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_uuid: dict[tuple[str, str], tuple[str, float]] = {}

    def routes(self) -> list[web.RouteDef]:
        """Return everything that can be asked."""
        one, files = f"{_MESSAGES}/{{message_id}}", FileRoutes(self._world)
        return [
            web.post("/open-apis/auth/v3/tenant_access_token/internal", self._token),
            web.get("/open-apis/bot/v3/info", self._with_token("bot", self._bot)),
            web.post(_MESSAGES, self._with_token("send", self._create)),
            web.post("/open-apis/im/v1/images", self._with_token("upload", files.image)),
            web.post("/open-apis/im/v1/files", self._with_token("upload", files.file)),
            web.get(_MESSAGES, self._with_token("read", self._list)),
            web.post(f"{one}/reply", self._with_token("send", self._reply)),
            web.get(one, self._with_token("read", self._get)),
            web.put(one, self._with_token("edit", self._put)),
            web.patch(one, self._with_token("edit", self._patch)),
            web.get(f"{one}/resources/{{key}}", self._with_token("read", self._resource)),
            web.post(f"{one}/reactions", self._with_token("react", self._react)),
            web.delete(f"{one}/reactions/{{reaction_id}}", self._with_token("react", self._unreact)),
            web.get("/open-apis/im/v1/chats/{chat_id}", self._with_token("chat", self._chat)),
            web.get("/open-apis/contact/v3/users/{open_id}", self._with_token("contact", self._person)),
        ]

    # --- tokens

    async def _token(self, request: web.Request) -> web.Response:
        body = mapping_of(await request.json())
        app = next((one for one in self._world.apps.values() if one.app_id == body.get("app_id")), None)
        if app is None:
            return _no(10003, "invalid app_id")
        if body.get("app_secret") != app.secret:
            return _no(10014, "app secret invalid")
        now = time.monotonic()
        good = next((token for token, ends in app.tokens.items() if ends - now > 1800), None)
        if good is None:
            self._world.tokens_issued += 1
            good = f"t-fake-{app.alias}-{self._world.tokens_issued}"
            app.tokens[good] = now + self._world.token_s
        life = int(app.tokens[good] - now) or 1
        return web.json_response({"code": 0, "msg": "ok", "tenant_access_token": good, "expire": life})

    def _with_token(
        self, kind: str, handle: Callable[[web.Request, FakeApp], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            self._world.requests.append((request.method, request.path))
            self._world.hosts.add(request.host)
            self._world.changed()
            if kind in self._world.out_of_order:
                return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not token:
                return _no(99991661, "Missing access token")
            now = time.monotonic()
            app = next((one for one in self._world.apps.values() if one.tokens.get(token, 0.0) > now), None)
            if app is None:
                return _no(99991663, "Invalid access token")
            scope = self._world.missing_scopes.get(kind)
            if scope:
                return _no(99991672, f"Access denied. One of the following scopes is required: [{scope}].")
            return await handle(request, app)

        return handler

    async def _bot(self, _: web.Request, app: FakeApp) -> web.Response:
        bot = {"open_id": app.bot_open_id, "app_name": f"Bot {app.alias}", "activate_status": 2} if app.is_bot else {}
        return web.json_response({"code": 0, "msg": "ok", "bot": bot})

    # --- sending

    async def _create(self, request: web.Request, app: FakeApp) -> web.StreamResponse:
        body = mapping_of(await request.json())
        if request.query.get("receive_id_type") not in ("open_id", "chat_id", "union_id", "user_id", "email"):
            return _no(230001, "invalid receive_id_type")
        chat_id = text_of(body.get("receive_id"))
        if not chat_id:
            return _no(230001, "invalid receive_id")
        return await self._send(request, app, body, Kept(message_id="", chat_id=chat_id, type="", content=""))

    async def _reply(self, request: web.Request, app: FakeApp) -> web.StreamResponse:
        body = mapping_of(await request.json())
        answered = self._world.messages.get(request.match_info["message_id"])
        if answered is None:
            return _no(231003, "The message is not found, maybe not exist or deleted")
        if answered.deleted:
            return _no(230011, "The message was withdrawn")
        thread_id = answered.thread_id
        if body.get("reply_in_thread") and not thread_id:
            thread_id = self._world.new_id("omt")
        blank = Kept(
            message_id="",
            chat_id=answered.chat_id,
            type="",
            content="",
            thread_id=thread_id,
            parent_id=answered.message_id,
            root_id=answered.root_id or answered.message_id,
        )
        return await self._send(request, app, body, blank, answered)

    async def _send(
        self, request: web.Request, app: FakeApp, body: Mapping[str, object], blank: Kept, answered: Kept | None = None
    ) -> web.StreamResponse:
        self._world.queries.append(dict(request.query))
        self._world.uuids.append(text_of(body.get("uuid")))
        answer = self._world.answers.popleft() if self._world.answers else OK
        refusal = self._scripted(answer) or self._fault(app, body, blank.chat_id)
        if refusal is not None:
            return refusal
        uuid = text_of(body.get("uuid"))
        message = self._once(app, uuid)
        if message is None:
            kind, content = text_of(body.get("msg_type")), text_of(body.get("content"))
            message = attrs.evolve(
                blank,
                message_id=self._world.new_id("om"),
                type=kind,
                content=content,
                app_id=app.app_id,
                sender=app.app_id,
                uuid=uuid,
            )
            self._world.keep(message)
            if answered is not None and message.thread_id:
                answered.thread_id = message.thread_id
            if uuid:
                self._by_uuid[app.app_id, uuid] = (message.message_id, time.monotonic())
        if answer == ARRIVED_BUT_FAILED:
            _cut(request)
        return web.json_response({"code": 0, "msg": "success", "data": message.item()})

    def _once(self, app: FakeApp, uuid: str) -> Kept | None:
        """Return the message that was sent under a uuid within an hour."""
        message_id, at = self._by_uuid.get((app.app_id, uuid), ("", 0.0))
        return self._world.messages[message_id] if message_id and time.monotonic() - at < _UUID_S else None

    @staticmethod
    def _scripted(answer: str | int) -> web.Response | None:
        if answer in (OK, DEFERRED, ARRIVED_BUT_FAILED):
            return None
        if answer == BROKEN:
            return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")
        if answer == RATE_LIMITED:
            return _no(99991400, "request trigger frequency limit", headers={"x-ogw-ratelimit-reset": "3"})
        if answer == REJECTED:
            return _no(230028, "The messages do NOT pass the audit")
        return _no(int(answer), "as the script says")

    def _fault(self, app: FakeApp, body: Mapping[str, object], chat_id: str) -> web.Response | None:
        """Return why a message is not taken, ``None`` where it is."""
        kind, content, uuid = text_of(body.get("msg_type")), text_of(body.get("content")), text_of(body.get("uuid"))
        if chat_id in self._world.chats_left:
            return _no(230002, "Bot/User can NOT be out of the chat.")
        if len(uuid) > 50:
            self._world.faults.append(f"a uuid of {len(uuid)} characters")
            return _no(230001, "uuid is too long")
        if not uuid:
            self._world.faults.append("a send without uuid, which cannot be repeated")
        return self._bad_content(kind, content) or refused_key(self._world, app, kind, content)

    def _bad_content(self, kind: str, content: str) -> web.Response | None:
        if kind not in _MOST_BYTES or kind in self._world.forms_refused:
            return _no(230001, f"invalid msg_type {kind}")
        if len(content.encode()) > _MOST_BYTES[kind]:
            return _no(230025, "The length of the message content reaches its limit")
        try:
            text = shown(kind, content)
        except ValueError as error:
            return _no(230001, f"invalid message content: {error}")
        if kind == "interactive" and len(_TABLE.findall(text)) > 3:
            return _no(
                230099, "Failed to create card content, ext=ErrCode: 11310; ErrMsg: card table number over limit"
            )
        return None

    # --- editing

    async def _put(self, request: web.Request, app: FakeApp) -> web.Response:
        body, message, refusal = await self._own(request, app)
        kind, content = text_of(body.get("msg_type")), text_of(body.get("content"))
        if refusal is None and message.type not in ("text", "post"):
            refusal = _no(230054, "This operation is not supported for this message type")
        if refusal is None and kind not in ("text", "post"):
            refusal = _no(230001, "invalid msg_type")
        if refusal is None and message.edits >= _MOST_EDITS:
            refusal = _no(230072, "The message has reached the number of times it can be edited")
        return self._changed(message, kind, content, refusal)

    async def _patch(self, request: web.Request, app: FakeApp) -> web.Response:
        body, message, refusal = await self._own(request, app)
        if refusal is None and message.type != "interactive":
            refusal = _no(230001, "This message is not a card")
        return self._changed(message, "interactive", text_of(body.get("content")), refusal)

    def _changed(self, message: Kept, kind: str, content: str, refusal: web.Response | None) -> web.Response:
        refusal = refusal or self._bad_content(kind, content)
        if refusal is not None:
            return refusal
        message.type, message.content = kind, content
        message.edits += 1
        self._world.changed()
        return web.json_response({"code": 0, "msg": "success", "data": message.item()})

    async def _own(self, request: web.Request, app: FakeApp) -> tuple[Mapping[str, object], Kept, web.Response | None]:
        body = mapping_of(await request.json())
        message = self._world.messages.get(request.match_info["message_id"])
        if message is None:
            return body, Kept(message_id="", chat_id="", type="", content=""), _no(231003, "not found")
        if message.app_id != app.app_id:
            return body, message, _no(230071, "The operator is not the sender")
        return body, message, _no(230011, "The message was withdrawn") if message.deleted else None

    # --- looking

    async def _get(self, request: web.Request, _: FakeApp) -> web.Response:
        head = self._world.messages.get(request.match_info["message_id"])
        if head is None:
            return _no(231003, "not found")
        found, above = [head], {head.message_id}
        for one in self._world.messages.values():
            if one.above in above:
                found.append(one)
                above.add(one.message_id)
        return web.json_response({"code": 0, "msg": "success", "data": {"items": [one.item() for one in found]}})

    async def _list(self, request: web.Request, _: FakeApp) -> web.Response:
        thread = request.query.get("container_id", "")
        items = [one.item() for one in reversed(self._world.messages.values()) if one.thread_id == thread]
        return web.json_response({"code": 0, "msg": "success", "data": {"items": items, "has_more": False}})

    async def _chat(self, request: web.Request, _: FakeApp) -> web.Response:
        is_topic = request.match_info["chat_id"] in self._world.topic_chats
        data = {"chat_mode": "topic" if is_topic else "group", "group_message_type": "thread" if is_topic else "chat"}
        return web.json_response({"code": 0, "msg": "success", "data": data})

    async def _person(self, request: web.Request, _: FakeApp) -> web.Response:
        open_id = request.match_info["open_id"]
        if open_id not in self._world.names:
            return _no(41050, "no user authority error")
        user = {"open_id": open_id, "name": self._world.names[open_id]}
        return web.json_response({"code": 0, "msg": "success", "data": {"user": user}})

    async def _resource(self, request: web.Request, _: FakeApp) -> web.Response:
        found = self._world.resources.get((request.match_info["message_id"], request.match_info["key"]))
        if found is None or request.query.get("type") not in ("image", "file"):
            return _no(234003, "File not in msg.")
        data, media_type, name = found
        headers = {"Content-Disposition": f'attachment; filename="{name}"'} if name else {}
        return web.Response(body=data, content_type=media_type, headers=headers)

    # --- reactions

    async def _react(self, request: web.Request, app: FakeApp) -> web.Response:
        message_id = request.match_info["message_id"]
        if message_id not in self._world.messages:
            return _no(231003, "not found")
        emoji = text_of(mapping_of(mapping_of(await request.json()).get("reaction_type")).get("emoji_type"))
        wanted = (app.app_id, message_id, emoji)
        known = next((key for key, value in self._world.reactions.items() if value == wanted), None)
        reaction_id = known or self._world.new_id("react")
        self._world.reactions[reaction_id] = wanted
        return web.json_response({"code": 0, "msg": "success", "data": {"reaction_id": reaction_id}})

    async def _unreact(self, request: web.Request, _: FakeApp) -> web.Response:
        if self._world.reactions.pop(request.match_info["reaction_id"], None) is None:
            return _no(231001, "reaction not found")
        return web.json_response({"code": 0, "msg": "success", "data": {}})


def _no(code: int, message: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response({"code": code, "msg": message}, status=400, headers=headers)


def _cut(request: web.Request) -> None:
    """End the connection of a request before it is answered."""
    if request.transport is not None:
        request.transport.close()
