"""The commands ``hermes weixin …``, as descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_weixin.config import WeixinConfig

__all__ = ["commands"]

_ACCOUNT = CliArgument(name="account", help="alias of the account, default when left out", required=False)
_JSON = CliOption(names=("--json",), kind="flag", help="as JSON")


def commands(config: WeixinConfig) -> Sequence[CliCommand]:
    """Return the commands of the platform."""
    from functools import partial

    from hermes_weixin import commands as room

    return (
        CliCommand(
            path=("weixin", "login"),
            summary="bind a bot to your WeChat by a QR code",
            group_summary="WeChat accounts",
            run=partial(room.login, config),
            arguments=(_ACCOUNT,),
            details="The code is shown in the terminal. Whoever scans it may talk to the bot at once.",
        ),
        CliCommand(
            path=("weixin", "logout"), summary="forget the login of an account", run=partial(room.logout, config),
            arguments=(_ACCOUNT,),
        ),
        CliCommand(
            path=("weixin", "status"), summary="ask the server whether a login is valid",
            run=partial(room.status, config),
            arguments=(_ACCOUNT,), options=(_JSON,),
        ),
        CliCommand(
            path=("weixin", "accounts"), summary="list the accounts", run=partial(room.accounts, config),
            options=(_JSON,),
        ),
    )  # fmt: skip
