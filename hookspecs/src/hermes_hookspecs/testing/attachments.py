"""The suite of an attachment store: bytes come back as they went in, as long as somebody refers to them.

Give it an empty store::

    class TestMyBytes(AttachmentStoreSuite):
        @pytest.fixture
        def files(self, tmp_path):
            return MyStore(tmp_path)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import AttachmentRefused
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.testing.completeness import CompleteSuite

if TYPE_CHECKING:
    from hermes_hookspecs.ports.services import AttachmentStore

__all__ = ["AttachmentStoreSuite"]

ONE, OTHER = LineageId("20260101_000000_aaaaaa"), LineageId("../../etc/passwd\0\n")
PICTURE, LETTER = b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"dear all"
ABSENT = "0" * 64


class AttachmentStoreSuite(CompleteSuite):
    """What every attachment store does. ``most_bytes``: the most that it takes at once, ``None`` to leave that out."""

    most_bytes: int | None = None

    @pytest.fixture
    def files(self) -> AttachmentStore:
        """Return an empty store."""
        raise NotImplementedError("give the suite a store")

    # --- bytes

    @pytest.mark.parametrize("data", [PICTURE, LETTER, b""], ids=["picture", "letter", "nothing"])
    def test_bytes_come_back_under_their_hash(self, files: AttachmentStore, data: bytes) -> None:
        name = files.put(data, lineage_id=ONE)

        assert name == sha256(data).hexdigest()
        assert files.get(name) == data

    @pytest.mark.parametrize("name", [ABSENT, "", "lock", "../lock", "A" * 64, "zz", f"{'0' * 64}\0"])
    def test_a_name_that_is_none_of_its_hashes_has_no_bytes(self, files: AttachmentStore, name: str) -> None:
        files.put(LETTER, lineage_id=ONE)

        assert files.get(name) is None

    def test_the_same_bytes_are_stored_once_however_many_put_them(self, files: AttachmentStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            names = set(pool.map(lambda _: files.put(PICTURE, lineage_id=ONE), range(8)))

        assert names == {sha256(PICTURE).hexdigest()}
        assert files.drop(ONE) == 1

    def test_too_many_bytes_are_refused_and_nothing_is_written(self, files: AttachmentStore) -> None:
        if self.most_bytes is None:
            pytest.skip("the store states no limit")
        data = bytes(self.most_bytes + 1)

        with pytest.raises(AttachmentRefused):
            files.put(data, lineage_id=ONE)

        assert files.get(sha256(data).hexdigest()) is None
        assert files.get(files.put(data[1:], lineage_id=ONE)) == data[1:]

    # --- references

    def test_bytes_go_with_the_last_lineage_that_refers_to_them(self, files: AttachmentStore) -> None:
        name = files.put(PICTURE, lineage_id=ONE)
        files.put(PICTURE, lineage_id=OTHER)
        letter = files.put(LETTER, lineage_id=OTHER)

        assert files.drop(ONE) == 0
        assert files.get(name) == PICTURE
        assert files.drop(OTHER) == 2
        assert (files.get(name), files.get(letter)) == (None, None)

    def test_dropping_twice_or_a_stranger_drops_nothing(self, files: AttachmentStore) -> None:
        files.put(PICTURE, lineage_id=ONE)

        assert files.drop(OTHER) == 0
        assert files.drop(ONE) == 1
        assert files.drop(ONE) == 0

    def test_what_was_put_for_nobody_is_kept_for_whoever_refers_to_it_later(self, files: AttachmentStore) -> None:
        name = files.put(LETTER)
        files.keep([name, ABSENT, "../lock"], ONE)
        files.keep([name], ONE)

        assert files.sweep(lambda _: True, older_than_s=-1) == 0
        assert files.get(name) == LETTER
        assert files.drop(ONE) == 1

    def test_what_went_may_come_again(self, files: AttachmentStore) -> None:
        files.put(LETTER, lineage_id=ONE)
        files.drop(ONE)

        assert files.get(files.put(LETTER, lineage_id=ONE)) == LETTER

    # --- sweeping

    def test_a_sweep_takes_what_is_referred_to_by_nobody_alive(self, files: AttachmentStore) -> None:
        left, forgotten, kept = (
            files.put(b"left"),
            files.put(b"gone", lineage_id=OTHER),
            files.put(b"k", lineage_id=ONE),
        )

        assert files.sweep(lambda lineage_id: lineage_id == ONE, older_than_s=-1) == 2
        assert [files.get(name) for name in (left, forgotten, kept)] == [None, None, b"k"]

    def test_a_sweep_leaves_alone_what_is_young(self, files: AttachmentStore) -> None:
        name = files.put(LETTER)

        assert files.sweep(lambda _: False, older_than_s=3600) == 0
        assert files.get(name) == LETTER

    def test_an_empty_store_has_nothing_to_drop_or_sweep(self, files: AttachmentStore) -> None:
        assert files.drop(ONE) == 0
        assert files.sweep(lambda _: False, older_than_s=-1) == 0
