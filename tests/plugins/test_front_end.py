from __future__ import annotations

import pytest

from hermes_core.plugins import find_front_end, import_plugin
from hermes_hookspecs.errors import ConfigError, PluginError


def test_the_front_end_is_the_plugin_called_cli_and_nothing_is_imported(site, settings_of) -> None:
    site.add("cli", "class Plugin: ...")
    site.add("other", "raise RuntimeError")

    found = find_front_end(settings_of(), None, {}, path=site.path)

    assert found.name == "cli"
    assert site.is_imported() == set()
    assert import_plugin(found).__name__ == "Plugin"


def test_the_environment_names_another_front_end(site, settings_of) -> None:
    site.add("cli", None)
    site.add("web", None)

    assert find_front_end(settings_of(), None, {"HERMES_FRONT_END": "web"}, path=site.path).name == "web"


def test_a_front_end_of_the_environment_that_is_not_there_is_an_error(site, settings_of) -> None:
    site.add("cli", None)

    with pytest.raises(ConfigError, match="HERMES_FRONT_END: no plugin 'wbe' is installed; there are: cli"):
        find_front_end(settings_of(), None, {"HERMES_FRONT_END": "wbe"}, path=site.path)


def test_without_a_front_end_the_answer_is_none(site, settings_of) -> None:
    site.add("cli", None, group="hermes.plugins.v2")

    assert find_front_end(settings_of(), None, {}, path=site.path) is None


def test_a_disabled_front_end_is_none(site, settings_of) -> None:
    site.add("cli", None)

    assert find_front_end(settings_of('[plugins]\ndisable = ["cli"]\n'), None, {}, path=site.path) is None


@pytest.mark.parametrize("environ", [{"HERMES_PLUGINS": ""}, {"HERMES_PLUGINS_ENABLE": "fts5"}])
def test_leaving_plugins_out_keeps_the_front_end(site, settings_of, environ) -> None:
    site.add("cli", None)

    assert find_front_end(settings_of("", environ), None, environ, path=site.path).name == "cli"


def test_two_front_ends_of_one_name_are_refused_and_both_named(site, settings_of) -> None:
    site.add("cli", None, distribution="x-one")
    site.add("cli", None, distribution="x-two")

    with pytest.raises(PluginError, match="claimed by x-one and x-two"):
        find_front_end(settings_of(), None, {}, path=site.path)
    only = find_front_end(settings_of('[plugins]\ndisable = ["x-one"]\n'), None, {}, path=site.path)
    assert only.distribution == "x-two"
