"""The stage stands beside the tests as a module; the other process that the tests start finds it the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STAGE = str(Path(__file__).resolve().parent / "stage")

if STAGE not in sys.path:
    sys.path.insert(0, STAGE)


@pytest.fixture(scope="module")
def elsewhere():
    """Return a function that has something said in another process, with other hashes; it gives what was sent."""
    process = subprocess.Popen(
        [sys.executable, "-m", "talking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([STAGE, *filter(None, sys.path)]), "PYTHONHASHSEED": "7"},
    )

    def say(**order):
        process.stdin.write(f"{json.dumps(order)}\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield say
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
