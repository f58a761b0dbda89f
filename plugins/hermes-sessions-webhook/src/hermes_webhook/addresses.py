"""Addresses: where we listen, and where a callback may go."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

import attrs

__all__ = ["Prefix", "socket_of"]

_PORTS = {"http": 80, "https": 443}


def socket_of(listen: str) -> tuple[str, int] | None:
    """Return host and port of ``host:port`` or ``[v6]:port``, ``None`` for anything else."""
    host, colon, port = listen.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or (":" in bare and bare == host) or any(c in bare for c in " /@\t\r\n"):
        return None
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        return None
    return bare, int(port)


@attrs.frozen(kw_only=True)
class Prefix:
    """What addresses begin with that a callback may go to: scheme, host and port in full, and a path.

    A path that does not end in a slash stands for itself, and for what is below it.
    """

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> Prefix | None:
        """Return the prefix that an address stands for, ``None`` where it is no sound address."""
        parts = _parts(url)
        if parts is None or parts.query:
            return None
        return cls(scheme=parts.scheme, host=str(parts.hostname), port=_port(parts), path=parts.path or "/")

    def allows(self, url: str) -> bool:
        """Return whether an address begins with this."""
        parts = _parts(url)
        if parts is None or (parts.scheme, parts.hostname, _port(parts)) != (self.scheme, self.host, self.port):
            return False
        path = parts.path or "/"
        if self.path.endswith("/"):
            return path.startswith(self.path)
        return path == self.path or path.startswith(f"{self.path}/")


def _parts(url: str) -> SplitResult | None:
    """Return an address taken apart; ``None`` where two readers could understand it differently."""
    if not url.isascii() or not url.isprintable() or any(c in url for c in ' \\"<>^`{|}'):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc or parts.fragment or port == 0:
        return None
    folded = parts.path.lower()
    if (
        any(step in (".", "..") for step in parts.path.split("/"))
        or "%2e" in folded
        or "%2f" in folded
        or "%5c" in folded
    ):
        return None
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]
