"""Find what was said, from a program of one's own: ``python find.py bread OR rice``."""

from __future__ import annotations

import sys

from hermes_core import open_app
from hermes_hookspecs.ports.search import HIT_END, HIT_START

with open_app() as app:
    answer = app.session_search(" ".join(sys.argv[1:]), limit=5)
    for found in answer.results:
        snippet = found.snippet.replace(HIT_START, "[").replace(HIT_END, "]").splitlines()[0]
        print(f"{found.title or found.preview}: {found.matched_role}> {snippet}")
    if not answer.complete:
        print(answer.note, file=sys.stderr)
