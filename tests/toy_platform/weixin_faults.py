"""The stage of WeChat: two accounts, to which the same people write, before the fake iLink server.

Polls fail, and what they bring is lost and comes again with other ids; old messages come again, too. Sends are refused
with -2, fail, or arrive without an answer; logins are refused until a *start*; connections are cut. The quota is small,
so that answers wait for the next message. A gentle plan loses nothing on the way, and there nothing comes again: a
gateway that leaves waits for its poll.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections import Counter
from contextlib import suppress

from toy_faults import END_S, MOST_OPEN, SETTINGS, answered
from toy_process import ToyHome

from hermes_core.config.places import account_places
from hermes_weixin.credentials import save
from hermes_weixin.testing import LOST, FakeWeixin

__all__ = ["ACCOUNTS", "WeixinStage"]

ACCOUNTS = ("default", "second")
PEOPLE = ("ann", "bob", "cem")
QUOTA = 3
AGAIN_S = 1.0
WORD = re.compile(r"message-\d+\.")
HEADING = re.compile(r"\(\d+ answers that waited\)")


class WeixinHome(ToyHome):
    """A home whose platform is WeChat, at a fake server, with plugins in a hurry."""

    entry_point = "weixin-hurry = weixin_hurry:HurryPlugin"
    plugins = "weixin,weixin-hurry"

    def configure(self, port, *, settings="", toy="", dm_policy="open"):
        url = f"http://127.0.0.1:{port}"
        lines = (
            '[agent]\nrunner = "echo"\n[storage]\ndurability = "normal"\n[inbox]\nbatch_window_s = 0\n',
            f'[platforms.weixin]\ndm_policy = "{dm_policy}"\n[plugins.weixin]\naccounts = {json.dumps(ACCOUNTS)}\n',
            f'base_url = "{url}"\ncdn_url = "{url}/c2c"\npeer_pause_s = 0\nbot_pause_s = 0\nleave_s = 10\n',
            f"quota = {QUOTA}\n{toy}\n{settings}\n",
        )
        (self.path / "config.toml").write_text("".join(lines), encoding="utf-8")


class WeixinStage:
    """What two gateways stand on that serve both accounts."""

    between_s = (0.01, 0.12)

    def __init__(self, plan):
        self._plan = plan
        self._fake = FakeWeixin()
        self._sent = []
        self._stale_at = 0.0
        self.home = None

    @property
    def server(self):
        return self._fake.server

    async def start(self):
        await self._fake.start()
        self.server.quota = QUOTA + 1
        self.server.replays = not self._plan.gentle
        self.home = WeixinHome(self._plan.folder, int(self.server.url.rpartition(":")[2]), settings=SETTINGS)
        for account in ACCOUNTS:
            *_, folder = account_places(self.home.path, "weixin", account)
            save(folder, self._fake.login(account))
        return self

    def run(self):
        return self.home.run(env={"WEIXIN_MUTANT": self._plan.mutant})

    def signal(self, dice):
        return signal.SIGTERM if self._plan.gentle or dice.random() < 0.3 else signal.SIGKILL

    # --- what people do

    async def room(self, said):
        """Return once not too much is open; behind a while all the same, since answers may wait for a message."""
        with suppress(TimeoutError):
            await self.server.until(lambda: len(said) - len(self.server.sent) < MOST_OPEN, AGAIN_S)

    async def say(self, dice, said):
        account, person = dice.choice(ACCOUNTS), dice.choice(PEOPLE)
        texts = [f"message-{len(said) + n}." for n in range(1, 1 + dice.choice((1, 1, 1, 2, 5)))]
        self._say(account, person, texts, said)

    def _say(self, account, person, texts, said):
        said += [(f"{account}/{person}", text) for text in texts]
        messages = [self.server.message(person, text) for text in texts]
        self._sent += [(account, message) for message in messages]
        self.server.say(self._fake.bot(account), *messages)

    async def mischief(self, dice):
        chance = dice.random()
        if chance < 0.1:
            account, message = dice.choice(self._sent[-30:])
            self.server.say(self._fake.bot(account), self.server.again(message), counts=False)
        elif chance < 0.25:
            self.server.answers.append(dice.choice(("broken", "arrived", "-2", "-14")))
        elif chance < 0.35:
            lost = () if self._plan.gentle else (LOST, LOST, LOST)
            self.server.poll_failures.append(dice.choice((502, 524, -1, "no json", *lost)))
        elif chance < 0.37:
            self._refuse_login(dice)
        elif chance < 0.38 and not self._plan.gentle:
            await self._fake.drop()

    def _refuse_login(self, dice):
        """Refuse a login until the next *start*; not twice within the time of a gateway's one further try."""
        now = asyncio.get_running_loop().time()
        if now - self._stale_at > 2:
            self._stale_at = now
            bot = self._fake.bot(dice.choice(ACCOUNTS))
            bot.stale = bot.cured_by_start = True

    async def calm(self, said):
        """Let nothing go wrong any more; people whose answers wait write again until they have them."""
        self.server.answers.clear()
        self.server.poll_failures.clear()
        seen, since = Counter(), time.monotonic()
        # patience is with people who get nothing at all: a slow machine is no fault
        while (missing := self._missing(said)) and time.monotonic() - since < END_S:
            await self._until_answered(missing)
            now = Counter(chat for chat, _ in self.seen())
            if now != seen:
                since = time.monotonic()
            waiting = {chat for chat, text in said if text in missing & self._missing(said) and now[chat] == seen[chat]}
            seen = now
            for chat in sorted(waiting):
                account, _, person = chat.partition("/")
                self._say(account, person, [f"message-{len(said) + 1}."], said)

    async def _until_answered(self, missing):
        with suppress(TimeoutError):
            await self.server.until(lambda: answered(self.seen()) >= missing, AGAIN_S)

    def _missing(self, said):
        return {text for _, text in said} - answered(self.seen())

    # --- what came of it

    def seen(self):
        """Return what people saw; of a message that joins answers, each of them."""
        accounts = {self._fake.bot(account).token: account for account in ACCOUNTS}
        return [
            (f"{accounts[one.token]}/{one.peer}", line)
            for one in self.server.sent
            for line in one.text.splitlines()
            if line and not HEADING.fullmatch(line)
        ]

    def acked(self):
        return {}

    def found(self, said):
        """Look into the store: each message once, in the session of its account and its person."""
        wrong = [f"the server was asked wrongly: {fault}" for fault in self.server.faults]
        chats, rows, sessions = {text: chat for chat, text in said}, Counter(), Counter()
        for line in self.home.hermes("sessions", "export", "-").stdout.splitlines():
            session = json.loads(line)
            own = f"{session['account_id']}/{session['user_id']}"
            sessions[own] += 1
            for text in (each for row in session["messages"] if is_said(row) for each in words(row)):
                rows[text] += 1
                if chats.get(text) != own:
                    wrong.append(f"crossed: {text} was said in {chats.get(text)}, and stands in a session of {own}")
        wrong += [f"lost: {text} is in no session" for text in chats if not rows[text]]
        wrong += [f"doubled: {text} stands in {count} rows" for text, count in rows.items() if count > 1]
        return wrong + [f"crossed: {own} has {count} sessions" for own, count in sessions.items() if count > 1]

    async def stop(self):
        await self._fake.stop()


def is_said(row):
    """Return whether a person said a row: what marks a second attempt repeats their words."""
    return row["role"] == "user" and not row["kind"]


def words(row):
    """Return what was said in a row."""
    return WORD.findall(row["content"] or "")
