"""The content network of the fake: what was announced is what must come, deciphered too."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_hookspecs.errors import Rejected
from hermes_weixin.crypto import cipher_size, decode_key, decrypt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cdn"]


class Cdn:
    """Uploads and downloads. For one event loop.

    :ivar announced: uploads by their file key. blobs: ciphertexts by the parameter of their download. keys: key
        (32 hex) of each upload, by the same.
    :ivar failures: HTTP states of the next requests. bare_param: an upload is announced by its parameter alone.
    """

    def __init__(self, faults: list[str]) -> None:
        self.blobs: dict[str, bytes] = {}
        self.keys: dict[str, str] = {}
        self.failures: deque[int] = deque()
        self.bare_param = False
        self.announced: dict[str, Mapping[str, object]] = {}
        self._faults = faults

    def announce(self, body: Mapping[str, object], url: str) -> dict[str, object]:
        """Return where the bytes of an upload go. ``url``: of the network."""
        key, size = str(body.get("filekey")), body.get("rawsize")
        if not isinstance(size, int) or body.get("filesize") != cipher_size(size):
            self._faults.append("filesize is not that of the ciphertext")
        if body.get("media_type") not in (1, 2, 3, 4):
            self._faults.append("getuploadurl: media_type")
        self.announced[key] = body
        if self.bare_param:
            return {"upload_param": f"place of {key}"}
        return {"upload_full_url": f"{url}/upload?filekey={key}"}

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Take a ciphertext; the answer's header says by what it is found."""
        data = await request.read()
        if self.failures:
            return web.Response(status=self.failures.popleft(), headers={"x-error-message": "told to fail"})
        place = self.announced.get(request.query.get("filekey", ""))
        fault = "nothing was announced" if place is None else _fault_of(place, data)
        if place is None or fault:
            self._faults.append(f"upload: {fault}")
            return web.Response(status=400, headers={"x-error-message": fault})
        param = hashlib.sha256(data).hexdigest()
        self.blobs[param], self.keys[param] = data, str(place.get("aeskey"))
        return web.Response(headers={"x-encrypted-param": param})

    async def download(self, request: web.Request) -> web.StreamResponse:
        """Give a ciphertext."""
        if self.failures:
            return web.Response(status=self.failures.popleft())
        data = self.blobs.get(request.query.get("encrypted_query_param", ""))
        return web.Response(status=404) if data is None else web.Response(body=data)

    def plain_of(self, item: Mapping[str, object]) -> bytes | None:
        """Return the bytes of a picture or a document that was sent, as a person has them; ``None`` for a text."""
        entry = item.get("image_item") or item.get("file_item")
        media = entry.get("media") if isinstance(entry, dict) else None
        if not isinstance(media, dict):
            return None
        key, blob = decode_key(str(media.get("aes_key"))), self.blobs.get(str(media.get("encrypt_query_param")))
        return None if key is None or blob is None else decrypt(key, blob)

    def fault_of_item(self, item: Mapping[str, object]) -> str:
        """Return what is wrong with the medium of a message that is sent, ``""`` for nothing."""
        payload = next((value for key, value in item.items() if key.endswith("_item")), None)
        media = payload.get("media") if isinstance(payload, dict) else None
        if not isinstance(media, dict):
            return ""
        param, key = str(media.get("encrypt_query_param")), media.get("aes_key")
        if param not in self.blobs:
            return "a medium that was never uploaded"
        try:
            # clients show a grey box where the raw key stands in the place of its hex digits
            raw = decode_key(key) if isinstance(key, str) and len(key) == 44 else None
        except Rejected:
            raw = None
        return (
            ""
            if raw is not None and raw.hex() == self.keys[param]
            else "aes_key is not the base64 of the key's hex digits"
        )


def _fault_of(place: Mapping[str, object], data: bytes) -> str:
    """Return how a ciphertext differs from what was announced, ``""`` where it does not."""
    if len(data) != place.get("filesize"):
        return "the size is not the announced one"
    try:
        plain = decrypt(bytes.fromhex(str(place.get("aeskey"))), data)
    except (ValueError, Rejected):
        return "it cannot be deciphered with the announced key"
    if hashlib.md5(plain, usedforsecurity=False).hexdigest() != place.get("rawfilemd5"):
        return "the checksum is not the announced one"
    return ""
