"""A public Python client before the fake: what it reads and sends, as one JSON object.

argv: the address of the fake, what to do as JSON. Run by the interpreter of the environment that it is installed in.
"""

from __future__ import annotations

import asyncio
import json
import sys

import httpx
from weixin_ilink_client import AsyncWeixinIlinkClient, MediaKind, QrLoginManager
from weixin_ilink_client.protocol import IlinkTransport


class Rerouted(httpx.AsyncBaseTransport):
    """Its addresses are fixed, and HTTPS alone: every host of the platform is the fake."""

    def __init__(self, server):
        self.hosts = []
        self._server = httpx.URL(server)
        self._below = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request):
        self.hosts.append(request.url.host)
        request.url = request.url.copy_with(scheme="http", host=self._server.host, port=self._server.port)
        return await self._below.handle_async_request(request)


async def main(server, peer):
    found, route = {}, Rerouted(server)
    async with httpx.AsyncClient(transport=route) as http:
        transport = IlinkTransport(http_client=http)
        manager = QrLoginManager(transport=transport)
        session, states = await manager.start(local_tokens=["known-token"]), []
        credentials = None
        while credentials is None:
            result = await manager.poll(session)
            states.append(str(result.status.value))
            if states[-1] == "need_verifycode":
                manager.submit_verify_code(session, "4711")
            elif states[-1] == "expired":
                session = await manager.refresh(session)
            credentials = result.credentials
        found["login"] = {"states": states, "bot": credentials.account_id, "user": credentials.user_id}
        found["hosts"] = sorted(set(route.hosts))

        client = AsyncWeixinIlinkClient(credentials, transport=transport)
        await client.start()
        messages, stop = [], asyncio.Event()

        async def heard(message):
            messages.append(message)
            if len(messages) == 3:
                stop.set()

        await client.run(heard, stop_event=stop)
        found["messages"] = [
            {"id": one.message_id, "text": one.text, "from": one.from_user_id, "token": one.context_token}
            for one in messages
        ]
        medium = await client.download_media(messages[2].items[0])
        found["medium"] = medium.content.decode()
        await client.set_typing(peer, True)
        await client.set_typing(peer, False)
        await client.send_text(peer, "an answer")
        await client.send_media(peer, b"a note", kind=MediaKind.FILE, file_name="note.txt")
        await client.send_media(peer, b"no real picture", kind=MediaKind.IMAGE, file_name="picture.jpg")
        try:
            for number in range(20):
                await client.send_text(peer, f"more {number}")
        except Exception as error:  # noqa: BLE001 - what it raises is what is asked
            found["refused"] = f"{type(error).__name__}: {error}"
        await client.aclose()
    return found


print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2]))))
