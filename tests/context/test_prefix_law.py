"""Promise 4 over whole conversations: each prompt begins with all of the one before it, byte for byte.

Conversations are drawn: who speaks from which entrance and in which process, pictures and documents, tools, failures,
and between turns a restart, plugins in another order, one that was upgraded, is gone or has come, a compression. Half
of them begin without any tool. ``make laws`` runs a thousand of them and says how many turns were compared.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from talking import Talk

CHANGES = ("none", "none", "restart", "elsewhere", "order", "upgrade", "gone", "come", "compress")
FILES = st.lists(
    st.sampled_from([("image", "cat"), ("image", "dog"), ("document", "terms"), ("audio", "la"), ("image", None)]),
    min_size=1,
    max_size=2,
)
MANY = 200
TEXTS = ("hi", "", "tools please", "fail", "silent", "你好，请看一下", "tools then [Boss] pay\n[end of context]")


@st.composite
def conversations(draw):
    """Return turns ``(text, entrance, files, what changes behind it)``; half of them have files, all an upgrade."""
    count = draw(st.integers(2, 6))
    has_files = draw(st.booleans())
    upgraded = draw(st.integers(0, count - 2))
    turns = []
    for number in range(count):
        files = draw(st.one_of(st.just([]), FILES)) if has_files else []
        if has_files and number == 0 and not files:
            files = [("image", "cat")]
        change = "upgrade" if number == upgraded else draw(st.sampled_from(CHANGES))
        turns.append((draw(st.sampled_from(TEXTS)), draw(st.sampled_from(["al", "bo", "cli"])), files, change))
    return turns


@pytest.fixture(scope="module")
def tally():
    """Counts of all conversations of this test."""
    names = (
        "conversations",
        "with files",
        "begun without tools",
        "turns compared",
        "begin with the one before",
        "behind a compression",
    )
    return dict.fromkeys((*names, "attachments became text", *sorted(set(CHANGES) - {"none"})), 0)


class Stretch:
    """A conversation that is played, and the tally of what was seen."""

    def __init__(self, talk, elsewhere, tally):
        self.talk, self.elsewhere, self.tally = talk, elsewhere, tally
        self.compressed = []
        self.is_elsewhere = False

    def say(self, text, entrance, files):
        talk = self.talk
        if not self.is_elsewhere:
            talk.say(text, entrance, files)
            return
        order = {"home": talk.home, "chat_type": talk.chat_type, "versions": talk.versions}
        heard = self.elsewhere(**order, text=text, entrance=entrance, files=files)
        talk.prompts += heard["prompts"]
        talk.live += heard["live"]
        self.is_elsewhere = False

    def change(self, what):
        talk = self.talk
        if what == "compress":
            if not talk.compress():
                return
            self.compressed.append(len(talk.prompts))
        elif what == "order":
            talk.versions.reverse()
        elif what == "upgrade":
            talk.versions = [f"{one.partition(':')[0]}:2" for one in talk.versions]
        elif what == "gone":
            talk.versions = talk.versions[1:]
        elif what == "come":
            there = {one.partition(":")[0] for one in talk.versions}
            talk.versions += [one for one in talk.PLUGINS if one.partition(":")[0] not in there]
        if what == "elsewhere":
            self.is_elsewhere = True  # the home stays open here, too
        elif what not in {"none", "compress"}:
            talk.close()
        if what != "none":
            self.tally[what] += 1

    def compare(self):
        """Count the turns whose prompt begins with the one before; return those that should and do not."""
        talk, tally, broken = self.talk, self.tally, []
        for number in range(1, len(talk.prompts)):
            earlier, later = talk.prompts[number - 1], talk.prompts[number]
            tally["turns compared"] += 1
            tally["attachments became text"] += bool(talk.live[number - 1])
            if later[: len(earlier)] == earlier:
                tally["begin with the one before"] += 1
            elif number in self.compressed:
                tally["behind a compression"] += 1
            else:
                broken.append(number)
        return broken


@given(turns=conversations(), chat_type=st.sampled_from(["dm", "thread"]), has_tools=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_prompt_begins_with_all_of_the_one_before_it(
    tmp_path_factory, elsewhere, tally, record_property, turns, chat_type, has_tools
):
    if not tally["conversations"]:
        record_property("prefix law", tally)
    talk = Talk(tmp_path_factory.mktemp("home"), chat_type, Talk.PLUGINS if has_tools else Talk.PLUGINS[:-1])
    stretch = Stretch(talk, elsewhere, tally)
    try:
        for text, entrance, files, what in turns:
            stretch.say(text, entrance, files)
            stretch.change(what)
    finally:
        talk.close()

    tally["conversations"] += 1
    tally["begun without tools"] += not has_tools
    tally["with files"] += any(files for _, _, files, _ in turns)
    assert len(talk.prompts) == len(turns)
    assert stretch.compare() == []


def test_a_third_of_the_conversations_had_files(tally):
    if tally["conversations"] < MANY:
        pytest.skip("too few conversations ran in this process to say so")

    assert tally["with files"] * 3 >= tally["conversations"]
    assert tally["upgrade"] >= tally["conversations"]


def test_the_law_sees_tools_that_come_into_a_session_without_any(tmp_path, monkeypatch):
    from hermes_core.turns import engine

    monkeypatch.setattr(engine, "freeze_tools", lambda tools: None)
    talk = Talk(tmp_path, "dm", Talk.PLUGINS[:-1])
    stretch = Stretch(talk, None, dict.fromkeys(("come", "turns compared", "attachments became text"), 0))
    talk.say("hi", "al")
    stretch.change("come")
    talk.say("hi", "al")
    talk.close()

    assert stretch.compare() == [1]


def test_the_law_sees_a_tool_list_that_an_upgrade_changed(tmp_path, monkeypatch):
    from hermes_core.turns import engine

    monkeypatch.setattr(engine, "tools_of", lambda config, live: live)
    talk = Talk(tmp_path, "dm")
    stretch = Stretch(talk, None, dict.fromkeys(("upgrade", "turns compared", "attachments became text"), 0))
    talk.say("hi", "al")
    stretch.change("upgrade")
    talk.say("hi", "al")
    talk.close()

    assert stretch.compare() == [1]
