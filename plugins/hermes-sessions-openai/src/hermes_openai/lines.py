"""The lines of an answer, made of its bytes: as the formats have them, and never more than is wanted.

Only a line feed, a carriage return, or both end a line. Python, and clients that rely on it, also part text at marks
such as U+2028, which JSON may hold as they are: an answer would be torn there.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable

__all__ = ["TooLong", "lines_of"]

_END = re.compile("\r\n|\n|\r")


class TooLong(Exception):
    """There are more bytes than are taken."""


async def lines_of(chunks: AsyncIterable[bytes], *, most_bytes: int) -> AsyncGenerator[str, None]:
    """Yield the lines without their ends; bytes that are no UTF-8 are replaced.

    :raises TooLong: there are more than ``most_bytes``; the lines before were given.
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    begun: list[str] = []
    taken = 0
    held = ""
    async for chunk in chunks:
        taken += len(chunk)
        if taken > most_bytes:
            raise TooLong
        text = held + decoder.decode(chunk)
        held = "\r" if text.endswith("\r") else ""  # perhaps half of an end
        first, *rest = _END.split(text[: len(text) - len(held)])
        begun.append(first)
        for line in rest:
            yield "".join(begun)
            begun = [line]
    begun.append(decoder.decode(b"", final=True))
    last = "".join(begun)
    if last or held:
        yield last
