"""What every part of the search suite stands on: fixtures, and short ways to store and to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.testing.completeness import CompleteSuite
from hermes_hookspecs.testing.scene import ALL, Scene, key_of, saying, source_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.ports.search import SearchIndex, SearchResult
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["PATIENCE_S", "Said", "SearchFixtures", "ask", "catch_up", "lineages", "say"]

PATIENCE_S = 30.0
"""Budget of what must end by itself."""


class SearchFixtures(CompleteSuite):
    """Fixtures of the suite; a subclass gives ``store`` and ``open_index``."""

    @pytest.fixture
    def store(self) -> Store:
        """Return an open store that is empty, and close it behind the test. To be overridden."""
        raise NotImplementedError("a subclass of SearchIndexSuite gives the fixture `store`: open, empty")

    @pytest.fixture
    def open_index(self) -> Callable[[Store], SearchIndex]:
        """Return what opens the index of a store. To be overridden."""
        raise NotImplementedError("a subclass of SearchIndexSuite gives the fixture `open_index`")

    @pytest.fixture
    def hide(self) -> Callable[[Store, MessageId], None] | None:
        """Return what takes a row back as undo does, with its entry in the change feed; ``None``: cannot be done."""
        return None

    @pytest.fixture
    def scene(self, store: Store) -> Scene:
        """Return a scene on the store of the test."""
        return Scene(store)

    @pytest.fixture
    def index(self, store: Store, open_index: Callable[[Store], SearchIndex]) -> SearchIndex:
        """Return the index of the store of the test."""
        return open_index(store)


def say(scene: Scene, chat: str, text: str, *, user: str = "ou_1", answer: str = "", at: int | None = None) -> Said:
    """Store a conversation of its own: one user row, and an answer where there is one."""
    entry = scene.enter(key_of(chat), source_at(chat, user))
    draft = MessageDraft(role=USER, content=text, timestamp=scene.now if at is None else at)
    begun = scene.begin(entry.lineage_id, scene.accept("", entry.session_key, lineage_id=entry.lineage_id))
    answers = (saying(answer),) if answer else ()
    rows = scene.append(begun, draft, *answers)
    scene.finish(begun)
    return Said(entry, rows)


class Said:
    """A conversation and the ids of the rows that were stored."""

    def __init__(self, entry: SessionEntry, rows: Sequence[int]) -> None:
        self.entry = entry
        self.lineage_id: LineageId = entry.lineage_id
        self.row = rows[0]
        self.rows = rows


def catch_up(index: SearchIndex) -> None:
    """Let an index catch up until nothing is left."""
    for _attempt in range(100):
        if index.catch_up(budget_s=PATIENCE_S) == 0:
            return
    raise AssertionError("the index never catches up")


def ask(index: SearchIndex, text: str, principal: Principal = ALL, **fields: object) -> SearchResult:
    """Search with patience and room for all hits, unless ``fields`` of the query say otherwise."""
    named: dict[str, object] = {"text": text, "limit": 100, "budget_s": PATIENCE_S} | fields
    # mypy cannot see that the names are those of the fields
    return index.search(SearchQuery(**named), principal)  # type: ignore[arg-type]


def lineages(found: SearchResult) -> list[LineageId]:
    """Return the lineages that were found, best first."""
    return [hit.lineage_id for hit in found.hits]
