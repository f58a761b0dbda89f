"""Tools made of functions, and the calls of one assistant row, run."""

from __future__ import annotations

import asyncio
import enum
import json
import threading
from dataclasses import dataclass, field
from typing import Annotated, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.errors import StoreFull
from hermes_hookspecs.files import FileResult, OutgoingFile
from hermes_hookspecs.messages import MessageDraft, ToolCall, may_have_begun
from hermes_hookspecs.parameters import ArgumentFault, shape_of
from hermes_hookspecs.ports.agent import TurnContext
from hermes_hookspecs.send_file import send_file
from hermes_hookspecs.testing.agents import FakeOutgoing, FakeTool
from hermes_hookspecs.toolbox import AskedCall, Toolbox
from hermes_hookspecs.tools import result_text, tool

LIMIT_S = 10


class Unit(enum.Enum):
    CELSIUS = "c"
    KELVIN = "k"


@attrs.frozen(kw_only=True)
class Place:
    city: str
    tags: tuple[str, ...] = ()


@dataclass
class Trip:
    places: list[Place]
    days: int = 1
    notes: dict[str, float] = field(default_factory=dict)


class Node:
    pass


@attrs.frozen
class Endless:
    inner: Endless | None = None


def run(coroutine):
    async def limited():
        async with asyncio.timeout(LIMIT_S):
            return await coroutine

    return asyncio.run(limited())


def call(one, /, **arguments):
    return run(one.call(arguments, None))


# ------------------------------------------------------------------ schema


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (object, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Unit, {"type": "string", "enum": ["c", "k"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[str, "a name"], {"type": "string", "description": "a name"}),
        (
            Place,
            {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_type_has_its_schema(hint, schema):
    assert shape_of(hint).schema() == schema


@pytest.mark.parametrize("hint", [Node, Endless, tuple[int, str], dict[int, str], type(lambda: 0), bytes, set[Node]])
def test_a_type_that_no_model_can_be_asked_for_is_refused(hint):
    with pytest.raises(TypeError):
        shape_of(hint)


def test_an_object_inside_objects_is_described_and_made():
    trip = shape_of(Trip)

    value = trip.value({"places": [{"city": "Ulm", "tags": ["old"]}], "notes": {"km": 3}}, "", faults := [])

    assert faults == []
    assert value == Trip(places=[Place(city="Ulm", tags=("old",))], days=1, notes={"km": 3.0})
    assert trip.schema()["properties"]["days"] == {"type": "integer", "default": 1}


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("raw", "hint", "value"),
    [
        (3.0, int, 3),
        ("3", int, 3),
        ("-3", int, -3),
        (3, float, 3.0),
        ("2.5", float, 2.5),
        ("c", Unit, Unit.CELSIUS),
        ("5", str | int, "5"),
        (5, str | int, 5),
        ("5", int | None, 5),
        (None, int | None, None),
        ([1, 1], set[int], {1}),
        ([1], frozenset[int], frozenset({1})),
        ([{"a": None}], object, [{"a": None}]),
    ],
)
def test_a_value_is_taken_as_it_was_meant(raw, hint, value):
    found = shape_of(hint).value(raw, "x", faults := [])

    assert faults == []
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("raw", "hint", "said"),
    [
        ("two", int, "x: 'two' is not a whole number"),
        (2.5, int, "x: 2.5 is not a whole number"),
        (True, int, "x: True is not a whole number"),
        ("nan", float, "x: 'nan' is not a number"),
        (10**400, float, "is not a number"),
        (1, bool, "x: 1 is not true or false"),
        (7, str, "x: 7 is not text"),
        ("f", Unit, "x: 'f' is not one of 'c', 'k'"),
        (1, Literal[True], "x: 1 is not one of True"),
        ("abc", list[str], "x: 'abc' is not a list"),
        ([1, "b"], list[int], r"x\[1\]: 'b' is not a whole number"),
        ({"a": "b"}, dict[str, int], "x.a: 'b' is not a whole number"),
        ([], dict[str, int], r"x: \[\] is not an object"),
        ("q", int | None, "x: 'q' is not a whole number or x: 'q' is not null"),
        ({}, Place, "x.city is missing"),
        ({"city": "Ulm", "zip": 1}, Place, "x.zip is unknown; there are: city, tags"),
        ([[]], set[object], "is not a list of plain values"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_place(raw, hint, said):
    shape_of(hint).value(raw, "x", faults := [])

    with pytest.raises(ArgumentFault, match=said):
        raise ArgumentFault("; ".join(faults))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    raw=JSON, hint=st.sampled_from([int, float, str, bool, Unit, Trip, Place, list[int], dict[str, int], int | None])
)
def test_whatever_a_model_writes_is_a_value_or_a_complaint(raw, hint):
    value = shape_of(hint).value(raw, "x", faults := [])

    assert faults or value is not None or hint == int | None


# ------------------------------------------------------------------ the decorator


@tool(effect="read", timeout_s=2.5)
async def weather(city: str, days: int = 1, unit: Unit = Unit.CELSIUS) -> str:
    """Say what the weather will be.

    It is a guess.

    :param city: its name,
        in any language. days: how many.
    :returns: words.
    """
    return f"{city} {days} {unit.value}"


def test_a_function_becomes_a_tool():
    assert (weather.name, weather.effect, weather.dangerous, weather.timeout_s) == ("weather", "read", False, 2.5)
    assert weather.description == "Say what the weather will be. It is a guess."
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "its name, in any language."},
            "days": {"type": "integer", "description": "how many.", "default": 1},
            "unit": {"type": "string", "enum": ["c", "k"], "default": "c"},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_tool_is_called_with_what_was_meant():
    assert call(weather, city="Ulm", days="2", unit="k") == "Ulm 2 k"


def test_null_for_a_parameter_with_a_default_is_the_default():
    assert call(weather, city="Ulm", days=None) == "Ulm 1 c"


def test_all_that_does_not_fit_is_told_at_once_and_nothing_is_called():
    with pytest.raises(ArgumentFault, match=r"days: 'x' is not a whole number; day is unknown.*; city is missing"):
        call(weather, days="x", day=1)


def test_a_tool_can_still_be_called_as_a_function():
    assert run(weather("Ulm")) == "Ulm 1 c"


def test_a_plain_function_runs_beside_the_loop():
    @tool(effect="read")
    def where() -> str:
        """Say where it runs."""
        return threading.current_thread().name

    assert call(where) == "hermes-tool"


def test_what_a_plain_function_raises_passes():
    @tool(effect="read")
    def fail() -> str:
        """Fail."""
        raise StopIteration

    with pytest.raises(RuntimeError):
        call(fail)


def test_a_function_that_hangs_does_not_keep_the_loop_from_ending():
    release = threading.Event()

    @tool(effect="read", timeout_s=0.01)
    def hang() -> str:
        """Hang."""
        release.wait(LIMIT_S)

    (result,) = results([asked("hang")], hang)

    assert result.content == "Error: hang did not answer within 0.01 s and was given up."
    release.set()


def test_the_turn_is_given_and_not_asked_for():
    @tool(effect="read")
    async def who(turn: TurnContext) -> str:
        """Say whose turn it is."""
        return turn

    assert who.parameters["properties"] == {}
    assert run(who.call({}, "mine")) == "mine"
    with pytest.raises(ArgumentFault, match="turn is unknown"):
        run(who.call({"turn": "yours"}, "mine"))


def _no_docstring(a: int): ...


def _no_type(a):
    """Say."""


def _any_number(*a: int):
    """Say."""


def _no_such_type(a: Unheard):  # noqa: F821 - the point of it
    """Say."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_no_docstring, "give it a docstring"),
        (_no_type, "a has no type"),
        (_any_number, "cannot be given by name"),
        (_no_such_type, "'Unheard' is not defined"),
    ],
)
def test_a_function_that_cannot_be_offered_is_refused_at_once(function, said):
    with pytest.raises(TypeError, match=said):
        tool(effect="read")(function)


@pytest.mark.parametrize(
    "options", [{"effect": "none"}, {"name": "with space"}, {"timeout_s": 0}, {"most_characters": 0}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(TypeError):
        tool(**options)(lambda: "")


def test_a_bare_decorator_is_told_what_is_missing():
    with pytest.raises(TypeError, match="effect="):
        tool(weather.function)


# ------------------------------------------------------------------ results


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as is", "as is"),
        (None, "ok"),
        (3, "3"),
        ({"städte": ["Ulm"]}, '{"städte": ["Ulm"]}'),
        (Place(city="Ulm"), '{"city": "Ulm", "tags": []}'),
        (Trip(places=[]), '{"places": [], "days": 1, "notes": {}}'),
        ([Unit.KELVIN, {2, 1}], '["k", [1, 2]]'),
        ([b"x"], "[\"b'x'\"]"),
    ],
)
def test_a_result_becomes_text(result, text):
    assert result_text(result) == text


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def circle():
    inner = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({(1, 2): "x"}, "{(1, 2): 'x'}"),
        (circle(), "[[...]]"),
        (Mute(), "a Mute that cannot be written down"),
        ({"a": Mute()}, "{'a': Mute()}"),
        (Endless(Mute()), "Endless(inner=Mute())"),
    ],
)
def test_a_result_that_json_cannot_hold_is_no_failure_of_the_call(result, text):
    @tool(effect="write")
    def send() -> object:
        """Send."""
        return result

    (of_function,) = results([asked("send")], send)
    (of_foreign,) = results([asked("send")], FakeTool("send", lambda _arguments: result))

    assert [(one.content, one.outcome) for one in (of_function, of_foreign)] == [(text, "answered")] * 2


def test_the_middle_of_a_long_result_is_left_out():
    @tool(effect="read", most_characters=90)
    async def talk() -> str:
        """Talk."""
        return "a" * 500 + "z" * 500

    text = call(talk)

    assert text.startswith("a" * 60 + "\n")
    assert text.endswith("\n" + "z" * 30)
    assert "910 characters left out" in text


# ------------------------------------------------------------------ the calls of one row


def asked(name, arguments="{}", call_id=""):
    return AskedCall(id=call_id, name=name, arguments=arguments)


def a_turn(tools=(), steering=None, messages=(), outgoing=None):
    none = dict.fromkeys(("turn", "session", "source", "principal", "history"))
    named = {one.name: one for one in tools}
    return TurnContext(
        **none, messages=messages, text="", attachments=(), tools=named, steering=steering, outgoing=outgoing
    )


def results(asked_calls, *tools, within_s=None, outgoing=None, **options):
    async def collect():
        box = Toolbox(a_turn(tools, outgoing=outgoing), **options)
        return [result async for result in box.run(box.calls(asked_calls), within_s=within_s)]

    return run(collect())


class Meeting:
    """Tools that wait until all of them are being called: they only ever answer when they run together."""

    def __init__(self, number, effect="read"):
        self.order = []
        self.ended = []
        self.someone_here = asyncio.Event()
        self.all_here = asyncio.Event()
        self.tools = [self._tool(f"t{n}", number, effect) for n in range(number)]

    def _tool(self, name, number, effect):
        @tool(effect=effect, name=name)
        async def meet() -> str:
            """Wait for the others."""
            self.order.append(name)
            self.someone_here.set()
            if len(self.order) == number:
                self.all_here.set()
            try:
                await self.all_here.wait()
            finally:
                self.ended.append(name)
            return name

        return meet


def test_calls_that_only_read_run_together():
    meeting = Meeting(3)

    found = results([asked(one.name) for one in meeting.tools], *meeting.tools)

    assert sorted(one.content for one in found) == ["t0", "t1", "t2"]


def test_no_more_calls_run_together_than_are_allowed():
    meeting = Meeting(3)

    found = results([asked(one.name) for one in meeting.tools], *meeting.tools, most_parallel=2, timeout_s=0.05)

    assert sum("did not answer" in one.content for one in found) == 2


def test_calls_run_one_after_another_where_one_of_them_writes():
    running, most = set(), []

    def made(name, effect):
        @tool(effect=effect, name=name)
        async def step() -> str:
            """Step."""
            running.add(name)
            most.append(len(running))
            await asyncio.sleep(0)
            running.discard(name)

        return step

    found = results([asked("a"), asked("b"), asked("a")], made("a", "read"), made("b", "write"))

    assert [one.name for one in found] == ["a", "b", "a"]
    assert most == [1, 1, 1]


def test_ids_are_unique_within_the_turn_and_effects_are_those_of_the_tools():
    box = Toolbox(a_turn([FakeTool("look"), FakeTool("send", effect="write")]))

    first = box.calls([asked("look", call_id="c"), asked("send", call_id="c"), asked("look")])
    second = box.calls([asked("other", call_id="c")])

    assert len({one.id for one in (*first, *second)}) == 4
    assert first[0].id == "c"
    assert [one.effect for one in (*first, *second)] == ["read", "write", "read", "read"]


def test_a_row_that_only_reads_has_no_order_and_any_other_has_one():
    box = Toolbox(a_turn([FakeTool("look"), FakeTool("send", effect="write")]))

    together = box.calls([asked("look"), asked("look"), asked("nowhere")])
    in_order = box.calls([asked("look"), asked("send"), asked("look")])

    assert {one.in_order for one in together} == {False}
    assert {one.in_order for one in in_order} == {True}
    assert may_have_begun(together) == together
    assert may_have_begun(in_order) == in_order[:1]


def test_ids_of_the_context_are_not_used_again():
    earlier = MessageDraft(role="assistant", timestamp=0, tool_calls=(ToolCall(id="c", name="look"),))

    (call,) = Toolbox(a_turn(messages=(earlier,))).calls([asked("look", call_id="c")])

    assert call.id != "c"


def test_a_tool_that_says_nothing_sensible_of_its_effect_is_taken_to_write():
    (call,) = Toolbox(a_turn([FakeTool("look", effect="maybe")])).calls([asked("look")])

    assert call.effect == "write"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"a": ', "the arguments are no JSON"),
        ("[1]", "the arguments are no JSON object"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "the arguments are no JSON"),
    ],
)
def test_broken_arguments_become_a_result_and_nothing_is_called(arguments, said):
    look = FakeTool("look")

    (result,) = results([asked("look", arguments)], look)

    assert said in result.content
    assert look.calls == []


@pytest.mark.parametrize("arguments", ["", " ", "null", "{}"])
def test_no_arguments_are_none(arguments):
    look = FakeTool("look")

    results([asked("look", arguments)], look)

    assert look.calls == [{}]


def test_an_unknown_tool_becomes_a_result_that_names_those_there_are():
    (result,) = results([asked("lok")], FakeTool("look"), FakeTool("hear"))

    assert result.content == "Error: there is no tool 'lok'. There are: hear, look."


def test_more_calls_than_a_row_may_hold_are_left_out_and_the_last_result_says_so():
    look = FakeTool("look")

    found = results([asked("look")] * 2000, look)

    assert len(look.calls) == len(found) == 100
    assert [one.content for one in found[:-1]] == ["42"] * 99
    assert found[-1].content.startswith(
        "42\n\n[1900 more calls of this answer were left out and did not run: at most 100"
    )


def test_of_many_calls_of_tools_that_are_not_there_a_few_are_answered():
    look = FakeTool("look")

    found = results([*[asked("x" * 1000)] * 2000, asked("look")], look, most_calls=50)

    assert [one.name for one in found] == [*["x" * 1000] * 10, "look"]
    assert len(found[0].content) < 200
    assert "[1990 more calls of this answer were left out" in found[-1].content


def test_a_row_of_its_full_size_says_nothing_of_it():
    assert {one.content for one in results([asked("look")] * 3, FakeTool("look"), most_calls=3)} == {"42"}


def test_arguments_that_do_not_fit_become_a_result():
    (result,) = results([asked("weather", '{"days": 1}')], weather)

    assert result.content == "Error: city is missing. Nothing was done."


def test_what_a_tool_raises_becomes_a_result():
    def fail(_arguments):
        raise LookupError("no\nsuch city")

    (result,) = results([asked("look")], FakeTool("look", fail))

    assert result.content == "Error: look failed: LookupError: no such city"


def test_an_exception_that_cannot_be_written_down_becomes_a_result():
    def fail(_arguments):
        raise Mute

    (result,) = results([asked("look")], FakeTool("look", fail))

    assert result.content == "Error: look failed: Mute: a Mute that cannot be written down"


def test_what_is_cancelled_inside_a_tool_becomes_a_result():
    @tool(effect="read")
    async def give_up() -> str:
        """Give up."""
        raise asyncio.CancelledError

    (result,) = results([asked("give_up")], give_up)

    assert result.content == "Error: give_up failed: CancelledError"


def test_a_time_limit_that_a_tool_raises_itself_is_its_failure():
    def fail(_arguments):
        raise TimeoutError("the server is slow")

    (result,) = results([asked("look")], FakeTool("look", fail))

    assert result.content == "Error: look failed: TimeoutError: the server is slow"


def test_a_call_gets_no_more_time_than_the_turn_has():
    @tool(effect="write")
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()

    found = results([asked("wait"), asked("wait")], wait, within_s=0.02)

    assert "given up. Whether it did anything is unknown." in found[0].content
    assert "within 0 s" in found[1].content


def test_a_dangerous_tool_is_refused_where_nobody_can_be_asked():
    called = []

    @tool(effect="write", dangerous=True)
    async def erase() -> str:
        """Erase."""
        called.append(1)

    (result,) = results([asked("erase")], erase)

    assert "nobody can be asked here" in result.content
    assert called == []


@pytest.mark.parametrize(("answer", "content"), [(None, "ok"), ("said no.", "Error: erase was not called: said no.")])
def test_a_dangerous_tool_is_called_when_a_person_agrees(answer, content):
    class Person:
        async def ask(self, call, tool, turn):
            return answer

    @tool(effect="write", dangerous=True)
    async def erase() -> str:
        """Erase."""

    (result,) = results([asked("erase")], erase, approvals=Person())

    assert result.content == content


def test_closing_cancels_the_calls_that_run():
    meeting = Meeting(3)

    @tool(effect="read")
    async def quick() -> str:
        """Answer."""

    async def close():
        box = Toolbox(a_turn([*meeting.tools[:2], quick]))
        running = box.run(box.calls([asked("t0"), asked("t1"), asked("quick")]))
        await anext(running)
        await running.aclose()
        return list(meeting.ended)

    assert sorted(run(close())) == ["t0", "t1"]


def test_cancelling_the_turn_cancels_the_call_and_is_no_result():
    meeting = Meeting(2, effect="write")

    async def cancel():
        box = Toolbox(a_turn(meeting.tools))
        task = asyncio.create_task(anext(box.run(box.calls([asked("t0")]))))
        await meeting.someone_here.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return meeting.ended

    assert run(cancel()) == ["t0"]


def test_tools_stand_in_the_order_of_their_names():
    assert [one.name for one in Toolbox(a_turn([FakeTool("b"), FakeTool("a")])).tools] == ["a", "b"]


def test_a_long_result_of_a_foreign_tool_is_shortened():
    (result,) = results([asked("look")], FakeTool("look", "x" * 60_000))

    assert len(result.content) < 50_100


def test_a_foreign_tool_that_returns_no_text_is_understood():
    (result,) = results([asked("look")], FakeTool("look", lambda _arguments: {"n": 1}))

    assert result.content == '{"n": 1}'


def drawing(result):
    @tool(effect="read", most_characters=90)
    async def draw() -> object:
        """Draw."""
        return result

    return draw


CHART, PLAN = OutgoingFile(name="chart.png", data=b"PNG"), OutgoingFile(name="plan.md", data=b"# plan")
GOES = "goes to the person with your answer."


@pytest.mark.parametrize(
    ("result", "text", "outcome", "names"),
    [
        (CHART, f"[chart.png, 3 bytes] {GOES}", "answered", ["chart.png"]),
        (FileResult(files=(CHART,), text="a line"), f"a line\n[chart.png, 3 bytes] {GOES}", "answered", ["chart.png"]),
        (FileResult(files=(), text="none"), "none", "answered", []),
        (FileResult(files=()), "ok", "answered", []),
        (
            FileResult(files=(CHART, PLAN)),
            f"[chart.png, 3 bytes] {GOES}\nError: plan.md was not taken: it is too large",
            "answered",
            ["chart.png"],
        ),
        (PLAN, "Error: plan.md was not taken: it is too large", "failed", []),
    ],
)
def test_files_of_a_tool_go_along_and_the_model_is_told(result, text, outcome, names):
    for made in (drawing(result), FakeTool("draw", lambda _arguments: result)):
        if isinstance(made, FakeTool) and not isinstance(result, FileResult):
            continue

        (one,) = results([asked("draw")], made, outgoing=FakeOutgoing("plan.md"))

        assert (one.content, one.outcome, [file.name for file in one.files]) == (text, outcome, names)


def test_files_of_a_tool_are_refused_where_none_can_be_sent():
    (one,) = results([asked("draw")], drawing(CHART))

    assert (one.content, one.outcome, one.files) == (
        "Error: chart.png was not taken: no files can be sent from here",
        "failed",
        (),
    )


def test_a_file_that_cannot_be_kept_is_a_failure_of_its_call():
    class Full:
        async def add(self, file):
            raise StoreFull("no space is left")

    (one,) = results([asked("draw")], drawing(CHART), outgoing=Full())

    assert (one.outcome, one.content) == ("failed", "Error: draw failed: StoreFull: no space is left")


def test_a_long_text_beside_files_is_shortened():
    (one,) = results([asked("draw")], drawing(FileResult(files=(CHART,), text="x" * 1000)), outgoing=FakeOutgoing())

    assert len(one.content) < 250
    assert GOES in one.content or "left out" in one.content


@pytest.mark.parametrize("name", ["report.md", "../../etc/passwd", ".bashrc"])
def test_a_model_sends_what_it_writes_and_no_file_of_the_machine(name):
    outgoing = FakeOutgoing()
    arguments = json.dumps({"name": name, "content": "第一行\n"})

    (one,) = results([asked("send_file", arguments)], send_file, outgoing=outgoing)

    (file,) = outgoing.added
    assert (file.data, one.outcome) == ("第一行\n".encode(), "answered")
    assert "/" not in file.name
    assert not file.name.startswith(".")


def test_steered_texts_are_one_text():
    class Wheel:
        texts = ("a", "b")

        def take(self):
            taken, self.texts = self.texts, ()
            return taken

    box = Toolbox(a_turn(steering=Wheel()))

    assert (box.steered(), box.steered(), Toolbox(a_turn()).steered()) == ("a\n\nb", "", "")


def test_the_results_of_a_row_answer_its_calls():
    look = FakeTool("look", json.dumps)

    async def collect():
        box = Toolbox(a_turn([look]))
        calls = (ToolCall(id="x", name="look", arguments='{"n": 1}', effect="read"),)
        return [one async for one in box.run(calls)]

    (result,) = run(collect())

    assert (result.call_id, result.name, result.content) == ("x", "look", '{"n": 1}')
