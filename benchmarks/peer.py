"""The original, hermes-agent, in an environment of its own; it answers questions in lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import Timing

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Peer", "PeerMissing", "hire"]

_PACKAGE = "hermes-agent==0.19.0"
_HERE = Path(__file__).parent
_VENV = _HERE / ".peer"
_PYTHON = _VENV / "bin" / "python"


class PeerMissing(Exception):
    """The original cannot be installed here."""


def hire() -> Peer:
    """Return the original at work, installed first where it is not.

    :raises PeerMissing: it cannot be installed.
    """
    marker = _VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "hermes_state.py"
    if not marker.exists():
        sys.stderr.write(f"installing {_PACKAGE} into {_VENV}\n")
        if not _PYTHON.exists():
            venv.create(_VENV, with_pip=True)
        command = [str(_PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _PACKAGE]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise PeerMissing(said[-1] if said else f"pip ended with {done.returncode}")
    return Peer()


class Peer:
    """One process that has the original imported, and the folder that it may write to."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.home = Path(self._folder.name)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HERMES_"))}
        self._process = subprocess.Popen(
            [str(_PYTHON), str(_HERE / "peer_worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment | {"HERMES_HOME": str(self.home)},
        )

    def ask(self, what: str, **details: object) -> object:
        """Let it do something and return its answer.

        :raises RuntimeError: it failed, or it has died.
        """
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the original has no pipes")
        self._process.stdin.write(json.dumps({"do": what} | details) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the original died over {what}")
        found: dict[str, object] = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"the original could not {what}: {found['error']}")
        return found["answer"]

    def timing(self, what: str, **details: object) -> Timing:
        """Let it do something many times and return what it took."""
        answer = self.ask(what, **details)
        if not isinstance(answer, list):
            raise TypeError(f"the original answers {answer!r} instead of times")
        return Timing(*map(float, answer))

    def listing(self) -> Sequence[str]:
        """The command that lists the sessions of :attr:`home`."""
        return [str(_VENV / "bin" / "hermes"), "sessions", "list"]

    def leave(self) -> None:
        """End the process and remove its folder."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._folder.cleanup()
