"""The toy store is tested from its source tree, as its author would do it; the chat test takes its wheel."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "src"))
