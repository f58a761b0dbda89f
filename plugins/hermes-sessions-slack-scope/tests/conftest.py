"""A real core on a store on disk."""

from __future__ import annotations

import pytest

hermes_core = pytest.importorskip("hermes_core")


@pytest.fixture
def open_app(tmp_path):
    """Return a function that opens the one profile with the plugin alone, as often as it is called."""
    opened = []

    def open_app(*, plugins="slack-scope", **settings):
        options = {"agent.runner": "echo", "storage.durability": "normal"} | settings
        app = hermes_core.open_app(tmp_path / "home", overrides=options, environ={"HERMES_PLUGINS": plugins})
        opened.append(app)
        return app

    yield open_app
    for app in opened:
        app.close()


@pytest.fixture
def app(open_app):
    return open_app()


@pytest.fixture
def old(app):
    """Return a function that makes a conversation with a key that holds no workspace, and something said in it."""
    from hermes_slack_scope.testing import old_session

    return lambda source, text="alpha": old_session(app, source, text)
