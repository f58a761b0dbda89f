"""The facade: opening lazily, what is in force, one embedding example, closing once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

import hermes_core
from hermes_core import HermesApp, open_app
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import ConfigError, PluginError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
PATIENCE_S = 20


def test_the_package_exports_the_names_that_people_look_for_and_no_others():
    assert {name: getattr(hermes_core, name).__name__ for name in hermes_core.__all__} == {
        name: name for name in hermes_core.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hermes_core.nothing  # noqa: B018 - the lookup is what is tested


def test_opening_touches_nothing_until_something_is_needed(tmp_path):
    home = tmp_path / "home"

    with open_app(home, environ={}) as app:
        assert app.home == str(home)
        assert app.profile == "default"
        assert isinstance(app.clock, SystemClock)

    assert not home.exists()


def test_a_program_embeds_it_in_a_few_lines(tmp_path):
    def shout(turn):
        return turn.text.upper() + "!"

    me = SessionSource(platform="api_server", chat_id="42", user_id="u1")
    with open_app(tmp_path, environ={}, plugins=False) as app:
        app.ask("hello", me, agent=shout)
    with open_app(tmp_path, environ={}, plugins=False) as app:
        result = app.ask("again", me, agent=shout)
        rows = app.sessions.load_transcript(result.entry.session_id)

    assert [row.content for row in rows] == ["hello", "HELLO!", "again", "AGAIN!"]


def test_the_environment_and_a_database_of_its_own_are_heeded(tmp_path):
    environ = {"HERMES_SESSIONS_HOME": str(tmp_path / "home"), "HERMES_TURN_LEASE_TIMEOUT": "90"}

    with open_app(environ=environ, db=tmp_path / "own.db") as app:
        assert app.home == str(tmp_path / "home")
        assert app.setting("turns", "lease_wait_s") == 90.0
        app.store.stats()
        assert str(tmp_path / "own.db") in app.store.location


def test_a_wrong_setting_is_refused_when_the_app_is_opened(tmp_path):
    with pytest.raises(ConfigError):
        open_app(tmp_path, overrides={"storage.durability": "sometimes"}, environ={})


def test_an_unknown_backend_is_named_with_those_there_are(tmp_path):
    with (
        open_app(tmp_path, overrides={"storage.backend": "cloud"}, environ={}, plugins=False) as app,
        pytest.raises(ConfigError, match="no such backend; there are: memory, sqlite"),
    ):
        app.store.stats()


def test_a_setting_is_found_by_section_and_key(app):
    assert app.setting("agent", "runner") == "echo"
    for section, key in (("agent", "nothing"), ("nothing", "runner")):
        with pytest.raises(KeyError, match=rf"{section}\.{key}"):
            app.setting(section, key)


def test_every_setting_is_listed_with_its_origin(app):
    rows = {(row.section, row.key): row for row in app.setting_rows()}

    assert (rows["agent", "runner"].value, rows["agent", "runner"].origin) == ('"echo"', "option --agent")
    assert rows["turns", "lease_ttl_s"].origin == "default"


def test_plugins_are_listed_with_built_in_ones_last(app):
    names = [row.name for row in app.plugin_rows()]

    assert names[:1] == ["test.ear"]
    assert names[-5:] == [
        "builtin.keys",
        "builtin.agents",
        "builtin.resets",
        "builtin.commands",
        "builtin.approvals",
    ]


def test_notices_are_told_once(tmp_path):
    with open_app(tmp_path, overrides={"plugins.disable": ("nobody",)}, environ={}) as app:
        app.agent_names()

        told, again = app.notices(), app.notices()

    assert [line for line in told if "nobody" in line] != []
    assert list(again) == []


def test_the_service_behind_the_first_asks_of_many_threads_is_one(app, ear):
    start, answers = threading.Barrier(8), []

    def ask(number):
        start.wait(PATIENCE_S)
        source = SessionSource(platform="cli", chat_id=f"pts-{number}")
        answers.append(app.ask("hello", source).text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    app.hooks.flush()
    assert answers == ["echo 1: hello"] * 8
    assert len(ear.told("after_open")) == 1
    assert ear.told("after_open")[0]["profile"] == "default"


def test_ask_async_runs_on_the_running_loop(app):
    async def main():
        results = await asyncio.gather(*(app.ask_async(str(number), SOURCE) for number in range(3)))
        return [result.text.partition(": ") for result in results]

    answers = asyncio.run(main())

    assert [text for _, _, text in answers] == ["0", "1", "2"]
    assert sorted(count for count, _, _ in answers) == ["echo 1", "echo 2", "echo 3"]


def test_ask_speaks_in_the_session_it_is_given(app):
    entry = app.get_or_create_session(SOURCE)
    app.get_or_create_session(SOURCE, force_new=True)

    result = app.ask("hello", SOURCE, entry=entry)

    assert result.entry.session_id == entry.session_id


def test_closing_twice_is_harmless_and_the_store_still_works_for_whoever_is_told(profile):
    seen = []

    class Looks:
        @hookimpl
        def hermes_before_close(self, profile):
            seen.append(len(app.store.summaries(operator())))

    app = profile(plugins=[Looks()])
    app.ask("hello", SOURCE)

    app.close()
    app.close()

    assert seen == [1]


def test_an_app_that_never_ran_a_turn_closes_without_telling(app, ear):
    app.get_or_create_session(SOURCE)

    app.close()

    assert "before_close" not in ear.names()


def test_a_strict_app_says_which_plugin_is_broken(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    info = folder / "x_broken-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "x_broken_module.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: x-broken\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[hermes.plugins.v1]\nbroken = x_broken_module:P\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))

    with open_app(tmp_path / "home", overrides={"plugins.strict": True}, environ={}) as app:
        with pytest.raises(PluginError, match="broken"):
            app.agent_names()
        app.store.stats()  # what needs no plugin works
    with open_app(tmp_path / "home", environ={}) as app:
        assert {row.name: row.stage for row in app.plugin_rows()}["broken"] != "loaded"


def test_what_a_listing_needs_is_little():
    heavy = "asyncio pluggy importlib.metadata importlib_metadata click rich"
    probe = (
        "import sys, tempfile\n"
        "from hermes_core import open_app\n"
        "from hermes_hookspecs.principal import operator\n"
        "with open_app(tempfile.mkdtemp(), environ={}) as app:\n"
        "    app.store.summaries(operator())\n"
        "print(*sys.modules)"
    )

    done = subprocess.run([sys.executable, "-P", "-c", probe], capture_output=True, text=True, check=True, timeout=60)

    assert set(done.stdout.split()) & set(heavy.split()) == set()


def test_an_app_is_an_app_by_itself(app):
    assert isinstance(app, HermesApp)
    assert app.hooks.loaded
