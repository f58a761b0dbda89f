"""The same on a running event loop: two people at once, each with a session of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_core import SessionSource, open_app

if TYPE_CHECKING:
    from hermes_core import HermesApp
    from hermes_hookspecs.ports.agent import TurnContext


async def answer(turn: TurnContext) -> str:
    """Answer without blocking the loop; a call of a model would stand here."""
    await asyncio.sleep(0)
    return f"{turn.principal.name} said {turn.text}"


async def talk(app: HermesApp, person: str) -> None:
    """Send one message of a person in a group and print the answer."""
    source = SessionSource(
        platform="feishu", chat_type="group", chat_id="oc_kitchen", user_id=f"ou_{person}", user_name=person
    )
    result = await app.ask_async("hello", source, agent=answer)
    print(result.entry.session_key, "->", result.text)


async def main() -> None:
    """Open the profile once for both."""
    with open_app() as app:
        await asyncio.gather(talk(app, "an"), talk(app, "bo"))


asyncio.run(main())
