"""``hermes demo``."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.errors import ConfigError, HermesError

if TYPE_CHECKING:
    from hermes_demo.telling import Teller
    from hermes_hookspecs.cli import CliCall

__all__ = ["run"]

_TERMINATED: Final = 128 + signal.SIGTERM


def run(call: CliCall) -> int:
    """Play the story in a folder of its own; return 0 when all that it has to show was seen, 1 when not."""
    from hermes_demo.entrances import find_fakes
    from hermes_demo.stage import PLATFORMS
    from hermes_demo.story import TITLE
    from hermes_demo.telling import Teller

    find_fakes(PLATFORMS)  # before a folder is made for nothing
    folder = _folder(call.values.get("folder"))
    picture = call.values.get("svg")
    teller = Teller(call.out, call.width, records=picture is not None)
    try:
        holds = asyncio.run(_played(folder, teller))
    except asyncio.CancelledError:
        return _TERMINATED
    except KeyboardInterrupt:
        print(f"interrupted; what is left is in {folder}", file=call.err)
        raise
    except HermesError as error:
        raise HermesError(f"the story ended early: {error} (what is left is in {folder})") from error
    home = f"--home {shlex.quote(str(folder))}"
    teller.ends(
        f"{'All of it holds' if holds else 'NOT all of it holds'}, after {teller.seconds:.0f} s. The store is yours:",
        f"  hermes {home} sessions list",
        f"  hermes {home} -r {shlex.quote(TITLE)}",
    )
    if picture is not None:
        Path(str(picture)).write_text(teller.picture("hermes demo"), encoding="utf-8")
    return 0 if holds else 1


async def _played(folder: Path, teller: Teller) -> bool:
    from hermes_demo.stage import Stage
    from hermes_demo.story import play

    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine that runs is in one
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with Stage(folder) as stage:
        return all(check.holds for check in await play(stage, teller))


def _folder(named: object) -> Path:
    """Return an empty folder. :raises ConfigError: the one that was named holds something."""
    if named is None:
        return Path(tempfile.mkdtemp(prefix="hermes-demo-"))
    folder = Path(str(named)).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--folder {folder} is no folder; name one that is empty, or not there", key="folder")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"--folder {folder} is not empty; name one that is, or that is not there", key="folder")
    return folder
