"""Text as search sees it: folding, segmentation, the query language, snippets. One truth for every backend."""

from __future__ import annotations
