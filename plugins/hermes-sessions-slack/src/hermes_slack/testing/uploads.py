"""Files that apps bring to a fake Slack: a place to upload to, the bytes, and the message that shares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from aiohttp import web

from hermes_slack.wire import mappings, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FakeUploads", "Upload"]


@attrs.define(kw_only=True)
class Upload:
    """One file. ``data``: ``None`` until it was uploaded. ``shared``: in a channel, once."""

    id: str
    name: str
    length: int
    title: str = ""
    data: bytes | None = None
    shared: bool = False

    def shown(self) -> dict[str, object]:
        """Return it as a message has it."""
        return {"id": self.id, "name": self.name, "title": self.title or self.name, "size": len(self.data or b"")}


class FakeUploads:
    """The uploads of one server. ``status``: with which the next uploads are answered, 200 in the end.

    :param number: returns a fresh id with a prefix.
    """

    def __init__(self, number: Callable[[str], str]) -> None:
        self.all: dict[str, Upload] = {}
        self.statuses: list[int] = []
        self._number = number

    def ticket(self, url: str, arguments: Mapping[str, object]) -> Mapping[str, object] | str:
        """Return the place of an upload, or a code."""
        name, length = str(arguments.get("filename", "")), str(arguments.get("length", ""))
        if not name or not length.isdigit() or int(length) < 1:
            return "invalid_arguments"
        upload = Upload(id=self._number("F"), name=name, length=int(length))
        self.all[upload.id] = upload
        return {"upload_url": f"{url}/upload/{upload.id}", "file_id": upload.id}

    async def receive(self, request: web.Request) -> web.StreamResponse:
        """Take bytes, all of them or none."""
        status = self.statuses.pop(0) if self.statuses else 200
        data = await request.read()
        upload = self.all.get(request.match_info["id"])
        if status != 200:
            return web.Response(status=status)
        if upload is None or len(data) != upload.length:
            return web.Response(status=400, text="BAD LENGTH")
        upload.data = data
        return web.Response(text=f"OK - {len(data)}")

    def complete(self, arguments: Mapping[str, object]) -> list[Upload] | str:
        """Return the files that are to be shared, or a code."""
        found: list[Upload] = []
        for entry in mappings(arguments, "files"):
            upload = self.all.get(text(entry, "id"))
            if upload is None or upload.data is None:
                return "file_not_found"
            if upload.shared:
                return "posting_to_general_channel_denied"
            upload.title = text(entry, "title")
            found.append(upload)
        for upload in found:
            upload.shared = True
        return found or "invalid_arguments"
