"""The methods of a fake Web API."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_slack.testing.payloads import callback
from hermes_slack.testing.state import App, Installation, Post

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_slack.testing.server import FakeSlackServer

    Method = Callable[[App, Installation, Mapping[str, object]], Mapping[str, object]]

__all__ = ["WebApi"]

_MOST_CHARACTERS = 40_000
_WRITES = ("chat.postMessage", "chat.update")


class _Refusal(Exception):
    """An answer with ``ok: false``."""


class WebApi:
    """One call at a fake server."""

    def __init__(self, server: FakeSlackServer) -> None:
        self._server = server

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a call."""
        server, method = self._server, request.match_info["method"]
        server.calls.append(method)
        server.note()
        arguments = await _arguments(request)
        scripted = server.failures.get(method, deque())
        told = scripted.popleft() if scripted else "ok"
        if told == "ok" and method in _WRITES and server.answers:
            told = server.answers.popleft()
        try:
            if told == "ratelimited":
                return _limited(server.retry_after)
            if told == "broken":
                return web.Response(status=500, text="<html>oh</html>", content_type="text/html")
            if told == "dropped":
                return _cut(request)
            if told not in ("ok", "arrived", "cut"):
                raise _Refusal(told)
            found = self._done(method, request.headers.get("Authorization", ""), arguments)
        except _Refusal as refusal:
            return web.json_response({"ok": False, "error": str(refusal), "needed": "some:scope"})
        if told == "arrived":
            return web.Response(status=500, text="<html>oh</html>", content_type="text/html")
        return _cut(request) if told == "cut" else web.json_response({"ok": True} | dict(found))

    def _done(self, method: str, authorization: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        token = authorization.removeprefix("Bearer ")
        if not token:
            raise _Refusal("not_authed")
        if method == "apps.connections.open":
            return self._open(token)
        methods: dict[str, Method] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "files.info": self._file_info,
            "assistant.threads.setStatus": self._status,
        }
        for app in self._server.apps.values():
            for installation in app.installations:
                if installation.token == token and not installation.revoked:
                    if method not in methods:
                        raise _Refusal("unknown_method")
                    return methods[method](app, installation, arguments)
        raise _Refusal("invalid_auth")

    def _open(self, token: str) -> Mapping[str, object]:
        for app in self._server.apps.values():
            if app.app_token == token:
                if not app.socket_mode:
                    raise _Refusal("not_allowed_token_type")
                return {"url": f"ws{self._server.url.removeprefix('http')}/link?ticket={app.app_id}"}
        raise _Refusal("invalid_auth")

    def _auth_test(self, _app: App, here: Installation, _arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {
            "url": "https://fake.slack.invalid/",
            "team_id": here.team_id,
            "user_id": here.user_id,
            "bot_id": here.bot_id,
            "enterprise_id": here.enterprise_id,
            "is_enterprise_install": here.org_wide,
        }

    # --- messages

    def _post(self, app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        channel, text = str(arguments.get("channel", "")), str(arguments.get("text", ""))
        self._look_at(text)
        thread, beside = arguments.get("thread_ts"), arguments.get("metadata")
        post = Post(
            channel=channel,
            ts=self._server.ts(),
            text=text,
            user=here.user_id,
            token=here.token,
            bot_id=here.bot_id,
            thread_ts=str(thread) if thread else None,
            metadata=beside if isinstance(beside, Mapping) else None,
        )
        self._server.posts.append(post)
        if self._server.echoes and app.sockets:
            echo = post.shown(metadata=False) | {"channel": channel, "app_id": app.app_id, "channel_type": "im"}
            self._server.deliver(app, callback(app, here, echo, self._server.number("Ev")))
        return {"channel": channel, "ts": post.ts, "message": post.shown(metadata=True)}

    def _update(self, _app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        ts, text = str(arguments.get("ts", "")), str(arguments.get("text", ""))
        self._look_at(text)
        for post in self._server.posts:
            if (post.channel, post.ts) == (arguments.get("channel"), ts):
                if post.token != here.token:
                    raise _Refusal("cant_update_message")
                post.text, post.edits = text, post.edits + 1
                return {"channel": post.channel, "ts": ts, "text": text}
        raise _Refusal("message_not_found")

    def _look_at(self, text: str) -> None:
        if not text:
            raise _Refusal("no_text")
        if len(text) > _MOST_CHARACTERS:
            raise _Refusal("msg_too_long")

    def _history(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        found = [post for post in self._in_time(arguments) if not post.thread_ts or post.thread_ts == post.ts]
        return self._page(list(reversed(found)), arguments)

    def _replies(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        root = str(arguments.get("ts", ""))
        posts = [post for post in self._server.posts if post.channel == arguments.get("channel")]
        if not any(root in (post.ts, post.thread_ts) for post in posts):
            raise _Refusal("thread_not_found")
        found = [post for post in self._in_time(arguments) if root in (post.ts, post.thread_ts)]
        return self._page(found, arguments)

    def _in_time(self, arguments: Mapping[str, object]) -> list[Post]:
        oldest, latest = str(arguments.get("oldest", "0")), str(arguments.get("latest", "9"))
        return [
            post
            for post in self._server.posts
            if post.channel == arguments.get("channel") and oldest < post.ts < latest
        ]

    def _page(self, posts: list[Post], arguments: Mapping[str, object]) -> Mapping[str, object]:
        start, size = int(str(arguments.get("cursor") or 0)), int(str(arguments.get("limit") or 100))
        shown = arguments.get("include_all_metadata") in (True, "true")
        more = len(posts) > start + size
        return {
            "messages": [post.shown(metadata=shown) for post in posts[start : start + size]],
            "has_more": more,
            "response_metadata": {"next_cursor": str(start + size) if more else ""},
        }

    # --- beside

    def _file_info(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        found = str(arguments.get("file", ""))
        if found not in self._server.files:
            raise _Refusal("file_not_found")
        return {"file": {"id": found, "url_private_download": f"{self._server.url}/files/{found}"}}

    def _status(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        values = [str(arguments.get(key, "")) for key in ("channel_id", "thread_ts", "status")]
        self._server.statuses.append((values[0], values[1], values[2]))
        return {}


async def _arguments(request: web.Request) -> Mapping[str, object]:
    if request.content_type == "application/json":
        found = json.loads(await request.read() or b"{}")
        return found if isinstance(found, dict) else {}
    return {**request.query, **{key: str(value) for key, value in (await request.post()).items()}}


def _limited(after_s: str) -> web.Response:
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": after_s})


def _cut(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
