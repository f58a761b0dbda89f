"""Who talks, and where: direct messages on three platforms, groups on two."""

from __future__ import annotations

import attrs

__all__ = ["Person", "Said", "crowd"]


@attrs.frozen(kw_only=True)
class Person:
    """Somebody who writes ``p07-1``, ``p07-2`` and so on."""

    name: str
    platform: str
    chat_id: str
    user_id: str
    group: bool = False

    @property
    def place(self):
        """Return where they are answered."""
        return self.platform, self.chat_id


@attrs.define(kw_only=True, eq=False)
class Said:
    """One message; ``at_s`` on the monotonic clock."""

    person: Person
    text: str
    message_id: str
    at_s: float


def crowd(count):
    """Return people: two of five on Feishu, two on Slack, one on WeChat; every third of the first two in a group."""
    people = []
    for number in range(count):
        name = f"p{number:02}"
        platform = ("feishu", "slack", "weixin", "feishu", "slack")[number % 5]
        group = platform != "weixin" and number % 3 == 0
        chat = f"room-{number % 2}" if group else f"dm-{name}"
        if platform == "slack":
            chat = f"{'C' if group else 'D'}0{chat.upper()}"
        user = name if platform != "weixin" else chat
        people.append(Person(name=name, platform=platform, chat_id=chat, user_id=user, group=group))
    return people
