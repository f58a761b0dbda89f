"""Group J: plugins that come, bring others and go."""

from __future__ import annotations

import json

import pytest

from hermes_core.routing.key import LabelledKeyBuilder
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.markers import hookimpl

SOUND = "class Plugin:\n    @hookimpl\n    def hermes_agents(self):\n        return ()\n"


def test_j07_a_plugin_may_bring_another_one_from_inside_its_hook(app, alice):
    heard = []

    class Second:
        @hookimpl
        def hermes_after_turn_finish(self, turn):
            heard.append(("second", turn.id))

    class First:
        @hookimpl
        def hermes_after_turn_start(self, turn):
            if app.hooks.host.plugin("second") is None:
                app.hooks.host.register("second", Second())

        @hookimpl
        def hermes_after_turn_finish(self, turn):
            heard.append(("first", turn.id))

    app.hooks.host.register("first", First())

    turns = [app.ask(text, alice, agent="echo").turn.id for text in ("one", "two")]
    app.hooks.flush()

    assert sorted(heard) == sorted((name, turn) for name in ("first", "second") for turn in turns)


def test_j07_unregistering_takes_every_implementation(app, alice):
    heard = []

    class Two:
        @hookimpl
        def hermes_after_turn_finish(self, turn):
            heard.append("one")

        @hookimpl(specname="hermes_after_turn_finish")
        def also(self, turn):
            heard.append("two")

    app.hooks.host.register("two", Two())
    app.ask("hello", alice, agent="echo")
    app.hooks.flush()
    before = sorted(heard)
    heard.clear()

    app.hooks.host.unregister("two")
    app.ask("again", alice, agent="echo")
    app.hooks.flush()

    assert (before, heard) == (["one", "two"], [])


class Answers:
    """Brings a key builder of its own, or none."""

    def __init__(self, builder):
        self._builder = builder

    @hookimpl
    def hermes_key_builder(self):
        return self._builder


class Prefixed:
    """A key builder that says who built."""

    version = 7

    def __init__(self, inner, name):
        self._inner, self._name = inner, name

    def build(self, source, policy):
        return f"{self._inner.build(source, policy)}:{self._name}"

    def __getattr__(self, name):
        return getattr(self._inner, name)


def test_j07_the_first_answer_counts_and_nothing_is_no_answer(open_home, alice):
    inner = LabelledKeyBuilder()
    none, one, two = open_home(), open_home(), open_home()
    none.hooks.host.register("silent", Answers(None))
    one.hooks.host.register("one", Answers(Prefixed(inner, "one")))
    two.hooks.host.register("one", Answers(Prefixed(inner, "one")))
    two.hooks.host.register("two", Answers(Prefixed(inner, "two")))
    two.hooks.host.register("silent", Answers(None))

    plain = inner.build(alice, none.desk.policy(alice))

    assert none.session_key(alice) == plain
    assert one.session_key(alice) == f"{plain}:one"
    assert two.session_key(alice) == f"{plain}:two", "a plugin registered later is asked before those that were there"


def test_j07_a_name_is_given_once(app):
    app.hooks.host.register("one", Answers(None))

    with pytest.raises(PluginError, match="another plugin has this name"):
        app.hooks.host.register("one", Answers(None))
    with pytest.raises(PluginError, match="another plugin has this name"):
        app.hooks.host.register("builtin.keys", Answers(None))


def test_j07_two_distributions_that_claim_one_name_are_both_refused_and_named(hermes, site):
    site("twin", SOUND)
    info = site.folder / "y_twin-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: y-twin\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[hermes.plugins.v1]\ntwin = x_twin:Plugin\n")

    ran = hermes("plugins", "list", "--json", env=site.env)

    twins = [row for row in json.loads(ran.out) if row["name"] == "twin"]
    assert [row["stage"] for row in twins] == ["failed at discover"] * 2
    assert all("x-twin" in row["reason"] and "y-twin" in row["reason"] for row in twins)
