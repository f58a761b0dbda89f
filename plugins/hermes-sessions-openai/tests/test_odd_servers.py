"""Servers that do it otherwise: each oddity was seen in the wild, and none of them may cost an answer."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.testing.agents import FakeTool
from hermes_openai.testing import answer, calls, raw, refuse, stream_of, whole


def chunk(delta=None, **fields):
    choice = {"index": 0, "delta": delta} | fields
    return "data: " + json.dumps({"choices": [choice]}) + "\n\n"


def test_no_usage_is_unknown_usage(run, endpoint):
    endpoint.then(answer("Hi.", usage={}))

    (usage,) = run(prices={"m": {"input": 1, "output": 1}}).usages

    assert (usage.model, usage.input_tokens, usage.output_tokens, usage.estimated_cost_usd) == ("m", None, None, None)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({"prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 5}, 5),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": None}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}, 7),
    ],
)
def test_cached_tokens_go_by_many_names(run, endpoint, told, read):
    endpoint.then(answer("Hi.", usage={"prompt_tokens": 10, "completion_tokens": 1} | told))

    (usage,) = run().usages

    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (10, 1, read)


@pytest.mark.parametrize("told", [10**25, -1, True, 1.5, "9", None, [9]])
def test_a_count_that_cannot_be_meant_is_unknown(run, endpoint, told):
    endpoint.then(answer("Hi.", usage={"prompt_tokens": told, "completion_tokens": 3}))

    shown = run()

    assert (shown.answer, shown.usages[0].input_tokens, shown.usages[0].output_tokens) == ("Hi.", None, 3)


def test_usage_in_every_piece_is_counted_once(run, endpoint):
    pieces = [
        json.dumps({"choices": [{"delta": {"content": c}}], "usage": {"prompt_tokens": 9, "completion_tokens": n}})
        for n, c in enumerate("abc", 1)
    ]
    endpoint.then(raw(*[f"data: {piece}\n\n" for piece in pieces], "data: [DONE]\n\n"))

    shown = run()

    assert (shown.answer, shown.usages[0].output_tokens) == ("abc", 3)


@pytest.mark.parametrize(
    "delta",
    [
        {},
        None,
        {"content": None},
        {"content": ""},
        {"role": "assistant", "content": None, "tool_calls": None, "refusal": None},
        {"content": [], "tool_calls": []},
    ],
)
def test_empty_pieces_say_nothing(run, endpoint, delta):
    nothing = ['data: {"choices": []}\n\n', 'data: {"choices": null}\n\n', "data: {}\n\n", chunk(delta)]
    endpoint.then(raw(*nothing, chunk({"content": "Hi."}), chunk(delta, finish_reason="stop"), "data: [DONE]\n\n"))

    assert run().answer == "Hi."


def test_comments_and_other_fields_of_events_are_passed_over(run, endpoint):
    piece = "event: message\nid: 1\nretry: 10\ndata:" + chunk({"content": "Hi."}).removeprefix("data: ")
    noise = ": OPENROUTER PROCESSING\n\n", "data: keepalive\n\n"
    endpoint.then(raw(*noise, piece, *noise, chunk(finish_reason="stop"), "data: [DONE]\r\n\r\n"))

    assert run().answer == "Hi."


def test_a_stream_without_a_last_line_is_whole_when_it_gave_its_reason(run, endpoint):
    endpoint.then(raw(chunk({"content": "Hi."}), chunk({}, finish_reason="stop")))

    assert run().answer == "Hi."


def test_a_stream_without_a_reason_is_whole_when_it_gave_its_last_line(run, endpoint):
    endpoint.then(raw(chunk({"content": "Hi."}), "data: [DONE]\n\n"))

    assert (shown := run()).answer == "Hi."
    assert shown.steps[-1].finish_reason == "stop"


def test_a_stream_without_either_is_cut(run, endpoint):
    endpoint.then(raw(chunk({"content": "Hi"})))

    with pytest.raises(RetryLater, match="broke off"):
        run()


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c"])
def test_marks_that_end_a_line_elsewhere_part_no_piece(run, endpoint, mark):
    text = f"one{mark}two"
    piece = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=False)
    endpoint.then(raw(f"data: {piece.replace(mark, mark)}\n\n", "data: [DONE]\n\n"))

    assert run().answer == text


@pytest.mark.parametrize("ends", ["\n", ""])
def test_an_answer_without_an_end_is_cut_off_and_what_was_shown_stays(run, endpoint, ends):
    piece = 'data: {"choices":[{"index":0,"delta":{"content":"more "}}]}\n\n'
    endpoint.then(raw(piece, *[f": {'x' * 5000}{ends}"] * 5))
    shown = run.Shown()

    with pytest.raises(Rejected, match=r"^the endpoint's answer is longer than 9000 bytes \(answer_bytes\)$"):
        run(answer_bytes=9000, events=shown)

    assert (shown.answer, shown.steps[-1].finish_reason) == ("more ", "cut")


def test_a_long_answer_of_which_nothing_was_shown_is_refused_and_not_asked_for_again(run, endpoint):
    endpoint.then(whole("x" * 9000))

    with pytest.raises(Rejected, match="longer than 9000 bytes"):
        run(answer_bytes=9000, stream=False)

    assert len(endpoint.requests) == 1


def test_no_more_calls_than_are_allowed_are_made_of_one_answer(run, endpoint):
    look = FakeTool("look")
    endpoint.then(calls(*[("look", "{}")] * 30), answer("Done."))

    shown = run(tools=[look], max_calls=3)

    assert (len(look.calls), len(shown.results), shown.answer) == (3, 3, "Done.")
    assert "[27 more calls of this answer were left out" in endpoint.requests[1].messages[-1]["content"]


def test_a_piece_that_is_no_json_is_a_cut(run, endpoint):
    endpoint.then(raw('data: {"choices": [\n\n', chunk(finish_reason="stop"), "data: [DONE]\n\n"), answer("Again."))

    assert run().answer == "Again."


def test_text_with_a_hole_in_it_is_not_taken_for_an_answer(run, endpoint):
    hole = 'data: {"choices": [{"delta": {"content": "not\n\n'
    endpoint.then(
        raw(chunk({"content": "Do "}), hole, chunk({"content": " go."}, finish_reason="stop"), "data: [DONE]\n\n")
    )

    with pytest.raises(RetryLater, match="broke off"):
        run()


@pytest.mark.parametrize("split", [False, True])
def test_an_event_over_several_lines_is_one_piece(run, endpoint, split):
    text = json.dumps(
        {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}, indent=1 if split else None
    )
    endpoint.then(raw("\n".join(f"data: {line}" for line in text.splitlines()) + "\n\n"))

    assert run().answer == "Hi."


def test_a_server_that_knows_no_streams_is_understood(run, endpoint):
    endpoint.then(whole("Hi."))

    shown = run()

    assert (shown.text, shown.answer) == ("Hi.", "Hi.")


def test_a_document_over_many_lines_is_understood_whatever_it_is_called(run, endpoint):
    body = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    endpoint.then(raw(json.dumps(body, indent=2), content_type="text/event-stream"))

    shown = run()

    assert (shown.answer, shown.usages[0].input_tokens) == ("Hi.", 3)


def test_a_document_that_is_cut_is_asked_for_again(run, endpoint):
    endpoint.then(raw('{"choices": [{"message": {"content": "H', content_type="application/json"), whole("Hi."))

    assert run().answer == "Hi."


@pytest.mark.parametrize(
    ("complaint", "without"),
    [
        ("Streaming is not supported by this model", "stream"),
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
    ],
)
def test_what_a_server_does_not_know_is_left_out_from_then_on(run, agent, endpoint, complaint, without):
    endpoint.then(refuse(400, complaint), answer("Hi."), answer("Again."))
    one = agent()

    first, second = run(of=one), run(of=one)

    assert (first.answer, second.answer) == ("Hi.", "Again.")
    assert [without in asked.body for asked in endpoint.requests] == [True, False, False]


def test_the_limit_of_an_answer_is_named_as_the_server_wants_it(run, endpoint):
    complaint = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    endpoint.then(refuse(400, complaint), answer("Hi."))

    run(max_tokens=9)

    assert [asked.body.get("max_completion_tokens") for asked in endpoint.requests] == [None, 9]
    assert "max_tokens" not in endpoint.requests[1].body


def test_no_stream_is_asked_for_where_none_is_wanted(run, endpoint):
    endpoint.then(calls(("look", "{}", "c1")), answer("Hi."))

    shown = run(tools=[FakeTool("look")], stream=False)

    assert not any("stream" in asked.body for asked in endpoint.requests)
    assert (shown.results, shown.answer) == ({"c1": "42"}, "Hi.")


# ------------------------------------------------------------------ calls


def call(index=None, call_id=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return {"tool_calls": [piece | {"function": function}]}


@pytest.mark.parametrize(
    "deltas",
    [
        # as OpenAI does it
        [
            call(0, "a", "look", ""),
            call(0, None, None, '{"n"'),
            call(0, None, None, ": 1}"),
            call(1, "b", "hear", "{}"),
        ],
        # whole calls, without an index
        [call(None, "a", "look", '{"n": 1}'), call(None, "b", "hear", "{}")],
        # one index for all
        [call(0, "a", "look", '{"n": 1}'), call(0, "b", "hear", "{}")],
        # id and name in every piece
        [call(0, "a", "look", '{"n"'), call(0, "a", "look", ": 1}"), call(1, "b", "hear", "{}")],
        # one id for all
        [call(0, "a", "look", '{"n": 1}'), call(1, "a", "hear", "{}")],
        # no ids
        [call(0, None, "look", '{"n": 1}'), call(1, None, "hear", "")],
        # arguments as an object
        [call(0, "a", "look", {"n": 1}), call(1, "b", "hear", {})],
        # pieces of both in turn
        [
            call(0, "a", "look", '{"n"'),
            call(1, "b", "hear", "{"),
            call(0, None, None, ": 1}"),
            call(1, None, None, "}"),
        ],
        # no index, arguments in pieces
        [call(None, "a", "look", '{"n"'), call(None, None, None, ": 1}"), call(None, "b", "hear", "{}")],
    ],
)
@pytest.mark.parametrize("reason", ["tool_calls", "stop", None])
def test_calls_come_in_many_shapes(run, endpoint, deltas, reason):
    look, hear = FakeTool("look"), FakeTool("hear")
    endpoint.then(stream_of(deltas, finish_reason=reason), answer("Done."))

    shown = run(tools=[look, hear])

    assert (look.calls, hear.calls) == ([{"n": 1}], [{}])
    assert len({one.id for one in shown.steps[0].tool_calls}) == 2
    assert shown.answer == "Done."


def test_a_reason_for_calls_without_calls_is_an_answer(run, endpoint):
    endpoint.then(stream_of([{"content": "Hi."}], finish_reason="tool_calls"))

    assert run().answer == "Hi."


# ------------------------------------------------------------------ text


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(run, endpoint, name):
    endpoint.then(answer("Hi.", reasoning=["let me ", "think"], reasoning_name=name))

    shown = run()

    assert (shown.answer, shown.steps[0].reasoning, shown.labels) == ("Hi.", "let me think", ["thinking"])


def test_content_may_be_a_list_of_parts(run, endpoint):
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi."}]
    endpoint.then(stream_of([{"content": parts}, {"content": [{"type": "image"}, 7]}]))

    shown = run()

    assert (shown.answer, shown.steps[0].reasoning) == ("Hi.", "hm")


def test_a_refusal_is_an_answer(run, endpoint):
    endpoint.then(stream_of([{"refusal": "I will "}, {"refusal": "not."}]))

    assert run().answer == "I will not."


def test_an_emoji_that_was_cut_in_two_is_one_again(run, endpoint):
    endpoint.then(stream_of([{"content": "a \ud83d"}, {"content": "\ude00 b"}, {"content": "\ud83d"}]))

    shown = run()

    assert shown.answer == "a 😀 b\ufffd"
    assert shown.text == shown.answer


def test_other_choices_are_left_alone(run, endpoint):
    both = {"choices": [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]}
    endpoint.then(raw(f"data: {json.dumps(both)}\n\n", "data: [DONE]\n\n"))

    assert run().answer == "A"


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "<html><head><title>413 Request Entity\n Too Large</title></head><body>x</body></html>",
            "413 Request Entity Too Large",
        ),
        ("<html><style>a{}</style><body><h1>Not  here</h1></body></html>", "HTTP 418: Not here"),
        ('{"error": {"message": "no such model"}}', "no such model"),
        ('[{"error": {"message": "as Google does"}}]', "as Google does"),
        ('{"error": "as Ollama does"}', "as Ollama does"),
        ('{"detail": "as FastAPI does"}', "as FastAPI does"),
        ('{"object": "error", "message": "as vLLM does"}', "as vLLM does"),
        ('"text"', "text"),
        ("", "HTTP 418"),
        ("\x1b[31mred\x1b[0m", r"\[31mred"),
    ],
)
def test_an_error_is_told_in_one_line(run, endpoint, body, said):
    endpoint.then(raw(body, status=418, content_type="text/html"))

    with pytest.raises(Rejected, match=said) as caught:
        run()

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_an_error_that_is_cut_within_the_key_does_not_tell_it(run, endpoint):
    key = "sk-a-key-of-some-length"
    endpoint.then(refuse(400, f"{'x' * 360} your key {key} is odd"))

    with pytest.raises(Rejected) as caught:
        run(environ={"OPENAI_API_KEY": key})

    assert "sk-a" not in str(caught.value)


def test_a_page_in_place_of_an_answer_is_told(run, endpoint):
    endpoint.then(raw("<html><title>Log in</title></html>", content_type="text/html"))

    with pytest.raises(RetryLater, match="Log in"):
        run(retries=0)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_inside_a_good_answer_is_an_error(run, endpoint, streamed):
    error = json.dumps({"error": {"message": "no such model", "type": "invalid_request_error", "code": None}})
    endpoint.then(raw(f"data: {error}\n\n" if streamed else error))

    with pytest.raises(Rejected, match="no such model"):
        run()
