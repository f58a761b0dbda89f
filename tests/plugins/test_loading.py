from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from hermes_core.plugins import PluginHost, discover, load
from hermes_hookspecs.errors import ConfigError, PluginError
from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from hermes_core.config import Settings
    from hermes_core.plugins import PluginRow

    Make = Callable[..., Settings]

KEYS = """
class Plugin:
    @hookimpl
    def hermes_build_key(self, source):
        return {answer!r}
"""
RAISES_AT_IMPORT = "raise RuntimeError('imported')\n"


class BuiltIn:
    @hookimpl
    def hermes_build_key(self, source: str, policy: str) -> str:
        return f"built-in:{source}:{policy}"


def _load(site, specs: list[ModuleType], settings: Settings, **more) -> PluginHost:
    return load(specs, [("builtin", BuiltIn)], settings, None, path=site.path, **more)


def _row(host: PluginHost, name: str) -> PluginRow:
    return next(row for row in host.rows() if row.name == name)


def test_a_sound_plugin_is_loaded_and_its_row_says_what_it_does(site, specs, settings_of: Make) -> None:
    site.add("keys", KEYS.format(answer="mine"), version="2.5")

    host = _load(site, specs, settings_of())

    row = _row(host, "keys")
    assert (row.stage, row.distribution, row.version, row.hooks) == ("loaded", "x-keys", "2.5", ("hermes_build_key",))
    assert row.import_ms > 0
    assert host.manager.hook.hermes_build_key(source="s", policy="p") == "mine"
    assert type(host.plugin("keys")).__name__ == "Plugin"
    assert host.plugin("nobody") is None


@pytest.mark.parametrize(
    ("code", "value", "failed_at", "reason"),
    [
        (None, "", "import", "ModuleNotFoundError: No module named 'x_broken"),
        ("", "", "import", "has no attribute 'Plugin'"),
        ("", "not a value", "import", "is not 'package.module:Class'"),
        ("import nobody_has_this", "", "import", "ModuleNotFoundError: No module named 'nobody_has_this'"),
        ("raise RuntimeError('two\\nlines')", "", "import", "RuntimeError: two lines"),
        ("Plugin = 7", "", "create", "names a int, not a class"),
        ("def Plugin(): return None", "", "create", "returned nothing"),
        ("class Plugin:\n    def __init__(self): raise OSError('no')", "", "create", "OSError: no"),
        (
            "class Plugin:\n    @hookimpl\n    def hermes_after_trun(self): ...",
            "",
            "register",
            "there is no hook 'hermes_after_trun'; did you mean 'hermes_after_turn'?",
        ),
        ("class Plugin:\n    @hookimpl\n    def hermes_title(self, text, extra): ...", "", "register", "extra"),
        ("class Plugin:\n    def hermes_title(self, text): ...", "", "register", "not marked with @hookimpl"),
        (
            "class Plugin:\n    @hookimpl(wrapper=True)\n    def hermes_title(self, text): return (yield)",
            "",
            "register",
            "wraps a hook that may be skipped",
        ),
    ],
    ids=[
        "missing module",
        "missing attribute",
        "no entry point value",
        "missing dependency",
        "raises at import",
        "not a class",
        "makes nothing",
        "raises in the constructor",
        "unknown hook",
        "extra argument",
        "unmarked hook",
        "wrapper of a skip hook",
    ],
)
def test_a_broken_plugin_is_a_row_and_everybody_else_works(
    site, specs, settings_of: Make, caplog, code, value, failed_at, reason
) -> None:
    site.add("broken", code, value=value)
    site.add("keys", KEYS.format(answer="mine"))

    host = _load(site, specs, settings_of())

    row = _row(host, "broken")
    assert (row.stage, row.failed_at) == ("failed", failed_at)
    assert reason in row.reason
    assert "\n" not in row.reason
    assert host.plugin("broken") is None
    assert host.manager.hook.hermes_build_key(source="s", policy="p") == "mine"
    assert [f"plugin 'broken' failed at {failed_at}" in record.getMessage() for record in caplog.records] == [True]


def test_a_plugin_that_fails_at_registration_leaves_none_of_its_hooks_behind(site, specs, settings_of: Make) -> None:
    site.add(
        "half",
        """
class Plugin:
    @hookimpl
    def hermes_build_key(self, source): return "half"
    @hookimpl
    def hermes_title(self, nonsense): return "half"
""",
    )

    host = _load(site, specs, settings_of())

    assert host.manager.hook.hermes_build_key(source="s", policy="p") == "built-in:s:p"
    assert host.manager.hook.hermes_title(text="t") is None


def test_strict_raises_the_first_failure(site, specs, settings_of: Make) -> None:
    site.add("broken", RAISES_AT_IMPORT)

    with pytest.raises(PluginError, match="plugin 'broken' failed at import: RuntimeError: imported"):
        _load(site, specs, settings_of("[plugins]\nstrict = true\n"))


UNREADABLE = "class Unreadable(Exception):\n    def __str__(self): raise RuntimeError('no')\n"


@pytest.mark.parametrize("stage", ["import", "create"])
@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("SystemExit(3)", "SystemExit: 3"),
        ("GeneratorExit", "GeneratorExit"),
        ("BaseException('x')", "BaseException: x"),
        ("__import__('asyncio').CancelledError", "CancelledError"),
        ("__import__('pytest').skip.Exception('no')", "Skipped: no"),
        ("Unreadable", "Unreadable: (its message cannot be read)"),
        ("ValueError('\\x1b[2J\\nred')", r"ValueError: \x1b[2J red"),
    ],
)
def test_whatever_a_plugin_raises_it_is_a_failed_one(site, specs, settings_of: Make, stage, raised, reason) -> None:
    code = f"raise {raised}\n" if stage == "import" else f"class Plugin:\n    def __init__(self): raise {raised}\n"
    site.add("leaver", UNREADABLE + code)

    host = _load(site, specs, settings_of())

    assert [(row.stage, row.failed_at, row.reason) for row in host.rows() if row.name == "leaver"] == [
        ("failed", stage, reason)
    ]


def test_a_refused_table_with_an_unreadable_message_is_a_row_too(site, specs, settings_of: Make) -> None:
    site.add(
        "bad",
        """
from hermes_hookspecs.errors import ConfigError
class Bad(ConfigError):
    def __init__(self): pass
    def __str__(self): raise RuntimeError("no")
class Plugin:
    def __init__(self, config): raise Bad()
""",
    )

    row = _row(_load(site, specs, settings_of()), "bad")

    assert (row.failed_at, row.reason) == ("create", "Bad: (its message cannot be read)")


def test_an_object_that_ends_the_program_when_it_is_looked_at_is_a_row(site, specs, settings_of: Make) -> None:
    site.add("bad", "class Plugin:\n    def __dir__(self): raise SystemExit(3)\n")

    row = _row(_load(site, specs, settings_of()), "bad")

    assert (row.failed_at, row.reason) == ("register", "SystemExit: 3")


def test_an_interrupt_of_the_person_passes_through(site, specs, settings_of: Make) -> None:
    site.add("slow", "raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        _load(site, specs, settings_of())


def test_another_major_is_listed_and_never_imported(site, specs, settings_of: Make) -> None:
    site.add("next", RAISES_AT_IMPORT, group="hermes.plugins.v2")

    host = _load(site, specs, settings_of())

    row = _row(host, "next")
    assert (row.stage, row.reason) == ("incompatible", "written for version 2 of the contract, this is version 1")
    assert site.is_imported() == set()


@pytest.mark.parametrize(
    ("text", "environ", "overrides", "reason"),
    [
        ('[plugins]\ndisable = ["noisy"]\n', {}, {}, "in [plugins] disable (HOME/config.toml)"),
        ('[plugins]\ndisable = ["X_Noisy"]\n', {}, {}, "in [plugins] disable (HOME/config.toml)"),
        ('[plugins]\nenable = ["keys"]\n', {}, {}, "not in [plugins] enable (HOME/config.toml)"),
        ("", {"HERMES_PLUGINS_DISABLE": "noisy"}, {}, "in [plugins] disable (environment HERMES_PLUGINS_DISABLE)"),
        ("", {"HERMES_PLUGINS": "keys, other"}, {}, "left out by environment HERMES_PLUGINS"),
        ("", {"HERMES_PLUGINS": ""}, {}, "left out by environment HERMES_PLUGINS"),
        ("", {"HERMES_PLUGINS": "noisy"}, {"plugins__only": ()}, "left out by option --no-plugins"),
    ],
)
def test_a_blocked_plugin_is_listed_with_its_reason_and_never_imported(
    site, specs, settings_of: Make, text, environ, overrides, reason
) -> None:
    site.add("noisy", RAISES_AT_IMPORT)
    settings = settings_of(text, environ, **overrides)

    host = _load(site, specs, settings)

    row = _row(host, "noisy")
    assert (row.stage, row.reason) == ("blocked", reason.replace("HOME", str(settings.home)))
    assert site.is_imported() == set()


def test_hermes_plugins_replaces_both_lists_of_the_file(site, specs, settings_of: Make) -> None:
    site.add("keys", KEYS.format(answer="mine"))
    settings = settings_of('[plugins]\nenable = ["other"]\ndisable = ["keys"]\n', {"HERMES_PLUGINS": "keys"})

    host = _load(site, specs, settings)

    assert _row(host, "keys").stage == "loaded"


def test_the_front_end_in_use_is_kept_unless_it_is_disabled(site, specs, settings_of: Make) -> None:
    site.add("cli", "class Plugin: ...")

    kept = _load(site, specs, settings_of(plugins__only=()), keep=("cli",))
    disabled = _load(site, specs, settings_of('[plugins]\ndisable = ["cli"]\n'), keep=("cli",))

    assert _row(kept, "cli").stage == "loaded"
    assert _row(disabled, "cli").stage == "blocked"


def test_built_ins_that_the_core_needs_cannot_be_disabled_and_others_can(site, specs, settings_of: Make) -> None:
    settings = settings_of('[plugins]\ndisable = ["builtin", "extra"]\n')
    builtins = [("builtin", BuiltIn), ("extra", type("Extra", (), {}))]

    host = load(specs, builtins, settings, None, path=site.path, optional=("extra",))

    assert [(row.name, row.stage) for row in host.rows()] == [("builtin", "loaded"), ("extra", "blocked")]


def test_two_distributions_with_one_name_are_both_refused_and_both_named(site, specs, settings_of: Make) -> None:
    site.add("keys", RAISES_AT_IMPORT, distribution="x-first")
    site.add("keys", RAISES_AT_IMPORT, distribution="x-second")

    host = _load(site, specs, settings_of())

    rows = host.report.of("failed")
    assert [row.distribution for row in rows] == ["x-first", "x-second"]
    assert {row.reason for row in rows} == {
        "claimed by x-first and x-second; disable one of them by its distribution's name"
    }
    assert site.is_imported() == set()


def test_disabling_one_distribution_by_name_ends_the_conflict(site, specs, settings_of: Make) -> None:
    site.add("keys", KEYS.format(answer="first"), distribution="x-first")
    site.add("keys", RAISES_AT_IMPORT, distribution="x-second")

    host = _load(site, specs, settings_of('[plugins]\ndisable = ["x-second"]\n'))

    assert host.manager.hook.hermes_build_key(source="s", policy="p") == "first"


def test_a_plugin_cannot_take_the_name_of_a_built_in(site, specs, settings_of: Make) -> None:
    site.add("builtin", RAISES_AT_IMPORT)

    host = _load(site, specs, settings_of())

    assert _row(host, "builtin").reason == "a built-in plugin has this name"
    assert host.manager.hook.hermes_build_key(source="s", policy="p") == "built-in:s:p"


def test_the_same_distribution_in_two_folders_counts_once(site, tmp_path) -> None:
    site.add("keys", "", version="1.0")
    older = type(site)(tmp_path / "older")
    older.folder.mkdir()
    older.add("keys", "", version="0.9")

    found = discover([*site.path, *older.path])

    assert [(candidate.name, candidate.version) for candidate in found] == [("keys", "1.0")]


def test_damaged_metadata_hides_neither_the_plugin_nor_the_others(site) -> None:
    site.add("keys", "")
    site.add("other", "")
    (site.folder / "x_keys-1.0.dist-info" / "METADATA").unlink()

    found = discover(site.path)

    assert [(candidate.name, candidate.distribution) for candidate in found] == [
        ("keys", "(no metadata)"),
        ("other", "x-other"),
    ]


def test_a_plugin_gets_its_own_table_and_cannot_change_it(site, specs, settings_of: Make) -> None:
    site.add("tuned", "class Plugin:\n    def __init__(self, config): self.config = config")
    site.add("plain", "class Plugin: ...")

    host = _load(site, specs, settings_of("[plugins.tuned]\nsize = 3\nnested = {a = [1, 2]}\n"))

    config = host.plugin("tuned").config
    assert config["size"] == 3
    assert config["nested"]["a"] == (1, 2)
    with pytest.raises(TypeError):
        config["size"] = 4
    assert _row(host, "plain").stage == "loaded"


def test_a_refused_table_names_file_section_and_key(site, specs, settings_of: Make) -> None:
    site.add(
        "tuned",
        """
from hermes_hookspecs.errors import ConfigError
class Plugin:
    def __init__(self, config):
        raise ConfigError("size = -1 is out of range", key="size")
""",
    )
    settings = settings_of("[plugins.tuned]\nsize = -1\n")

    host = _load(site, specs, settings)

    row = _row(host, "tuned")
    assert row.failed_at == "create"
    assert row.reason == f"{settings.home}/config.toml: [plugins.tuned] size = -1 is out of range"
    cause = row.error.__cause__
    assert isinstance(cause, ConfigError)
    assert (cause.section, cause.key) == ("plugins.tuned", "size")


def test_a_plugin_without_settings_refuses_a_table(site, specs, settings_of: Make) -> None:
    site.add("plain", "class Plugin: ...")

    host = _load(site, specs, settings_of("[plugins.plain]\nsize = 1\n"))

    assert _row(host, "plain").reason.endswith("config.toml: [plugins.plain] this plugin takes no settings")


def test_names_in_the_settings_that_nobody_has_installed_are_noticed(site, specs, settings_of: Make) -> None:
    site.add("search", "class Plugin: ...")

    host = _load(site, specs, settings_of('[plugins]\ndisable = ["serach"]\n[plugins.telegraph]\na = 1\n'))

    first, second = host.report.notices
    assert first.endswith("[plugins] disable names 'serach', which is not installed; did you mean 'search'?")
    assert second.endswith("[plugins.telegraph] names 'telegraph', which is not installed")


def test_a_broken_built_in_ends_the_start(site, specs, settings_of: Make) -> None:
    with pytest.raises(PluginError, match="'core-part' failed at create"):
        load(specs, [("core-part", 7)], settings_of(), None, path=site.path)


def test_deprecations_are_told_once_and_at_the_plugins_own_line(site, specs, settings_of: Make) -> None:
    title = specs[0].hermes_title
    title.hermes_options = title.hermes_options._replace(deprecated="use hermes_name")
    module = site.add("old", "class Plugin:\n    @hookimpl\n    def hermes_title(self, text): return 'T'")

    with pytest.warns(DeprecationWarning, match="use hermes_name") as warned:
        host = _load(site, specs, settings_of())

    assert [record.filename for record in warned] == [sys.modules[module].__file__]
    assert host.manager.hook.hermes_title(text="x") == "T"
