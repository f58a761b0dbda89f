"""Sockets of adapters that listen, closed without forgetting who is at the door."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

__all__ = ["close_server", "why_not"]


async def close_server(server: asyncio.Server) -> None:
    """Stop accepting, and close a server's sockets behind the last connection that was accepted.

    asyncio forgets one that it accepted in the very step in which the server is closed: nobody would answer it, nor
    close it. So nothing is accepted any more, what was accepted gets its step, and only then the server is closed.
    """
    loop = asyncio.get_running_loop()
    try:
        with suppress(NotImplementedError):  # a loop that accepts in another way, as on Windows
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
    finally:
        server.close()


def why_not(error: OSError) -> str:
    """Return in the system's few words why an address cannot be listened at; asyncio wraps them in many of its own."""
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno)
