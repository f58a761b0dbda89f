"""A backend that a stranger might write keeps every rule of the storage suite."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from hermes_toy_store import backend

from hermes_hookspecs.errors import StoreRefused
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.plugins import assert_signatures
from hermes_hookspecs.testing.scene import Scene
from hermes_hookspecs.testing.storage import StorageSuite


def _open(folder):
    return backend.ToyBackend().open(StoreOptions(path=folder / "state.db", durability="normal"))


class TestToyStore(StorageSuite):
    @pytest.fixture
    def store(self, tmp_path):
        store = _open(tmp_path)
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, store, tmp_path):
        opened = []

        def again():
            store.close()
            opened.append(_open(tmp_path))
            return opened[-1]

        yield again
        for each in opened:
            each.close()

    @pytest.fixture
    def another_store(self, tmp_path):
        store = _open(tmp_path / "another")
        yield store
        store.close()

    @pytest.mark.xfail(strict=True, reason="the toy keeps at least one row of a context")
    def test_where_nothing_stays_the_context_begins_with_the_summary(self, store, scene):
        super().test_where_nothing_stays_the_context_begins_with_the_summary(store, scene)


def test_the_plugin_brings_the_backend():
    from hermes_toy_store.plugin import ToyStorePlugin

    assert_signatures(ToyStorePlugin)
    assert [each.name for each in ToyStorePlugin().hermes_store_backends()] == ["toy"]


def test_two_processes_write_one_store(tmp_path):
    store = _open(tmp_path)
    scene = Scene(store)
    scene.enter()
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from hermes_hookspecs.ports.store import StoreOptions
        from hermes_hookspecs.testing.scene import Scene
        from hermes_toy_store.backend import ToyBackend

        store = ToyBackend().open(StoreOptions(path=Path(sys.argv[1]) / "state.db", durability="normal"))
        entry = Scene(store, "20260102_000000_").enter()
        scene = Scene(store, "20260103_000000_")
        for _ in range(5):
            scene.talk(entry, "from there")
        """
    )

    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60, env=_environment())
    entry = scene.enter()
    scene.talk(entry, "from here")

    assert scene.texts(entry.lineage_id) == ["from there", "hi"] * 5 + ["from here", "hi"]
    store.close()


def _environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_a_record_that_was_half_written_is_cut_off(tmp_path):
    store = _open(tmp_path)
    entry = Scene(store).enter()
    store.close()
    log = tmp_path / "state.db.toy"
    whole = log.read_bytes()
    log.write_bytes(whole + (1000).to_bytes(8, "big") + b"half")

    again = _open(tmp_path)

    assert again.route(entry.session_key).lineage_id == entry.lineage_id
    again.close()
    assert log.read_bytes() == whole


def test_a_file_that_is_no_log_is_refused_and_not_touched(tmp_path):
    (tmp_path / "state.db.toy").write_bytes(b"something else entirely, much longer")

    with pytest.raises(StoreRefused, match="no log"):
        _open(tmp_path)

    assert (tmp_path / "state.db.toy").read_bytes() == b"something else entirely, much longer"
