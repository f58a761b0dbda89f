"""What comes with a message is fetched before its turn: within bounds, again after a kill, never twice in vain."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from hashlib import sha256

import attrs
import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import Rejected, RetryLater, StoreFull
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.operations import Withdraw
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.agents import Gate
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 30
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
CAT = b"\x89PNG a cat"
QUICK = {"attachments.fetch_retry_s": 0, "inbox.batch_window_s": 0}


class Platform(RecordingSender):
    """A platform that answers each reference with what stands in its list: pieces of bytes, or an error."""

    def __init__(self, **answers):
        super().__init__()
        self.answers = {name: list(one) for name, one in answers.items()}
        self.asked = []
        self.closed = 0

    async def fetch(self, attachment, source):
        self.asked.append((attachment.reference, source.chat_id))
        answers = self.answers[attachment.reference]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        try:
            for piece in answer if isinstance(answer, list) else [answer]:
                if isinstance(piece, BaseException):
                    raise piece
                if isinstance(piece, Gate):
                    await piece.pass_through()
                    continue
                yield piece
        finally:
            self.closed += 1


def picture(reference="img", kind="image", **fields):
    return Attachment(kind=kind, reference=reference, **fields)


def event(*attachments, text="look", number=1, **fields):
    return MessageEvent(
        source=SOURCE, text=text, attachments=attachments, received_at=number, identities=(f"om_{number}",), **fields
    )


class Hall:
    """A profile that is served with one platform; ``turns`` has the attachments of each turn and their bytes."""

    def __init__(self, app, platform):
        self.app, self.platform, self.turns, self.heard = app, platform, [], threading.Event()

    def agent(self, turn):
        self.turns.append([(one.text, turn.files.get(one.sha256)) for one in turn.attachments])
        self.heard.set()
        return "seen"

    async def serve(self, **options):
        served = ServedEntrance(entrance=Entrance("feishu"), sender=self.platform)
        async with asyncio.timeout(PATIENCE_S):
            await self.app.work([served], agent=self.agent, **options)

    def hear(self, *events):
        async def run():
            await self.app.accept(events)
            await self.serve(until_idle=True)

        asyncio.run(run())
        return self.turns


@pytest.fixture
def hall(profile):
    """Return a function that opens a served profile, with settings by dotted name."""

    def hall(platform, **settings):
        named = {name.replace("__", "."): value for name, value in settings.items()}
        return Hall(profile(QUICK | named), platform)

    return hall


def test_the_bytes_are_there_when_the_turn_begins(hall):
    served = hall(Platform(img=[[CAT[:4], CAT[4:]]]))

    (seen,) = served.hear(event(picture()))

    name = sha256(CAT).hexdigest()
    assert seen == [(f"[image, {len(CAT)} bytes, sha256 {name[:16]}]", CAT)]
    assert served.platform.asked == [("img", "oc_1")]
    row = served.app.store.messages(served.app.get_or_create_session(SOURCE).lineage_id, operator())[0]
    assert (row.attachments[0].sha256, row.attachments[0].size) == (name, len(CAT))


def test_several_are_fetched_and_stand_in_their_order(hall):
    served = hall(Platform(a=[b"first"], b=[b"second"]))

    (seen,) = served.hear(event(picture("a"), Attachment(kind="document", text="[a card]"), picture("b")))

    assert [data for _, data in seen] == [b"first", None, b"second"]


def test_what_fails_for_now_is_fetched_again(hall):
    answers = [RetryLater("busy", after_s=0), OSError("gone"), CAT]
    served = hall(Platform(img=answers))

    (seen,) = served.hear(event(picture()))

    assert seen[0][1] == CAT
    assert len(served.platform.asked) == 3


@pytest.mark.parametrize(
    ("answer", "tries"), [(Rejected("expired"), 1), (OSError("gone"), 3), (RetryLater("busy", after_s=0), 3), ("?", 3)]
)
def test_a_message_is_answered_without_what_cannot_be_had(hall, answer, tries, caplog):
    served = hall(Platform(img=[answer]))

    (seen,) = served.hear(event(picture("img", name="cat.png")))

    assert seen == [("[image, “cat.png”, not available]", None)]
    assert len(served.platform.asked) == tries
    assert "img" not in caplog.text


def test_a_platform_that_hangs_is_left(hall):
    served = hall(Platform(img=[[b"half", Gate()]]), attachments__fetch_timeout_s=0.01, attachments__fetch_attempts=2)

    (seen,) = served.hear(event(picture()))

    assert seen == [("[image, not available]", None)]
    assert served.platform.closed == 2


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [((10,), [True]), ((11,), [False]), ((10, 5), [True, True]), ((10, 6), [True, False])],
)
@pytest.mark.parametrize("told", [False, True])
def test_more_bytes_than_there_may_be_are_not_taken(hall, sizes, taken, told):
    platform = Platform(**{f"r{number}": [[b"x"] * size] for number, size in enumerate(sizes)})
    served = hall(platform, attachments__max_bytes=10, attachments__max_message_bytes=15)
    pictures = [picture(f"r{number}", size=size if told else None) for number, size in enumerate(sizes)]

    (seen,) = served.hear(event(*pictures))

    assert sorted((data is not None for _, data in seen), reverse=True) == taken
    assert all("not taken: more than" in text for text, data in seen if data is None)


def test_a_kind_that_is_not_wanted_is_not_fetched(hall):
    served = hall(Platform(img=[CAT]), attachments__kinds=["document"])

    (seen,) = served.hear(event(picture()))

    assert seen == [("[image, not taken: attachments.kinds leaves it out]", None)]
    assert served.platform.asked == []


def test_what_a_failed_try_had_is_not_counted_against_the_message(hall):
    served = hall(
        Platform(img=[[b"x" * 10, OSError("cut")], b"x" * 10]),
        attachments__max_bytes=10,
        attachments__max_message_bytes=15,
    )

    (seen,) = served.hear(event(picture()))

    assert seen[0][1] == b"x" * 10


def test_an_entrance_whose_adapter_does_not_fetch_answers_without(hall):
    served = hall(RecordingSender())

    assert served.hear(event(picture())) == [[("[image, not available]", None)]]


def test_a_message_that_is_taken_back_while_its_picture_comes_is_not_answered(hall):
    gate = Gate()
    served = hall(Platform(img=[[gate, CAT]]))

    async def run():
        (taken,) = await served.app.accept([event(picture())])
        serving = asyncio.create_task(served.serve())
        await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
        await served.app.store.perform(Withdraw(ids=(taken.id,), now=2))
        gate.open()
        await served.app.accept([event(text="another", number=2)])
        await asyncio.to_thread(served.heard.wait, PATIENCE_S)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))

    assert served.turns == [[]]


def test_a_full_disk_is_no_reason_to_answer_without(hall, monkeypatch):
    served = hall(Platform(img=[CAT]))
    kept, failures = served.app.attachments.put, [StoreFull("no space left")]

    def put(data, **options):
        if failures:
            raise failures.pop()
        return kept(data, **options)

    monkeypatch.setattr(served.app.attachments, "put", put)
    monkeypatch.setattr("hermes_core.turns.worker._AFTER_FAULT_S", 0)

    assert served.hear(event(picture()))[0][0][1] == CAT
    assert len(served.platform.asked) == 2


# ------------------------------------------------------------------ kills


PROGRAM = """
import asyncio, sys
from hermes_core import open_app
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

class Platform(RecordingSender):
    async def fetch(self, attachment, source):
        print("fetched", flush=True)
        yield bytes.fromhex(sys.argv[2])

def agent(turn):
    (one,) = turn.attachments
    print("turn", turn.files.get(one.sha256) == bytes.fromhex(sys.argv[2]), flush=True)
    return "seen"

with open_app(sys.argv[1], plugins=False, environ={}) as app:
    served = ServedEntrance(entrance=Entrance("feishu"), sender=Platform())
    asyncio.run(app.work([served], agent=agent, until_idle=True))
"""


@pytest.mark.parametrize(
    ("point", "again"), [("fetch.stored", ["fetched"]), ("fetch.marked", []), ("begin.before", [])]
)
def test_a_kill_between_two_steps_loses_nothing(tmp_path, point, again):
    home = tmp_path / "home"
    with open_app(home, plugins=False, environ={}) as app:
        asyncio.run(app.accept([event(picture())]))

    def run(**fault):
        paths = os.pathsep.join(filter(None, sys.path))
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, str(home), CAT.hex()],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=os.environ | fault | {"PYTHONPATH": paths},
        )

    killed = run(HERMES_FAULT_POINTS=f"{point}:kill")
    done = run()

    assert (killed.returncode, killed.stdout.split()) == (-signal.SIGKILL, ["fetched"])
    assert (done.returncode, done.stdout.splitlines()) == (0, [*again, "turn True"])
    assert len(list((home / "attachments").glob("*/*/bytes"))) == 1


def test_a_message_that_is_tried_again_is_not_fetched_again(hall):
    served = hall(Platform(img=[CAT]))
    served.hear(event(picture()))
    item = served.app.store.inbox_item(1)

    assert item.attachments == (attrs.evolve(picture(), sha256=sha256(CAT).hexdigest(), size=len(CAT)),)
    assert len(served.platform.asked) == 1


@pytest.mark.parametrize("text", ["look", ""])
def test_a_retry_says_the_message_with_its_files_and_fetches_none_again(hall, text):
    served = hall(Platform(img=[CAT]))

    first, again = served.hear(event(picture(), text=text), event(text="/retry", number=2))

    assert first == again
    assert first[0][1] == CAT
    assert len(served.platform.asked) == 1


def test_a_retry_fetches_what_could_not_be_had_before(hall):
    served = hall(Platform(img=[Rejected("expired"), CAT]))

    first, again = served.hear(event(picture()), event(text="/retry", number=2))

    assert (first[0][1], again[0][1]) == (None, CAT)
