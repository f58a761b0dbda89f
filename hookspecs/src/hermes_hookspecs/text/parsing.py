"""From what a person typed to a :mod:`query <hermes_hookspecs.text.query>`.

Words must all be there. ``OR``, ``AND`` and ``NOT`` are operators in upper case only; ``OR`` binds weaker than what
stands side by side. ``-word`` excludes. ``"a phrase"`` is looked for as it stands, ``begin*`` as the beginning of a
word. Parentheses group where a term could begin, ``f(x)`` is a word. Everything else is text: ``what's``,
``docs/setup.md``, ``75%``, ``--dry-run``, ``x -> y``, a parenthesis that closes nothing, a lone quote.

``AND`` and ``OR`` without a neighbour are passed over; what cannot be meant is a :class:`QueryError`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.needles import is_word_or_gram
from hermes_hookspecs.text.query import And, Not, Or, Phrase, Prefix, Word, required

if TYPE_CHECKING:
    from hermes_hookspecs.text.query import Leaf, Node

__all__ = ["DEEPEST_GROUP", "MOST_CHARACTERS", "MOST_WORDS", "QueryError", "parse"]

MOST_CHARACTERS = 4096
MOST_WORDS = 64
DEEPEST_GROUP = 32

_OPEN, _CLOSE, _AND, _OR, _NOT, _MINUS, _LEAF = "(", ")", "AND", "OR", "NOT", "-", "leaf"
_HALF = re.compile("[\ud800-\udfff]")  # stores keep no half of a pair either
_OPERATORS = frozenset((_AND, _OR, _NOT))


class QueryError(ValueError):
    """A query that cannot be meant as it stands.

    :param position: index into the query where the trouble is; ``None`` where it is the whole of it.
    """

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


def parse(text: str) -> Node:
    """Return the query that was typed.

    :raises QueryError: empty, too long, too many words, too deep, a quote or group that is never closed, operators
        alone, nothing but exclusions.
    """
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"the query has {len(text)} characters; at most {MOST_CHARACTERS} can be searched for")
    tokens = _Lexer(_HALF.sub("\ufffd", text)).tokens()
    count = sum(token.kind == _LEAF for token in tokens)
    if count > MOST_WORDS:
        raise QueryError(f"the query has {count} words; at most {MOST_WORDS} can be searched for")
    if not tokens:
        raise QueryError("the query is empty: say what to search for")
    if not count:
        raise QueryError("the query has operators only: say what to search for")
    query = _Parser(tokens).whole()
    if required(query) is None:
        raise QueryError(
            "the query, or one side of an OR, only says what to leave out: say also what to search for;"
            ' to look for a word that begins with a dash, put it in quotes: "-x"'
        )
    return query


@attrs.frozen
class _Token:
    kind: str
    at: int
    leaf: Leaf | None = None


class _Lexer:
    """Cuts a query into tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._groups = False
        self._tokens: list[_Token] = []

    def tokens(self) -> list[_Token]:
        """Return all tokens in order."""
        only = self._text.strip()
        if only in {'"', "(", ")", "()", '""'}:
            return [_Token(_LEAF, self._text.index(only), Word(only))]
        while self._at < len(self._text):
            if _is_space(self._text[self._at]):
                self._at += 1
            else:
                self._take()
        return self._tokens

    def _take(self) -> None:
        at, character = self._at, self._text[self._at]
        behind = self._text[at + 1 : at + 2]
        if character == '"':
            self._take_phrase()
        elif character == "(" and behind != ")":
            self._groups = True
            self._depth += 1
            if self._depth > DEEPEST_GROUP:
                raise QueryError(f"groups stand more than {DEEPEST_GROUP} deep in each other", position=at)
            self._add(_OPEN, 1)
        elif character == ")" and self._closes(at):
            self._depth -= 1
            self._add(_CLOSE, 1)
        elif character == "-" and behind and (behind in '"(' or is_word_or_gram(behind)):
            self._add(_MINUS, 1)
        else:
            self._take_word()

    def _closes(self, at: int) -> bool:
        """Return whether a parenthesis ends a group; where the query has none, it is text."""
        if self._groups and self._depth == 0:
            raise QueryError(
                f'the ")" at character {at + 1} closes nothing; to look for it, put it in quotes: ")"', position=at
            )
        return self._depth > 0

    def _take_phrase(self) -> None:
        start = self._at
        end = self._text.find('"', start + 1)
        if end < 0:
            raise QueryError(f"the quote at character {start + 1} is never closed", position=start)
        inside = self._text[start + 1 : end]
        if not fold(inside):
            raise QueryError(f"the quotes at character {start + 1} are empty", position=start)
        starred = self._text[end + 1 : end + 2] == "*" and self._ends_term(end + 2)
        self._add(_LEAF, end + 1 - start + starred, Prefix(inside) if starred else Phrase(inside))

    def _ends_term(self, at: int) -> bool:
        return at >= len(self._text) or _is_space(self._text[at]) or (self._text[at] == ")" and self._depth > 0)

    def _take_word(self) -> None:
        start = at = self._at
        own = 0  # parentheses of the word itself: f(x)
        while at < len(self._text) and not _is_space(self._text[at]):
            if self._text[at] == "(":
                own += 1
            elif self._text[at] == ")":
                if own == 0 and self._closes(at):
                    break
                own -= own > 0
            at += 1
        word = self._text[start:at]
        if word in _OPERATORS:
            self._add(word, len(word))
        elif word[-1] == "*" and len(word) > 1 and is_word_or_gram(word[-2]):
            self._add(_LEAF, len(word), Prefix(word[:-1]))
        elif fold(word):
            self._add(_LEAF, len(word), Word(word))
        else:
            self._at = at

    def _add(self, kind: str, length: int, leaf: Leaf | None = None) -> None:
        self._tokens.append(_Token(kind, self._at, leaf))
        self._at += length


class _Parser:
    """Puts tokens together, front to back."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def whole(self) -> Node:
        """Return the query of all tokens."""
        query = self._either()
        if query is None:
            raise QueryError("the query has operators only: say what to search for")
        return query

    def _peek(self) -> str:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else ""

    def _either(self) -> Node | None:
        branches: list[Node] = []
        while True:
            branch = self._all()
            if branch is not None:
                branches.append(branch)
            if self._peek() != _OR:
                return Or(tuple(branches)) if len(branches) > 1 else next(iter(branches), None)
            self._next += 1

    def _all(self) -> Node | None:
        parts: list[Node] = []
        while self._peek() not in {"", _OR, _CLOSE}:
            if self._peek() == _AND:
                self._next += 1
            else:
                parts.append(self._one())
        return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)

    def _one(self) -> Node:
        token = self._tokens[self._next]
        self._next += 1
        if token.leaf is not None:
            return token.leaf
        if token.kind == _OPEN:
            return self._group(token)
        return self._excluded(token)

    def _excluded(self, token: _Token) -> Node:
        """Return what stands behind NOT or a dash, or several of them: two take each other back."""
        chain = [token]
        while self._peek() in {_NOT, _MINUS}:
            chain.append(self._tokens[self._next])
            self._next += 1
        last = chain.pop()
        if self._peek() in {"", _AND, _OR, _CLOSE}:
            raise QueryError(f"the {last.kind} at character {last.at + 1} has nothing behind it", position=last.at)
        part = self._one()
        if last.kind == _MINUS and isinstance(part, Word):
            part = Not(part, f"-{part.needle.text}")
        else:
            chain.append(last)
        return Not(part) if len(chain) % 2 else part

    def _group(self, opening: _Token) -> Node:
        inside = self._either()
        if self._peek() != _CLOSE:
            raise QueryError(
                f'the "(" at character {opening.at + 1} is never closed; to look for it, put it in quotes: "("',
                position=opening.at,
            )
        self._next += 1
        if inside is None:
            raise QueryError(f"the group at character {opening.at + 1} is empty", position=opening.at)
        return inside


def _is_space(character: str) -> bool:
    return not fold(character) and (character.isspace() or not character.isprintable())
