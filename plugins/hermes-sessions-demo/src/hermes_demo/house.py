"""A home of its own for a gateway and a terminal, and their processes, started as a person starts them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import HermesError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Mapping, Sequence

__all__ = ["House", "Ran", "toml_of"]

_PATIENCE_S = 60.0
_LEAVE_S = 10.0
_UNWANTED = ("HERMES_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


@attrs.frozen(kw_only=True)
class Ran:
    """What one command left behind: its exit ``status`` and both streams."""

    status: int
    out: str
    err: str


class House:
    """A folder with a configuration, and what runs in it.

    :param folder: where it is made. config: the tables of its ``config.toml``.
    :param environ: secrets of its accounts. plugins: the only ones that are loaded there.
    """

    def __init__(
        self,
        folder: Path,
        *,
        config: Mapping[str, object],
        environ: Mapping[str, str],
        plugins: Sequence[str],
    ) -> None:
        self.folder = folder
        self._environ = environ
        self._plugins = plugins
        self._running: list[Process] = []
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "config.toml"
        file.write_text(toml_of(config), encoding="utf-8")
        file.chmod(0o600)

    @property
    def log(self) -> Path:
        """Return the file with what the gateways said."""
        return self.folder / "gateway.log"

    def environment(self) -> dict[str, str]:
        """Return the environment of a process in here."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_UNWANTED)}
        own = {"HERMES_SESSIONS_HOME": str(self.folder), "HERMES_PLUGINS": ",".join(self._plugins)}
        return {**kept, **own, **self._environ, "PYTHONUTF8": "1"}

    async def start(self, *words: str) -> Process:
        """Start ``hermes gateway run``; what it says goes to :attr:`log`."""
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *_program(),
                "gateway",
                "run",
                *words,
                env=self.environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the terminal's Ctrl-C is for us; what follows from it is ours to do
            )
        self._running.append(process)
        return process

    async def run(self, *words: str) -> Ran:
        """Run another command to its end. :raises HermesError: it does not end."""
        process = await asyncio.create_subprocess_exec(
            *_program(),
            *words,
            env=self.environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._running.append(process)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                out, err = await process.communicate()
        except TimeoutError:
            raise HermesError(f"`hermes {' '.join(words)}` did not end within {_PATIENCE_S:g} s") from None
        return Ran(status=process.returncode or 0, out=out.decode(), err=err.decode())

    async def asked(self, *words: str) -> object:
        """Return what a command says in JSON. :raises HermesError: it says none."""
        ran = await self.run(*words, "--json")
        try:
            return json.loads(ran.out)
        except ValueError:
            raise HermesError(f"`hermes {' '.join(words)}` failed: {ran.err.strip() or ran.status}") from None

    async def close(self) -> None:
        """Let what still runs leave; kill what does not."""
        running = [process for process in self._running if process.returncode is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                async with asyncio.timeout(_LEAVE_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def kill(self) -> None:
        """Kill what still runs, now."""
        for process in self._running:
            if process.returncode is None:
                process.kill()


def _program() -> Sequence[str]:
    """Return the script ``hermes`` of this environment, or what stands for it."""
    beside = Path(sys.executable).with_name("hermes")
    script = str(beside) if beside.exists() else shutil.which("hermes")
    return [script] if script else [sys.executable, "-m", "hermes_core.main"]


def toml_of(tables: Mapping[str, object], path: tuple[str, ...] = ()) -> str:
    """Return tables as TOML: texts, numbers, truth, lists of texts, and tables in tables."""
    plain = [f"{key} = {_value(value)}" for key, value in tables.items() if not hasattr(value, "items")]
    parts = [f"[{'.'.join(path)}]", *plain] if plain and path else plain
    text = "".join(f"{line}\n" for line in parts)
    for key, value in tables.items():
        if isinstance(value, dict):
            text += toml_of(value, (*path, key))
    return text


def _value(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
