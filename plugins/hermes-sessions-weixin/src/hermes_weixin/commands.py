"""``hermes weixin login | logout | status | accounts``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AuthFailed, ConfigError, PlatformError
from hermes_weixin.credentials import Credentials, forget, load, save

if TYPE_CHECKING:
    from hermes_hookspecs.cli import CliCall
    from hermes_weixin.config import WeixinConfig
    from hermes_weixin.login import LoginTalk

__all__ = ["accounts", "login", "logout", "status"]


def login(config: WeixinConfig, call: CliCall) -> int:
    """Show a QR code, wait for the phone, keep the login."""
    alias = _alias(call)
    try:
        kept = asyncio.run(_log_in(config, call, alias))
    except EOFError:
        call.err.write("the phone asks for digits; run this in a terminal\n")
        return 1
    call.err.write(f"{alias} is logged in as {kept.bot_id}; {kept.user_id or 'whoever scanned'} may talk to it\n")
    if alias not in config.accounts:
        names = json.dumps([*config.accounts, alias])
        call.err.write(f"for the gateway, write in config.toml:\n[plugins.weixin]\naccounts = {names}\n")
    return 0


async def _log_in(config: WeixinConfig, call: CliCall, alias: str) -> Credentials:
    import aiohttp

    from hermes_weixin.client import ILinkClient
    from hermes_weixin.login import AlreadyBound, log_in

    folder = _folder(call, alias)
    known = sorted(_all_kept(config, call, alias), key=lambda one: -one.saved_at)
    async with aiohttp.ClientSession() as session:
        client = ILinkClient(session, config, base_url=config.base_url)
        try:
            kept = await log_in(
                client,
                _talk(call),
                known_tokens=[one.token for one in known],
                clock=call.app.clock,
                pause=asyncio.sleep,
                base_url=config.base_url,
            )
        except AlreadyBound:
            before = load(folder)
            if before is None:
                raise AuthFailed(f"this WeChat is bound to another alias already; {alias} was not changed") from None
            return before
    save(folder, kept)
    return kept


def _all_kept(config: WeixinConfig, call: CliCall, alias: str) -> list[Credentials]:
    found = (load(_folder(call, name)) for name in dict.fromkeys((alias, *config.accounts)))
    return [one for one in found if one is not None]


def _talk(call: CliCall) -> LoginTalk:
    from hermes_weixin.login import LoginTalk

    def show(address: str) -> None:
        call.err.write("scan this with WeChat:\n")
        _draw(call, address)
        call.err.write(f"{address}\n")
        call.err.flush()

    def say(line: str) -> None:
        call.err.write(f"{line}\n")
        call.err.flush()

    return LoginTalk(show=show, say=say, ask=input)


def _draw(call: CliCall, address: str) -> None:
    """Draw a QR code of half blocks, where the extra ``login`` is installed."""
    try:
        import segno
    except ModuleNotFoundError:
        call.err.write(
            "(pip install 'hermes-sessions-weixin[login]' draws the code here; until then open the address)\n"
        )
        return
    segno.make(address, error="l").terminal(out=call.err, compact=True, border=2)


def logout(_config: WeixinConfig, call: CliCall) -> int:
    """Forget the login; the bot stays bound on the phone."""
    alias = _alias(call)
    if not forget(_folder(call, alias)):
        call.err.write(f"{alias} was not logged in\n")
        return 1
    call.err.write(f"{alias} is logged out here; the phone lists the bot until it is removed there\n")
    return 0


def status(config: WeixinConfig, call: CliCall) -> int:
    """Ask the server whether the login of an account is valid; nothing is received by that."""
    alias = _alias(call)
    kept = load(_folder(call, alias))
    state, detail = asyncio.run(_state(config, alias, kept))
    if call.values.get("json"):
        row = {"account": alias, "state": state, "detail": detail, "bot_id": kept.bot_id if kept else None}
        call.out.write(f"{json.dumps(row, ensure_ascii=False)}\n")
    else:
        call.out.write(f"{alias}: {state}{f' ({detail})' if detail else ''}\n")
    return 0 if state == "valid" else 1


async def _state(config: WeixinConfig, alias: str, kept: Credentials | None) -> tuple[str, str]:
    import aiohttp

    from hermes_weixin.client import ILinkClient

    if kept is None:
        return "logged out", f"run: hermes weixin login {alias}"
    async with aiohttp.ClientSession() as session:
        client = ILinkClient(session, config, base_url=kept.base_url, token=kept.token)
        try:
            # a ticket for whoever logged in: the one request that shows the login and moves nothing
            await client.typing_ticket(kept.user_id, "")
        except AuthFailed as error:
            return "refused", str(error)
        except PlatformError as error:
            return "unknown", str(error)
    return "valid", ""


def accounts(config: WeixinConfig, call: CliCall) -> int:
    """List the accounts of the configuration, and of the folder."""
    rows = []
    for alias in sorted({*config.accounts, *_aliases_kept(call)}, key=lambda name: (name != "default", name)):
        try:
            kept = load(_folder(call, alias))
            state = "logged in" if kept else "logged out"
        except ConfigError as error:
            kept, state = None, str(error)
        runs = alias in config.accounts
        rows.append(
            {
                "account": alias,
                "state": state,
                "configured": runs,
                "bot_id": kept.bot_id if kept else None,
                "user_id": kept.user_id if kept else None,
            }
        )
    if call.values.get("json"):
        call.out.write(f"{json.dumps(rows, ensure_ascii=False)}\n")
        return 0
    if not rows:
        call.err.write("no account yet; run: hermes weixin login\n")
    width = max((len(str(row["account"])) for row in rows), default=0)
    for row in rows:
        place = "" if row["configured"] else "  not in [plugins.weixin] accounts"
        call.out.write(f"{row['account']:<{width}}  {row['state']}{place}\n")
    return 0


def _aliases_kept(call: CliCall) -> list[str]:
    folder = Path(call.app.account_folder("weixin", "default")).parent
    return sorted(place.name for place in folder.iterdir() if (place / "credentials.json").exists())


def _alias(call: CliCall) -> str:
    return str(call.values.get("account") or "default")


def _folder(call: CliCall, alias: str) -> Path:
    return Path(call.app.account_folder("weixin", alias))
