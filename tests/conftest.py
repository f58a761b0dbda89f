"""What the tests of the core's rooms share: an open profile on either store, and a plugin that hears everything."""

from __future__ import annotations

from threading import Lock

import pytest

from hermes_core import open_app
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.testing.clock import FakeClock


class Ear:
    """A plugin that writes down what it is told: ``(hook without hermes_, values)``, in order."""

    def __init__(self):
        self.heard = []
        self._lock = Lock()

    def _hear(self, name, **values):
        with self._lock:
            self.heard.append((name, values))

    def names(self):
        return [name for name, _ in self.heard]

    def told(self, name):
        """Return the values of each telling of one event."""
        return [values for heard, values in self.heard if heard == name]

    @hookimpl
    def hermes_after_open(self, profile, home):
        self._hear("after_open", profile=profile, home=home)

    @hookimpl
    def hermes_before_close(self, profile):
        self._hear("before_close", profile=profile)

    @hookimpl
    def hermes_after_session_start(self, entry):
        self._hear("after_session_start", entry=entry)

    @hookimpl
    def hermes_after_session_end(self, lineage_id, session_id, reason):
        self._hear("after_session_end", lineage_id=lineage_id, session_id=session_id, reason=reason)

    @hookimpl
    def hermes_after_title_change(self, lineage_id, title, origin):
        self._hear("after_title_change", lineage_id=lineage_id, title=title, origin=origin)

    @hookimpl
    def hermes_after_turn_start(self, turn):
        self._hear("after_turn_start", turn=turn)

    @hookimpl
    def hermes_after_turn_finish(self, turn):
        self._hear("after_turn_finish", turn=turn)

    @hookimpl
    def hermes_after_lease_contention(self, lease, waited_s):
        self._hear("after_lease_contention", lease=lease, waited_s=waited_s)

    @hookimpl
    def hermes_after_inbox_overflow(self, session_key, waiting):
        self._hear("after_inbox_overflow", session_key=session_key, waiting=waiting)

    @hookimpl
    def hermes_before_erase(self, lineage_id):
        self._hear("before_erase", lineage_id=lineage_id)


@pytest.fixture(params=["memory", "sqlite"])
def backend(request):
    """Name of the store; whoever asks for it runs on both."""
    return request.param


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def ear():
    return Ear()


@pytest.fixture
def profile(tmp_path, backend, ear):
    """Return a function that opens a profile: ``settings`` by dotted name, ``listens`` with the ear registered."""
    opened = []

    def open_profile(settings=None, *, plugins=(), listens=True, clock=None, home="home", profile=None):
        chosen = {"storage.backend": backend, "storage.durability": "normal", "agent.runner": "echo"}
        app = open_app(
            tmp_path / home,
            profile=profile,
            overrides=chosen | (settings or {}),
            plugins=False,
            environ={},
            clock=clock,
        )
        opened.append(app)
        for number, plugin in enumerate(plugins):
            app.hooks.host.register(f"test.{number}", plugin)
        if listens:
            app.hooks.host.register("test.ear", ear)
        return app

    yield open_profile
    for app in opened:
        app.close()


@pytest.fixture
def app(profile):
    """An open profile whose ear is registered; the agent is ``echo``."""
    return profile()
