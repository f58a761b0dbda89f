"""What is read of an update, whatever is in it."""

from __future__ import annotations

import base64
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from hermes_weixin.events import event_of, identities_of, partial_text
from hermes_weixin.wire import Quote, client_version, post_headers, read_message, read_updates

SAMPLE = {
    "seq": 41,
    "message_id": 7400000000000000123,
    "from_user_id": "oFAKEuser0001@im.wechat",
    "to_user_id": "aa11bb22cc33@im.bot",
    "client_id": "cli-fake-1",
    "create_time_ms": 1790000000123,
    "session_id": "sess-fake",
    "group_id": "",
    "message_type": 1,
    "message_state": 2,
    "context_token": "CTXfake==",
    "item_list": [{"type": 1, "msg_id": "7400000000000000123", "text_item": {"text": "hello"}}],
}

NAMES = [*SAMPLE, "type", "media", "text_item", "ref_msg"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


def nothing_quoted(peer, message_id):
    return ""


def made(entry, quoted=nothing_quoted):
    return event_of(read_message(entry), account_id="default", now=5, quoted=quoted)


def test_the_version_is_one_number():
    assert client_version("2.4.9") == "132105"


def test_each_request_has_a_uin_of_its_own():
    found = {post_headers("2.4.9")["X-WECHAT-UIN"] for _ in range(20)}

    assert len(found) > 15
    assert all(int(base64.b64decode(uin)) < 2**32 for uin in found)


def test_ids_beyond_2_to_the_53_are_kept_digit_by_digit():
    event = made(SAMPLE)

    assert event.source.message_id == "7400000000000000123"
    assert "id:7400000000000000123" in event.identities


def test_a_message_that_comes_again_with_another_id_is_known_by_sender_time_and_content():
    again = SAMPLE | {"message_id": 7400000000000000999, "seq": 42, "context_token": "other", "client_id": "other"}
    again["item_list"] = [{"type": 1, "msg_id": "7400000000000000999", "text_item": {"text": "hello"}}]

    assert set(made(SAMPLE).identities) & set(made(again).identities)


def test_the_same_words_said_later_are_another_message():
    later = SAMPLE | {"message_id": 2, "create_time_ms": 1790000009999, "client_id": "cli-2"}
    later["item_list"] = [{"type": 1, "msg_id": "2", "text_item": {"text": "hello"}}]

    assert not set(made(SAMPLE).identities) & set(made(later).identities)


def test_the_context_token_is_no_part_of_what_a_message_is_known_by():
    assert identities_of(read_message(SAMPLE)) == identities_of(read_message(SAMPLE | {"context_token": "new"}))


def test_a_message_with_a_room_is_of_a_group_whichever_name_the_room_has():
    for name in ("group_id", "room_id", "chat_room_id"):
        event = made(SAMPLE | {name: "room-1"})

        assert (event.source.chat_type, event.source.chat_id) == ("group", "room-1")
        assert event.source.user_id == "oFAKEuser0001@im.wechat"
    assert made(SAMPLE).source.chat_type == "dm"


def test_a_message_without_sender_is_put_aside_with_its_reason():
    assert made({"item_list": []}).error == "a message without a sender"


def test_the_transcript_of_a_voice_stands_for_it_and_a_voice_without_one_is_an_attachment():
    with_words = SAMPLE | {
        "item_list": [{"type": 3, "voice_item": {"text": "你好", "media": {"full_url": "https://x"}}}]
    }
    without = SAMPLE | {"item_list": [{"type": 3, "voice_item": {"media": {"full_url": "https://x"}}}]}

    assert (made(with_words).text, made(with_words).attachments) == ("你好", ())
    assert [one.kind for one in made(without).attachments] == ["audio"]


def test_all_items_of_a_message_count():
    items = [
        {"type": 1, "text_item": {"text": "look"}},
        {"type": 2, "image_item": {"aeskey": "00" * 16, "media": {"encrypt_query_param": "p"}}},
        {"type": 4, "file_item": {"file_name": "a.pdf", "len": "12", "media": {"full_url": "https://x/y"}}},
    ]
    event = made(SAMPLE | {"item_list": items})

    assert event.text == "look"
    assert [(one.kind, one.name, one.size) for one in event.attachments] == [
        ("image", "picture.jpg", None),
        ("document", "a.pdf", 12),
    ]


def test_a_quote_by_id_alone_is_looked_up():
    quote = {"svr_id": 99, "title": ""}
    entry = SAMPLE | {"item_list": [{"type": 1, "text_item": {"text": "why?"}, "ref_msg": quote}]}

    event = made(entry, quoted=lambda peer, message_id: "the plan" if message_id == "99" else "")

    assert event.text == "> the plan\n\nwhy?"
    assert "not known here" in made(entry).text


def test_part_of_a_quote_is_found_by_its_borders_and_its_checksum():
    whole = "a one b, a two b"

    assert partial_text(whole, Quote(start="a", end="b", start_index=1, end_index=1)) == "a two b"
    by_sum = Quote(start="a", end="b", start_index=1, end_index=0, md5=hashlib.md5(b"a two b").hexdigest())
    assert partial_text(whole, by_sum) == "a two b"
    assert partial_text(whole, Quote(start="a", end="b", md5="0" * 32)) == whole, "what the checksum denies is no guess"
    assert partial_text("aaa b", Quote(start="a", end="b", start_index=2)) == "a b"
    assert partial_text("aaaa b", Quote(start="aa", end="b", start_index=1)) == "aa b"
    assert partial_text(whole, Quote(start="not there", end="b")) == whole


@given(JSON)
def test_whatever_a_server_sends_is_read_or_put_aside(entry):
    message = read_message(entry)
    event = event_of(message, account_id="default", now=5, quoted=nothing_quoted)

    assert event.error or event.text or event.attachments
    assert event.identities


@given(st.dictionaries(st.sampled_from(["msgs", "get_updates_buf", "longpolling_timeout_ms"]), JSON))
def test_whatever_a_poll_brings_is_read(body):
    found = read_updates(body)

    assert found.wait_ms is None or 0 < found.wait_ms <= 120_000
