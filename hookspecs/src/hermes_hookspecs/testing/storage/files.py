"""Files of an answer: stored with it, in order, and each the part that it became."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.operations import SplitDelivery
from hermes_hookspecs.outbox import FAILED, SENT, PartDraft
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import asking, result, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["FileTests"]

CHART = Attachment(kind="image", name="chart.png", media_type="image/png", size=7, sha256="a" * 64)
REPORT = Attachment(kind="document", name='报告 "1".pdf', media_type="application/pdf", size=0, sha256="b" * 64)


class FileTests(StoreFixtures):
    """What goes along with a text is as durable as the text."""

    def test_the_files_of_an_answer_are_stored_with_the_end_of_its_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        draft = scene.delivering("there they are", key="k1", lineage_id=entry.lineage_id, files=(REPORT, CHART))

        scene.finish(begun, saying("there they are"), deliveries=(draft,))

        stored = store.delivery_by_key("k1")
        assert stored is not None
        assert stored.files == (REPORT, CHART)
        assert store.deliveries() == store.next_deliveries((Entrance("feishu"),)) == (stored,)

    def test_files_need_no_text(self, scene: Scene) -> None:
        stored = scene.delivery(scene.deliver("", files=(CHART,)))

        assert (stored.text, stored.files) == ("", (CHART,))

    def test_a_known_key_keeps_its_files(self, scene: Scene) -> None:
        first = scene.deliver(key="k1", files=(CHART,))

        assert scene.deliver(key="k1", files=(REPORT,)) == first

        assert scene.delivery(first).files == (CHART,)

    def test_a_part_is_the_file_that_it_was_split_as(self, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(files=(CHART, REPORT)))
        drafts = (PartDraft(text="answer"), PartDraft(text="[a]", file=CHART), PartDraft(text="[b]", file=REPORT))

        parts = scene.run(SplitDelivery(delivery_id=claimed.id, attempt=claimed.attempt, parts=drafts, now=scene.now))

        assert [part.file for part in parts] == [None, CHART, REPORT]
        assert len({part.key for part in parts}) == 3
        assert scene.delivery(claimed.id) == attrs.evolve(claimed, parts=tuple(parts))

    def test_files_stay_through_failure_and_retry(self, scene: Scene) -> None:
        delivery_id = scene.deliver(files=(CHART,))
        claimed = scene.claim(delivery_id)
        drafts = (PartDraft(text="answer"), PartDraft(text="[a]", file=CHART))
        scene.run(SplitDelivery(delivery_id=delivery_id, attempt=claimed.attempt, parts=drafts, now=scene.now))
        scene.mark(claimed, 0)
        assert scene.fail(claimed).status == FAILED

        scene.retry(delivery_id)
        again = scene.claim(delivery_id)
        assert [(part.file, part.sent_at is None) for part in again.parts] == [(None, False), (CHART, True)]
        sent = scene.mark(again, 1)

        assert (sent.status, sent.files, sent.parts[1].file) == (SENT, (CHART,), CHART)

    def test_what_a_tool_or_an_agent_handed_over_stands_in_its_row(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.append(begun, attrs.evolve(result("c1"), attachments=(CHART,)))

        scene.finish(begun, attrs.evolve(saying("there"), attachments=(REPORT,)))

        assert [row.attachments for row in scene.rows(entry.lineage_id)] == [(), (), (CHART,), (REPORT,)]
