"""Gateways as processes of their own: ``hermes gateway run`` in a home whose only platform is the toy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PATIENCE_S = 120


class ToyHome:
    """A home with a configuration; ``run`` starts a gateway in it, ``hermes`` any other command.

    Attributes:
        entry_point: the plugin that is found in it. plugins: what is loaded, by commas.
    """

    entry_point = "toy-chat = toy_chat:ToyChatPlugin"
    plugins = "toy-chat"

    def __init__(self, folder, port, *, settings="", toy="", dm_policy="open"):
        self.path = Path(folder)
        self.path.mkdir(parents=True, exist_ok=True)
        self.processes = []
        self._site = self.path / "site"
        info = self._site / "toy_chat-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-chat\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[hermes.plugins.v1]\n{self.entry_point}\n", encoding="utf-8")
        self.configure(port, settings=settings, toy=toy, dm_policy=dm_policy)

    def configure(self, port, *, settings="", toy="", dm_policy="open"):
        """Write the configuration; ``settings`` and ``toy`` are lines of TOML."""
        lines = (
            '[agent]\nrunner = "echo"\n[storage]\ndurability = "normal"\n[inbox]\nbatch_window_s = 0\n',
            f'[platforms.toy]\ndm_policy = "{dm_policy}"\n[plugins.toy-chat]\nport = {port}\n{toy}\n{settings}\n',
        )
        (self.path / "config.toml").write_text("".join(lines), encoding="utf-8")

    @property
    def environment(self):
        unwanted = ("HERMES_", "PYTHONPATH", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        path = os.pathsep.join([str(self._site), str(FOLDER)])
        own = {"PYTHONPATH": path, "HERMES_SESSIONS_HOME": str(self.path), "HERMES_PLUGINS": self.plugins}
        return kept | own | {"LC_ALL": "C.UTF-8"}

    def run(self, *arguments, env=None):
        """Start a gateway; what it logs goes to ``gateway.log``."""
        with (self.path / "gateway.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "hermes_core.main", "gateway", "run", *arguments],
                env=self.environment | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def hermes(self, *arguments, env=None):
        """Run another command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "hermes_core.main", *arguments],
            env=self.environment | (env or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )

    def json(self, *arguments):
        ran = self.hermes(*arguments, "--json")
        assert ran.stdout, ran.stderr
        return json.loads(ran.stdout)

    @property
    def log(self):
        return (self.path / "gateway.log").read_text(encoding="utf-8")

    def close(self):
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
