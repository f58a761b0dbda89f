"""What the entry point names, and what can be set."""

from __future__ import annotations

import pytest

from hermes_core.storage.memory import MemoryBackend
from hermes_fts5.config import Fts5Config
from hermes_fts5.plugin import Fts5Plugin
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.errors import ConfigError, StoreRefused
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.plugins import PluginSuite


class TestFts5Plugin(PluginSuite):
    """The suite of every plugin."""

    distribution = "hermes-sessions-fts5"
    entry_point = "fts5"
    may_import = frozenset()


def test_the_plugin_brings_one_kind_of_index_for_sqlite():
    (source,) = Fts5Plugin({}).hermes_search_sources()

    assert (source.name, source.backends) == ("fts5", ("sqlite",))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"recency": 1}, "recency is unknown; there are recency_weight"),
        ({"recency_weight": "much"}, "is no number"),
        ({"recency_weight": True}, "is no number"),
        ({"recency_weight": 9}, "out of range: 0 to 4"),
        ({"exact_hits": 1.5}, "is no whole number"),
        ({"newest_hits": 1}, "out of range: 10 to"),
    ],
)
def test_a_mistake_in_the_settings_is_told(table, said):
    with pytest.raises(ConfigError, match=said) as caught:
        Fts5Plugin(table)

    assert caught.value.key == next(iter(table))


def test_settings_reach_the_index():
    config = Fts5Config.of({"recency_weight": 1, "exact_hits": 7})

    assert (config.recency_weight, config.exact_hits) == (1.0, 7)


def test_age_and_role_change_a_score_by_no_more_than_is_said():
    config = Fts5Config()

    factors = [config.factor(role, age) for role in ("user", "assistant", "tool") for age in (-5, 0, 10**9, 10**13)]

    assert max(factors) <= config.greatest_factor
    assert min(factors) > 0


def test_a_store_without_a_file_is_refused(tmp_path):
    store = MemoryBackend().open(StoreOptions(path=tmp_path / "unused"))

    with pytest.raises(StoreRefused, match="no SQLite store"):
        Fts5Source(Fts5Config()).open(store)
