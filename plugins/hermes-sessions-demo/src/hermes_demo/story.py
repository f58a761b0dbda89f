"""The story, act by act."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_demo.people import ANNA, BEN, HAN, LI, MING, MING_AT_HOME
from hermes_demo.verdict import Kept, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_demo.people import Line
    from hermes_demo.stage import Stage
    from hermes_demo.telling import Teller
    from hermes_demo.verdict import Check

__all__ = ["TITLE", "play"]

TITLE = "周六的面包"
"""Of the session that begins in Feishu."""


async def play(stage: Stage, teller: Teller) -> Sequence[Check]:
    """Play the story on a stage, tell it, and return what it has shown.

    :raises HermesError: it could not be played to its end. What is only missing or wrong is found by the checks.
    """
    await _doors(stage, teller)
    await _talk(stage, teller)
    await _kill(stage, teller)
    await _search(stage, teller)
    await _reset(stage, teller)
    await _terminal(stage, teller)
    teller.act("Lost, doubled, crossed? Counted from the platforms and from the store")
    checks = await _checked(stage)
    teller.summary(checks)
    return checks


async def _doors(stage: Stage, teller: Teller) -> None:
    teller.act("One store, three doors: a gateway connects Feishu, WeChat and Slack, all fakes")
    for command in await stage.log_in():
        teller.typed(f"hermes {command}", "")
    pid = await stage.start()
    teller.happens(f"process {pid} runs: feishu, weixin and slack are connected")


async def _talk(stage: Stage, teller: Teller) -> None:
    teller.act("Five people write at once, in two languages; Feishu delivers one message twice")
    asked = await stage.say(MING, "周六有四个人来吃饭，做面包要多少面粉？")
    lines = [
        asked,
        await stage.say(LI, "帮我记住：面粉在老王店里买。"),
        await stage.say(ANNA, "Remember that the oven is repaired on Tuesday."),
        await stage.say(BEN, "How many croissants for Saturday?"),
        await stage.say(HAN, "周六几点开始？"),
    ]
    for line in lines:
        teller.says(line)
    await stage.again(asked)
    teller.again(asked)
    await _answered(stage, teller, lines)
    titled = await stage.command(MING, f"/title {TITLE}", f"Title: {TITLE}")
    teller.says(titled)
    await _answered(stage, teller, [titled])


async def _kill(stage: Stage, teller: Teller) -> None:
    teller.act("kill -9 in the middle of an answer; others write while nobody is there")
    cut = await stage.say(MING, "请一步一步告诉我怎么烤。")
    teller.says(cut)
    draft = await stage.draft_of(cut)
    pid = await stage.kill()
    teller.happens(f"kill -9 {pid}: so far 小明 can read “{draft}”", style="bold red")
    lines = [
        cut,
        await stage.say(ANNA, "Send the invoice for it to the bakery."),
        await stage.say(LI, "一共要多久？"),
        await stage.say(BEN, "And what about the rye?"),
    ]
    for line in lines[1:]:
        teller.says(line)
    pid = await stage.start()
    teller.happens(f"process {pid} runs and goes on where the dead one was")
    await _answered(stage, teller, lines)


async def _search(stage: Stage, teller: Teller) -> None:
    teller.act("A search: a chat finds what is its person's own, the operator's terminal all")
    found = await stage.command(LI, "/search 面粉", "goes on with one")
    teller.says(found)
    await _answered(stage, teller, [found])
    ran = await stage.house.run("sessions", "search", "面粉")
    teller.typed("hermes sessions search 面粉", ran.out)


async def _reset(stage: Stage, teller: Teller) -> None:
    teller.act("A reset: the next message begins a session, the old one stays in the store")
    begun = await stage.command(ANNA, "/new", "begins a new session")
    teller.says(begun)
    await _answered(stage, teller, [begun])
    stage.begin_anew(ANNA)
    fresh = await stage.say(ANNA, "What did I say just now?")
    teller.says(fresh)
    await _answered(stage, teller, [fresh])


async def _terminal(stage: Stage, teller: Teller) -> None:
    teller.act("A terminal goes on with what began in Feishu, and Feishu goes on behind it")
    line, ran = await stage.type(MING_AT_HOME, TITLE, "到家了，刚才说到哪里？")
    teller.typed(f"hermes -r {TITLE} -q {line.text}", ran.err + ran.out)
    back = await stage.say(MING, "刚才在电脑上说了什么？")
    teller.says(back)
    await _answered(stage, teller, [back])


async def _checked(stage: Stage) -> Sequence[Check]:
    status = await stage.stop()
    exported = await stage.house.run("sessions", "export", "-")
    stats = await stage.house.asked("sessions", "stats")
    unsent = await stage.house.asked("outbox", "list")
    leases = await stage.house.asked("leases")
    unrest = {
        "waiting": int(str(stats["waiting"])) if isinstance(stats, dict) else 1,
        "unsent": len(unsent) if isinstance(unsent, list) else 1,
        "leases": len(leases) if isinstance(leases, list) else 1,
        "bad exits": int(status != 0),
    }
    return verdict(
        stage.lines,
        acknowledged=[line for line in stage.lines if stage.is_acknowledged(line)],
        seen=await stage.seen(),
        kept=Kept(lineages=[json.loads(row) for row in exported.out.splitlines()], unrest=unrest),
    )


async def _answered(stage: Stage, teller: Teller, lines: Sequence[Line]) -> None:
    """Tell the answers as they come, and what did not come; the summary says the same again."""
    for line in await stage.answered(lines, teller.answers):
        teller.misses(line)
