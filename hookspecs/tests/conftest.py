"""Runs a suite of the kit on something planted, inside the running pytest, and says what became of its tests."""

from __future__ import annotations

import os
import sys
import types
from itertools import count

import pytest

_numbers = count()

# What an inner run can do without, since only the fates of its tests are read: looking at each of these once for
# every mutant would take longer than the tests.
UNUSED = (
    "cacheprovider",
    "doctest",
    "faulthandler",
    "junitxml",
    "legacypath",
    "logging",
    "pastebin",
    "pytester",
    "setuponly",
    "setupplan",
    "stepwise",
    "threadexception",
    "unraisableexception",
)
OPTIONS = ("-q", "-x", "--no-header", "--tb=no", "--assert=plain", "--import-mode=importlib")
OPTIONS += tuple(f"-pno:{name}" for name in UNUSED)


class Fates:
    """Counts what became of the tests of an inner run."""

    def __init__(self):
        self.passed, self.failed = [], []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.outcome in {"passed", "failed"}:
            getattr(self, report.outcome).append(report.nodeid.rpartition("::")[2])


@pytest.fixture
def run_suite(tmp_path, monkeypatch):
    """Return a function that runs a test file to its first failure; it finds ``things`` in its module ``planted``.

    ``only`` is the name of the one test to run, with all its parameters.
    """

    def run(source, *, only=None, **things):
        planted = types.ModuleType("planted")
        vars(planted).update(things)
        monkeypatch.setitem(sys.modules, "planted", planted)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name in ("CI", "BUILD_NUMBER"):  # there pytest diffs whole stores for an assertion that is to fail
            monkeypatch.delenv(name, raising=False)
        # a second module of one name would be the first one again
        file = tmp_path / f"test_planted_{next(_numbers)}.py"
        file.write_text(source, encoding="utf-8")
        fates = Fates()
        chosen = [] if only is None else ["-k", only]
        # without the last of them pytest would look through every folder above the file
        places = ["-c", os.devnull, "--rootdir", str(tmp_path), "--confcutdir", str(tmp_path)]
        pytest.main([*OPTIONS, *chosen, *places, str(file)], plugins=[fates])
        return fates

    return run


SUITE = """
import pytest
import planted

class TestMutant(planted.part):
    durable = False

    @pytest.fixture
    def store(self):
        store = planted.mutant()
        yield store
        store.close()

    @pytest.fixture
    def another_store(self):
        return planted.mutant()
"""


@pytest.fixture
def run_mutant(run_suite):
    """Return a function that runs a part of the storage suite on a store with a planted fault.

    The fault is a class of stores, or what runs which operations of the in-memory store: operation -> handler.
    """
    from hermes_core.storage.memory import MemoryStore

    def run(fault, part, *, only=None):
        if isinstance(fault, type):
            return run_suite(SUITE, only=only, mutant=fault, part=part)

        class Mutant(MemoryStore):
            def __init__(self):
                super().__init__()
                self._run = dict(self._run) | fault

        return run_suite(SUITE, only=only, mutant=Mutant, part=part)

    return run
