"""The pages are read by a module beside this one, which the tests import under the name ``docs_pages``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

# What people read talks about the terminal; a distribution that is tested alone does without both.
if importlib.util.find_spec("hermes_cli") is None:
    collect_ignore_glob = ["test_*.py"]


def _load() -> None:
    if "docs_pages" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location("docs_pages", Path(__file__).with_name("pages.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["docs_pages"] = module
    spec.loader.exec_module(module)


_load()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of a person who has said and heard a little."""
    from hermes_core import SessionSource, open_app

    home = tmp_path / "home"
    source = SessionSource(platform="api_server", chat_id="kitchen", user_id="ming")
    with open_app(home, environ={}, overrides={"storage.durability": "normal"}) as app:
        for text in ("Is there tea?", "And coffee?"):
            app.ask(text, source, agent="echo")
        app.rename_session(app.get_or_create_session(source).lineage_id, "kitchen")
    return home
