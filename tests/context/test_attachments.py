"""Bytes of attachments: the built-in folder passes the kit, survives kills and other processes, and lets nobody in."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from hashlib import sha256

import pytest

from hermes_core.context.attachments import AttachmentFolder, TurnFiles
from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.testing.attachments import AttachmentStoreSuite

PICTURE = b"\x89PNG" + bytes(200)
NAME = sha256(PICTURE).hexdigest()


class TestFolder(AttachmentStoreSuite):
    most_bytes = 1000

    @pytest.fixture
    def files(self, tmp_path):
        return AttachmentFolder(str(tmp_path / "attachments"), most_bytes=self.most_bytes)


@pytest.fixture
def files(tmp_path):
    return AttachmentFolder(str(tmp_path / "attachments"))


def everything(files):
    return [os.path.join(folder, name) for folder, _, names in os.walk(files.folder) for name in names]


def test_files_are_private_and_nothing_is_made_before_it_is_needed(files):
    assert files.get(NAME) is None
    assert files.drop("L1") == 0
    assert not os.path.exists(files.folder)

    files.put(PICTURE, lineage_id="L1")

    assert {stat.S_IMODE(os.stat(path).st_mode) for path in everything(files)} == {0o600}
    assert stat.S_IMODE(os.stat(files.folder).st_mode) == 0o700


def test_a_damaged_file_has_no_bytes_and_is_mended_by_the_next_put(files):
    files.put(PICTURE, lineage_id="L1")
    (path,) = [path for path in everything(files) if path.endswith("/bytes")]
    with open(path, "r+b") as file:
        file.write(b"XXXX")

    assert files.get(NAME) is None

    files.put(PICTURE, lineage_id="L1")

    assert files.get(NAME) == PICTURE


def test_a_half_written_file_is_never_read_and_is_swept(files):
    files.put(PICTURE)
    folder = os.path.dirname(next(path for path in everything(files) if path.endswith("/bytes")))
    os.rename(os.path.join(folder, "bytes"), os.path.join(folder, "part-12345"))  # as a kill before the rename has it

    assert files.get(NAME) is None
    files.sweep(lambda _: True, older_than_s=-1)

    assert everything(files) == [os.path.join(files.folder, "lock")]


def test_two_processes_that_put_and_drop_the_same_bytes_never_lose_what_is_referred_to(files):
    files.put(PICTURE, lineage_id="mine")
    script = (
        "import sys\n"
        "from hermes_core.context.attachments import AttachmentFolder\n"
        "files = AttachmentFolder(sys.argv[1])\n"
        "for n in range(40):\n"
        "    files.put(bytes.fromhex(sys.argv[2]), lineage_id=sys.argv[3])\n"
        "    assert files.get(sys.argv[4]) is not None\n"
        "    files.drop(sys.argv[3])\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", script, files.folder, PICTURE.hex(), name, NAME], env=os.environ)
        for name in ("one", "two")
    ]

    assert [other.wait(60) for other in others] == [0, 0]
    assert files.get(NAME) == PICTURE
    assert files.drop("mine") == 1


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "attachments").write_text("a file stands there")

    with pytest.raises(StorageError, match="could not be written"):
        AttachmentFolder(str(tmp_path / "attachments")).put(PICTURE, lineage_id="L1")


def test_bytes_that_cannot_be_read_now_are_not_gone(files):
    files.put(PICTURE, lineage_id="L1")
    path = os.path.join(files.folder, NAME[:2], NAME, "bytes")
    os.rename(path, f"{path}-aside")
    os.mkdir(path)

    with pytest.raises(StorageError, match="could not be read"):
        files.get(NAME)
    assert TurnFiles(files, [NAME]).get(NAME) is None, "a turn goes on without it"
    os.rmdir(path)
    os.rename(f"{path}-aside", path)
    assert files.get(NAME) == PICTURE


def test_a_turn_reads_what_its_window_names_and_nothing_else(files):
    other = files.put(b"somebody else's", lineage_id="L2")
    files.put(PICTURE, lineage_id="L1")
    reader = TurnFiles(files, [NAME])

    assert reader.get(NAME) == PICTURE
    assert reader.get(other) is None
    assert TurnFiles(None, [NAME]).get(NAME) is None
