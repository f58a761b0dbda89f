"""Pictures, sounds and documents: as they are where the model takes them, described where a model describes."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from hashlib import sha256

import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import AuthFailed, HermesError, Rejected, RetryLater
from hermes_hookspecs.messages import KIND_ATTACHMENTS, Attachment
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.describers import ImageWords, SpeechWords
from hermes_openai.media import format_of, media_part, text_only
from hermes_openai.plugin import OpenAIPlugin
from hermes_openai.testing import FakeEndpoint, answer, drop, refuse, transcript

PNG = b"\x89PNG\r\n\x1a\n picture"
WAV = b"RIFF\x00\x00\x00\x00WAVE sound"
PDF = b"%PDF-1.4 paper"
ANN = SessionSource(platform="feishu", chat_type="dm", chat_id="dm-ann", user_id="ann")
KEY = "sk-very-secret-key"


class Files(dict):
    """Bytes by their hash, and the attachments that name them."""

    def attach(self, kind, data, *, there=True, **fields):
        name = sha256(data).hexdigest()
        if there:
            self[name] = data
        return Attachment(kind=kind, sha256=name, **fields)


@pytest.fixture
def files():
    return Files()


@pytest.fixture
def sent(run, row, context, agent, endpoint, files):
    """Return a function that runs a turn with attachments; gives the last message of each request."""

    def sent(*attachments, text="[text form]", live=True, **settings):
        import attrs

        attached = row(content=text, kind=KIND_ATTACHMENTS, attachments=attachments if live else ())
        turn = attrs.evolve(context(row(content="look"), attached), files=files)

        async def through():
            runner = agent(**settings)
            for _ in range(1 + (endpoint.left > 1)):
                async for _event in runner.run(turn):
                    pass

        asyncio.run(through())
        return [asked.messages[-1]["content"] for asked in endpoint.requests]

    return sent


# ------------------------------------------------------------------ as they are


def test_what_the_model_takes_stands_behind_the_text_in_order(sent, endpoint, files):
    endpoint.then(answer("Seen."))

    (content,) = sent(
        files.attach("image", PNG), files.attach("audio", WAV), files.attach("document", PDF, name="a.pdf"),
        inputs=["image", "audio", "document"],
    )  # fmt: skip

    text, picture, sound, paper = content
    assert text == {"type": "text", "text": "[text form]"}
    assert picture == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{b64encode(PNG).decode()}"},
    }
    assert (b64decode(sound["input_audio"]["data"]), sound["input_audio"]["format"]) == (WAV, "wav")
    assert paper["file"]["filename"] == "a.pdf"
    assert b64decode(paper["file"]["file_data"].removeprefix("data:application/pdf;base64,")) == PDF


@pytest.mark.parametrize(
    ("kind", "data", "settings"),
    [
        ("image", PNG, {}),
        ("audio", WAV, {"inputs": ["image"]}),
        ("image", b"no picture", {"inputs": ["image"]}),
        ("image", PDF, {"inputs": ["image"]}),
        ("image", PNG, {"inputs": ["image"], "input_bytes": 5}),
    ],
)
def test_what_it_does_not_take_stands_as_text(sent, endpoint, files, kind, data, settings):
    endpoint.then(answer("Seen."))

    assert sent(files.attach(kind, data), **settings) == ["[text form]"]


def test_bytes_that_are_not_there_leave_the_text(sent, endpoint, files):
    endpoint.then(answer("Seen."))

    assert sent(files.attach("image", PNG, there=False), inputs=["image"]) == ["[text form]"]


def test_a_later_turn_sends_the_text(sent, endpoint, files):
    endpoint.then(answer("Seen."))

    assert sent(files.attach("image", PNG), live=False, inputs=["image"]) == ["[text form]"]


@pytest.mark.parametrize(
    "refusal",
    [
        refuse(400, "unknown variant `image_url`, expected `text`"),
        refuse(422, "vit-7b is not a multimodal model"),
        refuse(500, "image input is not supported - hint: if this is unexpected, provide the mmproj"),
    ],
)
def test_a_server_that_takes_no_pictures_is_sent_text_from_then_on(sent, endpoint, files, waits, refusal):
    endpoint.then(refusal, answer("Seen."), answer("Seen."))

    first, second, third = sent(files.attach("image", PNG), inputs=["image"])

    assert isinstance(first, list)
    assert (second, third) == ("[text form]", "[text form]")
    assert waits == []


def test_a_refused_key_is_not_taken_for_a_refused_picture(sent, endpoint, files):
    endpoint.then(refuse(403, "this key may not send an image"))

    with pytest.raises(AuthFailed):
        sent(files.attach("image", PNG), inputs=["image"])

    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF....WEBP", "image/webp"),
        (WAV, "audio/wav"),
        (b"ID3\x03", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (PDF, "application/pdf"),
        (b"", ""),
        (b"<svg>", ""),
    ],
)
def test_a_file_is_what_its_first_bytes_say(data, told):
    assert format_of(data) == told


def test_a_name_from_outside_is_no_more_than_a_name():
    part = media_part(Attachment(kind="document", name="a\n\x1b[31m" + "x" * 500), PDF)

    assert part["file"]["filename"] == ("a[31m" + "x" * 500)[:200]


def test_text_alone_is_left_as_it_is():
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

    assert text_only(body) == body


# ------------------------------------------------------------------ in a profile


def test_a_picture_is_sent_once_and_is_text_from_then_on(tmp_path, endpoint):
    config = OpenAIConfig.of(
        {"model": "m", "base_url": endpoint.base_url, "inputs": ["image"], "session_search": False, "send_files": False}
    )
    agent = OpenAIAgent(config, environ={})
    endpoint.then(answer("A cat."), answer("Still a cat."), answer("Gone."))

    with open_app(tmp_path, plugins=False, environ={}) as app:
        picture = Attachment(kind="image", name="cat.png", sha256=app.attachments.put(PNG))
        entry = app.ask("look", ANN, agent=agent, attachments=(picture,)).entry
        app.ask("and now?", ANN, agent=agent)
        app.attachments.drop(entry.lineage_id)
        app.ask("and now?", ANN, agent=agent)

    first, second, third = [asked.messages for asked in endpoint.requests]
    shown, kept = first[1]["content"], second[1]["content"]
    assert b64decode(shown[1]["image_url"]["url"].partition(",")[2]) == PNG
    assert kept == shown[0]["text"]
    assert kept.startswith("[image, “cat.png”")
    assert second[0] == first[0]
    assert third[: len(second)] == second


# ------------------------------------------------------------------ described


@pytest.fixture
def describe(endpoint):
    """Return a function that lets a describer look at bytes."""

    def describe(kind, data, *, key="", base_url=None, **settings):
        table = {
            "model": "m",
            "base_url": base_url or endpoint.base_url,
            "image_model": "sees",
            "transcription_model": "hears",
            "retries": 0,
        }
        agent = OpenAIAgent(OpenAIConfig.of(table | settings), environ={"OPENAI_API_KEY": key})
        made = {"image": ImageWords, "audio": SpeechWords}[kind](agent._config, lambda: agent.endpoint)
        return asyncio.run(made.describe(Attachment(kind=kind), data))

    return describe


def test_a_picture_is_described(describe, endpoint):
    endpoint.then(answer(" A cat ", "on a mat. "))

    assert describe("image", PNG) == "A cat on a mat."
    (asked,) = endpoint.requests
    assert asked.body["model"] == "sees"
    assert asked.messages[0]["content"][1]["type"] == "image_url"


def test_speech_is_written_down(describe, endpoint):
    endpoint.then(transcript(" Good morning. "))

    assert describe("audio", b"OggS voice") == "Good morning."
    (asked,) = endpoint.requests
    assert asked.path == "/v1/audio/transcriptions"
    assert b'filename="speech.ogg"' in asked.raw
    assert b"OggS voice" in asked.raw
    assert b"hears" in asked.raw


@pytest.mark.parametrize(("kind", "data"), [("image", b"<svg>"), ("audio", b"MIDI?"), ("image", PDF)])
def test_what_no_model_takes_is_left_to_the_next(describe, endpoint, kind, data):
    assert describe(kind, data) is None
    assert endpoint.requests == []


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_what_is_too_large_is_left_to_the_next(describe, endpoint, kind):
    assert describe(kind, PNG if kind == "image" else WAV, input_bytes=4) is None
    assert endpoint.requests == []


def test_silence_has_no_words(describe, endpoint):
    endpoint.then(transcript(" "))

    assert describe("audio", WAV) is None


@pytest.mark.parametrize(("status", "error"), [(401, AuthFailed), (400, Rejected), (429, RetryLater)])
def test_a_failure_is_told_and_the_key_is_not(describe, endpoint, status, error):
    endpoint.then(refuse(status, f"not with {KEY}"))

    with pytest.raises(error) as caught:
        describe("audio", WAV, key=KEY)

    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_endpoint_that_is_not_there_is_told(describe):
    with pytest.raises(RetryLater, match="cannot be reached"):
        describe("audio", WAV, base_url="http://127.0.0.1:1/v1")


def test_a_server_that_breaks_off_while_it_listens_is_told(describe, endpoint):
    endpoint.then(drop())

    with pytest.raises(HermesError):
        describe("audio", WAV)


def test_the_plugin_describes_only_what_a_model_is_named_for():
    def names(**table):
        named = {"model": "m", "base_url": "http://127.0.0.1:1/v1"} | table
        return [one.name for one in OpenAIPlugin(named).hermes_attachment_describers() or ()]

    assert names() == []
    assert names(image_model="v") == ["openai-images"]
    assert names(image_model="v", transcription_model="w") == ["openai-images", "openai-speech"]
    assert names(image_model="v", model="") == []


def test_what_is_described_is_what_later_turns_are_sent(tmp_path, endpoint):
    plugin = OpenAIPlugin({"model": "m", "base_url": endpoint.base_url, "image_model": "sees", "titles": False})
    endpoint.then(answer("A cat on a mat."), answer("Nice."))

    with open_app(tmp_path, plugins=False, environ={}) as app:
        app.hooks.host.register("openai", plugin)
        picture = Attachment(kind="image", sha256=app.attachments.put(PNG))
        app.ask("look", ANN, agent="openai", attachments=(picture,))

    assert "A cat on a mat." in endpoint.requests[1].messages[1]["content"]
    assert json.loads(endpoint.requests[0].raw)["model"] == "sees"


def test_what_pictures_and_speech_took_counts_and_an_unknown_price_stays_unknown(tmp_path, endpoint):
    table = {"model": "m", "base_url": endpoint.base_url, "image_model": "sees", "transcription_model": "hears"}
    plugin = OpenAIPlugin(table | {"titles": False, "prices": {"m": {"input": 1, "output": 1}}})
    heard = {"type": "tokens", "input_tokens": 14, "output_tokens": 3, "total_tokens": 17}
    endpoint.then(answer("A cat on a mat."), answer("Nice."), transcript("miau", usage=heard), answer("Nice."))

    with open_app(tmp_path, plugins=False, environ={}) as app:
        app.hooks.host.register("openai", plugin)
        picture = Attachment(kind="image", sha256=app.attachments.put(PNG))
        app.ask("look", ANN, agent="openai", attachments=(picture,))
        sound = Attachment(kind="audio", sha256=app.attachments.put(WAV))
        result = app.ask("listen", ANN, agent="openai", attachments=(sound,))

        groups = {one.name: one.sum for one in app.oversight.usage(operator(), by="model")}
        total = app.usage_of(operator(), lineage_id=result.entry.lineage_id)

    assert {name: one.calls for name, one in groups.items()} == {"m": 2, "sees": 1, "hears": 1}
    assert groups["sees"].usage.input_tokens
    assert (groups["hears"].usage.input_tokens, groups["hears"].usage.output_tokens) == (14, 3)
    assert (total.unpriced, total.usage.estimated_cost_usd, total.known_cost_usd > 0) == (2, None, True)


def test_a_fake_that_hears_is_a_fake_that_checks_the_key():
    with FakeEndpoint(transcript("hi"), key="other") as endpoint:
        config = OpenAIConfig.of({"model": "m", "base_url": endpoint.base_url, "transcription_model": "w"})
        agent = OpenAIAgent(config, environ={"OPENAI_API_KEY": KEY})

        with pytest.raises(AuthFailed):
            asyncio.run(SpeechWords(config, lambda: agent.endpoint).describe(Attachment(kind="audio"), WAV))
