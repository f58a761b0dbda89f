"""The suite of context providers catches what it is there for: each planted fault fails the test that is about it."""

from __future__ import annotations

import asyncio

import pytest

from hermes_hookspecs.ports.services import ContextPiece
from hermes_hookspecs.testing import providers as kit
from hermes_hookspecs.testing.providers import ContextProviderSuite


class Notes:
    """A provider as it should be: a note for each word that it knows, what it finds in the past behind it."""

    name = "notes"

    def __init__(self):
        self.notes = {"home": "lives in Berlin", "你好": "说中文"}

    async def pieces(self, opening, *, budget_tokens):
        await asyncio.to_thread(opening.history.search, opening.text)
        found = [text for word, text in self.notes.items() if word in opening.text]
        return [ContextPiece(label=self.name, text=text[: budget_tokens * 4]) for text in found]


class TestNotes(ContextProviderSuite):
    known = "where is my home"

    @pytest.fixture
    def provider(self):
        return Notes()


class TestSilent(ContextProviderSuite):
    """One that never has anything to hand in is a provider, too."""

    @pytest.fixture
    def provider(self):
        class Silent:
            name = "silent"

            async def pieces(self, opening, *, budget_tokens):
                return ()

        return Silent()


class Nameless(Notes):
    name = " "


class Mute(Notes):
    async def pieces(self, opening, *, budget_tokens):
        return ()


class Texts(Notes):
    async def pieces(self, opening, *, budget_tokens):
        return [piece.text for piece in await super().pieces(opening, budget_tokens=budget_tokens)]


class Unlabelled(Notes):
    async def pieces(self, opening, *, budget_tokens):
        return [ContextPiece(label="", text="lives in Berlin")]


class Spendthrift(Notes):
    async def pieces(self, opening, *, budget_tokens):
        return [ContextPiece(label="notes", text="lives in Berlin " * 1000)]


class OnTheLoop(Notes):
    async def pieces(self, opening, *, budget_tokens):
        opening.history.recent()
        return ()


class Fragile(Notes):
    async def pieces(self, opening, *, budget_tokens):
        opening.text.encode("utf-8")
        return ()


class Growing(Notes):
    def __init__(self):
        super().__init__()
        self.handed = []

    async def pieces(self, opening, *, budget_tokens):
        self.handed.append(ContextPiece(label="notes", text="lives in Berlin"))
        return self.handed


class Gossip(Notes):
    def __init__(self):
        super().__init__()
        self.heard = []

    async def pieces(self, opening, *, budget_tokens):
        self.heard.append(opening.text)
        return [ContextPiece(label="earlier", text=text) for text in self.heard[:-1]]


class OneAtATime(Notes):
    """Keeps what it works on where another call finds it."""

    async def pieces(self, opening, *, budget_tokens):
        self.text = getattr(self, "text", opening.text)
        await asyncio.sleep(0)
        return [ContextPiece(label="notes", text=self.text)]


class Clinging(Notes):
    async def pieces(self, opening, *, budget_tokens):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling() > 1:
                    raise


@pytest.mark.parametrize(
    ("mutant", "law", "arguments"),
    [
        (Nameless, "test_it_has_a_name", []),
        (Mute, "test_it_hands_in_pieces_for_what_it_knows", []),
        (Texts, "test_each_piece_says_where_it_comes_from_and_something", []),
        (Unlabelled, "test_each_piece_says_where_it_comes_from_and_something", []),
        (Spendthrift, "test_the_most_useful_piece_fits_alone", [200]),
        (OnTheLoop, "test_the_past_is_read_off_the_event_loop", []),
        (Fragile, "test_it_answers_to_whatever_is_said", ["\ud800"]),
        (Growing, "test_being_asked_again_is_no_harm", []),
        (Gossip, "test_nobody_is_handed_what_somebody_else_says", []),
        (OneAtATime, "test_nobody_is_handed_what_somebody_else_says", []),
        (Clinging, "test_it_lets_go_when_it_is_told_to", []),
    ],
)
def test_a_faulty_provider_is_caught(mutant, law, arguments, monkeypatch):
    monkeypatch.setattr(kit, "PATIENCE_S", 0.2)

    with pytest.raises(BaseException) as caught:
        getattr(TestNotes(), law)(mutant(), *arguments)

    assert isinstance(caught.value, AssertionError | UnicodeEncodeError)


def test_the_provider_suite_is_in_the_kit():
    from hermes_hookspecs import testing

    assert testing.ContextProviderSuite is ContextProviderSuite
