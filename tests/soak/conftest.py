"""The soak is a package beside its tests; a distribution that is tested alone does without it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)

if any(importlib.util.find_spec(f"hermes_{name}") is None for name in ("cli", "demo", "feishu", "slack", "weixin")):
    collect_ignore_glob = ["test_*.py"]
