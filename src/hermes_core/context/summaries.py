"""The summary that needs no model: what was asked, decided, touched and left open, in the conversation's language.

It takes over sentences as they were said and adds nothing; the same rows give the same text. A summary of an earlier
compression is read back section by section, so that what was important ten compressions ago is still there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_core.context.languages import SECTIONS, Words, language_of, section_of, words_of
from hermes_core.context.tokens import estimate_tokens, shortened
from hermes_hookspecs.messages import ASSISTANT, KIND_CLOSING, KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hermes_hookspecs.messages import Message

__all__ = ["ExtractiveSummariser", "extract", "parted", "with_request"]

REQUEST = "## Last request, word for word"
"""Heading of what a person asked for last, where the message itself does not stay in the context."""

_MOST = {"goals": 10, "focus": 12, "decisions": 16, "files": 40, "commands": 16, "results": 8, "open": 10, "earlier": 1}
"""Most lines of each section; half of them are the oldest, half the newest."""
_LONGEST_LINE = 300
_SHORTEST_LINE = 80
_LONGEST_EARLIER = 4000
_LEAST_SHARE = 0.05
"""A summary with less than this of its lines has one of each part."""
_LEAST_GOAL = 2
"""Tokens of a first sentence that says nothing of what is wanted: *Yes.*"""
_LONGEST_READ = 20_000
"""Characters of one row that are looked at: what matters in a long paste stands at its ends."""

_PAIRS = ("“”", "‘’", "„“", "«»", "「」", "『』")
_QUOTED = "|".join(f"{pair[0]}[^{pair}\\n]{{0,300}}{pair[1]}" for pair in _PAIRS)
_QUOTE = re.compile(rf'{_QUOTED}|"[^"\n]{{0,300}}"')
"""What somebody else said, or what is only named: no end of a sentence, and no decision of whoever quotes it."""
_SENTENCE = re.compile(
    rf'(?:{_QUOTED}|(?<!\w)"[^"\n]{{0,300}}"|[^\n。！？!?；])*?(?:[。！？!?；]+[”’」』»"]?|\.(?=\s|$)|\n|$)'
)
_PATH = re.compile(
    r"(?<![\w/.@:+-])(?:~?/|\.{1,2}/|[\w-]+/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,9}(?![\w/])"
)
_ABSOLUTE = re.compile(r"(?<![\w.:/])(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}")
_SHELL = re.compile(r"^[ \t]*\$ (.+)$|`([a-z][\w.-]* [^`\n]{2,200})`", re.MULTILINE)
_COMMAND_ARGUMENTS = ("command", "cmd", "script", "query", "url")
_FILE_ARGUMENTS = ("path", "file", "filename", "file_path", "filepath")
_NOT_FILES = frozenset({"e.g", "i.e", "etc"})
_DOMAINS = frozenset({"com", "org", "net", "io", "dev", "cn", "ai", "de", "fr", "jp", "ru", "uk"})


@attrs.define
class _Notes:
    """Lines of each section, in order, each once."""

    lines: dict[str, dict[str, None]] = attrs.field(factory=dict)

    def add(self, section: str, text: str, *, longest: int = _LONGEST_LINE) -> None:
        """Note a line; white space is collapsed, what is too long is cut."""
        line = " ".join(text.split())
        if len(line) > longest:
            line = f"{line[: longest - 1].rstrip()}…"
        if line.strip(".-*#> "):
            self.lines.setdefault(section, {})[line] = None

    def of(self, section: str, share: float, asks: re.Pattern[str]) -> list[str]:
        """Return the lines that a summary has room for, the oldest and the newest: a ``share`` of the most.

        Of too many goals those stay that ask for something: a first sentence may be small talk.
        """
        found, most = list(self.lines.get(section, ())), max(int(_MOST[section] * share), 1)
        if section == "goals" and len(found) > most:
            found = [line for line in found if asks.search(line.lower())] or found
        kept = found if len(found) <= most else [*found[: most // 2], *found[len(found) - (most - most // 2) :]]
        longest = max(int(_LONGEST_LINE * share), _SHORTEST_LINE)
        return kept if share == 1 else [one if len(one) <= longest else f"{one[: longest - 1]}…" for one in kept]


class ExtractiveSummariser:
    """Makes summaries without a model. Works on a thread: 20 000 rows take some seconds."""

    name: str = "extractive"

    async def summarise(self, rows: Sequence[Message], *, previous: str | None, focus: str | None) -> str:
        """Return the summary of ``rows`` (oldest first), building on the ``previous`` one."""
        from asyncio import to_thread

        return await to_thread(extract, rows, previous=previous, focus=focus)


def extract(
    rows: Sequence[Message], *, previous: str | None = None, focus: str | None = None, most_tokens: int | None = None
) -> str:
    """Return what the summariser does: pure, and never blank.

    :param most_tokens: as estimated; with fewer and shorter lines where the whole of it has more.
    """
    said = [row for row in rows if row.kind not in {KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY, KIND_CLOSING}]
    words = words_of(language_of(_sample(said, previous)))
    notes = _Notes()
    if previous:
        _read_back(notes, previous)
    open_before = notes.lines.pop("open", {})
    for row in said:
        _note_row(notes, row, words, focus)
    _note_open_ends(notes, said, words, open_before)
    share = 1.0
    while True:
        text = _written(notes, words, focus, share) or f"## {words.headings['goals']}\n- …"
        if most_tokens is None or estimate_tokens(text) <= most_tokens:
            return text
        if share < _LEAST_SHARE:
            return shortened(text, most_tokens)
        share /= 2


def with_request(text: str, request: str | None) -> str:
    """Return a summary that hands a request on; ``None`` leaves it as it is."""
    return text if not request else f"{text}\n\n{REQUEST}\n{request}"


def parted(summary: str) -> tuple[str, str | None]:
    """Return what :func:`with_request` joined."""
    text, mark, request = summary.partition(f"\n\n{REQUEST}\n")
    return text, request if mark else None


def _sample(rows: Sequence[Message], previous: str | None) -> str:
    """Return enough of what people said to know their language."""
    texts = [row.content[:400] for row in rows if row.role == USER][-40:]
    return "\n".join(texts or [row.content[:400] for row in rows if row.role == ASSISTANT][-20:] or [previous or ""])


def _read_back(notes: _Notes, previous: str) -> None:
    """Take over the lines of an earlier summary; one of another form is kept as it is, in one piece."""
    section = ""
    for line in previous.splitlines():
        if line.startswith("## "):
            section = section_of(line[3:].strip())
        elif section and line.startswith("- "):
            notes.add(section, line[2:], longest=_LONGEST_EARLIER if section == "earlier" else _LONGEST_LINE)
    if not notes.lines:
        notes.add("earlier", previous, longest=_LONGEST_EARLIER)


def _note_row(notes: _Notes, row: Message, words: Words, focus: str | None) -> None:
    for name, argument in _arguments(row):
        if name in _COMMAND_ARGUMENTS:
            notes.add("commands", argument)
        elif name in _FILE_ARGUMENTS:
            notes.add("files", argument)
    if row.role == TOOL:
        return
    text = _ends_of(row.content)
    for path in _paths(text):
        notes.add("files", path)
    for shell, quoted in _SHELL.findall(text):
        notes.add("commands", shell or quoted)
    wanted = [part.lower() for part in (focus or "").split()]
    for number, sentence in enumerate(_sentences(text)):
        _note_sentence(notes, row, sentence, words, is_first=number == 0)
        if any(part in sentence.lower() for part in wanted):
            notes.add("focus", sentence)


def _note_sentence(notes: _Notes, row: Message, sentence: str, words: Words, *, is_first: bool) -> None:
    begins = is_first and estimate_tokens(sentence) > _LEAST_GOAL
    if row.role == USER and (begins or words.asks.search(sentence.lower())):
        notes.add("goals", sentence)
    own = _own(sentence)
    if words.decides.search(own):
        notes.add("decisions", sentence)
    elif row.role == ASSISTANT and words.reports.search(own):
        notes.add("results", sentence)


def _note_open_ends(notes: _Notes, rows: Sequence[Message], words: Words, before: Mapping[str, None]) -> None:
    """Note what was put off, and what the newest rows leave unanswered; older open ends stand before them."""
    for line in before:
        notes.add("open", line)
    for row in rows:
        if row.role in {USER, ASSISTANT}:
            for sentence in _sentences(_ends_of(row.content)):
                if words.puts_off.search(_own(sentence)):
                    notes.add("open", sentence)
    last = next((row for row in reversed(rows) if row.role in {USER, ASSISTANT} and row.content.strip()), None)
    if last is not None:
        asked = [one for one in _sentences(_ends_of(last.content)) if one.rstrip().endswith(("?", "？"))]
        for sentence in asked[-2:]:
            notes.add("open", sentence)


def _written(notes: _Notes, words: Words, focus: str | None, share: float) -> str:
    parts = []
    for section in SECTIONS:
        lines = notes.of(section, share, words.asks)
        if lines:
            heading = words.headings[section]
            about = f": {' '.join(focus.split())[:80]}" if section == "focus" and focus else ""
            parts.append("\n".join([f"## {heading}{about}", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts)


def _ends_of(text: str) -> str:
    if len(text) <= _LONGEST_READ:
        return text
    half = _LONGEST_READ // 2
    return f"{text[:half]}\n{text[-half:]}"


def _sentences(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        sentence = match[0].strip().lstrip("#>*-• ").strip()
        if len(sentence) > 1:
            yield sentence


def _own(sentence: str) -> str:
    """Return what a sentence says by itself, in lower case: what it quotes counts for nothing."""
    return _QUOTE.sub(" … ", sentence).lower()


def _arguments(row: Message) -> Iterable[tuple[str, str]]:
    """Return the texts that the calls of a row were given, by name; arguments that are no JSON are skipped."""
    if not row.tool_calls:
        return ()
    import json

    found: list[tuple[str, str]] = []
    for call in row.tool_calls:
        try:
            given = json.loads(call.arguments)
        except (ValueError, RecursionError):
            continue
        if isinstance(given, dict):
            found += [(str(name), value) for name, value in given.items() if isinstance(value, str) and value.strip()]
    return found


def _paths(text: str) -> Iterator[str]:
    for match in _ABSOLUTE.finditer(text):
        yield match[0].rstrip(".")
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".")
        stem, _, ending = path.rpartition(".")
        plain = "/" not in path
        if path.lower() in _NOT_FILES or (plain and (ending.lower() in _DOMAINS or ending.istitle() or not stem)):
            continue
        yield path
