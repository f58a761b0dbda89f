"""slack-sdk's own classes before the fake: it is one that they can talk to, and by them the adapter is talked to."""

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


def test_people_with_slack_sdk_talk_to_the_adapter_and_another_app_hears_both(stage, run):
    """Nothing here but the adapter is ours: people write and read, and a second app listens, by slack-sdk alone."""
    other = stage.server.install("A2", team_id=stage.here.team_id)
    heard = []

    async def on_request(client, request):
        await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        heard.append((request.payload["event"]["type"], request.payload["event"]["text"]))

    async def main():
        async with stage.running(), aiohttp.ClientSession() as session:
            base_url = f"{stage.server.url}/api/"
            ada = AsyncWebClient(token=stage.server.person("U1", "Ada"), base_url=base_url, session=session)
            bo = AsyncWebClient(token=stage.server.person("U2", "Bo"), base_url=base_url, session=session)
            assert (await ada.auth_test())["user_id"] == "U1"
            listener = SocketModeClient(
                app_token=other.app_token, web_client=AsyncWebClient(base_url=base_url, session=session)
            )
            listener.socket_mode_request_listeners.append(on_request)
            await listener.connect()

            said = await ada.chat_postMessage(channel="C1", text=f"<@{stage.here.user_id}> deploy?")
            asked = await stage.stored(said["ts"])
            draft = await stage.send("on **it**", asked, "key-1.draft", is_draft=True)
            await stage.adapter.edit(stage.part("on **it** now", asked), draft.platform_message_id)
            await bo.chat_postMessage(channel="C1", text="me too &amp; thanks", thread_ts=said["ts"])
            await stage.inlet.until(lambda: len(stage.inlet.events) > 1)
            reply = stage.inlet.events[-1]
            await stage.send("done", reply, "key-2")
            await stage.server.until(lambda: len(heard) == 2)
            read = await ada.conversations_replies(channel="C1", ts=said["ts"])
            name = (await ada.users_info(user="U2"))["user"]["profile"]["display_name"]
            await listener.close()
            return asked, reply, [each["text"] for each in read["messages"]], name

    asked, reply, read, name = run(main())

    assert (asked.text, asked.source.user_name, asked.addressed) == ("deploy?", "Ada", True)
    assert (reply.text, reply.source.user_name, reply.addressed) == ("me too & thanks", "Bo", True)
    assert reply.source.thread_id == asked.source.message_id
    assert read[1:] == ["on *it* now", "me too &amp; thanks", "done"]
    assert name == "Bo"
    assert heard == [("message", f"<@{stage.here.user_id}> deploy?"), ("message", "me too &amp; thanks")]


def test_what_the_adapter_streams_is_what_slack_sdks_own_helper_streams(stage, run):
    """The same calls, seen by the fake: so far as it is right about streams, the adapter's are such."""

    async def main():
        async with stage.running(), aiohttp.ClientSession() as session:
            asked = await stage.heard("deploy?")
            begun = await stage.send("on **it**", asked, "key-1.draft", is_draft=True)
            await stage.adapter.edit(
                stage.part("on **it** now", asked, "key-1.draft", is_draft=True), begun.platform_message_id
            )
            await stage.adapter.typing(asked.source, on=False)
            web = AsyncWebClient(token=stage.here.token, base_url=f"{stage.server.url}/api/", session=session)
            helper = await web.chat_stream(
                channel="C1",
                thread_ts=asked.source.message_id,
                recipient_user_id="U1",
                recipient_team_id=stage.here.team_id,
                buffer_size=1,
            )
            await helper.append(markdown_text="on **it**")
            await helper.append(markdown_text=" now")
            await helper.stop()
            return [(post.text, post.thread_ts, post.recipient, post.streaming) for post in stage.server.posts]

    ours, theirs = run(main())

    assert ours == theirs
