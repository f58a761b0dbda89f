"""What of a stored row is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.messages import Message

__all__ = ["searched_text"]


def searched_text(row: Message) -> str:
    """Return the text of a row that queries are matched against, one part to a line.

    The content as it is stored (redacted at the door), names and texts of attachments, the name of a result's tool,
    and of the calls that an assistant row asks for the names and the arguments as the model wrote them.
    """
    if not (row.attachments or row.tool_calls or row.tool_name):
        return row.content
    parts = [row.content]
    for attachment in row.attachments:
        parts += (attachment.name, attachment.text or "")
    parts.append(row.tool_name or "")
    for call in row.tool_calls:
        parts += (call.name, call.arguments)
    return "\n".join(part for part in parts if part)
