"""Hostile text of every kind: stored as it came, and always valid UTF-8 when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.messages import ASSISTANT, TOOL, MessageDraft, ToolCall
from hermes_hookspecs.operations import Rename
from hermes_hookspecs.testing.scene import ALL, key_of, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["HOSTILE", "TextTests"]

HOSTILE = {
    "empty": "",
    "spaces": "  \t\n ",
    "nul": "before\x00after",
    "controls": "".join(map(chr, range(32))),
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "right-to-left": "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "combining": "e\u0301" * 50,
    "chinese": "查看日志，然后重启。",
    "astral": "\U0001f600\U00020000\U0010ffff",
    "noncharacter": "\ufffe\uffff",
    "bom": "\ufeffbegin",
    "line-ends": "a\r\nb\u2028c\u2029d\x85e",
    "quotes": "'\"`\\;--/**/ %s {} $1 ?1 :x",
    "json": '{"a": "\\u0000", "b": [1e400, NaN]}',
    "template": "{{7*7}} ${x} <script>",
}


class TextTests(StoreFixtures):
    """Text is data; a store loses none of it and chokes on none of it."""

    @pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
    def test_hostile_text_comes_back_as_it_was(self, store: Store, scene: Scene, text: str) -> None:
        entry = scene.enter(key_of(f"chat-{text}"), source_at(chat_name=text, chat_topic=text))
        begun = scene.ask(entry, text)
        call = ToolCall(id=f"id{text}", name=f"name{text}", arguments=text)
        drafts = (
            MessageDraft(role=ASSISTANT, content=text, sent=text, reasoning=text, tool_calls=(call,), timestamp=1),
            MessageDraft(role=TOOL, content=text, tool_call_id=call.id, tool_name=call.name, timestamp=1),
        )

        scene.append(begun, *drafts)
        scene.finish(begun, saying(text), outcome="failed", reason=text)

        user, asked, answered, last = scene.rows(entry.lineage_id)
        assert {user.content, asked.content, answered.content, last.content} == {text}
        assert (asked.sent, asked.reasoning, asked.tool_calls) == (text, text, (call,))
        assert (answered.tool_call_id, answered.tool_name) == (call.id, call.name)
        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert turn.reason == text
        route = store.route(key_of(f"chat-{text}"))
        assert route is not None
        assert (route.source.chat_name, route.lineage_id) == (text or None, entry.lineage_id)

    @pytest.mark.parametrize(
        "text", [text for text in HOSTILE.values() if text], ids=[n for n, t in HOSTILE.items() if t]
    )
    def test_a_hostile_title_is_found_again(self, store: Store, scene: Scene, text: str) -> None:
        entry = scene.enter()

        title = text[:100]
        scene.run(Rename(lineage_id=entry.lineage_id, title=title, origin="user", now=scene.now))

        assert [found.title for found in store.lineages_by_title(title, ALL)] == [title]

    @pytest.mark.parametrize("half", ["\ud800", "\udfff", "\udc80"])
    def test_half_a_surrogate_pair_is_replaced(self, store: Store, scene: Scene, half: str) -> None:
        bad, good = f"a{half}b", "a\ufffdb"
        entry = scene.enter(source=source_at(user_name=bad, chat_name=bad))
        begun = scene.ask(entry, bad)
        call = ToolCall(id=bad, name=bad, arguments=bad)
        scene.append(begun, MessageDraft(role=ASSISTANT, content=bad, tool_calls=(call,), timestamp=1))
        scene.append(begun, MessageDraft(role=TOOL, content=bad, tool_call_id=bad, tool_name=bad, timestamp=1))
        scene.finish(begun, saying(bad), outcome="failed", reason=bad)

        rows = scene.rows(entry.lineage_id)
        assert {row.content for row in rows} == {good}
        assert rows[1].tool_calls == (ToolCall(id=good, name=good, arguments=good),)
        assert (rows[2].tool_call_id, rows[2].tool_name) == (good, good)
        assert scene.lineage(entry.lineage_id).preview == good
        assert scene.lineage(entry.lineage_id).source.chat_name == good
        item = store.inbox_item(begun.turn.inbox_ids[0])
        assert item is not None
        assert item.text == good

    def test_a_text_of_a_megabyte_is_kept(self, scene: Scene) -> None:
        text = "日志\U0001f600x" * 100_000
        entry = scene.enter()

        scene.talk(entry, text, text[::-1])

        assert scene.texts(entry.lineage_id) == [text, text[::-1]]
        assert len(scene.lineage(entry.lineage_id).preview) == 80

    def test_a_message_of_ten_megabytes_is_kept(self, scene: Scene) -> None:
        text = "0123456789" * 1_000_000
        entry = scene.enter()
        begun = scene.ask(entry)

        scene.append(begun, saying(text))

        assert scene.rows(entry.lineage_id)[-1].content == text
