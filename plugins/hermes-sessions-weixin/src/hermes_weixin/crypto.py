"""The cipher of the CDN: AES-128-ECB with PKCS7, and the forms in which keys travel."""

from __future__ import annotations

import base64
import binascii

from hermes_hookspecs.errors import Rejected

__all__ = ["cipher_size", "decode_key", "decrypt", "encrypt", "outbound_key"]

_BLOCK = 16
_HEX_KEY = 32


def encrypt(key: bytes, data: bytes) -> bytes:
    """Return the ciphertext; its size is :func:`cipher_size`."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    room = _BLOCK - len(data) % _BLOCK
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - the platform's cipher
    return encryptor.update(data + bytes([room]) * room) + encryptor.finalize()


def decrypt(key: bytes, data: bytes) -> bytes:
    """Return the plaintext. :raises Rejected: another key, or damaged bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if not data or len(data) % _BLOCK:
        raise Rejected(f"a ciphertext of {len(data)} bytes is not whole")
    decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()  # noqa: S305 - the platform's cipher
    padded = decryptor.update(data) + decryptor.finalize()
    room = padded[-1]
    if not 1 <= room <= _BLOCK or padded[-room:] != bytes([room]) * room:
        raise Rejected("the bytes cannot be deciphered: another key, or they are damaged")
    return padded[:-room]


def cipher_size(size: int) -> int:
    """Return the bytes of the ciphertext of ``size`` bytes."""
    return (size // _BLOCK + 1) * _BLOCK


def outbound_key(key: bytes) -> str:
    """Return a key as messages carry it: base64 of its hexadecimal text (of the raw bytes shows a grey picture)."""
    return base64.b64encode(key.hex().encode("ascii")).decode("ascii")


def decode_key(aes_key: str, hex_key: str = "") -> bytes | None:
    """Return the key of a medium, ``None`` where it has none, so that its bytes are plain.

    :param aes_key: base64 of 16 raw bytes, or of 32 hexadecimal digits. hex_key: of a picture, preferred.
    :raises Rejected: neither of the two.
    """
    if hex_key:
        return _unhexed(hex_key)
    if not aes_key:
        return None
    try:
        raw = base64.b64decode(aes_key, validate=True)
    except (binascii.Error, ValueError):
        raise Rejected("the key of the attachment is no base64") from None
    if len(raw) == _BLOCK:
        return raw
    if len(raw) == _HEX_KEY:
        return _unhexed(raw.decode("ascii", "replace"))
    raise Rejected(f"the key of the attachment has {len(raw)} bytes, not {_BLOCK}")


def _unhexed(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _BLOCK:
        raise Rejected("the key of the attachment is not 32 hexadecimal digits")
    return key
