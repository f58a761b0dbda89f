"""Files that an answer brings to a terminal: where they are put, and how that is said."""

from __future__ import annotations

import json
import os
from functools import partial

import attrs
import pytest

from hermes_cli.received import received
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource

CHART, REPORT = OutgoingFile(name="chart.png", data=b"PNG"), OutgoingFile(name="report.pdf", data=b"PDF")


class Bringing:
    name, model = "bringing", None

    async def run(self, turn):
        files = [await turn.outgoing.add(one) for one in (CHART, REPORT)]
        yield AssistantStep(content="there they are", files=tuple(files))


@pytest.fixture
def asked(app, hermes, monkeypatch):
    monkeypatch.setattr(app, "ask_async", partial(app.ask_async, agent=Bringing()))
    return partial(hermes, "chat", "-q", "draw it")


@pytest.fixture
def result(app):
    return app.ask("draw it", SessionSource(platform="cli", chat_id="t", user_id="me"), agent=Bringing())


def paths(ran):
    return [line.removeprefix("file: ") for line in ran.err.splitlines() if line.startswith("file: ")]


def test_a_terminal_says_where_files_are(app, asked):
    ran = asked()

    assert (ran.status, ran.out) == (0, "there they are\n")
    chart, report = paths(ran)
    assert (os.path.basename(chart), os.path.basename(report)) == ("chart.png", "report.pdf")
    assert chart.startswith(os.path.join(os.path.abspath(app.home), "files"))
    for path, file in ((chart, CHART), (report, REPORT)):
        with open(path, "rb") as put:
            assert put.read() == file.data
        assert os.stat(path).st_mode & 0o777 == 0o600


def test_json_names_files_and_where_they_are(asked):
    said = json.loads(asked("--json").out)

    assert [(one["name"], one["media_type"], one["size"]) for one in said["files"]] == [
        ("chart.png", "image/png", 3),
        ("report.pdf", "application/pdf", 3),
    ]
    assert all(os.path.exists(one["path"]) for one in said["files"])


def test_the_same_file_again_is_one_and_another_of_its_name_gets_a_number(app, result):
    first = received(result, app)
    again = received(result, app)
    number = app.attachments.put(b"other")
    other = attrs.evolve(result.files[0], sha256=number, size=5)
    (third,) = received(attrs.evolve(result, files=(other,)), app)

    assert first == again
    assert os.path.basename(third.path) == "chart (2).png"
    assert os.path.dirname(third.path) == os.path.dirname(first[0].path)


def test_bytes_that_are_gone_are_said(app, result):
    gone = Attachment(kind="document", name="old.pdf", size=4, sha256="0" * 64)

    (one,) = received(attrs.evolve(result, files=(gone,)), app)

    assert one.line == "file: [old.pdf, 4 bytes: it is not kept any more]"


def test_bytes_that_cannot_be_read_are_said(app, result):
    number = result.files[0].sha256
    path = os.path.join(app.attachments.folder, number[:2], number, "bytes")
    os.unlink(path)
    os.mkdir(path)

    (one, _) = received(result, app)

    assert one.line == "file: [chart.png, 3 bytes: it cannot be read now]"


@pytest.mark.parametrize("name", ["../../evil.sh", "/etc/cron.d/evil", ".bashrc", "a\x1b[2Jb.txt"])
def test_no_name_leads_out_of_the_folder(app, result, name):
    file = attrs.evolve(result.files[0], name=name)

    (one,) = received(attrs.evolve(result, files=(file,)), app)

    folder = os.path.join(os.path.abspath(app.home), "files", result.turn.session_id)
    assert os.path.dirname(one.path) == folder
    assert not os.path.basename(one.path).startswith(".")
    assert "\x1b" not in one.path


def test_a_folder_that_cannot_be_written_is_said_and_the_answer_stands(app, result):
    with open(os.path.join(os.path.abspath(app.home), "files"), "wb"):
        pass

    lines = [one.line for one in received(result, app)]

    assert all("could not be written" in line for line in lines)
