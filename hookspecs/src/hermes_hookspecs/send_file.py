"""The tool ``send_file``: how a model hands a person a file that it writes itself.

Ready for any agent to offer to its model, or for a plugin to return from ``hermes_tools``. It takes the content, and
no path: what stands on this machine is not within its reach, whatever a text asks the model to do.
"""

from __future__ import annotations

from typing import Annotated

from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.tools import tool

__all__ = ["send_file"]


@tool(effect="idempotent")
async def send_file(
    *,
    name: Annotated[str, "Its name with a suffix that says what it is: report.md, table.csv, plan.html."],
    content: Annotated[str, "All of its text, exactly as it is to stand in the file."],
) -> OutgoingFile:
    """Send this person a text file along with your answer, for what is better kept or opened than read in a chat.

    The file is what you write here; files of the computer cannot be sent. Say in your answer what it is.
    """
    return OutgoingFile(name=name, data=content.encode("utf-8", "replace"))
