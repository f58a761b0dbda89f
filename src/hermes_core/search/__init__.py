"""Search: which index answers, what becomes of its hits, and the scan that needs no index."""

from __future__ import annotations
