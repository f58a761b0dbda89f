"""The fake is one that slack-sdk's own classes talk to, and everything that Slack's client does works before it."""

from __future__ import annotations

import asyncio

import aiohttp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from hermes_slack.testing import FakeSlackServer
from hermes_slack.testing.payloads import callback, message


def test_the_clients_of_slack_sdk_receive_acknowledge_post_and_update(run):
    server = FakeSlackServer()
    app = server.install("A1")
    here = app.installations[0]
    heard = []

    async def on_request(client, request):
        heard.append(request.payload["event"]["text"])
        await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        event = request.payload["event"]
        posted = await client.web_client.chat_postMessage(channel=event["channel"], text="an answer")
        await client.web_client.chat_update(channel=event["channel"], ts=posted["ts"], text="a better answer")

    async def main():
        server.echoes = False
        await server.start()
        async with aiohttp.ClientSession() as session:
            web = AsyncWebClient(token=here.token, base_url=f"{server.url}/api/", session=session)
            assert (await web.auth_test())["user_id"] == here.user_id
            client = SocketModeClient(app_token=app.app_token, web_client=web)
            client.socket_mode_request_listeners.append(on_request)
            await client.connect()
            one = server.deliver(app, callback(app, here, message("D1", "U1", "one", server.ts()), "Ev1"))
            await server.until(lambda: one.acknowledged and server.posts and server.posts[0].edits)
            await server.disconnect(app, "refresh_requested")
            await server.until(lambda: app.opened == 2)
            two = server.deliver(app, callback(app, here, message("D1", "U1", "two", server.ts()), "Ev2"))
            await server.until(lambda: two.acknowledged and len(server.posts) == 2 and server.posts[1].edits)
            history = await web.conversations_history(channel="D1", limit=10)
            await client.close()
        await server.stop()
        await asyncio.sleep(0)
        return [each["text"] for each in history["messages"]]

    assert run(main()) == ["a better answer"] * 2
    assert heard == ["one", "two"]
    assert not server.faults
