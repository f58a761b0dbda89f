"""What may be a title."""

from __future__ import annotations

import pytest

from hermes_core.sessions.titles import base_of, clean_title
from hermes_hookspecs.errors import TitleError
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

TERMINAL = SessionSource(platform="cli", chat_id="pts-1")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (None, None),
        ("", None),
        ("  \t\n", None),
        ("\u200b\u200d\u2060\ufeff", None),
        ("\u3164\u115f", None),
        ("plan", "plan"),
        ("  the\t big \n plan ", "the big plan"),
        ("a\x00b\x1b[31mc\x7f", "ab[31mc"),
        ("\u202eevil\u2066x\u2069", "evilx"),
        ("zero\u200bwidth", "zerowidth"),
        ("中文\u3000标题", "中文 标题"),
        ("half \ud83d pair", "half pair"),
        ("no\ufffecharacter", "nocharacter"),
        ("👩\u200d💻 work", "👩\u200d💻 work"),
        ("👩🏽\u200d💻", "👩🏽\u200d💻"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("a\u200db", "ab"),
        ("👩\u200d", "👩"),
        ("\u200d👩", "👩"),
        ("\U0001fae8 shaking", "\U0001fae8 shaking"),
        ("e\u0301tude", "e\u0301tude"),
    ],
)
def test_a_title_is_what_can_be_seen_on_one_line(text, title):
    assert clean_title(text) == title


@pytest.mark.parametrize("letter", ["x", "王", "👩"])
def test_a_title_has_at_most_100_characters_and_is_never_cut(letter):
    assert clean_title(f"  {letter * 100}\u200b ") == letter * 100
    with pytest.raises(TitleError, match="this one has 101; nothing was changed"):
        clean_title(letter * 101)


@pytest.mark.parametrize("text", ["plan", "a  b", "👩\u200d💻 \u202ex", "\u3164 y"])
def test_a_clean_title_stays_as_it_is(text):
    clean = clean_title(text)

    assert clean_title(clean) == clean


@pytest.mark.parametrize(
    ("title", "base"),
    [
        ("plan", "plan"),
        ("plan #2", "plan"),
        ("plan #2 #13", "plan #2"),
        ("plan #", "plan #"),
        ("plan #٢", "plan #٢"),
        ("#1", "#1"),
    ],
)
def test_the_number_of_a_later_session_is_no_part_of_the_base(title, base):
    assert base_of(title) == base


def test_a_title_is_unique_per_owner_and_case_sensitive(app):
    one, other = (app.get_or_create_session(TERMINAL, force_new=True) for _ in range(2))
    app.rename_session(one.lineage_id, "  plan ")

    with pytest.raises(TitleError, match=f"taken by {one.session_id}|plan"):
        app.rename_session(other.lineage_id, "plan")

    assert app.rename_session(other.lineage_id, "Plan") == "Plan"
    assert app.rename_session(one.lineage_id, "plan") == "plan"
    assert app.store.lineage(one.lineage_id, operator()).title == "plan"


def test_two_owners_may_have_one_title(app):
    for user in ("ou_1", "ou_2"):
        entry = app.get_or_create_session(SessionSource(platform="feishu", chat_id=f"oc_{user}", user_id=user))
        assert app.rename_session(entry.lineage_id, "plan") == "plan"


def test_a_blank_title_takes_it_away_and_every_change_is_told(app, ear):
    entry = app.get_or_create_session(TERMINAL)

    assert app.rename_session(entry.lineage_id, "plan") == "plan"
    assert app.rename_session(entry.lineage_id, " ") is None

    app.hooks.flush()
    assert [(one["title"], one["origin"]) for one in ear.told("after_title_change")] == [
        ("plan", "user"),
        (None, "user"),
    ]


def test_check_title_says_whether_a_session_to_come_could_have_it(app):
    entry = app.get_or_create_session(TERMINAL)
    app.rename_session(entry.lineage_id, "plan")

    assert app.check_title(" free ", TERMINAL) == "free"
    assert app.check_title(None, TERMINAL) is None
    with pytest.raises(TitleError, match=f"taken by {entry.session_id}; nothing was changed"):
        app.check_title("plan", TERMINAL)
    assert app.check_title("plan", SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")) == "plan"
