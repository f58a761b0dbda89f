"""The commands around the gateway, as plain descriptions."""

from __future__ import annotations

from typing import Final

from hermes_hookspecs.cli import CliArgument, CliCommand, CliOption

__all__ = ["GATEWAY_COMMANDS", "QUICK"]

_JSON = CliOption(names=("--json",), kind="flag", help="Print JSON.")
_PAIRING = "Who may write to us on chat platforms."

GATEWAY_COMMANDS: Final = (
    CliCommand(
        path=("gateway", "run"),
        group_summary="The process that connects chat platforms.",
        summary="Connect the chat platforms that are configured; answer until told to stop.",
        run="hermes_cli.gateways:run",
        options=(
            CliOption(
                names=("--platform",), many=True, metavar="NAME", help="Only this one; may be given several times."
            ),
            CliOption(names=("--agent",), metavar="NAME", help="Who answers (see `hermes agents`)."),
        ),
        details=(
            "SIGTERM and Ctrl-C let turns end and send what is due; a second one stops at once, and nothing is lost. "
            'SIGHUP reads the configuration anew. What happens is logged to stderr; [gateway] log = "json" makes '
            "each line an object. Nobody's text is ever logged."
        ),
    ),
    CliCommand(
        path=("gateway", "status"),
        summary="Say which accounts are connected, what waits, and whom nobody let in.",
        run="hermes_cli.gateways:status",
        options=(_JSON,),
        details="The exit status is 0 where a gateway runs and every account is connected, 1 otherwise.",
    ),
    CliCommand(
        path=("gateway", "stop"),
        summary="Ask the gateway of this profile to stop, and wait.",
        run="hermes_cli.gateways:stop",
        options=(
            CliOption(
                names=("--timeout",),
                kind="int",
                least=0,
                most=86_400,
                metavar="SECONDS",
                help="How long to wait [default: 90].",
            ),
            _JSON,
        ),
    ),
    CliCommand(
        path=("pairing", "list"),
        group_summary=_PAIRING,
        summary="List who asked to be let in, who was, and whose messages were not taken.",
        run="hermes_cli.pairings:list_pairings",
        options=(_JSON,),
    ),
    CliCommand(
        path=("pairing", "approve"),
        summary="Let in whoever was sent this code.",
        run="hermes_cli.pairings:approve",
        arguments=(CliArgument(name="code", help="As the bot told it to them."),),
        options=(_JSON,),
    ),
    CliCommand(
        path=("pairing", "revoke"),
        summary="Let somebody in no longer, or forget that they asked.",
        run="hermes_cli.pairings:revoke",
        arguments=(CliArgument(name="user", help="An id that `hermes pairing list` shows."),),
        options=(CliOption(names=("--platform",), metavar="NAME", help="Only there."), _JSON),
    ),
)

QUICK: Final = frozenset({("gateway", "stop"), ("pairing", "list"), ("pairing", "revoke")})
"""Paths of those that load no plugins."""
