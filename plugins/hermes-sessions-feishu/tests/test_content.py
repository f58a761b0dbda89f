"""Every type of message as text and attachments; odd ones, too."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_feishu.content import Resource, read_content, resource_of
from hermes_feishu.mentions import Mention, mentions_of, with_names

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TYPES = [
    "text", "post", "interactive", "merge_forward", "image", "file", "folder", "audio", "media", "sticker",
    "share_chat", "share_user", "location", "system", "todo", "vote", "hongbao", "video_chat", "share_calendar_event",
    "general_calendar", "calendar", "", "imagined",
]  # fmt: skip
NAMES = ["tag", "text", "content", "title", "elements", "header", "body", "rows", "columns", "fields", "user_id"]


def read(kind, content, message_id="om_1"):
    return read_content(kind, json.dumps(content), message_id)


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("text", {"text": "hello 鱼"}, "hello 鱼"),
        ("share_chat", {"chat_id": "oc_9"}, "[shared chat oc_9]"),
        ("share_user", {"user_id": "ou_9"}, "[shared contact ou_9]"),
        ("location", {"name": "Ulm", "latitude": "48.4", "longitude": "9.9"}, "[location Ulm (48.4, 9.9)]"),
        (
            "system",
            {"template": "{from_user} invited {to_chatters}", "from_user": ["Ann"], "to_chatters": ["Bo", "Cy"]},
            "[Ann invited Bo, Cy]",
        ),
        ("todo", {"summary": {"title": "", "content": [[{"tag": "text", "text": "buy fish"}]]}}, "[task] buy fish"),
        ("vote", {"topic": "lunch?", "options": ["rice", "noodles"]}, "[poll] lunch?: rice, noodles"),
        ("video_chat", {"topic": "weekly", "start_time": "1"}, "[video call] weekly 1"),
        ("hongbao", {"text": "good luck"}, "[a message of type hongbao] good luck"),
        ("imagined", {}, "[a message of type imagined]"),
        ("", {}, "[a message of type unknown]"),
    ],
)
def test_a_message_as_text(kind, content, text):
    found = read(kind, content)

    assert (found.text, found.attachments, found.error) == (text, (), "")


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("image", {"image_key": "img_1"}, ("image", "", "", Resource(message_id="om_1", key="img_1", type="image"))),
        (
            "file",
            {"file_key": "f_1", "file_name": "a.pdf"},
            ("document", "a.pdf", "application/pdf", Resource(message_id="om_1", key="f_1", type="file")),
        ),
        (
            "file",
            {"file_key": "f_1", "file_name": "a.png"},
            ("image", "a.png", "image/png", Resource(message_id="om_1", key="f_1", type="file")),
        ),
        (
            "audio",
            {"file_key": "f_2", "duration": 3000},
            ("audio", "", "audio/ogg", Resource(message_id="om_1", key="f_2", type="file")),
        ),
        (
            "media",
            {"file_key": "f_3", "image_key": "i", "file_name": "v.mp4"},
            ("video", "v.mp4", "video/mp4", Resource(message_id="om_1", key="f_3", type="file")),
        ),
        ("sticker", {"file_key": "f_4"}, ("image", "", "", Resource(message_id="om_1", key="f_4", type="file"))),
    ],
)
def test_media_are_attachments_that_say_where_they_are(kind, content, expected):
    (found,) = read(kind, content).attachments

    assert (found.kind, found.name, found.media_type, resource_of(found.reference)) == expected


def test_h20_a_post_keeps_the_text_of_all_its_parts_in_order():
    post = {
        "title": "Report",
        "content": [
            [{"tag": "text", "text": "see "}, {"tag": "a", "text": "here", "href": "https://x.test/1"}],
            [{"tag": "at", "user_id": "@_user_1", "user_name": "Ann"}, {"tag": "text", "text": " and"}],
            [{"tag": "img", "image_key": "img_2"}],
            [{"tag": "code_block", "language": "PYTHON", "text": "x = 1\n"}],
            [{"tag": "media", "file_key": "f_9", "image_key": "i"}, {"tag": "emotion", "emoji_type": "OK"}],
            [{"tag": "hr"}],
            [{"tag": "md", "text": "**bold**"}, {"tag": "imagined"}],
        ],
    }

    found = read("post", post)

    assert found.text.split("\n") == [
        "Report", "see [here](https://x.test/1)", "@_user_1 and", "[image]", "```python", "x = 1", "```", "[video][OK]",
        "---", "**bold**",
    ]  # fmt: skip
    assert [(one.kind, resource_of(one.reference).key) for one in found.attachments] == [
        ("image", "img_2"), ("video", "f_9"),
    ]  # fmt: skip
    assert read("post", {"zh_cn": post}) == read("post", {"post": {"en_us": post}}) == found


def test_a_card_of_either_version_is_read():
    first = {
        "header": {"title": {"tag": "plain_text", "content": "Build 7"}},
        "elements": [
            {"tag": "div", "text": {"tag": "lark_md", "content": "**failed**"}},
            {"tag": "action", "actions": [{"tag": "button", "text": {"tag": "plain_text", "content": "Retry"}}]},
        ],
    }
    second = {"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "hello"}]}}
    flat = {"title": "T", "elements": [[{"tag": "text", "text": "a "}, {"tag": "a", "text": "b", "href": "http://c"}]]}

    assert read("interactive", first).text == "Build 7\n**failed**\n[Retry]"
    assert read("interactive", second).text == "hello"
    assert read("interactive", flat).text == "T\na [b](http://c)"
    assert read("interactive", {"json_card": json.dumps(second)}).text == "hello"


def test_a_card_that_says_nothing_is_a_stub():
    old = {"elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]}

    assert [(one.text, one.is_stub) for one in (read("interactive", {}), read("interactive", old))] == [
        ("[card]", True), ("[card]", True),
    ]  # fmt: skip


@given(st.integers(1, 400), st.sampled_from(["elements", "body", "content", "text"]))
def test_a_card_is_read_in_steps_that_grow_with_its_size_and_not_with_its_depth(depth, name):
    card = {"tag": "markdown", "content": "inside"}
    for _ in range(depth):
        card = {name: card} if name == "body" else {name: [card]}

    assert read("interactive", card).text in (("inside",) if depth < 12 else ("inside", "[card]"))


def test_content_that_is_no_json_is_an_error_and_no_exception():
    assert read_content("text", "{", "om_1").error
    assert read_content("text", None, "om_1").error
    assert read_content("post", "[" * 100_000, "om_1").error
    assert read_content("merge_forward", "Merged and Forwarded Message", "om_1").is_stub


@given(st.sampled_from(TYPES), JSON)
def test_no_content_raises(kind, content):
    read(kind, content)


@given(
    st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), JSON | st.sampled_from(["table", "button", "at"]))
)
def test_no_tree_of_elements_raises(kind, content):
    read(kind, {"elements": [content, [content]], "content": [[content]], "body": content} | content)


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_a_reference_leads_back_to_what_it_was_made_of(message_id, key):
    (found,) = read("image", {"image_key": key}, message_id).attachments

    assert resource_of(found.reference) == Resource(message_id=message_id, key=key, type="image")


@pytest.mark.parametrize("reference", ["", "a:b", "a:b:c", ":b:file", "a:b:file:d"])
def test_what_is_no_reference_is_a_value_error(reference):
    with pytest.raises(ValueError):
        resource_of(reference)


# --- mentions

US = Mention(key="@_user_1", name="Bot", open_id="ou_bot")
ANN = Mention(key="@_user_2", name="Ann", open_id="ou_ann")
TEN = Mention(key="@_user_10", name="Ten", open_id="ou_ten")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("@_user_1 /new", "/new"),
        ("@_user_1/new", "/new"),
        ("/new", "/new"),
        ("hello @_user_1", "hello"),
        ("hello @_user_1 there", "hello there"),
        ("ask @_user_2 to run /new", "ask @Ann to run /new"),
        ("@_user_1 ask @_user_10 and @_user_2", "ask @Ten and @Ann"),
        ("@_user_1 @_user_1 twice", "twice"),
        ("@_user_1 first\n\n  third", "first\n\n  third"),
        ("@_user_3 stays", "@_user_3 stays"),
        ("@_all hands", "@all hands"),
        ("@_user_1", "@Bot"),
    ],
)
def test_h17_our_name_is_left_out_and_others_stay(text, spoken):
    assert with_names(text, (US, ANN, TEN), "ou_bot") == spoken


def test_h19_who_is_meant_is_decided_by_id_and_never_by_name():
    twin = Mention(key="@_user_1", name="Bot", open_id="ou_twin")

    assert with_names("@_user_1 hello", (twin,), "ou_bot") == "@Bot hello"


def test_mentions_are_read_as_events_and_as_the_api_write_them():
    event = [{"key": "@_user_1", "id": {"open_id": "ou_1", "union_id": "on_1"}, "name": "A"}, {"id": {}}, 7]
    api = [{"key": "@_user_1", "id": "ou_1", "id_type": "open_id", "name": "A"}]

    assert mentions_of(event) == (Mention(key="@_user_1", name="A", open_id="ou_1", union_id="on_1"),)
    assert mentions_of(api) == (Mention(key="@_user_1", name="A", open_id="ou_1"),)
    assert mentions_of(None) == mentions_of({"key": "x"}) == ()
