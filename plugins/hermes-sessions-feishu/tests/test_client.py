"""The API: tokens, addresses, answers of every kind, and what becomes of a question without one."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from aiohttp import web

from hermes_feishu.client import FeishuClient
from hermes_feishu.config import FeishuConfig
from hermes_feishu.credentials import Credentials
from hermes_feishu.failures import Answer, error_of
from hermes_feishu.tokens import TokenCache
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import AuthFailed, PlatformError, Rejected, RetryLater
from hermes_hookspecs.messages import Attachment


class HandClock(SystemClock):
    """A clock that is moved by hand."""

    def __init__(self):
        self.at_s = 1000.0

    def monotonic(self):
        return self.at_s


# --- the token


def cache(clock, *answers):
    """Return a cache whose fetches are answered in order, and the list of those that were made."""
    left, made = list(answers), []

    async def fetch():
        made.append(clock.monotonic())
        await asyncio.sleep(0)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return TokenCache(fetch, clock), made


def test_however_many_need_a_token_one_is_fetched():
    clock = HandClock()
    tokens, made = cache(clock, ("t-1", 7200.0))

    async def play():
        return await asyncio.gather(*(tokens.token() for _ in range(50)))

    assert set(asyncio.run(play())) == {"t-1"}
    assert len(made) == 1


def test_a_token_is_renewed_ahead_of_its_end():
    clock = HandClock()
    tokens, made = cache(clock, ("t-1", 7200.0), ("t-2", 7200.0))

    async def play():
        seen = [await tokens.token()]
        for at_s in (1000 + 7200 - 601, 1000 + 7200 - 600):
            clock.at_s = at_s
            seen.append(await tokens.token())
        return seen

    assert asyncio.run(play()) == ["t-1", "t-1", "t-2"]
    assert len(made) == 2


def test_a_token_that_cannot_be_renewed_serves_until_its_end():
    clock = HandClock()
    away = RetryLater("not now")
    tokens, _ = cache(clock, ("t-1", 7200.0), away, away, ("t-2", 60.0))

    async def play():
        await tokens.token()
        clock.at_s += 7000
        assert await tokens.token() == "t-1"
        clock.at_s += 300
        with pytest.raises(RetryLater):
            await tokens.token()
        return await tokens.token()

    assert asyncio.run(play()) == "t-2"


def test_of_two_who_drop_one_token_the_second_keeps_the_new_one():
    clock = HandClock()
    tokens, made = cache(clock, ("t-1", 7200.0), ("t-2", 7200.0))

    async def play():
        await tokens.token()
        tokens.drop("t-1")
        await tokens.token()
        tokens.drop("t-1")
        return await tokens.token()

    assert asyncio.run(play()) == "t-2"
    assert len(made) == 2


def test_a_token_that_the_platform_forgot_is_fetched_anew_by_one_of_all_who_send(stage):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            await account.send(account.part(event, "before"))
            stage.world.app("default").tokens.clear()
            parts = [account.part(event, f"at once {number}", key=f"at-once-{number}") for number in range(5)]
            await asyncio.gather(*(account.send(attrs.evolve(part, reply_to=None)) for part in parts))
            assert stage.world.tokens_issued == 2
            assert len(stage.world.sent_by_apps()) == 6

    stage.play(play)


# --- addresses


@pytest.mark.parametrize(
    ("domain", "host"),
    [
        ("feishu", "https://open.feishu.cn"),
        ("lark", "https://open.larksuite.com"),
        ("https://open.example.test/", "https://open.example.test"),
    ],
)
def test_a_domain_is_a_name_or_an_address(domain, host):
    config = FeishuConfig.of({"accounts": {"default": {"app_id": "cli_a", "domain": domain}}})

    assert config.accounts["default"].domain == host


def test_lark_and_feishu_are_asked_each_at_its_own_host_with_tokens_of_their_own(both):
    """Two accounts, two hosts: the fake stands for both, told apart by the names that they are asked by."""
    config_of = both.fake.config

    def config(accounts, **more):
        found = config_of(accounts, **more)
        lark = attrs.evolve(
            found.accounts["second"], domain=found.accounts["second"].domain.replace("127.0.0.1", "localhost")
        )
        return attrs.evolve(found, accounts={**found.accounts, "second": lark})

    both.fake.config = config

    async def play():
        async with both.running("default") as one, both.running("second") as other:
            for account in (one, other):
                event = await account.hear()
                await account.send(account.part(event, "hello"))
            assert {host.split(":")[0] for host in both.world.hosts} == {"127.0.0.1", "localhost"}
            assert both.world.tokens_issued == 2

    both.play(play)


# --- answers


@pytest.fixture
def asking():
    """Return a function that asks a server with one handler, and returns what came of it."""

    def ask(handler, use, timeout_s=5.0):
        async def play():
            async def token(_):
                return web.json_response({"code": 0, "tenant_access_token": "t-1", "expire": 7200})

            app = web.Application()
            app.router.add_post("/open-apis/auth/v3/tenant_access_token/internal", token)
            app.router.add_get("/x", handler)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            account = FeishuConfig.of({"accounts": {"a": {"app_id": "cli_a", "domain": url}}}).accounts["a"]
            client = FeishuClient(account, Credentials(app_secret="s"), SystemClock(), timeout_s=timeout_s)
            try:
                return await use(client)
            finally:
                await runner.cleanup()

        return asyncio.run(play())

    return ask


async def get(client):
    return await client.get("looking", "/x")


@pytest.mark.parametrize(
    ("status", "text", "error", "says"),
    [
        (200, "<html>portal</html>", RetryLater, "is not the platform"),
        (200, "[1]", RetryLater, "is not the platform"),
        (200, '{"code": true}', RetryLater, "is not the platform"),
        (302, "", RetryLater, "is not the platform"),
        (401, "", AuthFailed, "check app_id and the app secret"),
        (429, "", RetryLater, "rate limit"),
        (500, '{"code": 99, "msg": "oh"}', RetryLater, "99: oh"),
        (503, "", RetryLater, "503"),
        (400, '{"code": 230002, "msg": "no\\nway"}', Rejected, "no way"),
        (200, "[" * 100_000, RetryLater, "is not the platform"),
    ],
)
def test_an_answer_counts_by_its_code_whatever_else_it_is(asking, status, text, error, says):
    async def handler(_):
        headers = {"Location": "https://elsewhere.test/"} if status == 302 else None
        return web.Response(status=status, text=text, headers=headers, content_type="application/json")

    with pytest.raises(error, match=says):
        asking(handler, get)


def test_a_platform_that_does_not_answer_is_not_waited_for_longer_than_is_set(asking):
    async def handler(_):
        await asyncio.sleep(3)
        return web.Response()

    with pytest.raises(RetryLater, match="no answer in time") as raised:
        asking(handler, get, timeout_s=0.2)
    assert raised.value.maybe_sent


def test_a_host_that_is_not_there_got_nothing():
    account = FeishuConfig.of({"accounts": {"a": {"app_id": "cli_a", "domain": "http://127.0.0.1:9"}}}).accounts["a"]

    async def play():
        client = FeishuClient(account, Credentials(app_secret="s"), SystemClock(), timeout_s=5)
        await get(client)

    with pytest.raises(RetryLater, match="cannot be reached") as raised:
        asyncio.run(play())
    assert not raised.value.maybe_sent


@pytest.mark.parametrize("code", [-1, 0, 1, 403, 514, 10003, 230001, 99991400, 99991663, 99991672, 12_345])
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500, 503])
def test_every_refusal_is_an_error_of_the_contract_in_one_line(code, status):
    error = error_of(Answer(status=status, code=code, message="a\nb" * 400), "trying")

    assert isinstance(error, PlatformError)
    assert "\n" not in str(error)
    assert len(str(error)) < 400


# --- bytes


@pytest.mark.parametrize(
    ("reference", "error"), [("om_1:unknown:file", Rejected), ("nonsense", Rejected), ("om_1:../../x:file", Rejected)]
)
def test_bytes_that_are_not_there_are_rejected(stage, reference, error):
    async def play():
        async with stage.running() as account:
            event = await account.hear()
            found = Attachment(kind="document", reference=reference)
            with pytest.raises(error):
                [piece async for piece in account.adapter.fetch(found, event.source)]

    stage.play(play)


def test_bytes_are_fetched_with_a_new_token_where_the_old_one_is_refused(stage):
    async def play():
        async with stage.running() as account:
            event = await stage.written(account, {"image_key": "img_1"}, message_type="image")
            stage.world.resources[event.source.message_id, "img_1"] = (b"\x89PNG", "image/png", "")
            stage.world.app("default").tokens.clear()
            pieces = [piece async for piece in account.adapter.fetch(event.attachments[0], event.source)]
            assert b"".join(pieces) == b"\x89PNG"

    stage.play(play)


def test_a_file_that_is_json_itself_is_a_file(stage):
    async def play():
        async with stage.running() as account:
            event = await stage.written(account, {"file_key": "f", "file_name": "a.json"}, message_type="file")
            stage.world.resources[event.source.message_id, "f"] = (b'{"code": 7}', "application/json", "a.json")
            pieces = [piece async for piece in account.adapter.fetch(event.attachments[0], event.source)]
            assert b"".join(pieces) == b'{"code": 7}'

    stage.play(play)
