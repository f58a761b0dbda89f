"""Who is in the story, and what somebody said."""

from __future__ import annotations

import attrs

__all__ = ["ANNA", "BEN", "HAN", "LI", "MING", "MING_AT_HOME", "REPEAT_MARK", "TERMINAL", "Line", "Person"]

TERMINAL = "terminal"
"""What stands for a platform where somebody types on this machine."""
REPEAT_MARK = "(may be a repeat) "
"""What stands before an answer that may have been seen already."""


@attrs.frozen(kw_only=True)
class Person:
    """Somebody at one place of one platform. ``group``: others read along, and the bot is called by its name."""

    name: str
    platform: str
    chat_id: str
    user_id: str
    group: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """Return where they are answered: platform and chat."""
        return self.platform, self.chat_id


MING = Person(name="小明", platform="feishu", chat_id="oc_ming", user_id="ou_ming")
MING_AT_HOME = Person(name="小明", platform=TERMINAL, chat_id=TERMINAL, user_id="")
HAN = Person(name="韩梅梅", platform="feishu", chat_id="oc_bakery", user_id="ou_han", group=True)
LI = Person(name="李雷", platform="weixin", chat_id="wx_li_lei", user_id="wx_li_lei")
ANNA = Person(name="Anna", platform="slack", chat_id="D0ANNA", user_id="U0ANNA")
BEN = Person(name="Ben", platform="slack", chat_id="C0BAKERY", user_id="U0BEN", group=True)


@attrs.frozen(kw_only=True, eq=False)
class Line:
    """One message of somebody.

    Attributes:
        conversation: what belongs together: everything somebody says, wherever, until they begin anew.
        message_id: the platform's; ``""`` where it was typed in a terminal.
        wanted: its answer; for a command, words that stand in it. is_command: it is not kept as something said.
    """

    person: Person
    text: str
    conversation: str
    message_id: str
    wanted: str
    is_command: bool = False

    def is_answered_by(self, text: str) -> bool:
        """Return whether a text is the answer, whole."""
        return self.wanted in text if self.is_command else text == self.wanted
