"""Answers say where in their session they stand."""

from __future__ import annotations

from hermes_demo.book import answer_to


def test_the_first_message_is_answered_as_that_of_a_new_session():
    assert answer_to("周六几点开始？", []) == "周六下午三点，在面包店的后院。（新会话）"
    assert answer_to("Hello", []) == "All right. (a new session)"


def test_later_ones_say_their_number_and_what_the_session_began_with():
    answer = answer_to("And rye?", ["How many croissants?", "When?"])

    assert answer.endswith("(message 3 of this session, which began with “How many crois…”)")


def test_who_asks_back_hears_what_was_said_before():
    assert answer_to("刚才说到哪里？", ["你好", "几点"]).startswith("刚才说的是“几点”。")
    assert answer_to("What was it just now?", []).startswith("Nothing yet.")
