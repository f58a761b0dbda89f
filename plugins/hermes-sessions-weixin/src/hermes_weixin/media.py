"""Bytes on the content network: where they may come from, and how a file gets there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import aiohttp
import attrs

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_weixin.crypto import cipher_size, decode_key, decrypt, encrypt, outbound_key
from hermes_weixin.wire import FILE, IMAGE, Medium

if TYPE_CHECKING:
    from hermes_hookspecs.files import OutgoingFile
    from hermes_weixin.client import ILinkClient
    from hermes_weixin.config import WeixinConfig

__all__ = ["Media", "medium_of", "reference_of"]

_IMAGE_KIND, _FILE_KIND = 1, 3
_IMAGES = frozenset({"png", "jpg", "jpeg", "gif", "bmp"})
_TRIES = 3
_TIMEOUT_S = 120.0


def reference_of(medium: Medium) -> str:
    """Return a medium as the text that an attachment refers to it by."""
    return json.dumps(attrs.asdict(medium), ensure_ascii=False)


def medium_of(reference: str) -> Medium:
    """Return what a reference names. :raises Rejected: it names none."""
    try:
        found = json.loads(reference)
        return Medium(**{name: str(value) for name, value in found.items()})
    except (ValueError, TypeError, AttributeError):
        raise Rejected("the attachment has no address") from None


class Media:
    """Downloads and uploads of one account. For one event loop."""

    def __init__(self, session: aiohttp.ClientSession, config: WeixinConfig) -> None:
        self._session = session
        self._config = config

    async def download(self, medium: Medium) -> bytes:
        """Return the bytes of a medium, deciphered.

        :raises Rejected: its address is not one of the platform's, it is gone, or too large, or the key is wrong.
        :raises RetryLater: not now.
        """
        key = decode_key(medium.aes_key, medium.hex_key)
        address = medium.url or self._cdn("download", encrypted_query_param=medium.param)
        self._check_host(address)
        if not medium.url and not medium.param:
            raise Rejected("the attachment has no address")
        data = await self._get(address)
        return data if key is None else decrypt(key, data)

    async def upload(self, client: ILinkClient, peer: str, file: OutgoingFile) -> Mapping[str, object]:
        """Return the item of a message that carries a file, once its bytes are there: a picture, or else a document.

        A film would need a cover, and sounds of bots are not heard everywhere: as documents both arrive.

        :raises RetryLater, Rejected: they are not.
        """
        if file.kind == "image" and file.name.rpartition(".")[2].lower() in _IMAGES and file.size:
            media = await self._uploaded(client, peer, file.data, _IMAGE_KIND)
            return {"type": IMAGE, "image_item": {"media": media, "mid_size": cipher_size(file.size)}}
        return await self.upload_file(client, peer, file.name, file.data)

    async def upload_file(self, client: ILinkClient, peer: str, name: str, data: bytes) -> Mapping[str, object]:
        """Return the item of a message that carries a document, once its bytes are there.

        :raises RetryLater, Rejected: they are not.
        """
        media = await self._uploaded(client, peer, data, _FILE_KIND)
        return {"type": FILE, "file_item": {"media": media, "file_name": name, "len": str(len(data))}}

    async def _uploaded(self, client: ILinkClient, peer: str, data: bytes, kind: int) -> Mapping[str, object]:
        """Bring bytes to the network, each time under a key of their own; return how a message names them."""
        key, file_key = secrets.token_bytes(16), secrets.token_hex(16)
        url, param = await client.upload_place(
            {
                "filekey": file_key,
                "media_type": kind,
                "to_user_id": peer,
                "rawsize": len(data),
                "rawfilemd5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
                "filesize": cipher_size(len(data)),
                "no_need_thumb": True,
                "aeskey": key.hex(),
            }
        )
        address = url or self._cdn("upload", encrypted_query_param=param, filekey=file_key)
        self._check_host(address)
        ciphered = await asyncio.to_thread(encrypt, key, data)
        return {
            "encrypt_query_param": await self._put(address, ciphered),
            "aes_key": outbound_key(key),
            "encrypt_type": 1,
        }

    # --- requests

    async def _get(self, address: str) -> bytes:
        most = self._config.max_media_bytes + 16
        try:
            async with self._session.get(
                address, timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S), allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    kind = RetryLater if answer.status >= 500 or answer.status == 429 else Rejected
                    raise kind(f"the attachment was not handed out: HTTP {answer.status}")
                data = bytearray()
                async for piece in answer.content.iter_chunked(1 << 16):
                    data += piece
                    if len(data) > most:
                        raise Rejected(f"the attachment is larger than {self._config.max_media_bytes} bytes")
                return bytes(data)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise RetryLater(f"the attachment could not be fetched: {type(error).__name__}") from error

    async def _put(self, address: str, data: bytes) -> str:
        """Return the parameter by which the bytes are had again."""
        last = "nothing was said"
        for _ in range(_TRIES):
            try:
                async with self._session.post(
                    address,
                    data=BytesIO(data),
                    headers={"Content-Type": "application/octet-stream"},
                    timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S),
                    allow_redirects=False,
                ) as answer:
                    param = answer.headers.get("x-encrypted-param", "")
                    if answer.status == 200 and param:
                        return param
                    last = f"HTTP {answer.status} {answer.headers.get('x-error-message', '')}".strip()
                    if 400 <= answer.status < 500:
                        raise Rejected(f"the file was not taken: {last}")
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                last = type(error).__name__
        raise RetryLater(f"the file could not be uploaded: {last}")

    def _cdn(self, what: str, **query: str) -> str:
        pairs = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        return f"{self._config.cdn_url}/{what}?{pairs}"

    def _check_host(self, address: str) -> None:
        """Refuse addresses that are not the platform's: they come from outside, and we stand inside."""
        parts, own = urlsplit(address), urlsplit(self._config.cdn_url)
        if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
            return
        host = (parts.hostname or "").lower()
        allowed = any(
            host == name or (name.startswith(".") and host.endswith(name)) for name in self._config.media_hosts
        )
        if parts.scheme != "https" or not allowed or parts.username:
            raise Rejected(f"the attachment is on {host or 'no host'}, which is none of media_hosts")
