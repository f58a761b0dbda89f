"""What protects a webhook: the signature over the raw body, and the encrypted body.

The key is the SHA-256 of the app's encrypt key; a body is AES-256-CBC with PKCS7, its first sixteen bytes the IV, all
of it in base64. The signature is the SHA-256 of timestamp, nonce, encrypt key and the body as it was received.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

__all__ = ["decrypt", "encrypt", "is_same", "sign"]

_BLOCK = 16


def sign(timestamp: str, nonce: str, encrypt_key: str, body: bytes) -> str:
    """Return the signature of a request, hexadecimal."""
    head = (timestamp + nonce + encrypt_key).encode("utf-8", "surrogateescape")
    return hashlib.sha256(head + body).hexdigest()


def is_same(one: str, other: str) -> bool:
    """Return whether two secrets are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode("utf-8", "surrogateescape"))


def decrypt(text: str, encrypt_key: str) -> bytes:
    """Return what an encrypted body holds.

    :raises ValueError: it was not encrypted with this key.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("the body is no base64") from None
    if len(data) < 2 * _BLOCK or len(data) % _BLOCK:
        raise ValueError("the body is not made of whole blocks")
    cipher = Cipher(algorithms.AES(_key(encrypt_key)), modes.CBC(data[:_BLOCK])).decryptor()
    padded = cipher.update(data[_BLOCK:]) + cipher.finalize()
    padding = PKCS7(128).unpadder()
    return padding.update(padded) + padding.finalize()


def encrypt(plain: bytes, encrypt_key: str, iv: bytes) -> str:
    """Return the encrypted form of a body, as the platform makes it. ``iv``: sixteen random bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    padding = PKCS7(128).padder()
    padded = padding.update(plain) + padding.finalize()
    cipher = Cipher(algorithms.AES(_key(encrypt_key)), modes.CBC(iv)).encryptor()
    return base64.b64encode(iv + cipher.update(padded) + cipher.finalize()).decode()


def _key(encrypt_key: str) -> bytes:
    return hashlib.sha256(encrypt_key.encode()).digest()
