"""The two addresses at which a fake Feishu takes files, with the platform's limits and codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from aiohttp import web

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.testing.world import FakeUpload

if TYPE_CHECKING:
    from hermes_feishu.testing.world import FakeApp, Kept, World

__all__ = ["FileRoutes", "file_of", "refused_key"]

_MOST_IMAGE: Final = 10_000_000
_MOST_FILE: Final = 30_000_000
_FILE_TYPES: Final = ("opus", "mp4", "pdf", "doc", "xls", "ppt", "stream")


class FileRoutes:
    """Handlers of one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def image(self, request: web.Request, app: FakeApp) -> web.StreamResponse:
        """Take a picture."""
        form = await request.post()
        data = _bytes(form.get("image"))
        if form.get("image_type") not in ("message", "avatar"):
            return _no(234001, "Invalid request param.")
        refusal = self._refusal(data, _MOST_IMAGE)
        if refusal is not None:
            return refusal
        key = self._kept(FakeUpload(app_id=app.app_id, kind="image", data=data))
        return web.json_response({"code": 0, "msg": "success", "data": {"image_key": key}})

    async def file(self, request: web.Request, app: FakeApp) -> web.StreamResponse:
        """Take a file."""
        form = await request.post()
        data, name, file_type = _bytes(form.get("file")), str(form.get("file_name", "")), str(form.get("file_type", ""))
        if not name or file_type not in _FILE_TYPES:
            return _no(234001, "Invalid request param.")
        refusal = self._refusal(data, _MOST_FILE)
        if refusal is not None:
            return refusal
        key = self._kept(FakeUpload(app_id=app.app_id, kind="file", data=data, name=name, file_type=file_type))
        return web.json_response({"code": 0, "msg": "success", "data": {"file_key": key}})

    def _refusal(self, data: bytes, most: int) -> web.Response | None:
        if self._world.upload_codes:
            return _no(self._world.upload_codes.popleft(), "as the script says")
        if not data:
            return _no(234010, "File's size can't be 0.")
        return _no(234006, "The file size exceed the max value.") if len(data) > most else None

    def _kept(self, upload: FakeUpload) -> str:
        key = self._world.new_id("img" if upload.kind == "image" else "file")
        self._world.uploads[key] = upload
        return key


def file_of(world: World, message: Kept) -> FakeUpload | None:
    """Return the file that a message shows, ``None`` for another message."""
    if message.type not in ("image", "file"):
        return None
    return world.uploads.get(_key(message.type, message.content))


def refused_key(world: World, app: FakeApp, kind: str, content: str) -> web.Response | None:
    """Return why a message with a file is not taken, ``None`` where it is, or is no such message."""
    if kind not in ("image", "file"):
        return None
    upload = world.uploads.get(_key(kind, content))
    if upload is None or upload.app_id != app.app_id or upload.kind != kind:
        return _no(230001, f"invalid {kind}_key")
    return _no(230055, "The type of file upload does not match.") if upload.file_type in ("opus", "mp4") else None


def _key(kind: str, content: str) -> str:
    return text_of(mapping_of(json.loads(content)).get(f"{kind}_key"))


def _bytes(field: object) -> bytes:
    return field.file.read() if isinstance(field, web.FileField) else b""


def _no(code: int, message: str) -> web.Response:
    return web.json_response({"code": code, "msg": message}, status=400)
