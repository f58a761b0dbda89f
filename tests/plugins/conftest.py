from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from hermes_core.config import load_settings
from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_core.config import Settings


class Site:
    """A folder of hand-made distributions, as an installer would leave it, but with nothing installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = [str(folder)]

    def add(
        self,
        name: str,
        code: str | None = "",
        *,
        value: str = "",
        distribution: str = "",
        group: str = "hermes.plugins.v1",
        version: str = "1.0",
    ) -> str:
        """Write a module and its metadata; ``code=None`` writes no module. Returns the module's name."""
        distribution = distribution or f"x-{name}"
        module = f"x_{name}_{distribution.replace('-', '_')}_{abs(hash(self.folder)) % 10**8}"
        if code is not None:
            header = "from hermes_hookspecs.markers import hookimpl\n"
            (self.folder / f"{module}.py").write_text(header + code, encoding="utf-8")
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
        )
        entry = value.replace("MODULE", module) or f"{module}:Plugin"
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {entry}\n", encoding="utf-8")
        importlib.invalidate_caches()
        return module

    def is_imported(self) -> set[str]:
        """Return the modules of this site that somebody has imported."""
        return {
            name
            for name, module in sys.modules.items()
            if str(getattr(module, "__file__", "")).startswith(self.path[0])
        }


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    made = Site(folder)
    yield made
    for name in made.is_imported():
        del sys.modules[name]


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[..., Settings]:
    def make(text: str = "", environ: dict[str, str] | None = None, **overrides: object) -> Settings:
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(text, encoding="utf-8")
        dotted = {name.replace("__", "."): value for name, value in overrides.items()}
        return load_settings(home, None, dotted, environ or {})

    return make


@pytest.fixture
def specs() -> list[ModuleType]:
    @hookspec(kind="decision", on_error="raise", firstresult=True)
    def hermes_build_key(source: str, policy: str) -> str | None:
        """Return the key of ``source``."""

    @hookspec(kind="event", on_error="skip")
    def hermes_after_turn(session_id: str) -> None:
        """Tell that a turn is over."""

    @hookspec(kind="decision", on_error="skip", firstresult=True)
    def hermes_title(text: str) -> str | None:
        """Return a title."""

    module = ModuleType("toy_specs")
    for spec in (hermes_build_key, hermes_after_turn, hermes_title):
        setattr(module, spec.__name__, spec)
    return [module]
