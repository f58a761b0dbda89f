"""The pages that people read, their fenced examples, and the terminal sessions that they show.

Run as a script it plays every transcript anew and writes what came out into the pages::

    .venv/bin/python tests/docs/pages.py

Kinds of fences: ``console`` is played, line by line; ``python``, and ``toml`` with a file behind the word, are pieces
of that file; other ``toml`` is a ``config.toml``; ``sql`` is asked of a real store; ``sh`` names commands that are not
run here; ``text`` is a picture.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
GENERATED = {"hooks.md", "from-hermes.md"}
KINDS = {"console", "python", "toml", "sql", "sh", "text"}
PERSON = "ming"
SHOWN_HOME = f"/home/{PERSON}"
# The pages whose readers have installed the example plugin before they type.
WITH_PLUGIN = {"plugin-guide.md"}

_FENCE = re.compile(r"^```(\S*)[ ]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run; each is replaced by text of the same length, so that columns stay where they are.
_VARYING = (
    re.compile(r"\d{8}_\d{6}_[0-9a-f]{8,12}"),
    re.compile(r"\brun-[0-9a-f]{8}\b"),
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ)?"),
    re.compile(r"\b\d{8}T\d{6}Z\b"),
    re.compile(r"\b\d{13}\b"),
    re.compile(r"\b\d+\.\d [KM]iB"),
    re.compile(r"\b\d+\.\d+\.\d+\b"),
    re.compile(r"\b(just now|\d+ min ago)"),
    re.compile(r'(?<="size": )\d+'),
)


class Fence(NamedTuple):
    """One fenced block: where it begins, its language, the file it names, and its text."""

    page: Path
    line: int
    kind: str
    file: str
    text: str

    @property
    def name(self) -> str:
        """Return ``README.md:12``, for the names of tests."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return the pages that people wrote, in the order of reading."""
    written = sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in GENERATED)
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "hookspecs" / "README.md", *written]


def fences(page: Path, *kinds: str) -> list[Fence]:
    """Return the fences of a page, those of ``kinds`` if given."""
    text = page.read_text(encoding="utf-8")
    found = [
        Fence(page, text.count("\n", 0, match.start()) + 1, match[1], match[2], match[3])
        for match in _FENCE.finditer(text)
    ]
    return [fence for fence in found if not kinds or fence.kind in kinds]


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a transcript with what they print; a line that ends in a backslash goes on."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line.rstrip()}", "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        else:
            raise ValueError(f"a transcript begins with a command, not with {line!r}")
    return found


def masked(text: str) -> str:
    """Return ``text`` without what differs from run to run; blanks between columns count as two."""
    for pattern in _VARYING:
        text = pattern.sub("#", text)
    return re.sub(r" {2,}", "  ", text)


class Terminal:
    """A person with a home of their own and a checkout in it, at a shell without a terminal.

    :param folder: an empty folder. plugins: folders to be found as if they were installed.
    """

    def __init__(self, folder: Path, plugins: tuple[Path, ...] = ()) -> None:
        self.home = folder.resolve() / "home"
        self._checkout = self.home / "hermes-sessions"
        self._checkout.mkdir(parents=True)
        (self._checkout / "docs").symlink_to(ROOT / "docs")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "PYTEST_"))}
        self._environment = kept | {
            "HOME": str(self.home),
            "LOGNAME": PERSON,
            "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
            "PYTHONPATH": os.pathsep.join(map(str, plugins)),
            "TZ": "UTC",
        }

    def run(self, command: str) -> str:
        """Return what a command prints, on both streams, as the person sees it."""
        make = 'make() { [ "$1" = run ] || return 2; hermes ${2#ARGS=}; }'
        done = subprocess.run(
            ["bash", "-c", f"{make}\n{command}"],
            cwd=self._checkout,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        )
        return done.stdout.decode().replace(str(self.home), SHOWN_HOME)


def plugin_folders(page: Path, folder: Path) -> tuple[Path, ...]:
    """Return what must be on the path of the reader of a page: the example plugin, installed by hand."""
    if page.name not in WITH_PLUGIN:
        return ()
    project = EXAMPLES / "hermes-sessions-shout"
    return (install(project, folder), project / "src")


def install(project: Path, folder: Path) -> Path:
    """Write the metadata that an installer would make of a project's ``pyproject.toml``; return its folder."""
    import tomllib

    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in table["entry-points"].items()
    )
    return write_metadata(folder, table["name"], table["version"], groups)


def write_metadata(folder: Path, name: str, version: str, entry_points: str) -> Path:
    """Write a ``*.dist-info``; return the folder that holds it, to be put on the path."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    return folder


def played(page: Path, folder: Path) -> list[tuple[Fence, list[tuple[str, str, str]]]]:
    """Play a page's transcripts in order, in one home; return ``(command, shown, printed)`` of each step."""
    terminal = Terminal(folder, plugin_folders(page, folder / "site"))
    return [
        (fence, [(command, shown, terminal.run(command)) for command, shown in steps(fence.text)])
        for fence in fences(page, "console")
    ]


def main() -> int:
    """Write every transcript anew; print the pages that changed."""
    for page in pages():
        before = text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory(prefix="hermes-docs-") as scratch:
            for fence, run in played(page, Path(scratch)):
                if all(masked(shown) == masked(printed) for _, shown, printed in run):
                    continue
                again = "".join(f"$ {command}\n{printed}" for command, _, printed in run)
                text = text.replace(f"```console\n{fence.text}```", f"```console\n{again}```", 1)
        if text != before:
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
