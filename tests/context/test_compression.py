"""Compression in a real profile: when it comes, what it leaves, who hears of it, and what it never does."""

from __future__ import annotations

import asyncio
import json

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.errors import AgentFailed, ContextOverflow, LeaseBusy
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, USER, ToolCall
from hermes_hookspecs.operations import Begin, Revoke
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult, UsageReport
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.turns import Usage

ALL = operator()
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
SMALL = {"compression.hygiene_hard_message_limit": 20}
OFF = {"compression.enabled": False}
LONG = "and so on with many words about the weather in the mountains " * 8


class Listening:
    """Hears of compressions, and brings what a test gives it."""

    def __init__(self, *, policies=(), summarisers=()):
        self.heard = []
        self._policies, self._summarisers = policies, summarisers

    @hookimpl
    def hermes_after_compression(self, lineage_id, parent_id, child_id):
        self.heard.append((lineage_id, parent_id, child_id))

    @hookimpl
    def hermes_compression_policies(self):
        return self._policies

    @hookimpl
    def hermes_summarisers(self):
        return self._summarisers


class Reader:
    """An agent that writes down what it was given."""

    name = "reader"
    model = None

    def __init__(self, answer=f"fine. {LONG}"):
        self.seen = []
        self.answer = answer

    async def run(self, turn):
        self.seen.append(turn)
        yield AssistantStep(content=self.answer)

    @property
    def texts(self):
        """What was in the last window."""
        return [row.content for row in self.seen[-1].messages]


def _talk(app, count, *, agent=None, source=SOURCE, first=0, **fields):
    reader = agent or Reader()
    for number in range(first, first + count):
        entry = app.ask(f"question {number}. {LONG}", source, agent=reader, **fields).entry
    return reader, entry


def _segments(app, entry):
    return app.store.segments(entry.lineage_id, ALL)


def _compress(app, entry, focus=""):
    return asyncio.run(app.compress_session(entry.lineage_id, SOURCE, focus=focus))


def _uncompress(app, entry):
    return asyncio.run(app.uncompress_session(entry.lineage_id, SOURCE))


def _run(app, text, entry, source=SOURCE):
    return asyncio.run(app.command(text, source, entry))


# ------------------------------------------------------------------ by itself


def test_a_context_with_too_many_rows_goes_on_behind_a_summary(profile):
    ears = Listening()
    app = profile(SMALL, plugins=[ears])

    reader, entry = _talk(app, 11)

    parent, child = _segments(app, entry)
    app.hooks.flush()
    assert ears.heard == [(entry.lineage_id, parent.id, child.id)]
    assert (parent.end_reason, child.parent_session_id) == ("compression", parent.id)
    assert entry.session_id == child.id
    assert reader.seen[-1].session.id == child.id
    assert len(reader.texts) < 10
    assert reader.seen[-1].messages[0].kind == KIND_SUMMARY
    assert reader.texts[-1].startswith("question 10.")
    assert len(app.store.messages(entry.lineage_id, ALL)) == 23


def test_the_prompt_keeps_its_beginning_from_one_compression_to_the_next(profile):
    app = profile(SMALL)
    reader, entry = _talk(app, 60)

    windows = [turn.messages for turn in reader.seen]
    changed = [
        n
        for n in range(1, 60)
        if [r.content for r in windows[n][: len(windows[n - 1])]] != [r.content for r in windows[n - 1]]
    ]

    assert len(changed) == len(_segments(app, entry)) - 1
    assert 3 <= len(changed) <= 8


def test_nothing_is_compressed_while_nothing_is_due_or_it_is_off(profile):
    due, off = profile(home="a"), profile(SMALL | OFF, home="b")

    for app in (due, off):
        reader, entry = _talk(app, 25)
        assert len(_segments(app, entry)) == 1
        assert len(reader.texts) == 49


def test_a_full_window_is_compressed_by_what_the_endpoint_measured(profile):
    app = profile({"compression.context_tokens": 10_000})

    class Measured(Reader):
        async def run(self, turn):
            async for step in super().run(turn):
                yield step
            tokens = 8600 if len(turn.messages) > 8 else 100
            yield UsageReport(usage=Usage(input_tokens=tokens))

    _, entry = _talk(app, 5, agent=Measured())
    before = len(_segments(app, entry))
    _talk(app, 2, agent=Measured(), first=5)

    assert (before, len(_segments(app, entry))) == (1, 2)


def test_an_agent_says_how_much_its_model_can_read(profile):
    app = profile()
    agent = Reader()
    agent.context_tokens = 2000

    _, entry = _talk(app, 12, agent=agent)

    assert len(_segments(app, entry)) > 1


def test_a_policy_of_a_plugin_is_asked_and_its_illegal_cut_is_moved(profile):
    class Greedy:
        name = "greedy"

        def cut(self, view):
            return view.rows[-1].id if len(view.rows) > 8 else None

    class Broken:
        name = "broken"

        def cut(self, view):
            raise RuntimeError("no")

    app = profile(plugins=[Listening(policies=[Broken(), Greedy()])])

    reader, entry = _talk(app, 5)

    assert len(_segments(app, entry)) == 2
    assert [text[:10] for text in reader.texts[1:]] == ["fine. and ", "question 4"]


def test_a_summariser_of_a_plugin_writes_and_a_failing_one_is_replaced(profile, caplog):
    class Fails:
        name = "fails"

        async def summarise(self, rows, *, previous, focus):
            raise RuntimeError("quota")

    class Blank:
        name = "blank"

        async def summarise(self, rows, *, previous, focus):
            return " \n"

    class Slow:
        name = "slow"

        async def summarise(self, rows, *, previous, focus):
            await asyncio.Event().wait()

    class Writes:
        name = "writes"

        async def summarise(self, rows, *, previous, focus):
            return f"{len(rows)} rows, before: {previous}"

    quick = SMALL | {"compression.summary_timeout_s": 0.1}
    app = profile(quick, plugins=[Listening(summarisers=[Fails(), Blank(), Slow(), Writes()])])
    reader, _ = _talk(app, 11)
    other = profile(quick, plugins=[Listening(summarisers=[Fails()])], home="other")
    fallback, _ = _talk(other, 11)

    assert reader.texts[0].endswith("rows, before: None")
    assert "## Goals" in fallback.texts[0]
    for words in ("summariser fails failed", "summariser blank returned no text", "summariser slow failed"):
        assert words in caplog.text


def test_a_useless_compression_is_not_made_and_not_tried_again_soon(profile, clock):
    asked = []

    class Verbose:
        name = "verbose"

        async def summarise(self, rows, *, previous, focus):
            asked.append(len(rows))
            return "x" * 100_000

    app = profile(SMALL, plugins=[Listening(summarisers=[Verbose()])], clock=clock)
    _, entry = _talk(app, 11)
    early = len(asked)
    _talk(app, 1, first=11)
    soon = len(asked)
    clock.advance(601)
    _talk(app, 1, first=12)

    assert (early, soon, len(asked)) == (1, 1, 2)
    assert len(_segments(app, entry)) == 1
    rest = json.loads(app.store.state("hermes.compression", entry.lineage_id, now=clock.now()).value)
    assert (rest["strikes"], rest["reason"]) == (2, "a summary would have saved nothing")


def test_a_rest_ends_when_the_context_has_grown(profile, clock):
    asked = []

    class Verbose:
        name = "verbose"

        async def summarise(self, rows, *, previous, focus):
            asked.append(len(rows))
            return "x" * 100_000

    app = profile(SMALL, plugins=[Listening(summarisers=[Verbose()])], clock=clock)

    _talk(app, 16)

    assert len(asked) == 2


def test_a_turn_that_was_stopped_meanwhile_makes_no_child(profile):
    app = profile(SMALL)
    _, entry = _talk(app, 10)

    class Revoking:
        name = "revoking"

        async def summarise(self, rows, *, previous, focus):
            app.store.apply(Revoke(lineage_id=entry.lineage_id, now=app.clock.now(), reason="/stop"))
            return "short"

    app.hooks.host.register("test.revoking", Listening(summarisers=[Revoking()]))
    app.hooks._provided.clear()
    with pytest.raises(Exception, match="lease"):
        _talk(app, 1, first=10)

    assert len(_segments(app, entry)) == 1
    assert [turn.outcome for turn in app.store.turns(entry.lineage_id, ALL)][-1] == "stopped"


def test_a_turn_that_fails_behind_its_compression_leaves_one_child(profile):
    app = profile(SMALL)
    _, entry = _talk(app, 10)

    def broken(turn):
        raise RuntimeError("no")

    with pytest.raises(AgentFailed):
        app.ask("question 10", SOURCE, agent=broken)
    reader, _ = _talk(app, 1, first=11)

    assert len(_segments(app, entry)) == 2
    assert reader.seen[0].session.id == _segments(app, entry)[1].id
    assert len(reader.texts) < 10


def test_an_open_round_of_calls_stays_whole(profile):
    app = profile(SMALL)
    _, entry = _talk(app, 9)

    async def working(turn):
        calls = tuple(ToolCall(id=f"c{n}", name="look") for n in range(3))
        yield AssistantStep(content="", tool_calls=calls)
        for call in calls:
            yield ToolResult(call_id=call.id, name="look", content=f"result of {call.id}. {LONG}")
        yield AssistantStep(content="option 1: sea, option 2: mountains")

    app.ask("question 9", SOURCE, agent=working)
    reader, _ = _talk(app, 1, first=10)

    assert len(_segments(app, entry)) == 2
    assert "option 1: sea, option 2: mountains" in reader.texts
    sent = reader.seen[-1].messages
    for place, row in enumerate(sent):
        if row.tool_calls:
            answered = [one.tool_call_id for one in sent[place + 1 : place + 1 + len(row.tool_calls)]]
            assert answered == [call.id for call in row.tool_calls]


# ------------------------------------------------------------------ too long for the model


class Narrow(Reader):
    """An agent whose model reads so many characters."""

    def __init__(self, most):
        super().__init__()
        self.most = most
        self.refused = 0

    async def run(self, turn):
        if sum(len(row.content) for row in turn.messages) > self.most:
            self.refused += 1
            raise ContextOverflow("the prompt is too long", limit_tokens=self.most // 4)
        async for step in super().run(turn):
            yield step


def test_what_is_too_long_is_compressed_and_asked_once_more(profile):
    app = profile()
    _talk(app, 12)
    agent = Narrow(9000)

    result = app.ask("short question", SOURCE, agent=agent)

    assert result.text.startswith("fine.")
    assert (agent.refused, len(_segments(app, result.entry))) == (1, 2)
    assert agent.texts[-1] == "short question"


def test_what_is_still_too_long_fails_after_one_more_try(profile):
    app = profile()
    _talk(app, 12)
    agent = Narrow(10)

    with pytest.raises(AgentFailed, match="too long"):
        app.ask("short question", SOURCE, agent=agent)

    assert agent.refused == 2


def test_nothing_to_compress_fails_as_it_was(profile):
    app = profile()
    agent = Narrow(10)

    with pytest.raises(AgentFailed, match="too long"):
        app.ask(f"a single long question {LONG}", SOURCE, agent=agent)

    assert agent.refused == 1


def test_a_turn_that_has_grown_too_long_by_itself_hands_its_request_on(profile):
    app = profile()
    seen = []

    async def working(turn):
        seen.append(turn.messages)
        if len(seen) > 1:
            yield AssistantStep(content="done at last")
            return
        for number in range(12):
            call = ToolCall(id=f"c{number}", name="look")
            yield AssistantStep(content=f"step {number}", tool_calls=(call,))
            yield ToolResult(call_id=call.id, name="look", content=LONG * 3)
        raise ContextOverflow("the prompt is too long")

    result = app.ask("find the\n\nneedle in all of these files", SOURCE, agent=working)

    assert result.text == "done at last"
    assert "find the\n\nneedle in all of these files" in seen[1][0].content
    assert seen[1][1].content == "step 11"
    _talk(app, 4)
    _compress(app, result.entry)
    assert len(_segments(app, result.entry)) == 3


# ------------------------------------------------------------------ by hand


def test_a_person_compresses_and_sees_what_the_next_turn_loads(profile):
    app = profile(OFF)
    _, entry = _talk(app, 10)

    reply = _run(app, "/compress", entry)
    reader, _ = _talk(app, 1, first=10)

    parent, child = _segments(app, entry)
    assert not reply.failed
    assert f"{len(reader.texts) - 1} messages instead of 20" in reply.text
    assert (reply.entry.session_id, child.parent_session_id) == (child.id, parent.id)
    assert app.turn_state(entry.lineage_id) == ""
    assert [turn.outcome for turn in app.store.turns(entry.lineage_id, ALL)][-2:] == ["done", "done"]


def test_a_focus_is_what_the_summary_says_most_of(profile):
    app = profile()
    _, entry = _talk(app, 10)

    _run(app, "/compress the mountains", entry)
    reader, _ = _talk(app, 1)

    assert "## About: the mountains" in reader.texts[0]


@pytest.mark.parametrize("count", [0, 1])
def test_a_short_session_says_that_there_is_nothing_to_compress(profile, count):
    app = profile()
    entry = app.get_or_create_session(SOURCE) if not count else _talk(app, count)[1]

    reply = _run(app, "/compress", entry)

    assert "nothing to compress" in reply.text
    assert reply.entry is None
    assert len(_segments(app, entry)) == 1


def test_commands_without_a_session_say_so(profile):
    app = profile()

    assert _run(app, "/compress", None).failed
    assert _run(app, "/uncompress", None).failed


def test_nobody_compresses_under_a_running_turn(profile):
    app = profile()
    _, entry = _talk(app, 10)
    app.store.apply(
        Begin(
            lineage_id=entry.lineage_id,
            turn_id=new_turn_id(app.clock.now()),
            holder=holder_here(Entrance("slack"), None),
            now=app.clock.now(),
            ttl_ms=30_000,
            maintenance=True,
        )
    )

    with pytest.raises(LeaseBusy, match="slack"):
        _compress(app, entry)
    with pytest.raises(LeaseBusy, match="slack"):
        _uncompress(app, entry)
    assert _run(app, "/compress", entry).failed
    assert len(_segments(app, entry)) == 1


def test_a_compression_is_taken_back_step_by_step(profile):
    app = profile(OFF)
    _, entry = _talk(app, 12)
    _run(app, "/compress", entry)
    _talk(app, 8, first=12)
    _run(app, "/compress", entry)
    once, _ = _talk(app, 1, first=20)

    first = _run(app, "/uncompress", entry)
    middle, _ = _talk(app, 1, first=21)
    second = _run(app, "/uncompress", entry)
    whole, _ = _talk(app, 1, first=22)
    third = _run(app, "/uncompress", entry)

    assert "Uncompressed" in first.text
    assert "Uncompressed" in second.text
    assert "Nothing is compressed" in third.text
    assert len(once.texts) < len(middle.texts) < len(whole.texts)
    assert middle.seen[0].messages[0].kind == KIND_SUMMARY
    assert middle.texts[0] != once.texts[0]
    assert [text[:12].strip(". ") for text in whole.texts[::2]] == [f"question {n}"[:12].strip() for n in range(23)]
    assert [one.end_reason for one in _segments(app, entry)] == [
        "compression",
        "compression",
        "uncompression",
        "uncompression",
        None,
    ]


def test_what_a_person_took_back_is_not_compressed_again_at_once(profile):
    app = profile(SMALL)
    _, entry = _talk(app, 11)

    _uncompress(app, entry)
    reader, _ = _talk(app, 1, first=11)

    assert len(_segments(app, entry)) == 3
    assert len(reader.texts) == 23


def test_a_session_that_was_left_is_compressed_and_stays_left(profile):
    app = profile()
    _, entry = _talk(app, 10)
    _run(app, "/new", entry)

    _compress(app, entry)

    assert [one.end_reason for one in _segments(app, entry)] == ["compression", "session_reset"]


def test_new_ends_the_child_and_leaves_nothing_open(profile):
    app = profile()
    _, entry = _talk(app, 10)
    entry = _run(app, "/compress", entry).entry

    _run(app, "/new", entry)

    assert [one.end_reason for one in _segments(app, entry)] == ["compression", "session_reset"]


# ------------------------------------------------------------------ the lineage as one


@pytest.fixture
def told(profile):
    """A lineage whose code word went into a summary that does not hold it."""
    app = profile(OFF)
    app.ask("nothing much", SOURCE, agent=Reader("the code word is xylophone " + LONG))
    _, entry = _talk(app, 10)
    app.rename_session(entry.lineage_id, "plan")
    _compress(app, entry)
    reader, _ = _talk(app, 1, first=10)
    assert "xylophone" not in "".join(reader.texts)
    return app, entry


def test_what_was_summarised_is_found_from_the_child_and_what_is_live_is_not(told):
    app, entry = told

    gone = app.session_search("xylophone", own=entry.lineage_id).results
    live = app.session_search('"question 10"', own=entry.lineage_id).results

    assert [one.lineage_id for one in gone] == [entry.lineage_id]
    assert live == ()


def test_an_uncompressed_session_has_everything_in_its_context(told):
    app, entry = told

    _uncompress(app, entry)

    assert app.session_search("xylophone", own=entry.lineage_id).results == ()
    assert len(app.session_search("xylophone").results) == 1


def test_the_whole_lineage_is_listed_counted_and_exported(told):
    app, entry = told

    (listed,) = app.store.summaries(ALL)
    exported = app.export_session(entry.session_id, lineage=True)

    assert (listed.title, listed.segments, listed.message_count) == ("plan", 2, 25)
    assert listed.session_id == _segments(app, entry)[1].id
    assert listed.preview.startswith("nothing much")
    assert [one["message_count"] for one in exported["segments"]] == [22, 3]
    assert len(exported["messages"]) == 25
    assert [row["kind"] for row in exported["messages"] if row["role"] == SYSTEM] == [KIND_SUMMARY]


def test_a_reference_to_any_segment_means_the_lineage(told):
    app, entry = told
    parent, child = _segments(app, entry)

    found = [app.resolve(reference, ALL) for reference in (parent.id, child.id, "plan", "plan #2")]

    assert {one.lineage.id for one in found} == {entry.lineage_id}
    assert [one.session.id for one in found] == [parent.id, child.id, child.id, child.id]
    assert app.resume_session(SOURCE, entry.lineage_id).session_id == child.id


def test_a_summary_is_no_persons_words(told):
    app, entry = told
    (summary,) = [row for row in app.store.messages(entry.lineage_id, ALL) if row.kind == KIND_SUMMARY]

    assert summary.role == SYSTEM
    assert app.store.scan(["## Goals"], ALL) == ()
    assert attrs.evolve(summary, role=USER) not in app.store.messages(entry.lineage_id, ALL)
