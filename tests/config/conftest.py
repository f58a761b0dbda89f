from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.config import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hermes_core.config import Settings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def load(home: Path) -> Callable[..., Settings]:
    """Load with this text as the home's file, and ``profile_text`` as that of the profile ``work``."""

    def make(
        text: str | bytes | None = None,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        profile_text: str | None = None,
    ) -> Settings:
        if text is not None:
            (home / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        if profile_text is not None:
            folder = home / "profiles" / "work"
            folder.mkdir(parents=True)
            (folder / "config.toml").write_text(profile_text, encoding="utf-8")
        return load_settings(home, None if profile_text is None else "work", overrides or {}, environ or {})

    return make
