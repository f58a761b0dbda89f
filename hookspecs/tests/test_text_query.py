"""The query language: words, operators, and that punctuation is text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.testing.search_corpus import KNOWN, MISTAKES, TEXTS, expected
from hermes_hookspecs.text.parsing import MOST_CHARACTERS, QueryError, parse
from hermes_hookspecs.text.query import And, Not, Or, Phrase, Prefix, Word, holds, leaves, matches, required

A, B, C = Word("a"), Word("b"), Word("c")


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("a", A),
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a OR b c", Or((A, And((B, C))))),
        ("(a OR b) c", And((Or((A, B)), C))),
        ("a NOT b", And((A, Not(B)))),
        ("a -b", And((A, Not(B, "-b")))),
        ("a NOT NOT b", And((A, B))),
        ("a NOT NOT NOT b", And((A, Not(B)))),
        ("a NOT -b", And((A, Not(Not(B, "-b"))))),
        ("a -(b c)", And((A, Not(And((B, C)))))),
        ('a -"b c"', And((A, Not(Phrase("b c"))))),
        ('"a b"', Phrase("a b")),
        ("ab*", Prefix("ab")),
        ('"a b"*', Prefix("a b")),
        ("(ab*)", Prefix("ab")),
        ("a or b", And((A, Word("or"), B))),
        ("OR a", A),
        ("a AND", A),
        ("a OR OR b", Or((A, B))),
        ("f(x)", Word("f(x)")),
        ("(f(x) a)", And((Word("f(x)"), A))),
        ("(f(g(x)) a)", And((Word("f(g(x))"), A))),
        ("a)", Word("a)")),
        (":-)", Word(":-)")),
        ("()", Word("()")),
        ('say"a', Word('say"a')),
        ("--dry-run", Word("--dry-run")),
        ("->", Word("->")),
        ("a*b **", And((Word("a*b"), Word("**")))),
        ("foo:bar NEAR(a", And((Word("foo:bar"), Word("NEAR(a")))),
        ("a\u3000b\x00c", And((A, B, C))),
        ("a \u200b b", And((A, B))),
    ],
)
def test_queries_are_understood(typed, query):
    assert parse(typed) == query


@pytest.mark.parametrize("typed", sorted(KNOWN), ids=repr)
def test_hits_are_those_that_a_person_would_name(typed):
    assert expected(typed) == KNOWN[typed]


@pytest.mark.parametrize("typed", MISTAKES, ids=[repr(typed[:12]) for typed in MISTAKES])
def test_a_mistake_is_a_sentence(typed):
    with pytest.raises(QueryError) as caught:
        parse(typed)

    assert len(str(caught.value).split()) > 4
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("typed", "position"), [('ab "c', 3), ("x (a", 2), ("(a) b)", 5), ("a NOT", 2)])
def test_a_mistake_says_where_it_is(typed, position):
    with pytest.raises(QueryError, match=f"character {position + 1} ") as caught:
        parse(typed)

    assert caught.value.position == position


def test_a_dash_excludes_a_word_and_still_finds_the_option():
    query = parse("ls -la")

    assert matches(query, "run ls -la now")
    assert matches(query, "ls only")
    assert not matches(query, "ls in la")
    assert not matches(query, "ls x-la")


def test_what_is_required_is_weaker_and_has_no_exclusions():
    query = parse("a (b OR c -d) -e")

    weaker = required(query)

    assert weaker == And((A, Or((B, C))))
    assert list(leaves(query)) == [A, B, C]


words = st.sampled_from(
    ['"', "(", ")", "-", "*", "AND", "OR", "NOT", "a", "部署", "x.y", "-b", '"a b"', "c*", "(a", "b)"]
)


@given(st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=40)))
def test_anything_typed_is_a_query_or_a_mistake(typed):
    try:
        query = parse(typed)
    except QueryError:
        return

    weaker = required(query)
    assert weaker is not None
    for text in TEXTS.values():
        assert holds(weaker, text) or not holds(query, text)


@given(st.text(alphabet="ab部署.-_'/ ", min_size=1, max_size=12).filter(str.strip))
def test_a_phrase_finds_its_text(text):
    assert matches(parse(f'"{text}"'), f"before {text} behind")


@pytest.mark.parametrize("typed", ["NOT " * 1000 + "a", "b " + "NOT -NOT " * 450 + "a"])
def test_a_query_of_many_operators_is_no_deeper_than_its_groups(typed):
    """It once was one level deeper with each NOT, more than the interpreter goes."""
    assert matches(parse(typed), "b a")


def test_the_longest_query_is_answered():
    typed = "词" * MOST_CHARACTERS

    assert matches(parse(typed), typed)
    assert not matches(parse(typed), typed[1:])
