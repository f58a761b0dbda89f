from __future__ import annotations

import asyncio
import logging

import pytest

from hermes_core.plugins import PluginHost
from hermes_core.plugins.host import load
from hermes_hookspecs.errors import KeyBuildError, PluginError
from hermes_hookspecs.markers import hookimpl


class Named:
    """Answers every hook with its name, and notes the call."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    @hookimpl
    def hermes_build_key(self, source: str) -> None:
        self.calls.append(self.name)

    @hookimpl
    def hermes_after_turn(self) -> None:
        self.calls.append(self.name)


class Raising:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error
        self.calls = 0

    def _answer(self) -> str:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return "fine"

    @hookimpl
    def hermes_build_key(self) -> str:
        return self._answer()

    @hookimpl
    def hermes_after_turn(self) -> None:
        self._answer()

    @hookimpl
    def hermes_title(self) -> str:
        return self._answer()


def _key(host: PluginHost) -> object:
    return host.manager.hook.hermes_build_key(source="s", policy="p")


def test_user_plugins_are_called_by_name_and_before_the_built_ins(site, specs, settings_of) -> None:
    calls: list[str] = []
    for name in ("zebra", "ant", "mole"):
        code = f"class Plugin:\n    @hookimpl\n    def hermes_after_turn(self): CALLS.append({name!r})\nCALLS = []\n"
        site.add(name, code)
    builtins = [("first", lambda: Named("first", calls)), ("second", lambda: Named("second", calls))]
    host = load(specs, builtins, settings_of(), None, path=site.path)
    for name in ("zebra", "ant", "mole"):
        module = __import__(type(host.plugin(name)).__module__)
        module.CALLS = calls

    host.manager.hook.hermes_after_turn(session_id="s")

    assert calls == ["ant", "mole", "zebra", "first", "second"]
    assert [row.name for row in host.rows()] == calls


def test_a_raise_hook_fails_closed_and_names_the_plugin(specs) -> None:
    host = PluginHost(specs, quarantine_after=1)
    host.register("behind", Named("behind", []))
    host.register("bad", Raising(ValueError("boom")))

    for _ in range(3):
        with pytest.raises(PluginError, match="plugin 'bad' failed at call: hermes_build_key: ValueError: boom"):
            _key(host)

    bad = host.rows()[0]
    assert (bad.name, bad.failures, bad.quarantined) == ("bad", 3, False)


def test_an_error_of_the_contract_passes_a_raise_hook_as_it_is(specs) -> None:
    host = PluginHost(specs)
    host.register("strict", Raising(KeyBuildError("no chat and no user")))

    with pytest.raises(KeyBuildError) as raised:
        _key(host)

    assert raised.value.__notes__ == ["raised by plugin 'strict' in hermes_build_key"]
    assert host.rows()[0].failures == 0


def test_a_skip_hook_is_logged_counted_and_left_out(specs, caplog) -> None:
    calls: list[str] = []
    host = PluginHost(specs)
    host.register("behind", Named("behind", calls))
    host.register("bad", Raising(ValueError("boom")))

    host.manager.hook.hermes_after_turn(session_id="s")

    assert calls == ["behind"]
    assert host.rows()[0].failures == 1
    record = caplog.records[0]
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "plugin 'bad' failed in hermes_after_turn, skipped: ValueError: boom",
    )
    assert record.exc_info is None, "a traceback for everybody belongs to nobody; DEBUG has it"
    assert record.plugin == "bad"


def test_failures_in_a_row_put_a_plugin_in_quarantine_but_its_raise_hooks_go_on(specs, caplog) -> None:
    host = PluginHost(specs, quarantine_after=3)
    bad = Raising(ValueError("boom"))
    host.register("bad", bad)

    for _ in range(5):
        host.manager.hook.hermes_after_turn(session_id="s")
    host.manager.hook.hermes_title(text="t")

    assert bad.calls == 3
    assert (host.rows()[0].failures, host.rows()[0].quarantined) == (3, True)
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1
    with pytest.raises(PluginError):
        _key(host)


def test_a_success_in_between_keeps_a_plugin_out_of_quarantine(specs) -> None:
    host = PluginHost(specs, quarantine_after=3)
    bad = Raising(None)
    host.register("bad", bad)

    for error in (ValueError("1"), ValueError("2"), None, ValueError("3"), ValueError("4")):
        bad.error = error
        host.manager.hook.hermes_after_turn(session_id="s")

    assert (host.rows()[0].failures, host.rows()[0].quarantined) == (4, False)


@pytest.mark.parametrize(
    "error",
    [SystemExit(9), GeneratorExit(), asyncio.CancelledError(), BaseException("x")],
    ids=lambda e: type(e).__name__,
)
def test_whatever_a_plugin_raises_is_its_own_failure(specs, caplog, error) -> None:
    host = PluginHost(specs)
    host.register("bad", Raising(error))

    host.manager.hook.hermes_after_turn(session_id="s")
    with pytest.raises(PluginError, match=f"plugin 'bad' failed at call: hermes_build_key: {type(error).__name__}"):
        _key(host)

    assert host.rows()[0].failures == 2
    assert len(caplog.records) == 1


def test_the_persons_interrupt_passes_every_policy(specs) -> None:
    host = PluginHost(specs)
    host.register("bad", Raising(KeyboardInterrupt()))

    for call in (lambda: host.manager.hook.hermes_after_turn(session_id="s"), lambda: _key(host)):
        with pytest.raises(KeyboardInterrupt):
            call()

    assert host.rows()[0].failures == 0


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_exception_that_cannot_be_read_is_one_like_any_other(specs, caplog) -> None:
    host = PluginHost(specs)
    host.register("bad", Raising(Unreadable()))

    host.manager.hook.hermes_after_turn(session_id="s")
    with pytest.raises(PluginError, match=r"hermes_build_key: Unreadable: \(its message cannot be read\)"):
        _key(host)

    assert "hermes_after_turn, skipped: Unreadable: (its message cannot be read)" in caplog.text


def test_no_text_of_a_plugin_commands_the_terminal(specs, caplog) -> None:
    host = PluginHost(specs)
    host.register("bad", Raising(ValueError("\x1b[2J é 周\r\n\x9b1m \u202e\ud800")))

    host.manager.hook.hermes_after_turn(session_id="s")

    shown = r"ValueError: \x1b[2J é 周 \x9b1m \u202e\ud800"
    assert caplog.records[0].getMessage() == f"plugin 'bad' failed in hermes_after_turn, skipped: {shown}"


def test_a_wrapper_that_fails_is_named_and_what_passes_through_it_is_not_blamed_on_it(specs) -> None:
    class Wrapper:
        def __init__(self, error: BaseException | None) -> None:
            self.error = error

        @hookimpl(wrapper=True)
        def hermes_build_key(self, source: str) -> object:
            inner = yield
            if self.error is not None:
                raise self.error
            return inner

    host = PluginHost(specs)
    host.register("inner", Raising(KeyBuildError("no chat")))
    host.register("wrapper", Wrapper(None))

    with pytest.raises(KeyBuildError) as raised:
        _key(host)
    host.unregister("inner")
    host.unregister("wrapper")
    host.register("leaver", Wrapper(SystemExit(9)))
    with pytest.raises(PluginError, match="plugin 'leaver' failed at call: hermes_build_key: SystemExit: 9"):
        _key(host)

    assert raised.value.__notes__ == ["raised by plugin 'inner' in hermes_build_key"]


@pytest.mark.parametrize("from_outside", [True, False])
def test_a_cancelled_task_is_cancelled_and_a_listener_that_cancels_itself_has_failed(specs, from_outside) -> None:
    class Waiting:
        @hookimpl
        async def hermes_after_turn(self) -> None:
            if from_outside:
                asyncio.current_task().cancel()
                await asyncio.sleep(60)
            raise asyncio.CancelledError

    host = PluginHost(specs)
    host.register("waiting", Waiting())

    async def call() -> object:
        (pending,) = host.manager.hook.hermes_after_turn(session_id="s")
        return await pending

    if from_outside:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(call())
    else:
        assert asyncio.run(call()) is None
    assert host.rows()[0].failures == (0 if from_outside else 1)


def test_an_async_implementation_is_guarded_where_it_is_awaited(specs) -> None:
    class Later:
        @hookimpl
        async def hermes_after_turn(self, session_id: str) -> None:
            raise ValueError(session_id)

        @hookimpl
        async def hermes_build_key(self, source: str) -> None:
            raise ValueError(source)

    host = PluginHost(specs, quarantine_after=1)
    host.register("later", Later())

    async def call() -> object:
        results = host.manager.hook.hermes_after_turn(session_id="s")
        return [await result for result in results]

    async def fail() -> None:
        await _key(host)

    assert asyncio.run(call()) == [None]
    assert host.rows()[0].quarantined
    with pytest.raises(PluginError, match="ValueError: s"):
        asyncio.run(fail())


def test_an_implementation_may_ask_for_fewer_arguments_and_have_another_name(specs) -> None:
    class Lean:
        @hookimpl(specname="hermes_title")
        def my_title(self) -> str:
            return "lean"

    host = PluginHost(specs)
    row = host.register("lean", Lean())

    assert row.hooks == ("hermes_title",)
    assert host.manager.hook.hermes_title(text="t") == "lean"


def test_a_guarded_implementation_takes_its_arguments_by_name_too(specs) -> None:
    class Echo:
        @hookimpl
        def hermes_title(self, text: str) -> str:
            return text

    host = PluginHost(specs)
    host.register("echo", Echo())
    (implementation,) = host.manager.hook.hermes_title.get_hookimpls()

    assert implementation.function(text="named") == "named"
    assert implementation.function("placed") == "placed"


def test_a_wrapper_of_a_raise_hook_works_around_the_others(specs) -> None:
    class Wrapper:
        @hookimpl(wrapper=True)
        def hermes_build_key(self, source: str) -> object:
            inner = yield
            return f"<{inner}>"

    host = PluginHost(specs)
    host.register("inner", Raising(None))
    host.register("wrapper", Wrapper())

    assert _key(host) == "<fine>"


def test_the_first_result_wins_and_nobody_means_none(specs) -> None:
    host = PluginHost(specs)
    assert _key(host) is None

    host.register("one", Raising(None))
    host.register("none", Named("none", []))

    assert _key(host) == "fine"


def test_a_taken_name_and_a_second_registration_are_refused(specs) -> None:
    host = PluginHost(specs)
    plugin = Raising(None)
    host.register("one", plugin)

    with pytest.raises(PluginError, match="another plugin has this name"):
        host.register("one", Raising(None))
    with pytest.raises(PluginError, match="registered under another name"):
        host.register("two", plugin)

    assert host.plugin("one") is plugin


def test_unregister_takes_every_implementation_out_and_frees_the_name(specs) -> None:
    class Twice:
        @hookimpl
        def hermes_title(self) -> str:
            return "one"

        @hookimpl(specname="hermes_title")
        def another(self) -> str:
            return "two"

    host = PluginHost(specs)
    plugin = Twice()
    host.register("twice", plugin)

    assert host.unregister("twice") is plugin

    assert host.manager.hook.hermes_title(text="t") is None
    assert [row.stage for row in host.rows()] == ["unregistered"]
    with pytest.raises(PluginError):
        host.unregister("twice")
    host.register("twice", plugin)
    assert [row.stage for row in host.rows()] == ["loaded"]


def test_a_plugin_registered_inside_a_hook_joins_with_the_next_call(specs) -> None:
    calls: list[str] = []
    host = PluginHost(specs)

    class Opener:
        @hookimpl(tryfirst=True)
        def hermes_after_turn(self) -> None:
            if host.plugin("late") is None:
                host.register("late", Named("late", calls))

    host.register("rest", Named("rest", calls))
    host.register("opener", Opener())

    host.manager.hook.hermes_after_turn(session_id="1")
    first = list(calls)
    host.manager.hook.hermes_after_turn(session_id="2")

    assert first == ["rest"]
    assert calls == ["rest", "late", "rest"]
