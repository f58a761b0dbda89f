"""The words of documents: plain text with what the language brings, PDF with ``pypdf`` where it is installed.

``pip install "hermes-sessions-core[documents]"`` brings it: a pure-Python library without dependencies, so that the
extra costs nobody a compiler. What cannot be read has no words, and its name and size stand for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Attachment

__all__ = ["DocumentWords"]

MOST_BYTES: Final = 100 * 1024
"""Most bytes of a text that is taken whole; a longer one is cut, and the cut is told with its text."""
MOST_PAGES: Final = 200
_MOST_CHARACTERS: Final = 40_000
_TEXT_TYPES: Final = (
    "application/json",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/x-sh",
    "application/javascript",
    "application/sql",
)
_ENDINGS: Final = (
    *(".txt", ".md", ".rst", ".csv", ".tsv", ".log", ".json", ".yaml", ".yml", ".toml", ".ini", ".xml", ".html"),
    *(".py", ".js", ".ts", ".go", ".rs", ".c", ".h", ".cpp", ".java", ".sh", ".sql", ".diff", ".patch"),
)


class DocumentWords:
    """Reads documents (:class:`~hermes_hookspecs.ports.services.AttachmentDescriber`); the last one asked."""

    name = "documents"
    kinds: tuple[str, ...] = ("document",)

    async def describe(self, attachment: Attachment, data: bytes) -> str | None:
        """Return a document's words, ``None`` for one that has none or that nothing here can read."""
        from asyncio import to_thread

        media_type, name = attachment.media_type.lower().partition(";")[0].strip(), attachment.name.lower()
        if data.startswith(b"%PDF-"):
            return await to_thread(_words_of_pdf, data)
        if media_type.startswith("text/") or media_type in _TEXT_TYPES or name.endswith(_ENDINGS):
            return await to_thread(_words_of_text, data)
        return None


def _words_of_text(data: bytes) -> str | None:
    """Return a text, ``None`` for what is none. Bytes of a foreign encoding are read as what they most likely are."""
    is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in data[:4096] and not is_utf16:
        return None
    part = data[:MOST_BYTES]
    for encoding in ("utf-16",) if is_utf16 else ("utf-8-sig", "gb18030"):
        try:
            words = part.decode(encoding, "strict" if len(part) == len(data) else "ignore")
        except UnicodeDecodeError:
            continue
        break
    else:
        words = part.decode("utf-8", "replace")
    if len(part) < len(data):
        words = f"{words}\n(cut: {len(part)} of {len(data)} bytes)"
    return words


class _Page(Protocol):
    def extract_text(self) -> str: ...


class _Pdf(Protocol):
    pages: Sequence[_Page]


def _words_of_pdf(data: bytes) -> str | None:
    """Return the words of a PDF's first pages; ``None`` without the library, or for a PDF of pictures."""
    from importlib import import_module
    from io import BytesIO

    try:
        library = import_module("pypdf")
    except ImportError:
        return None
    pdf: _Pdf = library.PdfReader(BytesIO(data))
    pages: list[str] = []
    count = length = 0
    for page in pdf.pages[:MOST_PAGES]:
        text = page.extract_text().strip()
        count += 1
        pages.append(text)
        length += len(text)
        if length > _MOST_CHARACTERS:
            break
    if not any(pages):
        return None
    if count < len(pdf.pages):
        pages.append(f"(cut: {count} of {len(pdf.pages)} pages)")
    return "\n\n".join(page for page in pages if page)
