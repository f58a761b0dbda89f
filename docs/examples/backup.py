"""Copy the store while programs use it, from a program of one's own: ``python backup.py [TARGET]``."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_core import open_app

with open_app() as app:
    print(app.care.backup(Path(sys.argv[1]) if sys.argv[1:] else None))
