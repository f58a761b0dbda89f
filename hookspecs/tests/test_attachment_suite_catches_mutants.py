"""The suite of attachment stores is worth something: each planted fault is caught by the test that is about it."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's folder")

from hermes_core.context.attachments import AttachmentFolder
from hermes_hookspecs.testing.attachments import AttachmentStoreSuite

SUITE = """
import pytest
import planted

class TestMutant(planted.suite):
    most_bytes = 1000

    @pytest.fixture
    def files(self, tmp_path):
        return planted.mutant(str(tmp_path / "attachments"), most_bytes=1000)
"""


class TrustsNames(AttachmentFolder):
    """Opens whatever it is asked for."""

    def get(self, sha256):
        path = os.path.join(self.folder, sha256.replace("\0", ""))
        if not os.path.isfile(path):
            return super().get(sha256)
        with open(path, "rb") as file:
            return file.read()


class TakesAll(AttachmentFolder):
    def __init__(self, folder, *, most_bytes):
        super().__init__(folder)


class DropsForAll(AttachmentFolder):
    """Forgets that others refer to the same bytes."""

    def drop(self, lineage_id):
        return super().drop(lineage_id) + self.sweep(lambda _: False, older_than_s=-1)


class KeepsNothing(AttachmentFolder):
    def keep(self, sha256s, lineage_id):
        return None


class SweepsTheYoung(AttachmentFolder):
    def sweep(self, lives, *, older_than_s):
        return super().sweep(lives, older_than_s=-1)


class SweepsTheUnreferredOnly(AttachmentFolder):
    def sweep(self, lives, *, older_than_s):
        return super().sweep(lambda _: True, older_than_s=older_than_s)


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        (TrustsNames, "test_a_name_that_is_none_of_its_hashes_has_no_bytes"),
        (TakesAll, "test_too_many_bytes_are_refused_and_nothing_is_written"),
        (DropsForAll, "test_bytes_go_with_the_last_lineage_that_refers_to_them"),
        (KeepsNothing, "test_what_was_put_for_nobody_is_kept_for_whoever_refers_to_it_later"),
        (SweepsTheYoung, "test_a_sweep_leaves_alone_what_is_young"),
        (SweepsTheUnreferredOnly, "test_a_sweep_takes_what_is_referred_to_by_nobody_alive"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_planted_fault_is_caught(run_suite, mutant, test):
    fates = run_suite(SUITE, only=test, suite=AttachmentStoreSuite, mutant=mutant)

    assert {name.partition("[")[0] for name in fates.failed} == {test}


def test_the_folder_itself_is_not_caught(run_suite):
    assert run_suite(SUITE, only="bytes", suite=AttachmentStoreSuite, mutant=AttachmentFolder).failed == []
