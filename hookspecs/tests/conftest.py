"""Runs a suite of the kit on something planted, inside the running pytest, and says what became of its tests."""

from __future__ import annotations

import os
import sys
import types
from itertools import count

import pytest

_numbers = count()


class Fates:
    """Counts what became of the tests of an inner run."""

    def __init__(self):
        self.passed, self.failed = [], []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.outcome in {"passed", "failed"}:
            getattr(self, report.outcome).append(report.nodeid.rpartition("::")[2])


@pytest.fixture
def run_suite(tmp_path, monkeypatch):
    """Return a function that runs a test file to its first failure; it finds ``things`` in its module ``planted``."""

    def run(source, **things):
        planted = types.ModuleType("planted")
        vars(planted).update(things)
        monkeypatch.setitem(sys.modules, "planted", planted)
        # a second module of one name would be the first one again
        file = tmp_path / f"test_planted_{next(_numbers)}.py"
        file.write_text(source, encoding="utf-8")
        fates = Fates()
        options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull]
        pytest.main([*options, "--rootdir", str(tmp_path), str(file)], plugins=[fates])
        return fates

    return run
