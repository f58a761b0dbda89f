"""Files that go out: uploaded first, which nobody sees, then sent as a message that names what was uploaded.

A picture is sent as one where the platform takes it so; everything else, a large or an odd picture too, is a file.
Sounds and films are files as well: as such they need no length and no cover.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Final

import aiohttp

from hermes_feishu.client import text_of
from hermes_feishu.failures import SCOPE_CODES, error_of
from hermes_feishu.rendering import Form
from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater

if TYPE_CHECKING:
    from hermes_feishu.client import FeishuClient
    from hermes_hookspecs.files import OutgoingFile

__all__ = ["Uploads"]

_MOST_IMAGE_BYTES: Final = 10_000_000
_IMAGES: Final = frozenset({"png", "jpg", "jpeg", "gif", "webp", "bmp", "tiff", "ico"})
_TYPES: Final = {
    **dict.fromkeys(("doc", "docx"), "doc"),
    **dict.fromkeys(("xls", "xlsx"), "xls"),
    **dict.fromkeys(("ppt", "pptx"), "ppt"),
    "pdf": "pdf",
}
_UPLOADING: Final = "uploading"


class Uploads:
    """Uploads the files of one account. For one event loop."""

    def __init__(self, client: FeishuClient) -> None:
        self._client = client

    async def form(self, file: OutgoingFile) -> Form:
        """Upload a file; return the message that shows it.

        :raises RetryLater: not now; nothing was shown. :raises Rejected: it is not taken. :raises AuthFailed: the
            credentials are refused.
        """
        if _is_image(file):
            try:
                return await self._image(file)
            except Rejected:
                pass  # the platform sees no picture in it: it is sent as a file
        fields = {"file_type": _TYPES.get(_suffix(file), "stream"), "file_name": file.name}
        key = await self._uploaded("/open-apis/im/v1/files", "file_key", "file", fields, file)
        return Form(type="file", content=json.dumps({"file_key": key}))

    async def _image(self, file: OutgoingFile) -> Form:
        fields = {"image_type": "message"}
        key = await self._uploaded("/open-apis/im/v1/images", "image_key", "image", fields, file)
        return Form(type="image", content=json.dumps({"image_key": key}))

    async def _uploaded(self, path: str, key: str, field: str, fields: dict[str, str], file: OutgoingFile) -> str:
        def form() -> aiohttp.FormData:
            made = aiohttp.FormData(fields)
            made.add_field(field, BytesIO(file.data), filename=file.name, content_type="application/octet-stream")
            return made

        try:
            answer = await self._client.ask(_UPLOADING, "POST", path, form=form)
        except RetryLater as error:
            raise RetryLater(str(error), after_s=error.after_s) from error  # whatever became of it, nobody sees it
        found = text_of(answer.data.get(key))
        if answer.is_good and found:
            return found
        if answer.is_good:
            raise RetryLater(f"{_UPLOADING}: the answer holds no {key}")
        refused = error_of(answer, _UPLOADING)
        if isinstance(refused, AuthFailed) and answer.code in SCOPE_CODES:
            raise Rejected(str(refused))  # texts go without that permission
        if isinstance(refused, RetryLater):
            raise RetryLater(str(refused), after_s=refused.after_s)
        raise refused


def _suffix(file: OutgoingFile) -> str:
    return file.name.rpartition(".")[2].lower()


def _is_image(file: OutgoingFile) -> bool:
    return file.kind == "image" and _suffix(file) in _IMAGES and 0 < file.size <= _MOST_IMAGE_BYTES
