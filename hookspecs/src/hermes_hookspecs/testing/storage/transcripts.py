"""Transcripts: what may be written, in which order it is read, who may read it, what a scan finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import IllegalMessage
from hermes_hookspecs.ids import LineageId, MessageId, SessionId
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    SYSTEM,
    TOOL,
    USER,
    Attachment,
    MessageDraft,
    ToolCall,
)
from hermes_hookspecs.principal import Principal, owner_of, principal_of
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, asking, key_of, result, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["AccessTests", "LegalityTests", "TranscriptTests"]

_DOUBLE = MessageDraft(
    role=ASSISTANT, timestamp=1, tool_calls=(ToolCall(id="c9", name="a"), ToolCall(id="c9", name="b"))
)
_NAMELESS = MessageDraft(role=TOOL, content="42", timestamp=1)
_ASKING_USER = MessageDraft(role=USER, timestamp=1, tool_calls=(ToolCall(id="c9", name="a"),))


class LegalityTests(StoreFixtures):
    """A transcript that no model would accept is never written."""

    @pytest.mark.parametrize(
        ("before", "drafts"),
        [
            ((), (saying("x", role="robot"),)),
            ((), (saying("x", role="Assistant"),)),
            ((), (result("c1"),)),
            ((), (_NAMELESS,)),
            ((), (_DOUBLE,)),
            ((), (_ASKING_USER,)),
            ((), (saying("fine"), result("c1"))),
            ((asking("c1"),), (result("c2"),)),
            ((asking("c1"),), (_NAMELESS,)),
            ((asking("c1"),), (saying("before its result"),)),
            ((asking("c1"),), (asking("c2"),)),
            ((asking("c1", "c2"), result("c1")), (saying("too early"),)),
            ((asking("c1", "c2"), result("c1")), (result("c1"),)),
            ((asking("c1"), result("c1")), (result("c1"),)),
            ((asking("c1"), result("c1"), asking("c2")), (result("c1"),)),
            ((asking("c1"),), (result("c1"), saying("fine"), result("c1"))),
        ],
    )
    def test_rows_that_break_a_transcript_are_refused(
        self, scene: Scene, before: tuple[MessageDraft, ...], drafts: tuple[MessageDraft, ...]
    ) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        for draft in before:
            scene.append(begun, draft)
        was = (scene.rows(entry.lineage_id), scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id))

        with pytest.raises(IllegalMessage):
            scene.append(begun, *drafts)

        assert was == (scene.rows(entry.lineage_id), scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id))

    @pytest.mark.parametrize(
        "drafts",
        [
            (saying("a"), saying("b", role=SYSTEM), saying("c", role=USER)),
            (asking("c1", "c2"), result("c2"), result("c1"), saying("done")),
            (asking("c1"), result("c1"), asking("c1"), result("c1")),
        ],
    )
    def test_rows_of_a_sound_transcript_are_stored(self, scene: Scene, drafts: tuple[MessageDraft, ...]) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        ids = scene.append(begun, *drafts)

        assert [row.id for row in scene.rows(entry.lineage_id)][1:] == list(ids)
        assert [row.role for row in scene.rows(entry.lineage_id)][1:] == [draft.role for draft in drafts]

    def test_results_may_come_one_by_one(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        for draft in (asking("c1", "c2"), result("c1"), result("c2"), saying("done")):
            scene.append(begun, draft)

        assert len(scene.rows(entry.lineage_id)) == 5

    @pytest.mark.parametrize("end", ["finished", "interrupted", "revoked"])
    def test_a_call_of_an_earlier_turn_is_not_open(self, scene: Scene, end: str) -> None:
        entry = scene.enter()
        first = scene.ask(entry)
        scene.append(first, asking("c1"))
        if end == "finished":
            scene.finish(first)
        elif end == "revoked":
            scene.revoke(entry.lineage_id)
        second = scene.ask(entry, presumed_dead=scene.lease(entry.lineage_id).stamp)
        before = scene.rows(entry.lineage_id)

        for write in (scene.append, scene.finish):
            with pytest.raises(IllegalMessage):
                write(second, result("c1"))

        assert scene.rows(entry.lineage_id) == before
        assert [row.content for row in before if row.role == TOOL] == [INTERRUPTED_RESULT]
        scene.append(second, asking("c1"))
        scene.append(second, result("c1"))

    @pytest.mark.parametrize("drafts", [(result("c2"),), (saying("x"), result("c1")), (saying("x", role="robot"),)])
    def test_a_finish_is_checked_too(self, store: Store, scene: Scene, drafts: tuple[MessageDraft, ...]) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))

        with pytest.raises(IllegalMessage):
            scene.finish(begun, *drafts)

        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert turn.outcome == "active"
        assert len(scene.rows(entry.lineage_id)) == 2
        scene.append(begun, result("c1"))


class TranscriptTests(StoreFixtures):
    """Rows are kept whole, in order of storing."""

    def test_an_accepted_message_is_stored_once(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        (mine,), waits = begun.turn.inbox_ids, scene.accept("steered")
        again, new = (MessageDraft(role=USER, content="x", timestamp=1, inbox_id=each) for each in (mine, waits))

        for drafts in ((again,), (saying("fine"), again), (new, new)):
            for write in (scene.append, scene.finish):
                with pytest.raises(IllegalMessage):
                    write(begun, *drafts)

        assert scene.texts(entry.lineage_id) == ["hello"]
        assert scene.lineage(entry.lineage_id).version == begun.version
        scene.append(begun, new)

    def test_a_row_keeps_all_its_fields(self, scene: Scene) -> None:
        entry = scene.enter()
        draft = MessageDraft(
            role=ASSISTANT,
            content="content",
            timestamp=123,
            sent="sent",
            tool_calls=(ToolCall(id="c1", name="look", arguments='{"a": [1, "ü"]', effect="read"),),
            token_count=7,
            finish_reason="tool_calls",
            reasoning="because",
            kind="note",
            attachments=(Attachment(kind="image", name="a.png", media_type="image/png", size=3, sha256="ab"),),
        )
        begun = scene.ask(entry)

        scene.append(begun, draft)

        row = scene.rows(entry.lineage_id)[-1]
        for field in (
            *("role", "content", "timestamp", "sent", "tool_calls", "token_count", "finish_reason", "reasoning"),
            *("kind", "attachments", "tool_call_id", "tool_name", "inbox_id"),
        ):
            assert getattr(row, field) == getattr(draft, field), field
        assert (row.turn_id, row.hidden) == (begun.turn.id, False)

    def test_rows_are_ordered_by_storing_never_by_time(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        for number, at in enumerate((500, 100, 300, 100)):
            scene.append(begun, saying(str(number), at=at))

        assert scene.texts(entry.lineage_id) == ["hello", "0", "1", "2", "3"]
        assert [row.timestamp for row in scene.rows(entry.lineage_id)[1:]] == [500, 100, 300, 100]
        assert [row.content for row in store.last_messages(entry.lineage_id, ALL, count=2)] == ["2", "3"]

    def test_ids_grow_over_all_lineages_and_are_never_used_again(self, scene: Scene) -> None:
        from hermes_hookspecs.operations import Delete

        first, second = scene.enter(), scene.enter(OTHER_KEY)
        scene.talk(first)
        scene.talk(second)
        gone = [row.id for row in scene.rows(second.lineage_id)]
        scene.run(Delete(lineage_id=second.lineage_id, now=scene.now))

        scene.talk(first)

        ids = [row.id for row in scene.rows(first.lineage_id)]
        assert ids == sorted(ids)
        assert ids[-2] > max(gone)

    def test_rows_are_read_in_pages(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "0")
        scene.append(begun, *(saying(str(number)) for number in range(1, 6)))
        seen: list[str] = []
        after: MessageId | None = None

        while page := store.messages(entry.lineage_id, ALL, after=after, limit=2):
            seen += [row.content for row in page]
            after = page[-1].id

        assert seen == ["0", "1", "2", "3", "4", "5"]

    def test_rows_of_one_segment_are_read(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)

        mine = store.messages(entry.lineage_id, ALL, session_id=entry.session_id)

        assert mine == scene.rows(entry.lineage_id)
        assert store.messages(entry.lineage_id, ALL, session_id=SessionId("other")) == ()
        assert len(store.last_messages(entry.lineage_id, ALL, count=9, session_id=entry.session_id)) == 2

    @pytest.mark.parametrize(("count", "found"), [(0, 0), (1, 1), (2, 2), (3, 2)])
    def test_the_last_rows_are_read(self, store: Store, scene: Scene, count: int, found: int) -> None:
        entry = scene.enter()
        scene.talk(entry)

        assert (
            store.last_messages(entry.lineage_id, ALL, count=count) == tuple(scene.rows(entry.lineage_id))[2 - found :]
        )

    def test_the_preview_is_the_first_thing_the_user_said(self, scene: Scene) -> None:
        entry = scene.enter()

        scene.talk(entry, "first\n\n  " + "x" * 200)
        scene.talk(entry, "second")

        assert scene.lineage(entry.lineage_id).preview == "first " + "x" * 74

    def test_a_scan_finds_rows_that_hold_every_needle(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "Where is the log file?", "查看日志 in /var/log")
        scene.talk(entry, "thanks", "the LOG is yours")

        def found(*needles: str, limit: int = 20) -> list[str]:
            return [row.content for row in store.scan(needles, ALL, limit=limit)]

        assert found("log") == ["the LOG is yours", "查看日志 in /var/log", "Where is the log file?"]
        assert found("log", limit=1) == ["the LOG is yours"]
        assert found("LOG", "the") == ["the LOG is yours", "Where is the log file?"]
        assert found("日志") == ["查看日志 in /var/log"]
        assert found("log", "") == found("log")
        assert (found(), found(""), found("nothing")) == ([], [], [])

    @pytest.mark.parametrize("needle", ["%", "_", "*", '"', "'", "100%", "\\"])
    def test_punctuation_is_text_for_a_scan(self, store: Store, scene: Scene, needle: str) -> None:
        entry = scene.enter()
        scene.talk(entry, "plain text", f"before{needle}after")

        assert [row.content for row in store.scan([needle], ALL)] == [f"before{needle}after"]

    def test_a_scan_folds_ascii_letters_only(self, store: Store, scene: Scene) -> None:
        scene.talk(scene.enter(), "ÄRGER", "straße")

        assert store.scan(["ärger"], ALL) == ()
        assert store.scan(["STRASSE"], ALL) == ()
        assert len(store.scan(["STRAßE"], ALL)) == 1

    def test_a_scan_leaves_out_tools_and_one_lineage(self, store: Store, scene: Scene) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY)
        begun = scene.ask(first, "needle")
        scene.append(begun, asking("c1"))
        scene.append(begun, result("c1", "needle in a tool"))
        scene.talk(second, "needle")

        assert len(store.scan(["needle"], ALL)) == 2
        assert [row.lineage_id for row in store.scan(["needle"], ALL, exclude=second.lineage_id)] == [first.lineage_id]


class AccessTests(StoreFixtures):
    """What a principal may not see is not there."""

    def test_a_stranger_sees_nothing_of_a_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "secret")
        from hermes_hookspecs.operations import Rename

        scene.run(Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now))

        for stranger in (Principal(), principal_of(source_at(user="ou_2", chat="oc_2"), shared=False)):
            assert store.lineage(entry.lineage_id, stranger) is None
            assert store.session(entry.session_id, stranger) is None
            assert store.segments(entry.lineage_id, stranger) == ()
            assert store.lineages_by_title("plan", stranger) == ()
            assert store.sessions_by_prefix(entry.session_id[:4], stranger) == ()
            assert store.summaries(stranger) == ()
            assert store.summary(entry.lineage_id, stranger) is None
            assert store.messages(entry.lineage_id, stranger) == ()
            assert store.messages(entry.lineage_id, stranger, session_id=entry.session_id) == ()
            assert store.last_messages(entry.lineage_id, stranger, count=5) == ()
            assert store.scan(["secret"], stranger) == ()
            assert store.turns(entry.lineage_id, stranger) == ()

    def test_an_owner_sees_its_own_and_nothing_else(self, store: Store, scene: Scene) -> None:
        mine, other = scene.enter(), scene.enter(OTHER_KEY, source_at("oc_2", "ou_2"))
        scene.talk(mine, "needle")
        scene.talk(other, "needle")
        me = principal_of(source_at(), shared=False)

        assert [each.lineage_id for each in store.summaries(me)] == [mine.lineage_id]
        assert [row.lineage_id for row in store.scan(["needle"], me)] == [mine.lineage_id]
        assert store.lineage(mine.lineage_id, me) == store.lineage(mine.lineage_id, ALL)
        assert [each.id for each in store.segments(mine.lineage_id, me)] == [mine.session_id]
        assert len(store.messages(mine.lineage_id, me)) == 2
        assert len(store.turns(mine.lineage_id, me)) == 1

    @pytest.mark.parametrize("field", ["profile", "platform", "account_id", "scope_id", "user_id"])
    def test_owners_that_differ_in_one_part_are_strangers(self, store: Store, scene: Scene, field: str) -> None:
        entry = scene.enter(source=source_at(scope_id="T1"))
        other = source_at(scope_id="T1", **{} if field == "scope_id" else {field: "other"})
        if field == "scope_id":
            other = source_at(scope_id="other")

        stranger = Principal(owners=frozenset({owner_of(other, shared=False)}))

        assert store.lineage(entry.lineage_id, stranger) is None

    def test_a_shared_room_is_not_the_person(self, store: Store, scene: Scene) -> None:
        where = source_at(chat_type="group")
        room = scene.enter(source=where, shared=True, owner=owner_of(where, shared=True))
        person = scene.enter(OTHER_KEY, where)

        def seen(principal: Principal) -> list[str]:
            return [each.lineage_id for each in store.summaries(principal)]

        assert seen(principal_of(where, shared=True)) == [room.lineage_id]
        assert seen(principal_of(where, shared=False)) == [person.lineage_id, room.lineage_id]
        assert seen(principal_of(source_at(), shared=False)) == [person.lineage_id]
        assert scene.lineage(room.lineage_id).shared

    def test_access_applies_before_the_limit(self, store: Store, scene: Scene) -> None:
        mine = scene.enter()
        scene.talk(mine, "needle")
        for number in range(4):
            scene.clock.advance(1)
            other = scene.enter(key_of(str(number)), source_at(user="ou_2", chat=str(number)))
            scene.talk(other, "needle")
        me = principal_of(source_at(), shared=False)

        assert [each.lineage_id for each in store.summaries(me, limit=1)] == [mine.lineage_id]
        assert [row.lineage_id for row in store.scan(["needle"], me, limit=1)] == [mine.lineage_id]
        assert [each.id for each in store.sessions_by_prefix("2", me, limit=1)] == [mine.session_id]

    def test_what_does_not_exist_is_not_there_for_the_operator_either(self, store: Store) -> None:
        nowhere = LineageId("L-nowhere")

        assert store.lineage(nowhere, ALL) is None
        assert store.session(SessionId("nowhere"), ALL) is None
        assert store.messages(nowhere, ALL) == ()
        assert store.segments(nowhere, ALL) == ()
