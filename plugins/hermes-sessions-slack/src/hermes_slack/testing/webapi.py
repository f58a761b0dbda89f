"""The methods of a fake Web API."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_slack.testing.payloads import callback, mention_twin, message
from hermes_slack.testing.refusal import Refusal
from hermes_slack.testing.responding import cut
from hermes_slack.testing.state import App, Installation, Post
from hermes_slack.testing.streams import StreamMethods
from hermes_slack.wire import mapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_slack.testing.server import FakeSlackServer

    Method = Callable[[App, Installation, Mapping[str, object]], Mapping[str, object]]

__all__ = ["WebApi"]

_MOST_CHARACTERS = 40_000
_WRITES = ("chat.postMessage", "chat.update", "files.completeUploadExternal")


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
                return cut(request)
            if told not in ("ok", "arrived", "cut"):
                raise Refusal(told)
            found = self._done(method, request.headers.get("Authorization", ""), arguments)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": str(refusal), "needed": "some:scope"})
        if told == "arrived":
            return web.Response(status=500, text="<html>oh</html>", content_type="text/html")
        return cut(request) if told == "cut" else web.json_response({"ok": True} | dict(found))

    def _done(self, method: str, authorization: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        token = authorization.removeprefix("Bearer ")
        if not token:
            raise Refusal("not_authed")
        if method == "apps.connections.open":
            return self._open(token)
        streams = StreamMethods(self._server)
        methods: dict[str, Method] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "files.info": self._file_info,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._share,
            "assistant.threads.setStatus": self._status,
            "chat.startStream": streams.start,
            "chat.appendStream": streams.append,
            "chat.stopStream": streams.stop,
            "users.info": self._user_info,
        }
        if token in self._server.persons:
            return self._done_by_a_person(method, self._server.persons[token], arguments)
        for app in self._server.apps.values():
            for installation in app.installations:
                if installation.token == token and not installation.revoked:
                    if method not in methods:
                        raise Refusal("unknown_method")
                    return methods[method](app, installation, arguments)
        raise Refusal("invalid_auth")

    def _open(self, token: str) -> Mapping[str, object]:
        for app in self._server.apps.values():
            if app.app_token == token:
                if not app.socket_mode:
                    raise Refusal("not_allowed_token_type")
                return {"url": f"ws{self._server.url.removeprefix('http')}/link?ticket={app.app_id}"}
        raise Refusal("invalid_auth")

    def _auth_test(self, _app: App, here: Installation, _arguments: Mapping[str, object]) -> Mapping[str, object]:
        return {
            "url": "https://fake.slack.invalid/",
            "team_id": here.team_id,
            "user_id": here.user_id,
            "bot_id": here.bot_id,
            "enterprise_id": here.enterprise_id,
            "is_enterprise_install": here.org_wide,
        }

    # --- people

    def _done_by_a_person(self, method: str, user_id: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Do what somebody does with a client of their own, in the workspace of the first app."""
        app = next(iter(self._server.apps.values()))
        here = app.installations[0]
        if method == "auth.test":
            return {"team_id": here.team_id, "user_id": user_id}
        if method == "chat.postMessage":
            return self._say(user_id, arguments)
        reads: dict[str, Method] = {
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "users.info": self._user_info,
        }
        if method not in reads:
            raise Refusal("unknown_method")
        return reads[method](app, here, arguments)

    def _say(self, user_id: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Post what a person says, and tell every app, a mention twice."""
        channel, text = str(arguments.get("channel", "")), str(arguments.get("text", ""))
        self._look_at(text)
        thread, ts = str(arguments.get("thread_ts") or ""), self._server.ts()
        self._server.posts.append(Post(channel=channel, ts=ts, text=text, user=user_id, thread_ts=thread or None))
        kind = "im" if channel.startswith("D") else "channel"
        inner = message(channel, user_id, text, ts, channel_type=kind, thread_ts=thread or None)
        for app in self._server.apps.values():
            for here in app.installations:
                is_meant = f"<@{here.user_id}>" in text
                for each in [inner, mention_twin(inner)] if is_meant and kind != "im" else [inner]:
                    self._server.deliver(app, callback(app, here, each, self._server.number("Ev")))
        return {"channel": channel, "ts": ts}

    def _user_info(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        user_id = str(arguments.get("user", ""))
        if user_id not in self._server.names:
            raise Refusal("user_not_found")
        return {
            "user": {"id": user_id, "name": user_id.lower(), "profile": {"display_name": self._server.names[user_id]}}
        }

    # --- messages

    def _post(self, app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        channel, text = str(arguments.get("channel", "")), str(arguments.get("text", ""))
        self._look_at(text)
        self._look_into(channel)
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
                    raise Refusal("cant_update_message")
                if post.streaming:
                    raise Refusal("streaming_state_conflict")
                post.text, post.edits = text, post.edits + 1
                if isinstance(arguments.get("metadata"), Mapping):
                    post.metadata = dict(mapping(arguments, "metadata"))
                return {"channel": post.channel, "ts": ts, "text": text}
        raise Refusal("message_not_found")

    def _look_at(self, text: str) -> None:
        if not text:
            raise Refusal("no_text")
        if len(text) > _MOST_CHARACTERS:
            raise Refusal("msg_too_long")

    def _look_into(self, channel: str) -> None:
        if channel in self._server.outside:
            raise Refusal("channel_not_found" if channel.startswith("D") else "not_in_channel")

    def _history(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        self._look_into(str(arguments.get("channel", "")))
        found = [post for post in self._in_time(arguments) if not post.thread_ts or post.thread_ts == post.ts]
        return self._page(list(reversed(found)), arguments)

    def _replies(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        self._look_into(str(arguments.get("channel", "")))
        root = str(arguments.get("ts", ""))
        posts = [post for post in self._server.posts if post.channel == arguments.get("channel")]
        if not any(root in (post.ts, post.thread_ts) for post in posts):
            raise Refusal("thread_not_found")
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
            raise Refusal("file_not_found")
        return {"file": {"id": found, "url_private_download": f"{self._server.url}/files/{found}"}}

    def _upload_url(self, _app: App, _here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        ticket = self._server.uploads.ticket(self._server.url, arguments)
        if isinstance(ticket, str):
            raise Refusal(ticket)
        return ticket

    def _share(self, app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        found = self._server.uploads.complete(arguments)
        if isinstance(found, str):
            raise Refusal(found)
        channel, thread = str(arguments.get("channel_id", "")), arguments.get("thread_ts")
        post = Post(
            channel=channel,
            ts=self._server.ts(),
            text="",
            user=here.user_id,
            token=here.token,
            bot_id=here.bot_id,
            thread_ts=str(thread) if thread else None,
            files=tuple(found),
        )
        self._server.posts.append(post)
        if self._server.echoes and app.sockets:
            echo = post.shown(metadata=False) | {"channel": channel, "app_id": app.app_id, "subtype": "file_share"}
            self._server.deliver(app, callback(app, here, echo, self._server.number("Ev")))
        return {"files": [upload.shown() for upload in found]}  # where it stands is known a little later

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
