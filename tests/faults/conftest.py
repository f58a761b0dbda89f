"""The harness stands beside the tests as a package; programs that the tests start find it the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))


@pytest.fixture
def harness(tmp_path):
    """Return a function that runs ``python -m fault_harness`` with these arguments; gives the finished process."""

    def run(*arguments, timeout_s=240):
        path = os.pathsep.join([str(FOLDER), *filter(None, sys.path)])
        return subprocess.run(
            [sys.executable, "-m", "fault_harness", "--folder", str(tmp_path), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=os.environ | {"PYTHONPATH": path},
        )

    return run
