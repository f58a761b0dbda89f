"""The fake is not our own opinion alone: clients of others log in, poll, receive, and send before it.

They are installed beside this environment, in versions that are named here, and only for this.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hermes_weixin.crypto import encrypt
from hermes_weixin.events import partial_text
from hermes_weixin.markdown import filtered
from hermes_weixin.testing import FakeILink
from hermes_weixin.wire import Quote

PYTHON_CLIENT = "weixin-ilink-client==0.1.3"
OWNERS_CLIENT = "@tencent-weixin/openclaw-weixin@2.4.9"
HERE = Path(__file__).resolve().parent / "peers"
PEERS = Path(sys.prefix) / "peers"
INSTALL_S, RUN_S = 240, 90
PEER = "oFAKEuser0001@im.wechat"
KEY = bytes(range(16))

MARKDOWN = [
    "plain words, **bold**, `code *x*` and [a link](https://example.org)",
    "# one\n##### five\n###### six\ntext",
    "an *slanted* word and a _low_ one",
    "一个*斜体*词，一个_下划线_词，和***粗斜体***词",
    "before ![a picture](https://example.org/a.png) behind",
    "```python\nx = '*中文*'\n##### no heading\n```\nafter",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "> quoted\n\n- one\n- two\n\n---\n\n~~gone~~",
    "snake_case_names and 2 * 3 * 4 stay",
    "**粗体**和__也是__",
]
WHOLE = "one two three, one two three, one two three"


def part(start, startindex, end, endindex, quoted=None):
    found = {"start": start, "startindex": startindex, "end": end, "endindex": endindex}
    return found | ({} if quoted is None else {"quotemd5": hashlib.md5(quoted.encode()).hexdigest()})


QUOTES = [
    part("one", 0, "two", 0),
    part("one", 1, "three", 1),
    part("one", 1, "three", 0, "one two three"),
    part("one", 0, "three", 2, WHOLE),
    part("two", 2, "three", 0),
    part("one", 0, "one", 0, "one two three, one"),
    part("one", 0, "two", 0, "something else"),
    part("nowhere", 0, "two", 0),
]


def installed(name, make):
    """Return the folder of a client, installed once; skip where its registry is not reached."""
    folder = PEERS / name
    if folder.is_dir():
        return folder
    PEERS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PEERS) as temporary:
        made = Path(temporary) / "made"
        try:
            for command in make(made):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["nothing was said"])[-1]
            pytest.skip(f"{name} cannot be installed here: {last}")
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{name} cannot be installed here: {error}")
        try:
            made.rename(folder)
        except OSError:
            assert folder.is_dir(), "another run was no sooner"
    return folder


@pytest.fixture(scope="module")
def python_client():
    """Return the interpreter of an environment with the Python client."""

    def make(folder):
        yield [sys.executable, "-m", "venv", str(folder)]
        quiet = ("-q", "--disable-pip-version-check", "--retries", "1", "--timeout", "20")
        yield [str(folder / "bin" / "python"), "-m", "pip", "install", *quiet, PYTHON_CLIENT]

    return installed(PYTHON_CLIENT, make) / "bin" / "python"


@pytest.fixture(scope="module")
def owners_client():
    """Return the folder of the published client of the platform's owner, with a stub of what it is a plugin of."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(f"{OWNERS_CLIENT} needs node and npm, which are not here")

    def make(folder):
        folder.mkdir()
        # the program that it is a plugin of is large, and not what is asked here
        alone = ("--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")
        yield ["npm", "install", "--prefix", str(folder), "--silent", *alone, OWNERS_CLIENT]
        stub = folder / "node_modules" / "openclaw"
        stub.mkdir()
        shutil.copy(HERE / "tencent_stub.mjs", stub / "stub.mjs")
        exports = {"exports": {"./plugin-sdk/*": "./stub.mjs"}, "name": "openclaw"}
        (stub / "package.json").write_text(json.dumps(exports), encoding="utf-8")

    return installed(OWNERS_CLIENT.strip("@").replace("/", "-"), make)


async def before(server, *command, stdin="", environ=None):
    """Run a client to its end; return what it found."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | (environ or {}),
    )
    try:
        async with asyncio.timeout(RUN_S):
            out, err = await process.communicate(stdin.encode())
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
    assert process.returncode == 0, f"{err.decode()[-2000:]}\nfaults: {server.faults}"
    return json.loads(out)


def scripted(server, *states):
    """Let a login go through states and end with a bound bot, to which three messages come; return the bot."""
    fields = server.confirmation(PEER)
    bot = server.bots[fields["bot_token"]]
    server.qr_states.extend([*states, {"status": "confirmed", **fields}])
    server.cdn.blobs["p"] = encrypt(KEY, b"a picture")
    picture = {"media": {"encrypt_query_param": "p", "encrypt_type": 1}, "aeskey": KEY.hex()}
    quoting = {"type": 1, "text_item": {"text": "which?"}, "ref_msg": {"svr_id": 7_400_000_000_000_000_123}}
    server.say(
        bot,
        server.message(PEER, "你好"),
        server.message(PEER, "", item_list=[quoting]),
        server.message(PEER, "", item_list=[{"type": 2, "image_item": picture}]),
    )
    return bot


def shown(server):
    """Return what people see, by kind: a text, or the plain bytes of a medium."""
    from hermes_weixin.crypto import decode_key, decrypt

    found = []
    for one in server.sent:
        media = next((value["media"] for key, value in one.item.items() if key in ("file_item", "image_item")), None)
        if media is None:
            found.append(one.text)
        else:
            key = decode_key(media["aes_key"])
            found.append(decrypt(key, server.cdn.blobs[media["encrypt_query_param"]]))
    return found


@pytest.mark.slow
def test_a_public_python_client_logs_in_receives_and_sends(python_client):
    async def main():
        server = FakeILink()
        server.cdn.bare_param = True  # it uploads by HTTPS alone
        await server.start()
        try:
            bot = scripted(
                server, {"status": "wait"}, {"status": "expired"}, {"status": "scaned"},
                {"status": "need_verifycode"}, {"status": "scaned"},
                {"status": "scaned_but_redirect", "redirect_host": "idc2.weixin.qq.com"},
            )  # fmt: skip
            return server, bot, await before(server, python_client, "-P", HERE / "ilink_client.py", server.url, PEER)
        finally:
            await server.stop()

    server, bot, found = asyncio.run(main())

    assert server.faults == []
    assert found["login"]["states"][-2:] == ["scaned_but_redirect", "confirmed"]
    assert (found["login"]["bot"], found["login"]["user"]) == (bot.bot_id, PEER)
    assert found["hosts"] == ["idc2.weixin.qq.com", "ilinkai.weixin.qq.com"]
    assert server.verify_codes[0] == "4711"
    assert server.qr_tokens == []
    assert [one["text"] for one in found["messages"]] == ["你好", "which?", ""]
    assert [int(one["id"]) > 2**53 for one in found["messages"]] == [True] * 3
    assert found["medium"] == "a picture"
    assert bot.typing == [(PEER, 1), (PEER, 2)]
    assert bot.notified == ["start", "stop"]
    assert shown(server)[:3] == ["an answer", b"a note", b"no real picture"]
    assert len(server.sent) == server.quota
    assert "-2" in found["refused"]
    assert {one.context_token for one in server.sent} == {found["messages"][2]["token"]}


@pytest.mark.slow
def test_the_published_client_of_the_owner_logs_in_receives_and_sends(owners_client, tmp_path):
    note = tmp_path / "note.txt"
    note.write_bytes(b"a note")
    asked = {
        "peer": PEER, "file": str(note), "markdown": MARKDOWN, "quotes": [[WHOLE, each] for each in QUOTES],
    }  # fmt: skip

    async def main():
        server = FakeILink()
        await server.start()
        try:
            bot = scripted(
                server, 524, {"status": "need_verifycode"}, {"status": "scaned"},
                {"status": "scaned_but_redirect", "redirect_host": "idc2.weixin.qq.com"},
            )  # fmt: skip
            command = ("node", HERE / "tencent.mjs", owners_client, server.url, json.dumps(asked))
            return (
                server,
                bot,
                await before(server, *command, stdin="4711\n", environ={"OPENCLAW_STATE_DIR": str(tmp_path)}),
            )
        finally:
            await server.stop()

    server, bot, found = asyncio.run(main())

    assert server.faults == []
    login = found["login"]
    assert (login["connected"], login["bot"], login["user"]) == (True, bot.bot_id, PEER)
    assert login["hosts"] == ["ilinkai.weixin.qq.com", "idc2.weixin.qq.com"]
    assert set(server.verify_codes) == {"4711"}
    assert [one["text"] for one in found["messages"]][:2] == ["你好", "which?"]
    assert found["messages"][1]["quoted"] == "7400000000000000123"
    assert found["medium"] == ["a picture"]
    assert bot.typing == [(PEER, 1), (PEER, 2)]
    assert bot.notified == ["start", "stop"]
    assert shown(server)[:3] == ["an answer", b"a note", b"a note"]
    assert found["sent"] == [one.message_id for one in server.sent[:3]]
    assert len(server.sent) == server.quota
    assert "ret=-2" in found["refused"]
    assert found["last"]["msgs"] == []

    assert [filtered(text) for text in MARKDOWN] == found["markdown"]
    ours = [
        partial_text(
            WHOLE,
            Quote(
                start=each["start"], start_index=each["startindex"], end=each["end"], end_index=each["endindex"],
                md5=each.get("quotemd5", ""),
            ),
        )
        for each in QUOTES
    ]  # fmt: skip
    assert ours == [one["resolved"] or WHOLE for one in found["quotes"]]
