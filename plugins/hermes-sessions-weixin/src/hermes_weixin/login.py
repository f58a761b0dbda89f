"""The login: a QR code, and what happens on the phone until it is scanned and confirmed.

Nothing here runs in the background: a code is shown to whoever asked for one, and at most three of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import AuthFailed, RetryLater
from hermes_weixin.credentials import Credentials

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_weixin.client import ILinkClient

__all__ = ["AlreadyBound", "LoginTalk", "log_in"]

_MOST_CODES = 3
_MOST_S = 480.0
_PAUSE_S = 1.0
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?")


@attrs.frozen(kw_only=True)
class LoginTalk:
    """What a login has to say and to ask.

    Attributes:
        show: shows the address that the QR code holds. say: one line. ask: returns the digits that the phone shows.
    """

    show: Callable[[str], None]
    say: Callable[[str], None]
    ask: Callable[[str], str]


class AlreadyBound(Exception):
    """The bot is bound to a login that is kept already: nothing is to be done."""


async def log_in(
    client: ILinkClient,
    talk: LoginTalk,
    *,
    known_tokens: Sequence[str],
    clock: Clock,
    pause: Callable[[float], Awaitable[None]],
    base_url: str,
) -> Credentials:
    """Return a new login.

    :param known_tokens: of the logins that are kept, newest first: the server says when the bot has one of them.
    :raises AlreadyBound: it has.
    :raises AuthFailed: it was refused, too many codes ran out, or the server's answer is incomplete.
    :raises RetryLater: the server did not answer, or nobody scanned within eight minutes.
    """
    machine = _Machine(client, talk, known_tokens)
    until = clock.monotonic() + _MOST_S
    while clock.monotonic() < until:
        answer = await machine.step()
        if answer is not None:
            return _credentials(answer, clock.now(), base_url)
        await pause(_PAUSE_S)
    raise RetryLater("nobody scanned and confirmed the code within 8 minutes; run the command again")


class _Machine:
    """The states of a login."""

    def __init__(self, client: ILinkClient, talk: LoginTalk, known_tokens: Sequence[str]) -> None:
        self._client = client
        self._talk = talk
        self._known_tokens = known_tokens
        self._key = ""
        self._codes = 0
        self._host = ""
        self._verify_code = ""
        self._told = ""

    async def step(self) -> Mapping[str, object] | None:
        """Ask once; return the answer that confirms the login, ``None`` while there is none."""
        if not self._key:
            await self._new_code()
        answer = await self._client.qr_status(self._key, host=self._host, verify_code=self._verify_code)
        status = answer.get("status")
        if status == "confirmed":
            return answer
        if status == "binded_redirect":
            raise AlreadyBound
        if status == "scaned":
            self._verify_code = ""
            self._tell("scanned; confirm on the phone")
        elif status == "need_verifycode":
            wrong = "those digits were wrong; " if self._verify_code else ""
            self._verify_code = self._talk.ask(f"{wrong}digits that the phone shows: ").strip()
        elif status == "scaned_but_redirect":
            self._redirect(answer.get("redirect_host"))
        elif status in ("expired", "verify_code_blocked"):
            self._key = ""
            self._talk.say("the code ran out" if status == "expired" else "too many wrong digits")
        return None

    async def _new_code(self) -> None:
        if self._codes >= _MOST_CODES:
            raise AuthFailed(f"{_MOST_CODES} codes ran out; run the command again")
        self._codes += 1
        self._key, content = await self._client.qr_code(self._known_tokens)
        self._host = self._verify_code = self._told = ""
        self._talk.show(content)

    def _redirect(self, host: object) -> None:
        """Poll elsewhere: this code's state is kept there."""
        if not isinstance(host, str) or not _HOST.fullmatch(host):
            raise AuthFailed("the server redirects to no host")
        local = host.partition(":")[0] in ("127.0.0.1", "localhost")
        self._host = f"http://{host}" if local else f"https://{host}"

    def _tell(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._talk.say(line)


def _credentials(answer: Mapping[str, object], now: int, base_url: str) -> Credentials:
    token, bot_id, user_id = (answer.get(name) for name in ("bot_token", "ilink_bot_id", "ilink_user_id"))
    if not isinstance(token, str) or not token or not isinstance(bot_id, str) or not bot_id:
        raise AuthFailed("the server confirmed the login without saying which bot it is; run the command again")
    place = answer.get("baseurl")
    return Credentials(
        token=token,
        bot_id=bot_id,
        user_id=user_id if isinstance(user_id, str) else "",
        base_url=place if isinstance(place, str) and place.startswith(("http://", "https://")) else base_url,
        saved_at=now,
    )
