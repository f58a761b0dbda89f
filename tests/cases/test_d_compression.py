"""Group D: compression makes one child, loses nothing, and what was said last stays as it was said."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import attrs
import pytest

from hermes_core.app import HermesApp
from hermes_core.config import load_settings
from hermes_core.config.sections import CompressionSettings
from hermes_core.context.compression import Compressor, load_context
from hermes_core.context.cuts import legal_cut
from hermes_hookspecs.errors import ConfigError, Conflict, HermesError, LeaseBusy, StoreFull
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_SUMMARY, USER, ToolCall
from hermes_hookspecs.operations import Begin, Compress, Renew, Revoke
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.compression import conversation, faults_of_cut
from hermes_hookspecs.turns import Fence

ALL = operator()
LONG = "and so on with many words about the weather in the mountains " * 8
SMALL = {"compression.hygiene_hard_message_limit": 12, "storage.durability": "normal"}
PATIENCE_S = 60


class Writes:
    """A summariser as a plugin, which does what a test says."""

    name = "writes"

    def __init__(self, work=lambda: "short"):
        self.work, self.asked = work, 0

    @hookimpl
    def hermes_summarisers(self):
        return [self]

    async def summarise(self, rows, *, previous, focus):
        self.asked += 1
        done = self.work()
        return await done if asyncio.iscoroutine(done) else done


@pytest.fixture
def small(open_home):
    """Return a function that opens the home; a context of 12 rows is compressed, plugins are registered."""

    def open_(*plugins, **settings):
        app = open_home(overrides=SMALL | settings, environ={})
        for number, plugin in enumerate(plugins):
            app.hooks.host.register(f"test.{number}", plugin)
        return app

    return open_


def talk(app, source, count, first=0):
    """Ask so many questions; return the session, and the windows that the agent saw."""
    seen = []
    for number in range(first, first + count):
        entry = app.ask(
            f"question {number}. {LONG}", source, agent=lambda turn: seen.append(turn) or f"answer. {LONG}"
        ).entry
    return entry, seen


def compress(app, entry, source):
    return asyncio.run(app.compress_session(entry.lineage_id, source))


def chain(app, entry):
    """Return the sessions of a lineage; each is the child of the one before it, only the last one is open."""
    segments = app.store.segments(entry.lineage_id, ALL)
    assert [one.parent_session_id for one in segments] == [None, *(one.id for one in segments[:-1])]
    assert [one.id for one in segments if one.ended_at is None] == [app.store.lineage(entry.lineage_id, ALL).tip]
    return segments


def questions(app, entry):
    rows = app.store.messages(entry.lineage_id, ALL)
    return [row.content.split(".")[0] for row in rows if row.role == USER]


# ------------------------------------------------------------------ D01 D02 D03


def test_d01_two_that_compress_at_once_make_one_child(small, alice):
    gate = Barrier(2, timeout=PATIENCE_S)

    async def together():
        await asyncio.to_thread(gate.wait)
        return "short"

    apps = [small(Writes(together), **{"compression.enabled": False}) for _ in range(2)]
    entry, _ = talk(apps[0], alice, 6)

    def try_(app):
        try:
            return compress(app, entry, alice).refusal
        except HermesError as error:
            return type(error)

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(try_, apps))

    assert told.count("") == 1
    assert {one for one in told if one} <= {Conflict, LeaseBusy}
    assert len(chain(apps[0], entry)) == 2


def test_d02_a_late_caller_with_an_old_handle_goes_on_in_the_child(small, alice):
    app = small(**{"compression.enabled": False})
    old, _ = talk(app, alice, 6)
    context = load_context(app.store, app.store.session(old.session_id, ALL))
    compressor = Compressor(store=app.store, clock=app.clock, hooks=app.hooks, settings=CompressionSettings())
    late = asyncio.run(compressor.by_hand(context, ""))
    compress(app, old, alice)
    fence = Fence(old.lineage_id, new_turn_id(app.clock.now()), app.store.lease(old.lineage_id).token)

    with suppress(HermesError):
        app.store.apply(compressor.compressing(fence, context, late))
    asyncio.run(app.command("/compress", alice, old))
    entry, _ = talk(app, alice, 1, first=6)

    segments = chain(app, entry)
    assert segments[0].id == old.session_id
    assert entry.session_id == segments[-1].id


def test_d03_who_cannot_take_the_lease_does_not_compress(small, alice, monkeypatch):
    app = small(**{"compression.enabled": False})
    entry, _ = talk(app, alice, 6)
    perform = type(app.store).perform

    def failing(store, operation):
        if isinstance(operation, Begin):
            raise StoreFull("no room for a lease")
        return perform(store, operation)

    monkeypatch.setattr(type(app.store), "perform", failing)
    with pytest.raises(StoreFull):
        compress(app, entry, alice)

    assert len(chain(app, entry)) == 1


# ------------------------------------------------------------------ D04 D05 D06


@pytest.mark.parametrize("point", ["compress.before", "group.begun:kill:1", "compress.stored"])
def test_d04_a_kill_leaves_one_session_that_goes_on_and_no_wall(start, small, alice, point):
    with small(**{"compression.enabled": False}) as app:
        entry, _ = talk(app, alice, 6)
    program = start(
        """
import asyncio, os
os.environ["HERMES_FAULT_POINTS"] = sys.argv[2]
with open_app(HOME, plugins=False, environ={}) as app:
    entry = app.get_or_create_session(ALICE, touch_activity=False)
    asyncio.run(app.compress_session(entry.lineage_id, ALICE))
""",
        point if point.count(":") == 2 else f"{point}:kill",
    )
    assert program.process.wait(PATIENCE_S) != 0

    app = small(**{"compression.enabled": False})
    entry, _ = talk(app, alice, 1, first=6)

    assert len(chain(app, entry)) == (2 if point == "compress.stored" else 1)
    assert questions(app, entry) == [f"question {n}" for n in range(7)]


def test_d04_a_writer_that_holds_the_parent_goes_on_in_the_living_child(small, alice):
    one, other = small(), small()
    old, _ = talk(one, alice, 4)
    compress(other, old, alice)

    entry = one.ask("still here?", alice, entry=old, agent="echo").entry

    assert entry.session_id == chain(one, entry)[-1].id != old.session_id


def test_d05_the_end_of_a_child_is_no_end_of_its_parents(small, alice):
    app = small()
    old, _ = talk(app, alice, 4)
    child = compress(app, old, alice).session_id
    asyncio.run(app.command("/new", alice, app.get_or_create_session(alice)))

    found = app.resolve(old.session_id, ALL)
    resumed = app.resume_session(alice, found.lineage.id)

    assert (found.session.id, resumed.session_id) == (old.session_id, child)
    assert len(app.store.summaries(ALL)) == 1
    assert app.store.segments(old.lineage_id, ALL)[0].end_reason == "compression"


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_d06_a_summariser_that_fails_or_says_nothing_takes_nothing_away(small, alice, text):
    def work():
        if text is None:
            raise RuntimeError("no credit")
        return text

    app = small(Writes(work))
    entry, seen = talk(app, alice, 9)

    assert len(chain(app, entry)) > 1
    assert questions(app, entry) == [f"question {n}" for n in range(9)]
    assert "question 1" in seen[-1].messages[0].content


def test_d06_a_store_that_cannot_write_the_child_leaves_everything(small, alice, monkeypatch):
    app = small(**{"compression.enabled": False})
    entry, _ = talk(app, alice, 6)
    before = app.store.messages(entry.lineage_id, ALL)
    perform = type(app.store).perform

    def failing(store, operation):
        if isinstance(operation, Compress):
            raise StoreFull("disk full")
        return perform(store, operation)

    with monkeypatch.context() as patch:
        patch.setattr(type(app.store), "perform", failing)
        with pytest.raises(StoreFull):
            compress(app, entry, alice)

    assert app.store.messages(entry.lineage_id, ALL) == before
    assert len(chain(app, entry)) == 1
    assert app.store.lease(entry.lineage_id).holder is None


# ------------------------------------------------------------------ D07 D08 D09


def test_d07_what_is_reported_is_what_the_next_turn_loads(small, alice):
    app = small(**{"compression.enabled": False})
    entry, _ = talk(app, alice, 10)

    report = compress(app, entry, alice)
    _, seen = talk(app, alice, 1, first=10)
    again = [compress(app, entry, alice) for _ in range(3)]
    _, later = talk(app, alice, 1, first=11)

    assert len(seen[0].messages) - 1 == report.rows_after < report.rows_before == 20
    assert again[-1].refusal
    assert len(later[0].messages) - 1 == again[-1].rows_after == again[-1].rows_before


@pytest.mark.parametrize("how", ["raises", "is stopped"])
def test_d08_a_turn_that_ends_badly_behind_its_compression_leaves_one_child(small, alice, how):
    app = small()
    entry, _ = talk(app, alice, 6)

    def broken(turn):
        if how == "is stopped":
            app.store.apply(Revoke(lineage_id=entry.lineage_id, now=app.clock.now(), reason="/stop"))
        raise RuntimeError("no")

    with pytest.raises(HermesError):
        app.ask("question 6", alice, agent=broken)
    after, seen = talk(app, alice, 1, first=7)
    app.close()
    again = small()
    last, _ = talk(again, alice, 1, first=8)

    assert len(chain(again, last)) == 2
    assert after.session_id == last.session_id
    assert len(seen[0].messages) < 10


def test_d09_a_long_compression_keeps_its_lease_through_failed_renewals(home, alice):
    settings = load_settings(home, None, {"plugins.only": (), **SMALL}, {})
    turns = attrs.evolve(settings.turns, lease_ttl_s=1.0, lease_renew_s=0.1)
    failures = []

    async def long():
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while app.store.lease(entry.lineage_id).renewals < first + 4:
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.01)
        return "short"

    with HermesApp(attrs.evolve(settings, turns=turns)) as app:
        app.hooks.host.register("test.writes", Writes(long))
        perform = app.store.perform

        def failing(operation):
            if isinstance(operation, Renew) and len(failures) < 2:
                failures.append(operation)
                raise StoreFull("for a moment")
            return perform(operation)

        entry, _ = talk(app, alice, 5)
        first = app.store.lease(entry.lineage_id).renewals
        app.store.perform = failing
        entry, _ = talk(app, alice, 2, first=5)

        assert len(failures) == 2
        assert len(chain(app, entry)) == 2
        assert {turn.outcome for turn in app.store.turns(entry.lineage_id, ALL)} == {"done"}


# ------------------------------------------------------------------ D12 D13 D14 D15


def test_d12_the_rest_after_a_useless_compression_ends_and_says_why_it_is_there(small, alice, caplog):
    writes = Writes(lambda: "x" * 100_000)
    app = small(writes)
    entry, _ = talk(app, alice, 7)
    tried = writes.asked
    app.close()
    writes.work = lambda: "short"

    again = small(writes)
    talk(again, alice, 1, first=7)
    rested = writes.asked
    rest = again.store.state("hermes.compression", entry.lineage_id, now=again.clock.now()).value
    report = compress(again, entry, alice)

    assert (tried, rested) == (1, 1), "the rest is remembered by the store, not by the process"
    assert "a summary would have saved nothing" in rest
    assert report.refusal == ""
    assert len(chain(again, entry)) == 2


def test_d13_a_summary_is_one_marked_row_and_nobodys_words(small, alice, hermes):
    app = small()
    entry, seen = talk(app, alice, 9)

    rows = app.store.messages(entry.lineage_id, ALL)
    summaries = [row for row in rows if row.kind == KIND_SUMMARY]
    child = app.store.messages(entry.lineage_id, ALL, session_id=summaries[0].session_id)
    (listed,) = app.store.summaries(ALL)

    assert {row.role for row in summaries} == {"system"}
    assert child[0] == summaries[0]
    assert len({row.id for row in rows}) == len(rows)
    assert len(set(questions(app, entry))) == len(questions(app, entry)) == 9
    assert listed.preview.startswith("question 0")
    assert seen[-1].messages[0].kind == KIND_SUMMARY
    assert all("Goals" not in result.snippet for result in app.session_search("question").results)


def test_d14_nothing_is_compressed_inside_an_open_round_of_calls(small, alice):
    app = small()
    entry, _ = talk(app, alice, 2)
    told = []

    async def working(turn):
        yield AssistantStep(content="", tool_calls=(ToolCall(id="c1", name="pay"),))
        try:
            await app.compress_session(entry.lineage_id, alice)
        except LeaseBusy as busy:
            told.append(str(busy))
        yield ToolResult(call_id="c1", name="pay", content="paid")
        yield AssistantStep(content="paid")

    app.ask("pay", alice, agent=working)
    _, seen = talk(app, alice, 1, first=3)

    assert len(told) == 1
    sent = seen[0].messages
    place = next(n for n, row in enumerate(sent) if row.tool_calls)
    assert (sent[place + 1].tool_call_id, sent[place + 1].content) == ("c1", "paid")


def test_d15_new_ends_the_child_that_is_current_and_nothing_stays_open(small, alice):
    app = small()
    entry, _ = talk(app, alice, 4)
    entry = asyncio.run(app.command("/compress", alice, entry)).entry
    asyncio.run(app.command("/new", alice, entry))

    segments = app.store.segments(entry.lineage_id, ALL)

    assert [one.end_reason for one in segments] == ["compression", "session_reset"]
    assert all(one.ended_at is not None for one in segments)


# ------------------------------------------------------------------ D16 D17 D18


@pytest.mark.parametrize(("threshold", "compressed"), [(0.95, False), (0.5, True)])
def test_d16_a_persons_own_threshold_wins(small, alice, threshold, compressed):
    app = small(
        **{
            "compression.threshold": threshold,
            "compression.context_tokens": 1000,
            "compression.hygiene_hard_message_limit": 5000,
        }
    )
    for number in range(6):
        entry = app.ask(f"{number} {'word ' * 50}", alice, agent=lambda turn: "yes " * 50).entry

    tokens = app.context_report(entry.session_id).tokens
    assert compressed or 850 > tokens > 500
    assert (len(chain(app, entry)) > 1) is compressed


@pytest.mark.parametrize("value", [0, 1.5, "much", True])
def test_d16_a_threshold_that_is_none_is_refused_by_name(home, value):
    with pytest.raises(ConfigError, match="threshold"):
        load_settings(home, None, {"compression.threshold": value}, {})


def test_d17_the_mark_survives_a_restart_and_rows_that_go(small, alice, sql):
    app = small()
    entry, _ = talk(app, alice, 8)
    kept = [one.kept_from for one in chain(app, entry)]
    app.close()
    sql("UPDATE messages SET hidden = 1 WHERE id >= ? AND kind IS NULL", kept[-1])

    again = small()
    _, seen = talk(again, alice, 1, first=8)

    assert [one.kept_from for one in chain(again, entry)] == kept
    assert seen[0].messages[0].kind == KIND_SUMMARY
    assert seen[0].messages[-1].content.startswith("question 8")


def test_d17_a_long_stretch_without_a_person_is_cut_between_its_rounds():
    rows = conversation(["ask", *["calls"] * 60])

    place = legal_cut(rows[1:], len(rows) - 2)

    assert place is not None
    assert faults_of_cut(rows[1:], rows[1:][place].id) == []


def test_d18_what_both_sides_said_last_stays_word_for_word(small, alice):
    app = small()
    talk(app, alice, 5)

    async def options(turn):
        for number in range(8):
            call = ToolCall(id=f"c{number}", name="look")
            yield AssistantStep(content="", tool_calls=(call,))
            yield ToolResult(call_id=call.id, name="look", content=LONG)
        yield AssistantStep(content="option 1: sea. option 2: mountains.")

    app.ask("where to?", alice, agent=options)
    seen = []
    entry = app.ask("option 2", alice, agent=lambda turn: seen.append(turn) or "fine").entry

    assert len(chain(app, entry)) > 1
    assert [row.content for row in seen[0].messages[-2:]] == ["option 1: sea. option 2: mountains.", "option 2"]


# ------------------------------------------------------------------ G10


def test_g10_an_id_that_was_shown_before_a_compression_leads_to_the_conversation(hermes, home):
    env = {"HERMES_COMPRESSION_HYGIENE_HARD_MESSAGE_LIMIT": "6"}
    first = _said(hermes("-q", f"question 0. {LONG}", "--agent", "echo", "--json", env=env))
    for number in range(1, 5):
        last = _said(
            hermes("-r", first["session_id"], "-q", f"question {number}. {LONG}", "--agent", "echo", "--json", env=env)
        )
    shown = hermes("sessions", "show", first["session_id"])

    assert last["session_id"] != first["session_id"]
    assert shown.out.splitlines()[0].split() == ["session", last["session_id"]]
    assert [f"question {n}." in shown.out for n in range(5)] == [True] * 5


def _said(ran):
    import json

    assert ran.status == 0, ran.err
    return json.loads(ran.out)


def test_i16_behind_a_compression_the_base_title_is_the_conversations_own(small, alice):
    app = small()
    entry, _ = talk(app, alice, 4)
    app.rename_session(entry.lineage_id, "demo")
    compress(app, entry, alice)

    assert app.rename_session(entry.lineage_id, "demo") == "demo"
    assert app.resolve("demo", ALL).session.id == chain(app, entry)[-1].id
    assert app.resolve("demo #2", ALL).lineage.id == entry.lineage_id


def test_f09_what_was_summarised_is_found_from_the_child_and_what_is_live_is_not(small, alice):
    app = small()
    entry = app.ask(f"the code word is xylophone. {LONG}", alice, agent="echo").entry
    talk(app, alice, 8)

    gone = app.session_search("xylophone", own=entry.lineage_id).results
    live = app.session_search('"question 7"', own=entry.lineage_id).results

    assert [one.lineage_id for one in gone] == [entry.lineage_id]
    assert live == ()
